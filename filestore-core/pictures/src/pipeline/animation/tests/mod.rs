//! Animated variants against compositions that are computed here, cell by cell.
//!
//! The pictures are made of cells of 50 pixels, which a variant shows at half the size. Of each frame that
//! another decoder finds in the variant, the middle of every cell is compared.

mod edges;
mod limits;

use std::io::Cursor;
use std::time::Duration;

use image::AnimationDecoder as _;
use image::codecs::webp::WebPDecoder;

use super::animate;
use crate::error::Result;
use crate::fixtures::{
    Coding, End, Step, file, moving_gif, moving_png, moving_png_of, moving_webp,
};
use crate::{Fit, Rendered, Settings, Wanted, render};

/// The sides of a cell, in the picture and in the variant.
const CELL: u32 = 50;
const SMALL: u32 = CELL / 2;
/// The cells of a canvas, which become a variant of 200.
const ACROSS: usize = 8;
const DOWN: usize = 6;
const WIDTH: u32 = 400;
const HEIGHT: u32 = 300;

const COLORS: [[u8; 3]; 6] =
    [[220, 30, 30], [30, 190, 30], [30, 30, 220], [230, 230, 230], [20, 20, 20], [200, 180, 30]];

type Cells = [[u8; 4]; ACROSS * DOWN];

/// A frame as its cells.
#[derive(Debug, Clone)]
struct Drawn {
    /// First cell and number of cells, across and down; perhaps beyond the canvas.
    across: (usize, usize),
    down: (usize, usize),
    cells: Vec<[u8; 4]>,
    millis: u32,
    end: End,
    replaces: bool,
    interlaced: bool,
}

impl Drawn {
    fn step(&self) -> Step {
        let (columns, rows) = (self.across.1, self.down.1);
        let cell = CELL as usize;
        let pixels = (0..rows * cell)
            .flat_map(|y| (0..columns * cell).map(move |x| y / cell * columns + x / cell));
        let side = |cells: usize| CELL * u32::try_from(cells).unwrap();
        Step {
            left: side(self.across.0),
            top: side(self.down.0),
            width: side(columns),
            height: side(rows),
            rgba: pixels.flat_map(|at| self.cells[at]).collect(),
            millis: self.millis,
            end: self.end,
            replaces: self.replaces,
            interlaced: self.interlaced,
        }
    }
}

