//! Compares renderings with references that a person has checked.
//!
//! `golden.png` contains a tile for each case, in the order of [`cases`]. A tile shows the variant over
//! white, with every 8×8 pixels averaged into one pixel. This removes the effects of lossy coding, and keeps
//! colour, orientation, crop and fringes. After an intended visible change, write the file again with
//! `FILESTORE_GOLDEN=write cargo test -p filestore-pictures golden`, and check it before the commit.

use std::path::Path;

use image::{ImageFormat, Rgba, RgbaImage};
use png::{BitDepth, ColorType};

use crate::fixtures::*;
use crate::{Fit, Rendered, Settings, Wanted, animate, render};

/// The side of a tile in pixels. Each pixel shows 8×8 pixels of a 200-pixel variant.
const TILE: u32 = 25;
/// The number of tiles in a row of the sheet.
const COLUMNS: u32 = 8;
/// The maximum error of the mean of 64 pixels, in 8-bit steps.
const SAME: u8 = 5;

/// The scene, 320×240: ramps of red and green, a white F upright in the top left, a blue disc in
/// the bottom right, and a yellow stripe along the left edge that a square crop cuts off.
fn scene(width: u32, height: u32) -> Vec<u8> {
    let byte = |value: u32| u8::try_from(value).unwrap();
    let pixel = |x: u32, y: u32| {
        // In units of a 320×240 picture.
        let (u, v) = (x * 320 / width, y * 240 / height);
        let letter = (60..75).contains(&u) && (20..120).contains(&v)
            || (60..120).contains(&u) && ((20..35).contains(&v) || (60..75).contains(&v));
        let disc = u.abs_diff(230).pow(2) + v.abs_diff(180).pow(2) < 40 * 40;
        match () {
            () if u < 30 => [230, 210, 40],
            () if letter => [250, 250, 250],
            () if disc => [30, 40, 210],
            () => [byte(u * 200 / 320 + 20), byte(v * 180 / 240 + 30), 60],
        }
    };
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}

/// The scene as stored with an EXIF orientation. The pixels at a stored place follow the definition of the
/// tag ("the 0th row is at the visual right-hand side, the 0th column is the visual top").
fn stored(orientation: u8) -> (u32, u32, Vec<u8>) {
    let upright = scene(320, 240);
    let (width, height) = if orientation < 5 { (320, 240) } else { (240, 320) };
    let mut data = Vec::with_capacity(upright.len());
    for y in 0..height {
        for x in 0..width {
            let (column, row) = match orientation {
                1 => (x, y),
                2 => (319 - x, y),
                3 => (319 - x, 239 - y),
                4 => (x, 239 - y),
                5 => (y, x),
                6 => (319 - y, x),
                7 => (319 - y, 239 - x),
                _ => (y, 239 - x),
            };
            let start = 3 * (row * 320 + column) as usize;
            data.extend_from_slice(&upright[start..start + 3]);
        }
    }
    (width, height, data)
}

struct Case {
    what: String,
    bytes: Vec<u8>,
    fit: Fit,
}

fn case(what: impl Into<String>, bytes: Vec<u8>) -> Case {
    Case { what: what.into(), bytes, fit: Fit::Cover }
}

fn cases() -> Vec<Case> {
    let mut all = oriented();
    all.extend(profiled());
    all.extend(kinds_of_pixels());
    all.extend(animations());
    all.extend(shapes());
    all.extend(profiles().into_iter().map(|(case, _)| case));
    all.extend(profiles_of_other_pngs().into_iter().map(|(case, _)| case));
    all.extend(profiles_of_animations().into_iter().map(|(case, _)| case));
    all
}

fn oriented() -> Vec<Case> {
    let of_jpeg = (1..=8).map(|value| {
        let (width, height, data) = stored(value);
        let bytes = with_segment(&jpeg(width, height, &data), 0xE1, &exif(value));
        case(format!("JPEG, orientation {value}"), bytes)
    });
    let (width, height, six) = stored(6);
    let plain = png(width, height, ColorType::Rgb, BitDepth::Eight, &six, |_| {});
    of_jpeg
        .chain([
            case("PNG, orientation 6", with_chunk(&plain, *b"eXIf", &exif(6)[6..])),
            case("WebP, orientation 6", webp(width, height, &six, &exif(6)[6..])),
            case("TIFF, orientation 6", tiff(width, height, &six, 6)),
        ])
        .collect()
}

