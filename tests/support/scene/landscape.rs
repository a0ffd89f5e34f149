//! Everything but the house, from the sky to the flowers.

use super::house::House;
use super::noise::{clouds, grain, mesh, ridge};
use super::shape::{circle, cover, polygon};
use super::{Colour, Light, Place, lit, mix, step};

/// The far shore of the lake.
const HORIZON: f32 = 0.07;

/// The colours of a time of day.
struct Palette {
    zenith: Colour,
    horizon: Colour,
    cloud: Colour,
    sun: Colour,
    sun_at: Place,
    /// Between 0 and 1: how far the sun's light reaches through the air.
    glow: f32,
    mountains: Colour,
    water: Colour,
    /// The light on the ground.
    ground: f32,
}

impl Palette {
    fn new(light: Light) -> Self {
        match light {
            Light::Day => Self {
                zenith: [0.16, 0.42, 0.78],
                horizon: [0.76, 0.88, 0.96],
                cloud: [0.98, 0.98, 1.0],
                sun: [1.0, 0.97, 0.82],
                sun_at: [-0.24, -0.34],
                glow: 0.35,
                mountains: [0.26, 0.38, 0.52],
                water: [0.10, 0.30, 0.42],
                ground: 1.0,
            },
            Light::Evening => Self {
                zenith: [0.20, 0.28, 0.56],
                horizon: [1.0, 0.72, 0.42],
                cloud: [1.0, 0.62, 0.50],
                sun: [1.0, 0.90, 0.58],
                sun_at: [-0.22, -0.22],
                glow: 0.75,
                mountains: [0.33, 0.25, 0.42],
                water: [0.14, 0.20, 0.36],
                ground: 0.84,
            },
            Light::Dusk => Self {
                zenith: [0.05, 0.09, 0.25],
                horizon: [0.80, 0.50, 0.50],
                cloud: [0.46, 0.34, 0.54],
                sun: [0.96, 0.94, 0.86],
                sun_at: [-0.24, -0.32],
                glow: 0.22,
                mountains: [0.15, 0.16, 0.32],
                water: [0.06, 0.10, 0.22],
                ground: 0.46,
            },
        }
    }
}

/// The whole scene in one light.
pub(super) struct Landscape {
    light: Light,
    palette: Palette,
    house: House,
    seed: u32,
}

impl Landscape {
    pub(super) fn new(light: Light, seed: u32) -> Self {
        let palette = Palette::new(light);
        let house = House::new(light, palette.ground);
        Self { light, palette, house, seed: seed.wrapping_mul(977) }
    }

    /// Returns the seed of one noise of many, so that no two look alike.
    fn salted(&self, salt: u32) -> u32 {
        self.seed ^ salt
    }

    /// Returns the colour at a place, painted from back to front; a pixel is `pixel` wide.
    pub(super) fn colour(&self, at: Place, pixel: f32) -> Colour {
        let shore = 0.245 + 0.03 * clouds(at[0] * 3.0, 0.0, self.salted(5), 3);
        let on_land = cover(shore - at[1], pixel);

        let mut colour = if on_land >= 1.0 {
            self.meadow(at, shore)
        } else if at[1] > HORIZON {
            let lake = self.sail(at, pixel, self.lake(at, pixel));
            mix(lake, self.meadow(at, shore), on_land)
        } else {
            self.far(at, pixel)
        };

        colour = self.pines(at, pixel, colour);
        self.house.over(at, pixel, colour)
    }

    /// Paints the sky, and the mountains before it on the other side of the lake.
    fn far(&self, at: Place, pixel: f32) -> Colour {
        let palette = &self.palette;
        let layers = [(0.20, 2.6, 0.34, 11), (0.125, 4.4, 0.18, 23), (0.055, 9.0, 0.02, 37)];

        let mut colour = None;
        for (height, narrow, haze, salt) in layers.into_iter().rev() {
            let top = HORIZON - 0.012 - height * ridge(at[0] * narrow, self.salted(salt), 5);
            if at[1] > top + pixel {
                colour = Some(self.slope(at, top, haze, salt));
                break;
            }
        }

        let colour = colour.unwrap_or_else(|| self.sky(at, pixel));

        // The air between here and there is brightest where the sun is.
        let air = (HORIZON - at[1]).max(0.0);
        mix(colour, palette.horizon, 0.35 * (-air * 22.0).exp())
    }

