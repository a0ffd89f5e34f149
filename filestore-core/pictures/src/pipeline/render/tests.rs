//! Tests complete renderings of generated pictures, with the results that clients see.

use std::time::Duration;

use bytes::Bytes;
use image::ImageFormat;
use moxcms::ColorProfile;
use png::{BitDepth, ColorType};

use super::*;
use crate::error::{Error, ErrorKind};
use crate::fixtures::*;
use crate::pipeline::spare::NewThreads;
use crate::probe;
use crate::{Dimensions, Fit};

mod apng_damage;
mod bmp_kinds;
mod damaged;
mod faults;
mod gif_kinds;
mod jpeg_kinds;
mod png_colors;
mod png_kinds;
mod reduced;
mod refused;
mod sheet;
mod tiff_chunks;
mod tiff_damage;
mod tiff_kinds;
mod webp_kinds;

/// The default settings with a deadline of one hour, so that a busy machine does not fail a test.
fn unhurried() -> Settings {
    let mut settings = Settings::default();
    settings.limits.deadline = Duration::from_hours(1);
    settings
}

/// The variant of `bytes`, as the engine makes it.
fn make(bytes: &[u8], side: u32, fit: Fit) -> Result<Rendered> {
    let variants = render(&file(bytes), &[Wanted::new(side, fit)], &unhurried())?;
    Ok(variants.into_iter().next().unwrap())
}

fn webp_of(bytes: &[u8], side: u32, fit: Fit) -> Bytes {
    match make(bytes, side, fit).unwrap() {
        Rendered::WebP(bytes) => bytes,
        Rendered::PassThrough { mime } => panic!("{mime} passed through"),
    }
}

fn seen(bytes: &[u8], side: u32, fit: Fit) -> Seen {
    Seen::of(&webp_of(bytes, side, fit))
}

fn error(bytes: &[u8]) -> Error {
    make(bytes, 200, Fit::Cover).unwrap_err()
}

/// The size from the header.
fn probed(bytes: &[u8]) -> Option<Dimensions> {
    probe(&file(bytes)).ok().map(|info| info.size)
}

fn assert_quarters(seen: &Seen, expected: [[u8; 3]; 4], what: &str) {
    let quarters = seen.quarters();
    let same = quarters.iter().zip(expected).all(|(is, want)| close(is, &want));
    assert!(same, "{what}: {quarters:?}");
}

/// `STORED_QUARTERS[o - 1][i]` is the displayed quarter (0 top left, 1 top right, 2 bottom left, 3 bottom
/// right) that is stored at place `i` under orientation `o`. The table follows the definition of the EXIF tag
/// ("the 0th row is at the visual right-hand side, and the 0th column is the visual top").
const STORED_QUARTERS: [[usize; 4]; 8] = [
    [0, 1, 2, 3],
    [1, 0, 3, 2],
    [3, 2, 1, 0],
    [2, 3, 0, 1],
    [0, 2, 1, 3],
    [1, 3, 0, 2],
    [3, 1, 2, 0],
    [2, 0, 3, 1],
];
const DISPLAYED: [[u8; 3]; 4] = [RED, GREEN, BLUE, WHITE];

#[test]
fn all_eight_orientations_are_shown_upright_from_every_format_that_has_them() {
    for value in 1..=8u8 {
        let colors = STORED_QUARTERS[usize::from(value) - 1].map(|quarter| DISPLAYED[quarter]);
        let (width, height) = if value < 5 { (300, 200) } else { (200, 300) };
        let rgb = quarters(width, height, colors);
        let plain_png = png(width, height, ColorType::Rgb, BitDepth::Eight, &rgb, |_| {});
        let exif = exif(value);
        for (name, bytes) in [
            ("JPEG", with_segment(&jpeg(width, height, &rgb), 0xE1, &exif)),
            ("PNG", with_chunk(&plain_png, *b"eXIf", &exif[6..])),
            ("WebP", webp(width, height, &rgb, &exif[6..])),
            ("TIFF", tiff(width, height, &rgb, value.into())),
        ] {
            let what = format!("{name}, orientation {value}");
            assert_eq!(probed(&bytes), Some(Dimensions { width: 300, height: 200 }), "{what}");
            let cover = seen(&bytes, 200, Fit::Cover);
            assert_eq!((cover.width, cover.height), (200, 200), "{what}");
            assert_quarters(&cover, DISPLAYED, &what);
            let inside = seen(&bytes, 200, Fit::Inside);
            assert_eq!((inside.width, inside.height), (200, 133), "{what}");
            assert_quarters(&inside, DISPLAYED, &what);
        }
    }
}

