//! Noise that looks like nature: the same for the same seed, on every machine.

/// Returns a number from 0 to 1 for a place on a grid, unlike those of its neighbours.
pub(super) fn grain(x: u32, y: u32, seed: u32) -> f32 {
    let mut hash =
        x.wrapping_mul(0x9E37_79B1) ^ y.wrapping_mul(0x85EB_CA77) ^ seed.wrapping_mul(0xC2B2_AE3D);
    hash = (hash ^ (hash >> 15)).wrapping_mul(0x2C1B_3C6D);
    hash = (hash ^ (hash >> 12)).wrapping_mul(0x297A_2D39);
    let [high, low, ..] = (hash ^ (hash >> 15)).to_be_bytes();
    f32::from(u16::from_be_bytes([high, low])) / 65535.0
}

/// Returns value noise: smooth between the places of a grid whose meshes are 1 wide.
fn smooth(x: f32, y: f32, seed: u32) -> f32 {
    let (left, along) = mesh(x);
    let (top, down) = mesh(y);
    let (right, bottom) = (left.wrapping_add(1), top.wrapping_add(1));

    let above = between(grain(left, top, seed), grain(right, top, seed), along);
    let below = between(grain(left, bottom, seed), grain(right, bottom, seed), along);
    between(above, below, down)
}

/// Returns the mesh of a grid that a place lies in, and how far into the mesh it lies, from 0 to 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the grid wraps around, far outside of every picture"
)]
pub(super) fn mesh(value: f32) -> (u32, f32) {
    let floor = value.floor();
    (floor as i32 as u32, value - floor)
}

fn between(a: f32, b: f32, part: f32) -> f32 {
    a + (b - a) * part * part * (3.0 - 2.0 * part)
}

/// Returns noise of several sizes laid over each other, each half as large and half as strong as the one before
/// (fractional Brownian motion), from 0 to 1.
pub(super) fn clouds(x: f32, y: f32, seed: u32, octaves: u32) -> f32 {
    let (mut sum, mut strength, mut total, mut scale) = (0.0, 1.0, 0.0, 1.0);
    for octave in 0..octaves {
        sum += strength * smooth(x * scale, y * scale, seed.wrapping_add(octave));
        total += strength;
        strength *= 0.5;
        scale *= 2.03;
    }
    sum / total
}

/// Like [`clouds`] along a line, folded at the middle: the skyline of mountains.
pub(super) fn ridge(x: f32, seed: u32, octaves: u32) -> f32 {
    let (mut sum, mut strength, mut total, mut scale) = (0.0, 1.0, 0.0, 1.0);
    for octave in 0..octaves {
        let value = smooth(x * scale, 0.0, seed.wrapping_add(octave));
        sum += strength * (1.0 - (2.0 * value - 1.0).abs());
        total += strength;
        strength *= 0.45;
        scale *= 2.1;
    }
    sum / total
}
