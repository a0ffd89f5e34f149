//! Colours that a file defines by numbers: primaries, white, and the light of each sample (ITU-T H.273;
//! W3C PNG third edition, sections 11.3.2.1, 11.3.2.2 and 11.3.2.6).
//!
//! Light that no screen of sRGB has is brought down to it as Chromium does: with the curve of Reinhard,
//! from 1,000 cd/m², where 203 cd/m² is the white of a page (ITU-R BT.2408).

use std::sync::OnceLock;

/// A point of the CIE 1931 diagram, x and y.
type Point = [f64; 2];
type Matrix = [[f64; 3]; 3];

/// The white of sRGB and of most others.
const D65: Point = [0.3127, 0.329];
/// cd/m² of the white of a page, and of the brightest light of a picture that does not say it.
const WHITE_NITS: f64 = 203.0;
const PEAK_NITS: f64 = 1000.0;

/// The meaning of RGB samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Defined {
    pub(crate) transfer: Transfer,
    pub(crate) primaries: Primaries,
}

/// The light of a sample from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Transfer {
    Srgb,
    /// A power.
    Gamma(f64),
    /// ((x + a) / (1 + a))^(1 / 0.45), and x divided by `slope` below 4.5 and its like: ITU-R BT.709
    /// and SMPTE 240M.
    Camera {
        a: f64,
        slope: f64,
        below: f64,
    },
    /// ITU-R BT.2100: perceptual quantization.
    Pq,
    /// ITU-R BT.2100: hybrid log-gamma.
    Hlg,
    /// SMPTE 428-1: digital cinema.
    Cinema,
}

/// The colours of full red, green and blue, and of all together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Primaries {
    pub(crate) white: Point,
    pub(crate) red: Point,
    pub(crate) green: Point,
    pub(crate) blue: Point,
}

impl Primaries {
    pub(crate) const SRGB: Self =
        Self { white: D65, red: [0.64, 0.33], green: [0.3, 0.6], blue: [0.15, 0.06] };

    /// Returns the primaries with this number (H.273, table 2); `None` for a number that names none, as
    /// browsers take it.
    fn of_code(code: u8) -> Option<Self> {
        const C: Point = [0.31, 0.316];
        let of = |white, red, green, blue| Some(Self { white, red, green, blue });
        match code {
            1 => Some(Self::SRGB),
            4 => of(C, [0.67, 0.33], [0.21, 0.71], [0.14, 0.08]),
            5 => of(D65, [0.64, 0.33], [0.29, 0.6], [0.15, 0.06]),
            6 | 7 => of(D65, [0.63, 0.34], [0.31, 0.595], [0.155, 0.07]),
            8 => of(C, [0.681, 0.319], [0.243, 0.692], [0.145, 0.049]),
            9 => of(D65, [0.708, 0.292], [0.17, 0.797], [0.131, 0.046]),
            10 => of([1.0 / 3.0, 1.0 / 3.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]),
            11 => of([0.314, 0.351], [0.68, 0.32], [0.265, 0.69], [0.15, 0.06]),
            12 => of(D65, [0.68, 0.32], [0.265, 0.69], [0.15, 0.06]),
            22 => of(D65, [0.63, 0.34], [0.295, 0.605], [0.155, 0.077]),
            _ => None,
        }
    }

    /// Returns the way from light of these primaries to CIE XYZ; `None` for primaries that make no white.
    fn to_xyz(self) -> Option<Matrix> {
        let columns = [self.red, self.green, self.blue].map(|[x, y]| [x, y, 1.0 - x - y]);
        let primaries = transposed(columns);
        let shares = times(inverse(primaries)?, xyz_of(self.white)?);
        Some(primaries.map(|row| [0, 1, 2].map(|at| row[at] * shares[at])))
    }
}