#[test]
fn formats_without_orientation_are_shown_as_stored() {
    let rgb = quarters(480, 320, DISPLAYED);
    for format in [ImageFormat::Bmp, ImageFormat::Gif] {
        let bytes = encoded(480, 320, &rgb, format);
        assert_quarters(&seen(&bytes, 250, Fit::Cover), DISPLAYED, &format!("{format:?}"));
        assert_eq!(probed(&bytes), Some(Dimensions { width: 480, height: 320 }));
    }
}

#[test]
fn cover_cuts_evenly_from_both_ends() {
    // A tall picture: red above, white in the middle third, blue below.
    let rows = [RED, WHITE, BLUE].map(|color| color.repeat(300 * 300)).concat();
    let cover = seen(&jpeg(300, 900, &rows), 200, Fit::Cover);
    assert_eq!((cover.width, cover.height), (200, 200));
    assert_quarters(&cover, [WHITE; 4], "the middle third");
}

#[test]
fn a_picture_passes_through_up_to_the_size_whatever_it_claims_to_be() {
    let rgb = |width: u32, height: u32| vec![90; (3 * width * height) as usize];
    for (bytes, mime) in [
        (jpeg(200, 80, &rgb(200, 80)), "image/jpeg"),
        (png(1, 200, ColorType::Rgb, BitDepth::Eight, &rgb(1, 200), |_| {}), "image/png"),
        (encoded(200, 200, &rgb(200, 200), ImageFormat::Gif), "image/gif"),
        (webp(1, 1, &rgb(1, 1), &[]), "image/webp"),
        (encoded(200, 1, &rgb(200, 1), ImageFormat::Bmp), "image/bmp"),
        (tiff(20, 10, &rgb(20, 10), 6), "image/tiff"),
    ] {
        assert_eq!(make(&bytes, 200, Fit::Cover).unwrap(), Rendered::PassThrough { mime });
        assert_eq!(make(&bytes, 200, Fit::Inside).unwrap(), Rendered::PassThrough { mime });
    }
    let one_more = seen(&jpeg(201, 80, &rgb(201, 80)), 200, Fit::Cover);
    assert_eq!((one_more.width, one_more.height), (80, 80));
}

#[test]
fn extreme_aspects_are_rendered() {
    let line = vec![120; 3 * 10_000];
    let tall = png(1, 10_000, ColorType::Rgb, BitDepth::Eight, &line, |_| {});
    let wide = png(10_000, 1, ColorType::Rgb, BitDepth::Eight, &line, |_| {});
    for bytes in [&tall, &wide] {
        let cover = seen(bytes, 1000, Fit::Cover);
        assert_eq!((cover.width, cover.height), (1, 1));
    }
    let inside = seen(&tall, 200, Fit::Inside);
    assert_eq!((inside.width, inside.height), (1, 200));
}

#[test]
fn a_grey_jpeg_is_read() {
    let middle = seen(&flat_jpeg(300, 300, &[77], None), 200, Fit::Cover).at(100, 100);
    assert!(close(&middle, &[77, 77, 77, 255]), "{middle:?}");
}

#[test]
fn a_16_bit_tiff_is_read() {
    let rgb: Vec<u16> = [30u16, 200, 30].map(|v| v * 257).repeat(300 * 300);
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::DynamicImage::ImageRgb16(image::ImageBuffer::from_raw(300, 300, rgb).unwrap())
        .write_to(&mut bytes, ImageFormat::Tiff)
        .unwrap();
    let middle = seen(bytes.get_ref(), 200, Fit::Cover).at(100, 100);
    assert!(close(&middle, &[30, 200, 30, 255]), "{middle:?}");
}

#[test]
fn an_animation_shows_its_first_frame() {
    let mut gif = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut gif);
    for color in [RED, GREEN, BLUE] {
        let pixel = image::Rgba([color[0], color[1], color[2], 255]);
        encoder
            .encode_frame(image::Frame::new(image::RgbaImage::from_pixel(300, 300, pixel)))
            .unwrap();
    }
    drop(encoder);
    let frame = |color: [u8; 3]| {
        webp::Encoder::from_rgb(&color.repeat(300 * 300), 300, 300).encode_lossless()
    };
    let frames = [frame(RED), frame(GREEN)];
    let animated = animated_webp(300, 300, &frames.each_ref().map(|frame| &frame[..]));
    for (what, bytes) in [("GIF", gif), ("WebP", animated)] {
        assert_quarters(&seen(&bytes, 200, Fit::Cover), [RED; 4], what);
    }
}