fn profiled() -> Vec<Case> {
    let rgb = scene(320, 240);
    let profiles: [(&str, &[u8]); 3] = [
        ("Display P3", include_bytes!("../pipeline/color/tests/littlecms/display-p3.icc")),
        ("Adobe RGB", include_bytes!("../pipeline/color/tests/littlecms/adobe-rgb.icc")),
        ("ProPhoto", include_bytes!("../pipeline/color/tests/littlecms/prophoto-table.icc")),
    ];
    let in_jpeg = |profile: &[u8], bytes: &[u8]| {
        with_segment(bytes, 0xE2, &[&b"ICC_PROFILE\0\x01\x01"[..], profile].concat())
    };
    let press = include_bytes!("../pipeline/color/tests/littlecms/press.icc");
    // Cyan and a little yellow, as Adobe stores it: inverted.
    let inks = flat_jpeg(320, 240, &[25, 200, 155, 255], Some(0));
    let ycck = flat_jpeg(320, 240, &[179, 171, 1, 255], Some(2));
    let mut all = vec![case("JPEG, Display P3", in_jpeg(profiles[0].1, &jpeg(320, 240, &rgb)))];
    all.extend(profiles.map(|(name, profile)| {
        let set = |info: &mut png::Info<'_>| info.icc_profile = Some(profile.to_vec().into());
        case(format!("PNG, {name}"), png(320, 240, ColorType::Rgb, BitDepth::Eight, &rgb, set))
    }));
    all.push(case("CMYK without a profile", inks.clone()));
    all.push(case("CMYK with a profile", in_jpeg(press, &inks)));
    all.push(case("YCCK without a profile", ycck.clone()));
    all.push(case("YCCK with a profile", in_jpeg(press, &ycck)));
    all
}

fn kinds_of_pixels() -> Vec<Case> {
    let rgb = scene(320, 240);
    let each =
        |pixel: &dyn Fn(&[u8]) -> Vec<u8>| rgb.chunks(3).flat_map(pixel).collect::<Vec<u8>>();
    let luma = |p: &[u8]| {
        u8::try_from((u32::from(p[0]) + 2 * u32::from(p[1]) + u32::from(p[2])) / 4).unwrap()
    };
    let grey_alpha = each(&|p| vec![luma(p), 255 - p[0] / 2]);
    let deep = each(&|p| p.iter().flat_map(|v| [*v, 0x40]).collect());
    let transparent = each(&|p| if p[2] > 200 { vec![p[0], p[1], p[2], 255] } else { vec![0; 4] });
    vec![
        case(
            "PNG, grey with alpha",
            png(320, 240, ColorType::GrayscaleAlpha, BitDepth::Eight, &grey_alpha, |_| {}),
        ),
        case("PNG, 16 bits", png(320, 240, ColorType::Rgb, BitDepth::Sixteen, &deep, |_| {})),
        case(
            "PNG, letter and disc on transparent black",
            png(320, 240, ColorType::Rgba, BitDepth::Eight, &transparent, |_| {}),
        ),
        case("PNG, the same with a palette", palette_png()),
        case("GIF, the same", transparent_gif()),
        case("GIF", encoded(320, 240, &rgb, ImageFormat::Gif)),
        case("BMP", encoded(320, 240, &rgb, ImageFormat::Bmp)),
        case("BMP, a palette from top to bottom", bmp(320, -240, 8, 0, PALETTE_BGR0, &indices())),
    ]
}

/// The colour index of each pixel: transparent (black), the white of the letter, or the blue of the disc.
fn indices() -> Vec<u8> {
    scene(320, 240)
        .chunks(3)
        .map(|p| match p {
            [250, ..] => 1,
            [30, 40, 210] => 2,
            _ => 0,
        })
        .collect()
}

/// The colours of [`indices`], in the order of BMP.
const PALETTE_BGR0: &[u8] = &[0, 0, 0, 0, 250, 250, 250, 0, 210, 40, 30, 0];

fn palette_png() -> Vec<u8> {
    png(320, 240, ColorType::Indexed, BitDepth::Eight, &indices(), |info| {
        info.palette = Some(vec![0, 0, 0, 250, 250, 250, 30, 40, 210].into());
        info.trns = Some(vec![0].into());
    })
}

fn transparent_gif() -> Vec<u8> {
    const COLORS: [[u8; 4]; 3] = [[0; 4], [250, 250, 250, 255], [30, 40, 210, 255]];
    let rgba = indices().into_iter().flat_map(|index| COLORS[usize::from(index)]).collect();
    gif(&[RgbaImage::from_raw(320, 240, rgba).unwrap()])
}