/// Composes frames as the formats' specifications say, in plain numbers.
fn composed(frames: &[Drawn]) -> Vec<(Cells, u32)> {
    let mut canvas = [[0; 4]; ACROSS * DOWN];
    let mut shown = Vec::new();
    for frame in frames {
        let before = canvas;
        let places = (0..frame.down.1)
            .flat_map(|y| (0..frame.across.1).map(move |x| (x, y)))
            .map(|(x, y)| (x + frame.across.0, y + frame.down.0, y * frame.across.1 + x));
        let places: Vec<_> = places.filter(|(x, y, _)| *x < ACROSS && *y < DOWN).collect();

        for (x, y, from) in &places {
            let under = &mut canvas[y * ACROSS + x];
            let over = frame.cells[*from];
            *under = if frame.replaces { over } else { mixed(*under, over) };
        }
        shown.push((canvas, frame.millis));
        match frame.end {
            End::Stays => {}
            End::Cleared => places.iter().for_each(|(x, y, _)| canvas[y * ACROSS + x] = [0; 4]),
            End::Undone => canvas = before,
        }
    }
    shown
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares of a byte")]
fn mixed(under: [u8; 4], over: [u8; 4]) -> [u8; 4] {
    let share = |alpha: u8| f64::from(alpha) / 255.0;
    let below = share(under[3]) * (1.0 - share(over[3]));
    let sum = share(over[3]) + below;
    if sum == 0.0 {
        return [0; 4];
    }
    let mut cell = [0; 4];
    for channel in 0..3 {
        let light = f64::from(over[channel]) * share(over[3]) + f64::from(under[channel]) * below;
        cell[channel] = (light / sum).round() as u8;
    }
    cell[3] = (sum * 255.0).round() as u8;
    cell
}

/// A frame that another decoder composed, and its time.
struct Seen {
    rgba: image::RgbaImage,
    millis: u32,
}

fn decoded(webp: &[u8]) -> Vec<Seen> {
    let frames = WebPDecoder::new(Cursor::new(webp)).unwrap().into_frames();
    frames
        .map(|frame| {
            let frame = frame.unwrap();
            let millis = Duration::from(frame.delay()).as_millis();
            Seen { millis: u32::try_from(millis).unwrap(), rgba: frame.into_buffer() }
        })
        .collect()
}

/// Makes the animated variant of 200, the whole picture within.
fn made(bytes: &[u8]) -> Result<Rendered> {
    animate(&file(bytes), Wanted::new(200, Fit::Inside), &Settings::default())
}

fn moving(bytes: &[u8]) -> bytes::Bytes {
    match made(bytes).unwrap() {
        Rendered::WebP(webp) => webp,
        Rendered::PassThrough { mime } => panic!("{mime} passed through"),
    }
}

/// Compares a variant with what its frames show, at the time when each appears.
fn assert_shows(webp: &[u8], expected: &[(Cells, u32)], what: &str) {
    let seen = decoded(webp);
    let total: u32 = seen.iter().map(|frame| frame.millis).sum();
    assert_eq!(total, expected.iter().map(|(_, millis)| millis).sum::<u32>(), "{what}");

    let mut time = 0;
    for (number, (cells, millis)) in expected.iter().enumerate() {
        let mut end = 0;
        let frame = seen.iter().find(|frame| {
            end += frame.millis;
            time < end
        });
        let frame = frame.unwrap();
        assert_eq!(frame.rgba.dimensions(), (WIDTH / 2, HEIGHT / 2), "{what}");
        for (at, want) in cells.iter().enumerate() {
            let place = |cell: usize| SMALL * u32::try_from(cell).unwrap() + SMALL / 2;
            let is = frame.rgba[(place(at % ACROSS), place(at / ACROSS))].0;
            assert!(close(is, *want), "{what}, frame {number}, cell {at}: {is:?}, not {want:?}");
        }
        time += millis;
    }
}

/// Colours count as much as they are opaque.
fn close(is: [u8; 4], want: [u8; 4]) -> bool {
    let weighed = |pixel: [u8; 4], channel: usize| u32::from(pixel[channel]) * u32::from(pixel[3]);
    is[3].abs_diff(want[3]) <= 4
        && (0..3).all(|channel| weighed(is, channel).abs_diff(weighed(want, channel)) <= 12 * 255)
}

/// The properties that frames of a format may have.
struct Kinds {
    alphas: &'static [u8],
    ends: &'static [End],
    replaces: bool,
    beyond: bool,
    first_covers: bool,
}

fn random_frames(random: &mut fastrand::Rng, kinds: &Kinds) -> Vec<Drawn> {
    let count = random.usize(3..9);
    (0..count)
        .map(|number| {
            let (across, down) = if number == 0 && kinds.first_covers {
                ((0, ACROSS), (0, DOWN))
            } else {
                let more = if kinds.beyond { 3 } else { 0 };
                let (left, top) = (random.usize(..ACROSS), random.usize(..DOWN));
                let width = random.usize(1..=ACROSS - left + more);
                ((left, width), (top, random.usize(1..=DOWN - top + more)))
            };
            let cells = (0..across.1 * down.1).map(|_| {
                let [red, green, blue] = COLORS[random.usize(..COLORS.len())];
                [red, green, blue, kinds.alphas[random.usize(..kinds.alphas.len())]]
            });
            Drawn {
                across,
                down,
                cells: cells.collect(),
                millis: 10 * random.u32(2..40),
                end: kinds.ends[random.usize(..kinds.ends.len())],
                replaces: kinds.replaces && random.bool(),
                interlaced: random.bool(),
            }
        })
        .collect()
}

fn steps(frames: &[Drawn]) -> Vec<Step> {
    frames.iter().map(Drawn::step).collect()
}

fn narrow(side: u32) -> u16 {
    u16::try_from(side).unwrap()
}

#[test]
fn frames_of_a_gif_are_composed_by_their_disposal_place_and_transparency() {
    let kinds = Kinds {
        alphas: &[0, 255, 255],
        ends: &[End::Stays, End::Cleared, End::Undone],
        replaces: false,
        beyond: true,
        first_covers: true,
    };
    for seed in 0..8 {
        let frames = random_frames(&mut fastrand::Rng::with_seed(seed), &kinds);
        let gif = moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps(&frames), Some(0));
        assert_shows(&moving(&gif), &composed(&frames), &format!("GIF {seed}"));
    }
}

#[test]
fn frames_of_an_apng_are_composed_by_their_disposal_and_blending() {
    let kinds = Kinds {
        alphas: &[0, 90, 200, 255],
        ends: &[End::Stays, End::Cleared, End::Undone],
        replaces: true,
        beyond: false,
        first_covers: true,
    };
    for seed in 10..18 {
        let frames = random_frames(&mut fastrand::Rng::with_seed(seed), &kinds);
        let png = moving_png(WIDTH, HEIGHT, &steps(&frames), 0, None);
        assert_shows(&moving(&png), &composed(&frames), &format!("APNG {seed}"));
    }
}