    /// Paints a mountain whose skyline is at `top`: with snow if it is high, with woods if it is near.
    fn slope(&self, at: Place, top: f32, haze: f32, salt: u32) -> Colour {
        let palette = &self.palette;
        let rock = clouds(at[0] * 24.0 + at[1] * 30.0, at[1] * 36.0, self.salted(salt), 4);
        let near = 1.0 - haze * 2.4;

        let mut colour = lit(palette.mountains, 0.62 + 0.75 * rock);
        colour = mix(colour, lit([0.16, 0.30, 0.20], palette.ground * (0.5 + rock)), near * 0.55);

        let snow_line = HORIZON - 0.125 + 0.05 * rock;
        let snow = step(snow_line, snow_line - 0.03, at[1]) * step(0.35, 0.6, rock + haze);
        colour = mix(colour, lit([0.95, 0.96, 1.0], 0.55 + 0.45 * palette.ground), snow * 0.85);

        let depth = (at[1] - top).clamp(0.0, 0.1);
        mix(colour, palette.horizon, haze + depth * 1.6)
    }

    fn sky(&self, at: Place, pixel: f32) -> Colour {
        let palette = &self.palette;
        let mut colour =
            mix(palette.zenith, palette.horizon, step(-0.72, HORIZON, at[1]).powf(1.4));

        if self.light == Light::Dusk {
            let brightness = 0.85 * step(0.0, -0.4, at[1]);
            colour = mix(colour, [1.0, 1.0, 0.95], brightness * self.star(at, pixel));
        }

        let away = circle(at, palette.sun_at, 0.0);
        colour = mix(colour, palette.sun, palette.glow * (-away * 4.5).exp());

        let veil = clouds(at[0] * 2.3 + 3.0, at[1] * 8.0, self.salted(3), 5);
        let veil = step(0.50, 0.78, veil) * step(HORIZON - 0.02, -0.22, at[1]);
        colour = mix(colour, palette.cloud, veil * 0.8);

        let disc = cover(away - 0.058, pixel * 2.0);
        mix(colour, lit(palette.sun, 1.08), disc)
    }

    fn star(&self, at: Place, pixel: f32) -> f32 {
        let mesh_side = 1.0 / 34.0;
        let ((column, x), (row, y)) = (mesh(at[0] / mesh_side), mesh(at[1] / mesh_side));
        let chance = grain(column, row, self.salted(43));
        let centre = [0.2 + 0.6 * grain(column, row, 44), 0.2 + 0.6 * grain(column, row, 45)];
        let radius = 0.02 + 0.05 * step(0.75, 1.0, chance);
        step(0.55, 0.9, chance) * cover(circle([x, y], centre, radius), pixel / mesh_side * 1.5)
    }

    /// Paints the lake: the far shore upside down, broken by waves.
    fn lake(&self, at: Place, pixel: f32) -> Colour {
        let palette = &self.palette;
        let depth = at[1] - HORIZON;
        let waves = clouds(at[0] * 14.0, at[1] * 95.0, self.salted(7), 4) - 0.5;

        let seen = [at[0] + waves * 0.10 * depth.sqrt(), HORIZON - depth * 1.25 - waves * 0.05];
        let seen = [seen[0], seen[1].min(HORIZON - 0.001)];
        let mut colour = mix(self.far(seen, pixel), palette.water, 0.34 + waves * 0.5);

        let glitter = 1.0 - ((at[0] - palette.sun_at[0]).abs() / (0.035 + depth * 0.35)).min(1.0);
        colour = mix(colour, palette.sun, glitter * step(0.02, 0.22, waves) * 0.9);
        mix(colour, palette.horizon, 0.5 * (-depth * 60.0).exp())
    }

    /// Paints a boat under sail, which gives the water its size.
    fn sail(&self, at: Place, pixel: f32, behind: Colour) -> Colour {
        let white = lit([0.98, 0.97, 0.94], 0.35 + 0.65 * self.palette.ground);
        let main = [[-0.118, 0.028], [-0.062, 0.121], [-0.118, 0.121]];
        let jib = [[-0.124, 0.040], [-0.124, 0.121], [-0.158, 0.121]];
        let hull = [[-0.170, 0.127], [-0.056, 0.127], [-0.072, 0.146], [-0.154, 0.146]];

        let mut colour = mix(behind, white, cover(polygon(at, &main), pixel));
        colour = mix(colour, lit(white, 0.88), cover(polygon(at, &jib), pixel));
        mix(colour, lit([0.30, 0.16, 0.10], 0.9), cover(polygon(at, &hull), pixel))
    }

