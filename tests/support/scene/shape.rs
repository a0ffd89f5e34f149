//! Shapes by their distances: negative inside, in the unit of the scene.

use super::Place;

/// Turns a distance into the part of a pixel that lies inside, from 0 to 1: edges come out soft.
pub(super) fn cover(distance: f32, pixel: f32) -> f32 {
    (0.5 - distance / pixel).clamp(0.0, 1.0)
}

/// Returns the distance from a circle.
pub(super) fn circle(at: Place, centre: Place, radius: f32) -> f32 {
    (at[0] - centre[0]).hypot(at[1] - centre[1]) - radius
}

/// Returns the distance from an upright rectangle between two corners.
pub(super) fn rectangle(at: Place, from: Place, to: Place) -> f32 {
    let across = (from[0] - at[0]).max(at[0] - to[0]);
    let down = (from[1] - at[1]).max(at[1] - to[1]);
    across.max(down)
}

/// Returns the distance from a convex polygon, its corners clockwise as seen on the screen.
pub(super) fn polygon(at: Place, corners: &[Place]) -> f32 {
    let mut distance = f32::MIN;
    for (index, from) in corners.iter().enumerate() {
        let to = corners[(index + 1) % corners.len()];
        let (along, down) = (to[0] - from[0], to[1] - from[1]);
        let outwards = ((at[0] - from[0]) * down - (at[1] - from[1]) * along) / along.hypot(down);
        distance = distance.max(outwards);
    }
    distance
}