#[test]
fn frames_of_an_apng_are_composed_whatever_its_channels_and_wherever_the_first_one_is() {
    use png::ColorType::{Grayscale, GrayscaleAlpha, Rgb, Rgba};
    let (translucent, opaque): (&[u8], &[u8]) = (&[0, 90, 200, 255], &[255]);
    let colors =
        [(Grayscale, opaque), (GrayscaleAlpha, translucent), (Rgb, opaque), (Rgba, translucent)];
    for ((color, alphas), seed) in colors.into_iter().flat_map(|c| (40..44).map(move |s| (c, s))) {
        let first_covers = seed % 2 == 0;
        let kinds = Kinds {
            alphas,
            ends: &[End::Stays, End::Cleared, End::Undone],
            replaces: true,
            beyond: false,
            first_covers,
        };
        let mut frames = random_frames(&mut fastrand::Rng::with_seed(seed), &kinds);
        if matches!(color, Grayscale | GrayscaleAlpha) {
            for cell in frames.iter_mut().flat_map(|frame| &mut frame.cells) {
                *cell = [cell[0], cell[0], cell[0], cell[3]];
            }
        }

        // The default picture must cover the canvas; a frame of its own need not.
        let bytes = WIDTH as usize * HEIGHT as usize * color.samples();
        let apart = vec![120; bytes];
        let apart = (!first_covers).then_some(&apart[..]);
        let png = moving_png_of((color, None), (WIDTH, HEIGHT), &steps(&frames), 0, apart);
        assert_shows(&moving(&png), &composed(&frames), &format!("{color:?} APNG {seed}"));
    }
}

#[test]
fn greys_of_an_apng_are_those_of_its_profile_as_in_its_still_variant() {
    let profile = moxcms::ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
    for color in [png::ColorType::Grayscale, png::ColorType::GrayscaleAlpha] {
        let flat = |grey| Step::flat(0, 0, WIDTH, HEIGHT, [grey, grey, grey, 255]);
        let steps = [flat(55), flat(200)];
        let profile = Some(profile.clone());
        let png = moving_png_of((color, profile), (WIDTH, HEIGHT), &steps, 0, None);

        let wanted = [Wanted::new(200, Fit::Inside)];
        let still = render(&file(&png), &wanted, &Settings::default()).unwrap().remove(0);
        let Rendered::WebP(still) = still else { panic!("{still:?}") };
        let still = image::load_from_memory(&still).unwrap().into_rgba8();
        let frames = decoded(&moving(&png));
        let shown = [still.get_pixel(9, 9), &frames[0].rgba[(9, 9)], &frames[1].rgba[(9, 9)]];

        // Linear 55/255 and 200/255 are about 128 and 228 in sRGB.
        for (pixel, grey) in shown.into_iter().zip([128, 128, 228]) {
            let is_close = pixel.0[..3].iter().all(|light| light.abs_diff(grey) <= 3);
            assert!(is_close, "{color:?}: {shown:?}");
        }
    }
}

#[test]
fn frames_of_a_webp_are_composed_by_their_disposal_and_blending() {
    let kinds = Kinds {
        alphas: &[0, 90, 200, 255],
        ends: &[End::Stays, End::Cleared],
        replaces: true,
        beyond: false,
        first_covers: true,
    };
    for seed in 20..28 {
        let coding = if seed % 2 == 0 { Coding::Lossless } else { Coding::Lossy };
        let frames = random_frames(&mut fastrand::Rng::with_seed(seed), &kinds);
        let webp = moving_webp(WIDTH, HEIGHT, &steps(&frames), 0, coding);
        assert_shows(&moving(&webp), &composed(&frames), &format!("{coding:?} WebP {seed}"));
    }
}

#[test]
fn equal_files_give_equal_bytes() {
    let kinds = Kinds {
        alphas: &[255],
        ends: &[End::Stays],
        replaces: false,
        beyond: false,
        first_covers: true,
    };
    let frames = random_frames(&mut fastrand::Rng::with_seed(1), &kinds);
    let gif = moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps(&frames), Some(0));
    assert_eq!(moving(&gif), moving(&gif));
}

#[test]
fn libwebp_sees_the_same_frames() {
    let kinds = Kinds {
        alphas: &[0, 255],
        ends: &[End::Stays, End::Cleared],
        replaces: false,
        beyond: true,
        first_covers: true,
    };
    let frames = random_frames(&mut fastrand::Rng::with_seed(3), &kinds);
    let gif = moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps(&frames), Some(2));
    let made = moving(&gif);

    let theirs = webp::AnimDecoder::new(&made).decode().unwrap();
    let ours = decoded(&made);
    assert_eq!((theirs.len(), theirs.loop_count), (ours.len(), 3));
    for (at, frame) in ours.iter().enumerate() {
        let image = theirs.get_frame(at).unwrap();
        let pairs = image.get_image().as_chunks::<4>().0.iter().zip(frame.rgba.pixels());
        for (theirs, ours) in pairs {
            assert!(close(*theirs, ours.0), "frame {at}: {theirs:?}, {ours:?}");
        }
    }
}