#[test]
fn four_inks_become_the_colours_they_print() {
    // Full magenta and yellow is red. Adobe stores inks inverted. Its YCCK form stores the
    // complements of those as YCbCr.
    for (what, bytes) in [
        ("Adobe CMYK", flat_jpeg(300, 300, &[255, 0, 0, 255], Some(0))),
        ("Adobe YCCK", flat_jpeg(300, 300, &[179, 171, 1, 255], Some(2))),
    ] {
        let middle = seen(&bytes, 200, Fit::Cover).at(100, 100);
        assert!(close(&middle, &[254, 0, 0, 255]), "{what}: {middle:?}");
    }
    let grey =
        seen(&flat_jpeg(300, 300, &[255, 255, 255, 100], Some(0)), 200, Fit::Cover).at(100, 100);
    assert!(close(&grey, &[100, 100, 100, 255]), "black ink alone: {grey:?}");
}

#[test]
fn an_embedded_profile_is_converted_and_left_out() {
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    // sRGB (200, 100, 50) in Display P3.
    let rgb = [189, 106, 62].repeat(300 * 300);
    let segment = [&b"ICC_PROFILE\0\x01\x01"[..], &profile].concat();
    for (what, bytes) in [
        ("JPEG", with_segment(&jpeg(300, 300, &rgb), 0xE2, &segment)),
        (
            "PNG",
            png(300, 300, ColorType::Rgb, BitDepth::Eight, &rgb, |info| {
                info.icc_profile = Some(profile.clone().into());
            }),
        ),
    ] {
        let variant = webp_of(&bytes, 200, Fit::Cover);
        let middle = Seen::of(&variant).at(100, 100);
        let off = middle.iter().zip([200, 100, 50]).map(|(is, want)| is.abs_diff(want)).max();
        assert!(off <= Some(4), "{what}: {middle:?}");
        // Of one colour, so lossless.
        assert_eq!(chunks(&variant), ["VP8L"], "{what}");
    }
}

#[test]
fn a_jpeg_with_the_profile_of_srgb_is_the_one_without() {
    let profile = ColorProfile::new_srgb().encode().unwrap();
    let segment = [&b"ICC_PROFILE\0\x01\x01"[..], &profile].concat();
    let plain = jpeg(700, 500, &photo(700, 500));
    let profiled = with_segment(&plain, 0xE2, &segment);
    for (pixels, fit) in [(200, Fit::Cover), (300, Fit::Inside)] {
        assert_eq!(webp_of(&plain, pixels, fit), webp_of(&profiled, pixels, fit));
    }
}

#[test]
fn a_drawing_in_a_jpeg_is_lossless_and_a_photograph_keeps_its_planes() {
    let drawing = jpeg(600, 600, &[20, 120, 200].repeat(600 * 600));
    assert_eq!(chunks(&webp_of(&drawing, 200, Fit::Cover)), ["VP8L"]);
    let photo = jpeg(600, 600, &photo(600, 600));
    assert_eq!(chunks(&webp_of(&photo, 200, Fit::Cover)), ["VP8 "]);
}

#[test]
fn a_smaller_size_is_the_same_whether_it_was_made_alone_or_of_a_larger_one() {
    let (width, height) = (1501, 1003);
    let bytes = with_segment(&jpeg(width, height, &photo(width, height)), 0xE1, &exif(6));
    let wanted = [700, 300, 200].map(Wanted::inside);
    let together = render(&file(&bytes), &wanted, &unhurried()).unwrap();
    for (variant, Wanted { side, fit }) in together.iter().zip(wanted) {
        let Rendered::WebP(together) = variant else { panic!("{variant:?}") };
        let (together, alone) = (Seen::of(together), seen(&bytes, side, fit));
        assert_eq!((together.width, together.height), (alone.width, alone.height));
        for at in (0..together.width.min(together.height)).step_by(7) {
            let (is, expected) = (together.at(at, at), alone.at(at, at));
            let off = is.iter().zip(expected).map(|(is, want)| is.abs_diff(want)).max();
            assert!(off < Some(24), "{side} at {at}: {is:?}, not {expected:?}");
        }
    }
}

/// The chunks of a WebP file.
fn chunks(webp: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = 12;
    while at < webp.len() {
        names.push(String::from_utf8_lossy(&webp[at..at + 4]).into_owned());
        let length = u32::from_le_bytes(webp[at + 4..at + 8].try_into().unwrap()) as usize;
        at += 8 + length.next_multiple_of(2);
    }
    names
}