impl Transfer {
    /// Returns the transfer with this number (H.273, table 3); `None` for those that no browser shows.
    fn of_code(code: u8) -> Option<Self> {
        Some(match code {
            1 | 6 | 11 | 14 | 15 => {
                Self::Camera { a: 0.099_296_8, slope: 4.5, below: 0.081_242_86 }
            }
            4 => Self::Gamma(2.2),
            5 => Self::Gamma(2.8),
            7 => Self::Camera { a: 0.111_572_2, slope: 4.0, below: 0.091_286_34 },
            8 => Self::Gamma(1.0),
            13 => Self::Srgb,
            16 => Self::Pq,
            17 => Self::Cinema,
            18 => Self::Hlg,
            _ => return None,
        })
    }

    /// Returns the light of a sample; white is 1, and more for those of high dynamic range.
    fn light(self, sample: f64) -> f64 {
        match self {
            Self::Srgb if sample <= 0.040_45 => sample / 12.92,
            Self::Srgb => ((sample + 0.055) / 1.055).powf(2.4),
            Self::Gamma(gamma) => sample.powf(gamma),
            Self::Camera { slope, below, .. } if sample < below => sample / slope,
            Self::Camera { a, .. } => ((sample + a) / (1.0 + a)).powf(1.0 / 0.45),
            Self::Cinema => sample.powf(2.6) * 52.37 / 48.0,
            Self::Pq => pq(sample) * 10_000.0 / WHITE_NITS,
            Self::Hlg => hlg(sample),
        }
    }

    fn is_high_range(self) -> bool {
        matches!(self, Self::Pq | Self::Hlg)
    }

    /// Returns true if each sample alone becomes another one of sRGB.
    pub(crate) fn is_of_a_page(self) -> bool {
        !self.is_high_range() && self != Self::Srgb
    }

    /// Returns the sample of sRGB, 8 bits, for each one of 16 bits.
    pub(crate) fn samples_of_srgb(self) -> Vec<u8> {
        let sample = |sample: u16| encoded(self.light(f64::from(sample) / f64::from(u16::MAX)));
        (0..=u16::MAX).map(sample).collect()
    }
}

impl Defined {
    /// Interprets four code points (PNG, chunk cICP): primaries, transfer, matrix, and full range. `None` for
    /// samples other than RGB in full range, and for numbers that browsers ignore. The next colour source of
    /// the file counts then.
    pub(crate) fn of_code_points(
        (primaries, transfer): (u8, u8),
        matrix: u8,
        is_full_range: bool,
    ) -> Option<Self> {
        if matrix != 0 || !is_full_range {
            return None;
        }
        Some(Self {
            transfer: Transfer::of_code(transfer)?,
            primaries: Primaries::of_code(primaries)?,
        })
    }

    /// Prepares the conversion to sRGB; `None` for primaries that make no sense.
    pub(super) fn conversion(self) -> Option<Conversion> {
        let matrix = self.primaries.to_xyz()?;
        let adapted = adaptation(self.primaries.white)?;
        let to_srgb = product(product(inverse(Primaries::SRGB.to_xyz()?)?, adapted), matrix);
        if !to_srgb.iter().flatten().all(|value| value.is_finite()) {
            return None;
        }
        let lights = std::array::from_fn(|sample| {
            self.transfer.light(f64::from(u8::try_from(sample).expect("a byte")) / 255.0)
        });
        Some(Conversion { transfer: self.transfer, lights, to_srgb })
    }
}

/// The way from samples to those of sRGB.
pub(super) struct Conversion {
    transfer: Transfer,
    /// The light of each sample.
    lights: [f64; 256],
    to_srgb: Matrix,
}

impl Conversion {
    /// Converts a pixel.
    pub(super) fn pixel(&self, [red, green, blue]: [u8; 3]) -> [u8; 3] {
        let mut light = [red, green, blue].map(|sample| self.lights[usize::from(sample)]);
        if self.transfer.is_high_range() {
            light = brought_down(self.transfer, light);
        }
        times(self.to_srgb, light).map(encoded)
    }
}

