//! Animations made to do harm: thousands of frames, frames that lie about their size or their place, and
//! canvases far larger than what is drawn on them.

use super::animations::{Coding, Step, moving_gif, moving_png, moving_webp};
use super::arsenal::{Answer, Weapon};

const RED: [u8; 4] = [220, 30, 30, 255];
const BLUE: [u8; 4] = [30, 30, 220, 255];

/// The memory of an answer from the structure alone: a few buffers.
const OUTLINE_MIB: u64 = 24;

/// Makes all weapons against animated variants.
pub(crate) fn weapons() -> Vec<Weapon> {
    let mut all = many_frames();
    all.extend(odd_places());
    all.extend(lies());
    all
}

/// A GIF of a whole frame and as many of one pixel, on a screen of that side.
fn pixels_on(side: u16, frames: usize) -> Vec<u8> {
    let first = Step::flat(0, 0, 300, 300, BLUE);
    let mut bytes = moving_gif(side, side, &[first], Some(0));
    bytes.pop();
    // Graphic control, descriptor, LZW data.
    let pixel = b"\x21\xF9\x04\0\x02\0\0\0\x2C\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0";
    bytes.extend(pixel.repeat(frames));
    bytes.push(0x3B);
    bytes
}

/// Animations of very many frames, or of few that cost much.
fn many_frames() -> Vec<Weapon> {
    let blink = [RED, BLUE].map(|color| Step::flat(0, 0, 300, 300, color));
    let still = moving_webp(300, 300, &blink, 0, Coding::Lossless);
    let at = still.windows(4).position(|kind| kind == b"ANMF").unwrap();
    let webp = [&still[..at], &still[at..].repeat(10_000)].concat();
    let steps: Vec<_> = (0..1001).map(|at| blink[at % 2].clone()).collect();
    [
        ("GIF, 100,000 frames", pixels_on(300, 100_000), Answer::TooLarge, OUTLINE_MIB),
        ("GIF, 900 pixels on 4000²", pixels_on(4000, 900), Answer::TooLarge, OUTLINE_MIB),
        ("GIF, 5 pixels on 7000²", pixels_on(7000, 5), Answer::TooLarge, OUTLINE_MIB),
        ("GIF, 3 pixels on 3000²", pixels_on(3000, 3), Answer::Variant, 16 + 12 * 9),
        ("GIF, 90 pixels on 300²", pixels_on(300, 90), Answer::Variant, 48),
        ("APNG, 1001 frames", moving_png(300, 300, &steps, 0, None), Answer::TooLarge, OUTLINE_MIB),
        ("WebP, 20,000 frames", webp, Answer::TooLarge, OUTLINE_MIB),
    ]
    .map(|(name, bytes, answer, memory_mib)| Weapon { name, bytes, answer, memory_mib })
    .into()
}

/// Frames that are larger than their canvas, or outside.
fn odd_places() -> Vec<Weapon> {
    let whole = Step::flat(0, 0, 300, 300, RED);
    let outside = Step::flat(60_000, 60_000, 4, 4, BLUE);
    let steps: Vec<_> = [&whole].into_iter().chain([&outside; 60]).cloned().collect();

    // A frame that claims to be of 65535², and has the data of one pixel.
    let mut huge = pixels_on(300, 2);
    let at = huge.windows(10).rposition(|found| found[0] == 0x2C && found[5] == 1).unwrap();
    huge[at + 5..at + 9].fill(0xFF);
    // As large as is allowed: its rows are read one by one.
    let mut large = pixels_on(300, 2);
    large[at + 5..at + 9].copy_from_slice(b"\x20\x4E\x20\x4E");

    let mut beside = vec![whole.clone(), whole.clone()];
    beside.push(Step::flat(290, 290, 20, 20, BLUE));
    let webp = moving_webp(300, 300, &beside, 0, Coding::Lossless);
    [
        ("GIF, 60 frames outside", moving_gif(300, 300, &steps, Some(0)), Answer::Variant),
        ("GIF, a frame of 65535²", huge, Answer::TooLarge),
        ("GIF, a frame of 20000² on 300²", large, Answer::Variant),
        ("WebP, a frame beyond the canvas", webp, Answer::Variant),
    ]
    .map(|(name, bytes, answer)| Weapon { name, bytes, answer, memory_mib: 48 })
    .into()
}

/// Files whose structure says more than there is.
fn lies() -> Vec<Weapon> {
    let blink = [RED, BLUE].map(|color| Step::flat(0, 0, 300, 300, color));
    let png = moving_png(300, 300, &blink, 0, None);
    let place = |kind: &[u8; 4]| png.windows(4).position(|found| found == kind).unwrap();
    let with = |kind: &[u8; 4], at: usize, bytes: &[u8], payload: usize| {
        let mut lying = png.clone();
        let start = place(kind);
        lying[start + 4 + at..][..bytes.len()].copy_from_slice(bytes);
        let sum = super::pictures::crc32(&lying[start..start + 4 + payload]).to_be_bytes();
        lying[start + 4 + payload..][..4].copy_from_slice(&sum);
        lying
    };

    let mut cut = pixels_on(300, 2);
    cut.truncate(cut.len() - 4);

    let webp = moving_webp(300, 300, &blink, 0, Coding::Lossy);
    let frame = webp.windows(3).rposition(|found| found == [0x9D, 0x01, 0x2A]).unwrap();
    let mut bitstream = webp.clone();
    bitstream[frame + 3..frame + 7].copy_from_slice(b"\xFF\x3F\xFF\x3F");
    [
        (
            "APNG, 2³²−1 frames of which there are two",
            with(b"acTL", 0, &[0xFF; 4], 8),
            Answer::Variant,
        ),
        ("APNG, endless, with plays of 2³²−1", with(b"acTL", 4, &[0xFF; 4], 8), Answer::Variant),
        ("APNG, a frame of 2³² squared", with(b"fcTL", 4, &[0xFF; 8], 26), Answer::TooLarge),
        ("WebP, a frame with a bitstream of 16383²", bitstream, Answer::Variant),
        ("GIF, cut in its last frame", cut, Answer::Variant),
    ]
    .map(|(name, bytes, answer)| Weapon { name, bytes, answer, memory_mib: 48 })
    .into()
}