/// 51° 30′ 42″ as three EXIF rationals. No variant may contain these bytes.
const PLACE: &[u8] = b"\x33\0\0\0\x01\0\0\0\x1E\0\0\0\x01\0\0\0\x2A\0\0\0\x01\0\0\0";

/// EXIF metadata with the place of a picture: a directory with one entry, which leads to a GPS directory
/// (Exif 2.32, section 4.6.6) with a latitude.
fn exif_with_place() -> Vec<u8> {
    let mut bytes =
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x25\x88\x04\0\x01\0\0\0\x1A\0\0\0\0\0\0\0".to_vec();
    bytes.extend(b"\x01\0\x02\0\x05\0\x03\0\0\0\x2C\0\0\0\0\0\0\0");
    bytes.extend(PLACE);
    bytes
}

#[test]
fn no_metadata_is_carried_over() {
    let rgb = photo(300, 300);
    let exif = exif_with_place();
    let xmp = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>GPSLatitude</x:xmpmeta>";
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    let icc = [&b"ICC_PROFILE\0\x01\x01"[..], &profile].concat();
    let with_all = [(0xE1, &exif[..]), (0xE1, xmp), (0xE2, &icc), (0xFE, b"a comment: GPS")]
        .into_iter()
        .fold(jpeg(300, 300, &rgb), |jpeg, (marker, payload)| with_segment(&jpeg, marker, payload));
    let rgba = rgb.chunks(3).flat_map(|p| [p[0], p[1], p[2], p[0]]).collect::<Vec<_>>();
    let png = png(300, 300, ColorType::Rgba, BitDepth::Eight, &rgba, |info| {
        info.icc_profile = Some(profile.clone().into());
    });
    let png = with_chunk(&with_chunk(&png, *b"eXIf", &exif[6..]), *b"tEXt", b"Author\0GPS someone");
    let mut tiff = tiff(300, 300, &rgb, 1);
    tiff.extend(&exif);
    for (what, original, expected) in [
        ("JPEG", with_all, &["VP8 "][..]),
        ("PNG", png, &["VP8X", "ALPH", "VP8 "]),
        ("WebP", webp(300, 300, &rgb, &exif[6..]), &["VP8 "]),
        ("TIFF", tiff, &["VP8 "]),
    ] {
        let holds = |bytes: &[u8], needle: &[u8]| {
            bytes.windows(needle.len()).any(|window| window == needle)
        };
        assert!(holds(&original, PLACE), "{what}: the original knows the place");
        let variant = webp_of(&original, 200, Fit::Cover);
        assert_eq!(chunks(&variant), expected, "{what}");
        for secret in [PLACE, b"Exif", b"EXIF", b"ICCP", b"XMP ", b"GPS", b"acsp"] {
            assert!(!holds(&variant, secret), "{what}: {}", String::from_utf8_lossy(secret));
        }
    }
}

#[test]
fn a_progressive_jpeg_is_read() {
    let middle = seen(&progressive_jpeg(), 200, Fit::Cover).at(100, 100);
    assert!(close(&middle, &[77, 77, 77, 255]), "{middle:?}");
}

/// A photograph with rows that change repeatedly from transparent to opaque.
fn fading(width: u32, height: u32) -> Vec<u8> {
    let rows = photo(width, height);
    let rows = rows.chunks(3 * width as usize).zip((0..=255u8).cycle());
    rows.flat_map(|(row, alpha)| row.chunks(3).flat_map(move |p| [p[0], p[1], p[2], alpha]))
        .collect()
}

/// Every size with both fits.
fn every_request() -> Vec<Wanted> {
    let sides = [200, 250, 300, 400, 500, 700, 1000];
    sides.into_iter().flat_map(|side| [Wanted::cover(side), Wanted::inside(side)]).collect()
}

#[test]
fn all_made_at_once_are_what_each_alone_is() {
    // Turned on its side, with a short edge below some of the sizes and transparency.
    let (width, height) = (1300, 620);
    let turned = with_segment(&jpeg(width, height, &photo(width, height)), 0xE1, &exif(6));
    let transparent =
        png(width, height, ColorType::Rgba, BitDepth::Eight, &fading(width, height), |_| {});
    for bytes in [turned, transparent] {
        let file = file(&bytes);
        // The file's own loss would hide how the pixels differ.
        let settings = Settings { quality: 100.0, ..unhurried() };
        let together = render(&file, &every_request(), &settings).unwrap();
        for (request, made) in every_request().into_iter().zip(together) {
            let alone = render(&file, &[request], &settings).unwrap().remove(0);
            let (Rendered::WebP(made), Rendered::WebP(alone)) = (made, alone) else {
                panic!("{request:?}")
            };
            let (made, alone) = (Seen::of(&made), Seen::of(&alone));
            assert_eq!((made.width, made.height), (alone.width, alone.height), "{request:?}");
            let difference = made.mean_difference(&alone);
            // Together, all are reduced from one decode at the largest's scale, so the small ones
            // start from more detail than alone. A shift by half a pixel would
            // differ by more than 4.
            assert!(difference < 2.0, "{request:?} differs by {difference} on average");
        }
    }
}