/// Brings light of a high range down to that of a page: all of a pixel's by the same factor.
fn brought_down(transfer: Transfer, light: [f64; 3]) -> [f64; 3] {
    let shown = if transfer == Transfer::Hlg {
        // The light of the scene becomes that of a screen of 1,000 cd/m² (BT.2100, table 5).
        let [red, green, blue] = light;
        let whole = 0.2627 * red + 0.678 * green + 0.0593 * blue;
        let factor = PEAK_NITS / WHITE_NITS * whole.max(0.0).powf(0.2);
        light.map(|one| one * factor)
    } else {
        light
    };

    let most = shown.into_iter().fold(0.0, f64::max);
    let peak = PEAK_NITS / WHITE_NITS;
    let factor = (1.0 + most / (peak * peak)) / (1.0 + most);
    shown.map(|one| one * factor)
}

/// Returns the share of 10,000 cd/m² (BT.2100, table 4).
fn pq(sample: f64) -> f64 {
    let (m1, m2) = (2610.0 / 16_384.0, 2523.0 / 32.0);
    let (c1, c2, c3) = (3424.0 / 4096.0, 2413.0 / 128.0, 2392.0 / 128.0);
    let power = sample.powf(1.0 / m2);
    ((power - c1).max(0.0) / (c2 - c3 * power)).powf(1.0 / m1)
}

/// Returns the light of the scene, from 0 to 1 (BT.2100, table 5).
fn hlg(sample: f64) -> f64 {
    let (a, b, c) = (0.178_832_77, 0.284_668_92, 0.559_910_73);
    if sample <= 0.5 { sample * sample / 3.0 } else { (((sample - c) / a).exp() + b) / 12.0 }
}

/// Returns the sRGB sample for light, limited to the range.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to the table")]
fn encoded(light: f64) -> u8 {
    static SAMPLES: OnceLock<Vec<u8>> = OnceLock::new();
    let samples = SAMPLES.get_or_init(|| {
        let sample = |step: u16| {
            let light = f64::from(step) / f64::from(u16::MAX);
            let sample = if light <= 0.003_130_8 {
                12.92 * light
            } else {
                1.055 * light.powf(1.0 / 2.4) - 0.055
            };
            (sample * 255.0).round() as u8
        };
        (0..=u16::MAX).map(sample).collect()
    });
    samples[usize::from((light.clamp(0.0, 1.0) * f64::from(u16::MAX)).round() as u16)]
}

/// Returns the way from one white to that of sRGB, as eyes adapt (Bradford); `None` for no white.
fn adaptation(white: Point) -> Option<Matrix> {
    const CONES: Matrix =
        [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]];
    let (from, to) = (times(CONES, xyz_of(white)?), times(CONES, xyz_of(D65)?));
    let mut scale = [[0.0; 3]; 3];
    for at in 0..3 {
        scale[at][at] = to[at] / from[at];
    }
    Some(product(product(inverse(CONES)?, scale), CONES))
}

/// Returns a colour as XYZ with a Y of 1.
fn xyz_of([x, y]: Point) -> Option<[f64; 3]> {
    (y > 0.0).then(|| [x / y, 1.0, (1.0 - x - y) / y])
}

fn times(matrix: Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(share, value)| share * value).sum())
}

fn transposed(matrix: Matrix) -> Matrix {
    [0, 1, 2].map(|column| matrix.map(|row| row[column]))
}

fn product(left: Matrix, right: Matrix) -> Matrix {
    let columns = transposed(right).map(|column| times(left, column));
    transposed(columns)
}

