//! The red house with its white windows, seen from its corner.

use super::noise::clouds;
use super::shape::{circle, cover, polygon, rectangle};
use super::{Colour, Light, Place, lit, mix, step};

/// The foot of the house's front corner, in the scene.
const FOOT: Place = [0.17, 0.345];
/// The size of the house's unit, in the scene's.
const SCALE: f32 = 0.36;

const RED: Colour = [0.66, 0.15, 0.11];
const WHITE: Colour = [0.96, 0.95, 0.91];
const SLATE: Colour = [0.23, 0.23, 0.27];
const DOOR: Colour = [0.16, 0.30, 0.28];

/// The house in one light.
pub(super) struct House {
    ground: f32,
    glass: Colour,
    smoke: Colour,
}

impl House {
    pub(super) fn new(light: Light, ground: f32) -> Self {
        let glass = match light {
            Light::Day => [0.42, 0.56, 0.66],
            Light::Evening => [1.0, 0.78, 0.42],
            Light::Dusk => [1.0, 0.83, 0.48],
        };
        Self { ground, glass, smoke: lit([0.92, 0.92, 0.94], 0.4 + 0.6 * ground) }
    }

    /// Paints the house and its shadow over the landscape behind.
    pub(super) fn over(&self, at: Place, pixel: f32, behind: Colour) -> Colour {
        let at = [(at[0] - FOOT[0]) / SCALE, (at[1] - FOOT[1]) / SCALE];
        let pixel = pixel / SCALE;
        if !(-1.0..=1.2).contains(&at[0]) || !(-2.2..=0.2).contains(&at[1]) {
            return behind;
        }

        let mut colour = self.chimney(at, pixel, shadow(at, behind));
        colour = self.side(at, pixel, colour);
        self.front(at, pixel, colour)
    }

    fn chimney(&self, at: Place, pixel: f32, behind: Colour) -> Colour {
        let rise = -1.06 - at[1];
        let drift = 0.335 + 0.16 * rise + 0.05 * (rise * 9.0).sin();
        let width = 0.045 + 0.11 * rise.max(0.0);
        let puff = clouds(at[0] * 7.0, at[1] * 6.0, 31, 4);
        let thin = step(width, 0.0, (at[0] - drift).abs()) * step(0.0, 0.06, rise);
        let smoke = thin * step(1.0, 0.1, rise) * step(0.28, 0.62, puff);
        let colour = mix(behind, self.smoke, smoke * 0.75);

        let bricks = rectangle(at, [0.27, -1.06], [0.37, -0.80]);
        let cap = rectangle(at, [0.255, -1.08], [0.385, -1.04]);

        let colour = mix(colour, self.shade([0.50, 0.26, 0.20], 1.0), cover(bricks, pixel));
        mix(colour, self.shade(SLATE, 0.9), cover(cap, pixel))
    }

    /// Paints the long side, away from the sun, and the roof over it.
    fn side(&self, at: Place, pixel: f32, behind: Colour) -> Colour {
        let wall = polygon(at, &[[0.10, -0.56], [0.66, -0.56], [0.66, -0.03], [0.10, 0.0]]);
        let mut colour = mix(behind, self.boards(at[0], 0.66), cover(wall, pixel));
        for left in [0.19, 0.42] {
            colour = self.window(at, pixel, [left, -0.40], [left + 0.13, -0.18], colour);
        }

        let roof = [[-0.21, -0.985], [0.44, -0.965], [0.73, -0.53], [0.14, -0.53]];
        let rows = 0.86 + 0.22 * ((at[1] * 26.0).fract().abs() - 0.5);
        let tiles = rows + 0.2 * (clouds(at[0] * 40.0, at[1] * 26.0, 41, 2) - 0.5);
        mix(colour, self.shade(SLATE, 1.35 * tiles), cover(polygon(at, &roof), pixel))
    }

    /// Paints the gable that faces the sun, with the door.
    fn front(&self, at: Place, pixel: f32, behind: Colour) -> Colour {
        let wall = [[-0.21, -0.96], [0.10, -0.56], [0.10, 0.0], [-0.52, 0.0], [-0.52, -0.56]];
        let mut colour = mix(behind, self.boards(at[0], 1.08), cover(polygon(at, &wall), pixel));

        // White boards along the edges.
        for (from, to) in [([0.065, -0.58], [0.10, 0.0]), ([-0.52, -0.58], [-0.485, 0.0])] {
            colour = mix(colour, self.shade(WHITE, 1.0), cover(rectangle(at, from, to), pixel));
        }
        for slope in [
            [[-0.21, -1.02], [0.165, -0.535], [0.13, -0.505], [-0.21, -0.945]],
            [[-0.21, -1.02], [-0.21, -0.945], [-0.55, -0.505], [-0.585, -0.535]],
        ] {
            colour = mix(colour, self.shade(WHITE, 1.0), cover(polygon(at, &slope), pixel));
        }

        colour = self.window(at, pixel, [-0.44, -0.42], [-0.28, -0.16], colour);
        colour = self.door(at, pixel, colour);
        let frame = cover(circle(at, [-0.21, -0.70], 0.085), pixel);

        let pane = cover(circle(at, [-0.21, -0.70], 0.058), pixel);
        mix(mix(colour, self.shade(WHITE, 1.0), frame), self.glass, pane)
    }

    fn door(&self, at: Place, pixel: f32, behind: Colour) -> Colour {
        let frame = rectangle(at, [-0.185, -0.43], [0.015, 0.0]);
        let leaf = rectangle(at, [-0.155, -0.40], [-0.015, 0.0]);
        let knob = circle(at, [-0.04, -0.19], 0.014);

        let colour = mix(behind, self.shade(WHITE, 1.0), cover(frame, pixel));
        let colour = mix(colour, self.shade(DOOR, 1.1), cover(leaf, pixel));
        mix(colour, self.shade([0.95, 0.80, 0.35], 1.0), cover(knob, pixel))
    }

    /// Paints glass in a white frame with a cross.
    fn window(&self, at: Place, pixel: f32, from: Place, to: Place, behind: Colour) -> Colour {
        let frame = rectangle(at, from, to);
        let inner = frame + 0.024;
        let cross = (at[0] - f32::midpoint(from[0], to[0]))
            .abs()
            .min((at[1] - f32::midpoint(from[1], to[1])).abs())
            - 0.010;

        let glow = 0.86 + 0.28 * (to[1] - at[1]) / (to[1] - from[1]);
        let colour = mix(behind, self.shade(WHITE, 1.0), cover(frame, pixel));

        let pane = cover(inner, pixel) * (1.0 - cover(cross, pixel));
        mix(colour, lit(self.glass, glow), pane)
    }

    /// Returns the colour of red boards, one beside the other.
    fn boards(&self, across: f32, light: f32) -> Colour {
        let joint = step(0.42, 0.5, ((across + 2.0) * 19.0).fract() - 0.5);
        self.shade(RED, light * (1.0 - 0.28 * joint))
    }

    fn shade(&self, colour: Colour, light: f32) -> Colour {
        lit(colour, light * (0.25 + 0.75 * self.ground))
    }
}

/// Darkens the ground beneath the house.
fn shadow(at: Place, behind: Colour) -> Colour {
    let away = ((at[0] - 0.18) / 0.85).hypot((at[1] - 0.0) / 0.11);
    let below = if at[1] > -0.05 { 1.0 } else { 0.0 };
    lit(behind, 1.0 - 0.45 * below * step(1.0, 0.5, away))
}