#[test]
fn what_passes_through_and_what_does_not_keep_their_order() {
    let wanted = every_request();
    let made = render(&file(&jpeg(420, 300, &photo(420, 300))), &wanted, &unhurried()).unwrap();
    for (request, variant) in wanted.iter().zip(&made) {
        let passed = matches!(variant, Rendered::PassThrough { mime: "image/jpeg" });
        assert_eq!(passed, request.side >= 420, "{request:?}: {variant:?}");
    }
    assert!(render(&file(b"no image"), &wanted, &unhurried()).is_err());
}

#[test]
fn what_is_appended_to_a_jpeg_does_not_matter() {
    let rgb = quarters(400, 300, DISPLAYED);
    let bytes = [jpeg(400, 300, &rgb), b"\0\0\0\x18ftypmp42".repeat(1000)].concat();
    assert_quarters(&seen(&bytes, 200, Fit::Cover), DISPLAYED, "a motion photo");
}

#[test]
fn a_better_quality_makes_a_larger_file() {
    let file = file(&jpeg(500, 400, &photo(500, 400)));
    let bytes = |quality| {
        let settings = Settings { quality, ..unhurried() };
        match &render(&file, &[Wanted::new(300, Fit::Cover)], &settings).unwrap()[..] {
            [Rendered::WebP(bytes)] => bytes.len(),
            other => panic!("{other:?}"),
        }
    };
    assert!(bytes(30.0) < bytes(90.0));
}

#[test]
fn a_drawing_in_a_jpeg_becomes_a_lossless_file_however_it_is_stored() {
    // Black and white blocks, which a JPEG keeps as they are, and cropped so that they are none of WebP's.
    let (width, height) = (406, 400);
    let mut random = fastrand::Rng::with_seed(3);
    let cells: Vec<u8> = std::iter::repeat_with(|| 255 * random.u8(0..2)).take(51 * 50).collect();
    let points = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let blocks = points.clone().flat_map(|(x, y)| [cells[(y / 8 * 51 + x / 8) as usize]; 3]);
    let blocks: Vec<u8> = blocks.collect();
    let smooth =
        points.flat_map(|(x, y)| [x, y, x + y].map(|at| u8::try_from(20 + at / 10).unwrap()));
    let smooth: Vec<u8> = smooth.collect();

    for orientation in [1, 3, 6] {
        for (what, rgb, expected) in [("blocks", &blocks, true), ("smooth", &smooth, false)] {
            let file = with_segment(&jpeg(width, height, rgb), 0xE1, &exif(orientation));
            let variant = webp_of(&file, 400, Fit::Cover);
            let is_lossless = &variant[12..16] == b"VP8L";
            assert_eq!(is_lossless, expected, "{what} {orientation}: {} bytes", variant.len());
        }
    }
}

#[test]
fn a_thumbnail_is_a_webp_even_of_a_picture_that_is_small_enough() {
    let thumbnail = |bytes: &[u8], wanted| {
        let seen = Seen::of(&thumbnail(&bytes, wanted, &unhurried()).unwrap());
        (seen.width, seen.height)
    };
    let small = jpeg(120, 80, &photo(120, 80));
    assert_eq!(thumbnail(&small, Wanted::cover(200)), (120, 80));
    let large = jpeg(600, 300, &photo(600, 300));
    assert_eq!(thumbnail(&large, Wanted::cover(200)), (200, 200));
    assert_eq!(thumbnail(&large, Wanted::inside(37)), (37, 19));
}

#[test]
fn bytes_in_memory_give_the_picture_that_their_file_gives() {
    let bytes = jpeg(600, 300, &photo(600, 300));
    let wanted = [Wanted::cover(200)];
    let from_memory = render(&bytes, &wanted, &unhurried()).unwrap();
    assert_eq!(from_memory, render(&file(&bytes), &wanted, &unhurried()).unwrap());
}

#[test]
fn a_side_that_no_webp_has_is_refused_whatever_the_picture() {
    let bytes = jpeg(600, 300, &photo(600, 300));
    for side in [0, 16_384] {
        let error = thumbnail(&bytes, Wanted::cover(side), &unhurried()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{side}");
    }
}