fn gif(frames: &[RgbaImage]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut bytes);
    for frame in frames {
        encoder.encode_frame(image::Frame::new(frame.clone())).unwrap();
    }
    drop(encoder);
    bytes
}

fn animations() -> Vec<Case> {
    let first = scene(320, 240);
    let second = RED.repeat(320 * 240);
    let frames = [&first, &second].map(|rgb| webp(320, 240, rgb, &[]));
    let of_gif = [&first, &second].map(|rgb| {
        let rgba = rgb.chunks(3).flat_map(|p| [p[0], p[1], p[2], 255]).collect();
        RgbaImage::from_raw(320, 240, rgba).unwrap()
    });
    vec![
        case("animated GIF", gif(&of_gif)),
        case("animated WebP", animated_webp(320, 240, &frames.each_ref().map(|frame| &frame[..]))),
        case("animated PNG", animated_png(320, 240, &[&first, &second])),
    ]
}

fn shapes() -> Vec<Case> {
    let line = scene(10_000, 1);
    let column: Vec<u8> = scene(1, 10_000);
    let inside = |what: &str, bytes| Case { what: what.to_owned(), bytes, fit: Fit::Inside };
    vec![
        inside("320×240 inside", jpeg(320, 240, &scene(320, 240))),
        inside("10000×1 inside", png(10_000, 1, ColorType::Rgb, BitDepth::Eight, &line, |_| {})),
        inside("1×10000 inside", png(1, 10_000, ColorType::Rgb, BitDepth::Eight, &column, |_| {})),
        case("wide", jpeg(960, 240, &scene(960, 240))),
        case("tall", jpeg(240, 960, &scene(240, 960))),
        case("large, reduced while it is decoded", jpeg(2560, 1920, &scene(2560, 1920))),
    ]
}

/// The lengths of profiles, and the sides of the pictures that have them.
const PROFILE_BYTES: [usize; 4] = [0, 5_000, 60_000, 2_000_000];
const SIDES: (u32, u32) = (240, 210);
/// A colour, and the result of exchanging its red and green.
const COLOR: [u8; 3] = [220, 40, 30];
const SWAPPED: [u8; 3] = [40, 220, 30];
/// The grey 55 as light, in sRGB.
const LIGHTER: [u8; 3] = [128; 3];

/// Greys, colours and inks with a profile that changes them plainly, in each format that can have one, with
/// the colour that the middle of the variant then has. The profiles have from some hundred bytes to 2 MB.
fn profiles() -> Vec<(Case, [u8; 3])> {
    let pixels = (SIDES.0 * SIDES.1) as usize;
    // What the profiles make of them: twice as light, red and green in each other's place, half as light.
    let (grey, color, inks) = ([55], COLOR, [0, 0, 0, 127]);
    let (grey_shown, inks_shown) = (LIGHTER, [119; 3]);
    let rgb = color.repeat(pixels);
    let of_tiff = |photometric: u16, pixel: &[u8], profile: &[u8]| {
        let samples = u16::try_from(pixel.len()).unwrap();
        let tiff = Tiff::new(SIDES, photometric, samples, &pixel.repeat(pixels));
        tiff.with_bytes(34_675, profile).write()
    };
    let inverted = inks.map(|ink: u8| 255 - ink);
    let narrow = (240, 210);

    let mut all = Vec::new();
    for bytes in PROFILE_BYTES {
        let greys = grown(linear_grey_profile(), bytes);
        let colors = grown(swapping_profile(), bytes);
        let press = grown(dark_inks_profile(), bytes);
        let mut add = |what: &str, file: Vec<u8>, shown: [u8; 3]| {
            all.push((case(format!("{what}, a profile of {bytes} bytes"), file), shown));
        };
        let of_png = |color, data: &[u8], profile: &[u8]| {
            let set = |info: &mut png::Info<'_>| info.icc_profile = Some(profile.to_vec().into());
            png(SIDES.0, SIDES.1, color, BitDepth::Eight, data, set)
        };

        let jpeg_of = |pixel: &[u8]| flat_jpeg(narrow.0, narrow.1, pixel, Some(0));
        add("grey JPEG", jpeg_with_profile(&jpeg_of(&grey), &greys), grey_shown);
        add("JPEG", jpeg_with_profile(&jpeg(SIDES.0, SIDES.1, &rgb), &colors), SWAPPED);
        add("JPEG of inks", jpeg_with_profile(&jpeg_of(&inverted), &press), inks_shown);
        add("grey PNG", of_png(ColorType::Grayscale, &grey.repeat(pixels), &greys), grey_shown);
        add("PNG", of_png(ColorType::Rgb, &rgb, &colors), SWAPPED);
        add("grey TIFF", of_tiff(1, &grey, &greys), grey_shown);
        add("TIFF", of_tiff(2, &color, &colors), SWAPPED);
        add("TIFF of inks", of_tiff(5, &inks, &press), inks_shown);
        let lossless = webp(SIDES.0, SIDES.1, &rgb, &[]);
        add("lossless WebP", webp_with_profile(&lossless, SIDES, &colors), SWAPPED);
        let lossy = ::webp::Encoder::from_rgb(&rgb, SIDES.0, SIDES.1).encode(95.0);
        add("lossy WebP", webp_with_profile(&lossy, SIDES, &colors), SWAPPED);
        let plain = encoded(SIDES.0, SIDES.1, &rgb, ImageFormat::Gif);
        add("GIF", gif_with_profile(&plain, &colors), SWAPPED);
        add("BMP", bmp_with_profile(SIDES, &rgb, &colors), SWAPPED);
    }
    all
}