/// Returns the inverse, by the adjugate; `None` if there is none.
fn inverse(matrix: Matrix) -> Option<Matrix> {
    let minor = |row: usize, column: usize| {
        let [next, last] = [1, 2].map(|more| matrix[(row + more) % 3]);
        let (left, right) = ((column + 1) % 3, (column + 2) % 3);
        next[left] * last[right] - next[right] * last[left]
    };
    let determinant: f64 = (0..3).map(|column| matrix[0][column] * minor(0, column)).sum();
    let is_usual = determinant.abs() > 1e-9;
    is_usual.then(|| [0, 1, 2].map(|row| [0, 1, 2].map(|column| minor(column, row) / determinant)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(primaries: u8, transfer: u8) -> Conversion {
        Defined::of_code_points((primaries, transfer), 0, true).unwrap().conversion().unwrap()
    }

    fn near(is: [u8; 3], want: [u8; 3], off: u8) -> bool {
        is.iter().zip(want).all(|(is, want)| is.abs_diff(want) <= off)
    }

    #[test]
    fn every_sample_of_srgb_stays_what_it_is() {
        let same = of(1, 13);
        for sample in 0..=255 {
            assert_eq!(same.pixel([sample, 255 - sample, 7]), [sample, 255 - sample, 7]);
        }
    }

    #[test]
    fn colours_of_other_primaries_are_those_of_their_standards() {
        // CSS Color 4, sample conversions: sRGB (200, 100, 50) in Display P3.
        assert!(near(of(12, 13).pixel([189, 106, 62]), [200, 100, 50], 2));
        // Light (0.5, 0.4, 0.3) of sRGB in BT.2020, by the matrix of ITU-R BT.2087.
        let light = [0.458_4, 0.405_8, 0.312_1f64];
        let sample = |light: f64| {
            let camera = if light < 0.018 { 4.5 * light } else { 1.099 * light.powf(0.45) - 0.099 };
            (0..=255u8).rev().find(|byte| f64::from(*byte) <= (camera * 255.0).round()).unwrap()
        };
        let seen = of(9, 14).pixel(light.map(sample));
        assert!(near(seen, [188, 170, 149], 2), "{seen:?}");
        // White is white, and black is black.
        for (primaries, transfer) in (1..=22).flat_map(|p| (0..=15).map(move |t| (p, t))) {
            let Some(defined) = Defined::of_code_points((primaries, transfer), 0, true) else {
                continue;
            };
            let conversion = defined.conversion().unwrap();
            assert!(near(conversion.pixel([255; 3]), [255; 3], 1), "{primaries} {transfer}");
            assert_eq!(conversion.pixel([0; 3]), [0; 3]);
        }
    }

    #[test]
    fn light_of_a_high_range_becomes_that_of_a_page_in_its_order() {
        for transfer in [16, 18] {
            let conversion = of(9, transfer);
            let greys: Vec<u8> = (0..=255).map(|grey| conversion.pixel([grey; 3])[0]).collect();
            assert!(greys.is_sorted() && greys[0] == 0 && greys[255] == 255, "{transfer}");
            // The white of a page, of which highlights are above: 58 % of PQ, 75 % of HLG.
            let white = greys[if transfer == 16 { 148 } else { 191 }];
            assert!((175..215).contains(&white), "{transfer}: {white}");
        }
    }

    #[test]
    fn numbers_that_name_nothing_are_no_colours() {
        for (primaries, transfer) in
            [(0, 13), (2, 13), (3, 13), (12, 0), (12, 2), (12, 9), (12, 19)]
        {
            assert_eq!(Defined::of_code_points((primaries, transfer), 0, true), None);
        }
        assert_eq!(Defined::of_code_points((12, 13), 1, true), None, "not RGB");
        assert_eq!(Defined::of_code_points((12, 13), 0, false), None, "a narrow range");
        let flat = Primaries { white: D65, red: [0.3, 0.3], green: [0.3, 0.3], blue: [0.3, 0.3] };
        let zero = Primaries { white: [0.0; 2], ..Primaries::SRGB };
        for primaries in [flat, zero] {
            assert!(Defined { transfer: Transfer::Srgb, primaries }.conversion().is_none());
        }
    }
}