    fn meadow(&self, at: Place, shore: f32) -> Colour {
        let depth = (at[1] - shore).max(0.0);
        let patches = clouds(at[0] * 6.0, at[1] * 16.0, self.salted(13), 4);
        let blades = clouds(at[0] * 130.0, at[1] * 42.0, self.salted(17), 3);

        let green = mix([0.30, 0.44, 0.13], [0.50, 0.58, 0.20], patches);
        let mut colour = lit(green, (0.50 + 0.85 * blades) * (1.0 - 0.5 * depth));
        colour = mix([0.62, 0.55, 0.42], colour, step(0.0, 0.022, depth));
        if depth > 0.05 {
            colour = self.flowers(at, colour);
        }

        // The path from the door.
        let middle = 0.125 - 0.9 * (at[1] - 0.33) + 0.05 * (at[1] * 26.0).sin();
        let width = 0.012 + 0.13 * (at[1] - 0.33).max(0.0);
        let trodden = step(width, width * 0.72, (at[0] - middle).abs() + (patches - 0.5) * 0.02);

        let sand = lit([0.72, 0.62, 0.46], 0.75 + 0.4 * blades);
        colour = mix(colour, sand, trodden * step(0.325, 0.335, at[1]));

        lit(mix(colour, self.palette.sun, 0.06), self.palette.ground)
    }

    fn flowers(&self, at: Place, meadow: Colour) -> Colour {
        let ((column, x), (row, y)) = (mesh(at[0] * 46.0), mesh(at[1] * 64.0));
        let chance = grain(column, row, self.salted(19));
        if chance < 0.78 {
            return meadow;
        }

        let centre = [0.25 + 0.5 * grain(column, row, 1), 0.25 + 0.5 * grain(column, row, 2)];
        let petals = circle([x, y], centre, 0.15);
        let tint = if chance > 0.93 { [0.98, 0.84, 0.24] } else { [0.97, 0.95, 0.92] };
        mix(meadow, tint, cover(petals, 0.12) * 0.9)
    }

    fn pines(&self, at: Place, pixel: f32, behind: Colour) -> Colour {
        let trees = [
            (-0.30, 0.262, 0.22),
            (0.46, 0.272, 0.30),
            (-0.52, 0.285, 0.36),
            (-0.39, 0.305, 0.42),
            (0.58, 0.300, 0.44),
            (-0.66, 0.32, 0.50),
            (0.74, 0.31, 0.40),
            (-0.84, 0.30, 0.38),
        ];

        let mut colour = behind;
        for (middle, foot, height) in trees {
            colour = self.pine([at[0] - middle, at[1] - foot], height, pixel, colour);
        }

        colour
    }

    /// Paints a pine `height` tall whose foot is at the origin.
    fn pine(&self, at: Place, height: f32, pixel: f32, behind: Colour) -> Colour {
        let up = -at[1] / height;
        if !(-0.02..=1.02).contains(&up) || at[0].abs() > height * 0.24 {
            return behind;
        }

        let needles = clouds(at[0] * 90.0, at[1] * 70.0, self.salted(29), 3);
        let branches = ((1.0 - up) * 7.0).fract() * 0.055 + (needles - 0.5) * 0.075;
        let width = height * (0.185 * (1.0 - up) + branches * (1.0 - up * 0.8));
        let crown = if up > 0.09 { at[0].abs() - width } else { 1.0 };
        let trunk = if up < 0.12 { at[0].abs() - height * 0.018 } else { 1.0 };

        let sunny = step(0.06, -0.06, at[0] / height);
        let green = lit([0.10, 0.22, 0.13], (0.45 + needles + 0.5 * sunny) * self.palette.ground);
        let bark = lit([0.24, 0.16, 0.11], self.palette.ground);

        let colour = mix(behind, bark, cover(trunk, pixel));
        mix(colour, green, cover(crown, pixel * 1.5))
    }
}