#[test]
fn a_profile_of_every_size_is_used_in_the_frames_of_an_animation() {
    for (case, expected) in profiles_of_animations() {
        let made = animate(&file(&case.bytes), Wanted::inside(200), &Settings::default()).unwrap();
        let Rendered::WebP(made) = made else { panic!("{}: {made:?}", case.what) };
        let frames = webp::AnimDecoder::new(&made).decode().unwrap();
        assert_eq!(frames.len(), 2, "{}", case.what);
        for (number, expected) in [(0, expected), (1, [0; 3])] {
            let frame = frames.get_frame(number).unwrap();
            let shown = &frame.get_image()[..3];
            assert!(close(shown, &expected), "{}, frame {number}: {shown:?}", case.what);
        }
    }
}

/// PNGs of 16 bits and with interlacing, with the profiles of [`profiles`].
fn profiles_of_other_pngs() -> Vec<(Case, [u8; 3])> {
    let pixels = (SIDES.0 * SIDES.1) as usize;
    let of = |color, data: &[u8], profile: Vec<u8>| {
        let wide: Vec<u8> = data.iter().flat_map(|sample| [*sample; 2]).collect();
        let set = |info: &mut png::Info<'_>| info.icc_profile = Some(profile.into());
        png(SIDES.0, SIDES.1, color, BitDepth::Sixteen, &wide, set)
    };
    let interlaced = interlaced_png(SIDES.0, SIDES.1, &COLOR.repeat(pixels));
    let of_bytes = |bytes: usize| {
        let greys = grown(linear_grey_profile(), bytes);
        let colors = grown(swapping_profile(), bytes);
        let named =
            |what: &str, file: Vec<u8>| case(format!("{what}, a profile of {bytes} bytes"), file);
        let deep_grey = of(ColorType::Grayscale, &[55].repeat(pixels), greys);
        let deep = of(ColorType::Rgb, &COLOR.repeat(pixels), colors.clone());
        [
            (named("grey PNG of 16 bits", deep_grey), LIGHTER),
            (named("PNG of 16 bits", deep), SWAPPED),
            (named("interlaced PNG", png_with_profile(&interlaced, &colors)), SWAPPED),
        ]
    };
    PROFILE_BYTES.into_iter().flat_map(of_bytes).collect()
}

/// Animations of two frames with the profiles of [`profiles`]. The second frame is black.
fn profiles_of_animations() -> Vec<(Case, [u8; 3])> {
    let [red, green, blue] = COLOR;
    let frames = [[red, green, blue, 255], [0, 0, 0, 255]]
        .map(|color| Step::flat(0, 0, SIDES.0, SIDES.1, color));
    let [across, down] = [SIDES.0, SIDES.1].map(|side| u16::try_from(side).unwrap());
    let of_bytes = |bytes: usize| {
        let profile = grown(swapping_profile(), bytes);
        let webp_of = |coding| {
            let moving = moving_webp(SIDES.0, SIDES.1, &frames, 0, coding);
            animation_with_profile(&moving, &profile)
        };
        let gif = gif_with_profile(&moving_gif(across, down, &frames, None), &profile);
        let kind = (ColorType::Rgba, Some(profile.clone()));
        [
            ("animated GIF", gif),
            ("animated lossless WebP", webp_of(Coding::Lossless)),
            ("animated lossy WebP", webp_of(Coding::Lossy)),
            ("APNG", moving_png_of(kind, SIDES, &frames, 0, None)),
        ]
        .map(|(what, file)| (case(format!("{what}, a profile of {bytes} bytes"), file), SWAPPED))
    };
    PROFILE_BYTES.into_iter().flat_map(of_bytes).collect()
}

#[test]
fn a_profile_of_every_size_is_used_in_every_format() {
    let all = [profiles(), profiles_of_other_pngs(), profiles_of_animations()];
    for (case, expected) in all.into_iter().flatten() {
        let seen = seen(&case);
        let middle = seen.at(seen.width / 2, seen.height / 2);
        assert!(close(&middle[..3], &expected), "{}: {middle:?}", case.what);
    }
}

fn seen(case: &Case) -> Seen {
    let variants = render(&file(&case.bytes), &[Wanted::new(200, case.fit)], &Settings::default());
    match variants.unwrap().remove(0) {
        Rendered::WebP(bytes) => Seen::of(&bytes),
        Rendered::PassThrough { mime } => panic!("{}: {mime} passed through", case.what),
    }
}

/// The variant over white, reduced to a tile. Uncovered parts are grey.
fn tile(seen: &Seen) -> RgbaImage {
    RgbaImage::from_fn(TILE, TILE, |column, row| {
        let across = (column * 8..column * 8 + 8).filter(|x| *x < seen.width);
        let pixels: Vec<_> = across
            .flat_map(|x| (row * 8..row * 8 + 8).filter(|y| *y < seen.height).map(move |y| (x, y)))
            .map(|(x, y)| seen.at(x, y))
            .collect();
        if pixels.is_empty() {
            return Rgba([128; 4]);
        }
        let mean = |of: &dyn Fn(&[u8; 4]) -> u32| {
            u8::try_from(pixels.iter().map(of).sum::<u32>() / u32::try_from(pixels.len()).unwrap())
                .unwrap()
        };
        let alpha = |p: &[u8; 4]| u32::from(p[3]);
        let over_white = |channel: usize| {
            mean(&|p| (u32::from(p[channel]) * alpha(p) + 255 * (255 - alpha(p))) / 255)
        };
        Rgba([over_white(0), over_white(1), over_white(2), 255])
    })
}

#[test]
fn renderings_are_the_golden_ones() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden.png");
    let cases = cases();
    let rows = u32::try_from(cases.len()).unwrap().div_ceil(COLUMNS);
    let place = |index: usize| {
        let index = u32::try_from(index).unwrap();
        (index % COLUMNS * TILE, index / COLUMNS * TILE)
    };
    let mut sheet = RgbaImage::from_pixel(COLUMNS * TILE, rows * TILE, Rgba([128, 128, 128, 255]));
    for (index, case) in cases.iter().enumerate() {
        let (left, top) = place(index);
        image::imageops::replace(&mut sheet, &tile(&seen(case)), left.into(), top.into());
    }
    if std::env::var_os("FILESTORE_GOLDEN").is_some_and(|value| value == "write") {
        sheet.save(&path).unwrap();
        return;
    }
    let golden = image::open(&path).unwrap().into_rgba8();
    assert_eq!(
        sheet.dimensions(),
        golden.dimensions(),
        "a case came or went: write the sheet anew"
    );
    for (index, case) in cases.iter().enumerate() {
        let (left, top) = place(index);
        for (x, y) in (0..TILE).flat_map(|x| (0..TILE).map(move |y| (left + x, top + y))) {
            let (is, want) = (sheet[(x, y)].0, golden[(x, y)].0);
            let same = is.iter().zip(want).all(|(is, want)| is.abs_diff(want) <= SAME);
            assert!(
                same,
                "{}: {is:?} at {},{}, not {want:?}; if that is meant, RECIPE is another too",
                case.what,
                x - left,
                y - top
            );
        }
    }
}

#[test]
fn transparent_black_leaves_no_dark_fringe() {
    // The smallest of the three channels over white: 250 for the letter, 30 for the disc. At their
    // edges, lighter than themselves is right, and darker is a fringe.
    for case in [case("PNG", palette_png()), case("GIF", transparent_gif())] {
        let seen = seen(&case);
        let mut edges = 0;
        for (x, y) in (0..seen.width).flat_map(|x| (0..seen.height).map(move |y| (x, y))) {
            let [red, green, blue, alpha] = seen.at(x, y);
            if !(40..250).contains(&alpha) {
                continue;
            }
            edges += 1;
            let letter = red > 225 && green > 225;
            let disc = blue > 170 && red < 75;
            assert!(letter || disc, "{}: {:?} at {x},{y}", case.what, seen.at(x, y));
        }
        assert!(edges > 100, "{}: edges to look at: {edges}", case.what);
    }
}
