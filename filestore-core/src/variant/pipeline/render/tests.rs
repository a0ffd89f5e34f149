//! Whole renderings: generated pictures of every kind in, what a client would see out.

use std::time::Duration;

use bytes::Bytes;
use image::ImageFormat;
use moxcms::ColorProfile;
use png::{BitDepth, ColorType};

use super::*;
use crate::domain::error::{Error, ErrorKind};
use crate::domain::record::Dimensions;
use crate::variant::fixtures::*;
use crate::variant::pipeline::aside::NewThreads;
use crate::variant::probe;

mod damaged;
mod jpeg_kinds;
mod reduced;
mod sheet;
mod tiff_kinds;

/// The default configuration with a deadline of an hour: a busy machine fails no test.
fn unhurried() -> VariantConfig {
    VariantConfig { deadline: Duration::from_hours(1), ..VariantConfig::default() }
}

/// The variant of `bytes`, as the engine makes it.
fn make(bytes: &[u8], pixels: &str, fit: Fit) -> Result<Variant> {
    let variants = render(&file(bytes), &[(size(pixels), fit)], &unhurried())?;
    Ok(variants.into_iter().next().unwrap())
}

fn webp_of(bytes: &[u8], pixels: &str, fit: Fit) -> Bytes {
    match make(bytes, pixels, fit).unwrap() {
        Variant::WebP(bytes) => bytes,
        Variant::PassThrough { mime } => panic!("{mime} passed through"),
    }
}

fn seen(bytes: &[u8], pixels: &str, fit: Fit) -> Seen {
    Seen::of(&webp_of(bytes, pixels, fit))
}

fn error(bytes: &[u8]) -> Error {
    make(bytes, "200", Fit::Cover).unwrap_err()
}

fn assert_quarters(seen: &Seen, expected: [[u8; 3]; 4], what: &str) {
    let quarters = seen.quarters();
    let same = quarters.iter().zip(expected).all(|(is, want)| close(is, &want));
    assert!(same, "{what}: {quarters:?}");
}

/// `STORED_QUARTERS[o - 1][i]` is the displayed quarter (0 top left, 1 top right, 2 bottom left,
/// 3 bottom right) that is stored at place `i` under orientation `o`. Written from the EXIF tag's
/// words ("the 0th row is at the visual right-hand side, and the 0th column is the visual top").
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
            assert_eq!(
                probe(&file(&bytes)),
                Some(Dimensions { width: 300, height: 200 }),
                "{what}"
            );
            let cover = seen(&bytes, "200", Fit::Cover);
            assert_eq!((cover.width, cover.height), (200, 200), "{what}");
            assert_quarters(&cover, DISPLAYED, &what);
            let inside = seen(&bytes, "200", Fit::Inside);
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
        assert_quarters(&seen(&bytes, "250", Fit::Cover), DISPLAYED, &format!("{format:?}"));
        assert_eq!(probe(&file(&bytes)), Some(Dimensions { width: 480, height: 320 }));
    }
}

#[test]
fn cover_cuts_evenly_from_both_ends() {
    // A tall picture: red above, white in the middle third, blue below.
    let rows = [RED, WHITE, BLUE].map(|color| color.repeat(300 * 300)).concat();
    let cover = seen(&jpeg(300, 900, &rows), "200", Fit::Cover);
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
        assert_eq!(make(&bytes, "200", Fit::Cover).unwrap(), Variant::PassThrough { mime });
        assert_eq!(make(&bytes, "200", Fit::Inside).unwrap(), Variant::PassThrough { mime });
    }
    let one_more = seen(&jpeg(201, 80, &rgb(201, 80)), "200", Fit::Cover);
    assert_eq!((one_more.width, one_more.height), (80, 80));
}

#[test]
fn extreme_aspects_are_rendered() {
    let line = vec![120; 3 * 10_000];
    let tall = png(1, 10_000, ColorType::Rgb, BitDepth::Eight, &line, |_| {});
    let wide = png(10_000, 1, ColorType::Rgb, BitDepth::Eight, &line, |_| {});
    for bytes in [&tall, &wide] {
        let cover = seen(bytes, "1000", Fit::Cover);
        assert_eq!((cover.width, cover.height), (1, 1));
    }
    let inside = seen(&tall, "200", Fit::Inside);
    assert_eq!((inside.width, inside.height), (1, 200));
}

#[test]
fn alpha_is_kept_without_fringes() {
    // Opaque green on the left, fully transparent magenta on the right.
    let row: Vec<u8> = (0..400)
        .flat_map(|x| if x < 200 { [30, 200, 30, 255] } else { [255, 0, 255, 0] })
        .collect();
    let bytes = png(400, 400, ColorType::Rgba, BitDepth::Eight, &row.repeat(400), |_| {});
    let small = seen(&bytes, "250", Fit::Cover);
    assert_eq!((small.at(20, 100)[3], small.at(230, 100)[3]), (255, 0));
    for x in 0..250 {
        let [red, _, blue, alpha] = small.at(x, 125);
        assert!(alpha == 0 || (red < 70 && blue < 70), "a fringe at {x}: {:?}", small.at(x, 125));
    }
}

#[test]
fn every_depth_and_kind_of_png_is_read() {
    let (grey, alpha) = (100u8, 128u8);
    let pixels = 300 * 300;
    let palette = |info: &mut png::Info<'_>| {
        info.palette = Some(vec![0, 0, 0, 220, 30, 30].into());
        info.trns = Some(vec![255, alpha].into());
    };
    let wide =
        |values: &[u8]| values.iter().flat_map(|v| [*v, *v]).collect::<Vec<_>>().repeat(pixels);
    for (what, bytes, expected) in [
        (
            "1-bit palette",
            png(304, 300, ColorType::Indexed, BitDepth::One, &vec![0xFF; 38 * 300], palette),
            [220, 30, 30, alpha],
        ),
        (
            "8-bit palette",
            png(300, 300, ColorType::Indexed, BitDepth::Eight, &vec![1; pixels], palette),
            [220, 30, 30, alpha],
        ),
        (
            "2-bit grey",
            png(300, 300, ColorType::Grayscale, BitDepth::Two, &vec![0x55; 75 * 300], |_| {}),
            [85, 85, 85, 255],
        ),
        (
            "8-bit grey",
            png(300, 300, ColorType::Grayscale, BitDepth::Eight, &vec![grey; pixels], |_| {}),
            [grey, grey, grey, 255],
        ),
        (
            "16-bit grey with alpha",
            png(
                300,
                300,
                ColorType::GrayscaleAlpha,
                BitDepth::Sixteen,
                &wide(&[grey, alpha]),
                |_| {},
            ),
            [grey, grey, grey, alpha],
        ),
        (
            "16-bit RGB",
            png(300, 300, ColorType::Rgb, BitDepth::Sixteen, &wide(&BLUE), |_| {}),
            [BLUE[0], BLUE[1], BLUE[2], 255],
        ),
        (
            "16-bit RGBA",
            png(300, 300, ColorType::Rgba, BitDepth::Sixteen, &wide(&[30, 200, 30, alpha]), |_| {}),
            [30, 200, 30, alpha],
        ),
    ] {
        let middle = seen(&bytes, "250", Fit::Cover).at(100, 100);
        assert!(close(&middle, &expected), "{what}: {middle:?}");
        assert_eq!(middle[3], expected[3], "{what}: alpha is exact");
    }
}

#[test]
fn a_grey_jpeg_is_read() {
    let middle = seen(&flat_jpeg(300, 300, &[77], None), "200", Fit::Cover).at(100, 100);
    assert!(close(&middle, &[77, 77, 77, 255]), "{middle:?}");
}

#[test]
fn a_16_bit_tiff_is_read() {
    let rgb: Vec<u16> = [30u16, 200, 30].map(|v| v * 257).repeat(300 * 300);
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::DynamicImage::ImageRgb16(image::ImageBuffer::from_raw(300, 300, rgb).unwrap())
        .write_to(&mut bytes, ImageFormat::Tiff)
        .unwrap();
    let middle = seen(bytes.get_ref(), "200", Fit::Cover).at(100, 100);
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
        assert_quarters(&seen(&bytes, "200", Fit::Cover), [RED; 4], what);
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
        let middle = seen(&bytes, "200", Fit::Cover).at(100, 100);
        assert!(close(&middle, &[254, 0, 0, 255]), "{what}: {middle:?}");
    }
    let grey =
        seen(&flat_jpeg(300, 300, &[255, 255, 255, 100], Some(0)), "200", Fit::Cover).at(100, 100);
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
        let variant = webp_of(&bytes, "200", Fit::Cover);
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
    for (pixels, fit) in [("200", Fit::Cover), ("300", Fit::Inside)] {
        assert_eq!(webp_of(&plain, pixels, fit), webp_of(&profiled, pixels, fit));
    }
}

#[test]
fn a_drawing_in_a_jpeg_is_lossless_and_a_photograph_keeps_its_planes() {
    let drawing = jpeg(600, 600, &[20, 120, 200].repeat(600 * 600));
    assert_eq!(chunks(&webp_of(&drawing, "200", Fit::Cover)), ["VP8L"]);
    let photo = jpeg(600, 600, &photo(600, 600));
    assert_eq!(chunks(&webp_of(&photo, "200", Fit::Cover)), ["VP8 "]);
}

#[test]
fn a_smaller_size_is_the_same_whether_it_was_made_alone_or_of_a_larger_one() {
    let (width, height) = (1501, 1003);
    let bytes = with_segment(&jpeg(width, height, &photo(width, height)), 0xE1, &exif(6));
    let wanted = ["700", "300", "200"].map(|pixels| (size(pixels), Fit::Inside));
    let together = render(&file(&bytes), &wanted, &unhurried()).unwrap();
    for (variant, (size, fit)) in together.iter().zip(wanted) {
        let Variant::WebP(together) = variant else { panic!("{variant:?}") };
        let (together, alone) = (Seen::of(together), seen(&bytes, &size.pixels().to_string(), fit));
        assert_eq!((together.width, together.height), (alone.width, alone.height));
        for at in (0..together.width.min(together.height)).step_by(7) {
            let (is, expected) = (together.at(at, at), alone.at(at, at));
            let off = is.iter().zip(expected).map(|(is, want)| is.abs_diff(want)).max();
            assert!(off < Some(24), "{} at {at}: {is:?}, not {expected:?}", size.pixels());
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

/// 51° 30′ 42″ as three EXIF rationals: what no variant may hold.
const PLACE: &[u8] = b"\x33\0\0\0\x01\0\0\0\x1E\0\0\0\x01\0\0\0\x2A\0\0\0\x01\0\0\0";

/// EXIF metadata with the place a picture was taken at: a directory whose only entry leads to a GPS
/// directory (Exif 2.32, section 4.6.6), which holds a latitude.
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
        let variant = webp_of(&original, "200", Fit::Cover);
        assert_eq!(chunks(&variant), expected, "{what}");
        for secret in [PLACE, b"Exif", b"EXIF", b"ICCP", b"XMP ", b"GPS", b"acsp"] {
            assert!(!holds(&variant, secret), "{what}: {}", String::from_utf8_lossy(secret));
        }
    }
}

#[test]
fn what_is_no_raster_image_is_refused_as_such() {
    for bytes in [
        &b""[..],
        b"just text",
        b"BM is how this text begins, and it goes on for a while",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='900' height='900'/>",
        b"<!DOCTYPE html><img src=x>",
        b"%PDF-1.7\n%\xE2\xE3\xCF\xD3",
    ] {
        assert_eq!(
            error(bytes).kind(),
            ErrorKind::NotAnImage,
            "{}",
            String::from_utf8_lossy(bytes)
        );
        assert_eq!(probe(&file(bytes)), None);
    }
}

#[test]
fn avif_and_heic_are_refused_by_their_names() {
    for (bytes, message) in [
        (&b"\0\0\0\x18ftypavif\0\0\0\0mif1avif"[..], "AVIF images are not supported"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC images are not supported"),
    ] {
        let error = error(bytes);
        assert_eq!((error.kind(), error.message()), (ErrorKind::NotAnImage, message));
        assert_eq!(probe(&file(bytes)), None);
    }
}

#[test]
fn a_progressive_jpeg_is_read() {
    let middle = seen(&progressive_jpeg(), "200", Fit::Cover).at(100, 100);
    assert!(close(&middle, &[77, 77, 77, 255]), "{middle:?}");
}

#[test]
fn bombs_are_refused_from_their_headers() {
    let png_header = |width: u32, height: u32| {
        let ihdr = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat();
        [b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR", &ihdr[..], &[0; 4]].concat()
    };
    let vp8x =
        |side: [u8; 3]| [b"RIFF\x1E\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0", &side[..], &side].concat();
    let jpeg_frame =
        b"\xFF\xD8\xFF\xC0\0\x11\x08\xFF\xFF\xFF\xFF\x03\x01\x22\0\x02\x11\0\x03\x11\0";
    let tiff_large = {
        let mut bytes = tiff(300, 300, &[0; 9], 1);
        bytes[8 + 2 + 8..8 + 2 + 12].copy_from_slice(&4_000_000_000u32.to_le_bytes());
        bytes
    };
    let bmp = [b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", &[0xFF, 0xFF, 0xFF, 0x7F].repeat(2)[..]]
        .concat();
    for (what, bytes) in [
        ("PNG of 60000²", png_header(60_000, 60_000)),
        ("PNG one pixel too wide", png_header(16_385, 1)),
        ("GIF of 65535²", b"GIF89a\xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\0".to_vec()),
        ("WebP 16 million wide", vp8x([0xFF; 3])),
        ("JPEG of 65535²", jpeg_frame.to_vec()),
        ("TIFF 4 billion wide", tiff_large),
        ("BMP of 2³¹", bmp),
    ] {
        // `render` decodes only what `assess` has let pass.
        let refused =
            assess(&file(&bytes), &[(size("200"), Fit::Cover)], Small::PassesThrough, &unhurried());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ImageTooLarge, "{what}");
        assert_eq!(error(&bytes).kind(), ErrorKind::ImageTooLarge, "{what}");
        assert!(probe(&file(&bytes)).is_some(), "{what} has a size");
    }
}

#[test]
fn a_bitstream_larger_than_its_canvas_is_refused_before_it_is_decoded() {
    let inner = b"VP8 \x0A\0\0\0\x10\0\0\x9D\x01\x2A\xFF\x3F\xFF\x3F";
    let bytes =
        [&b"RIFF\x30\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x2B\x01\0\x2B\x01\0"[..], inner].concat();
    let refused =
        assess(&file(&bytes), &[(size("200"), Fit::Cover)], Small::PassesThrough, &unhurried())
            .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::CorruptImage);
}

#[test]
fn a_profile_that_inflates_without_end_is_ignored() {
    // 64 MiB of zeros deflate to 64 KiB.
    let rgb = BLUE.repeat(300 * 300);
    let bytes = png(300, 300, ColorType::Rgb, BitDepth::Eight, &rgb, |info| {
        info.icc_profile = Some(vec![0; 64 << 20].into());
    });
    assert!(bytes.len() < 1 << 20, "the bomb is small: {}", bytes.len());
    assert_quarters(&seen(&bytes, "200", Fit::Cover), [BLUE; 4], "profile ignored");
}

#[test]
fn hundreds_of_scans_over_a_large_frame_are_refused_before_they_are_decoded() {
    let mut bytes = b"\xFF\xD8\xFF\xC2\0\x0B\x08\x18\x6A\x1F\x40\x01\x01\x11\0".to_vec();
    for _ in 0..100 {
        bytes.extend(b"\xFF\xDA\0\x08\x01\x01\0\0\0\0\0");
    }
    let error = error(&bytes);
    assert_eq!(error.kind(), ErrorKind::ImageTooLarge);
    assert!(error.message().contains("scans: 100"), "{error:?}");
}

#[test]
fn a_picture_that_needs_more_than_the_whole_budget_is_too_large() {
    let config = VariantConfig { decode_memory_bytes: 17 << 20, ..unhurried() };
    let bytes = jpeg(900, 900, &photo(900, 900));
    let refused =
        assess(&file(&bytes), &[(size("200"), Fit::Cover)], Small::PassesThrough, &config)
            .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ImageTooLarge);
    assert_eq!(refused.details().limit, Some(17 << 20));
}

#[test]
fn work_stops_when_its_time_is_over() {
    let config = unhurried();
    let rgb = photo(1200, 900);
    for bytes in [
        jpeg(1200, 900, &rgb),
        png(1200, 900, ColorType::Rgb, BitDepth::Eight, &rgb, |_| {}),
        webp(1200, 900, &rgb, &[]),
    ] {
        let file = file(&bytes);
        let work =
            assess(&file, &[(size("200"), Fit::Cover)], Small::PassesThrough, &config).unwrap();
        // Long enough to pass the first check, far too short to decode in.
        let deadline = Deadline::after(Duration::from_micros(300));
        let error = work
            .run(&file, 80.0, deadline, &NoSpare, |_, _| ControlFlow::Continue(()))
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::ImageTooLarge, "the image takes too long to decode")
        );
    }
}

/// A photograph whose rows go from transparent to opaque, again and again.
fn fading(width: u32, height: u32) -> Vec<u8> {
    let rows = photo(width, height);
    let rows = rows.chunks(3 * width as usize).zip((0..=255u8).cycle());
    rows.flat_map(|(row, alpha)| row.chunks(3).flat_map(move |p| [p[0], p[1], p[2], alpha]))
        .collect()
}

/// Every size in both fits.
fn every_request() -> Vec<(VariantSize, Fit)> {
    let sizes =
        crate::domain::variant::VARIANT_SIZES.map(|pixels| VariantSize::try_from(pixels).unwrap());
    sizes.into_iter().flat_map(|size| [(size, Fit::Cover), (size, Fit::Inside)]).collect()
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
        let config = VariantConfig { quality: 100.0, ..unhurried() };
        let together = render(&file, &every_request(), &config).unwrap();
        for (request, made) in every_request().into_iter().zip(together) {
            let alone = render(&file, &[request], &config).unwrap().remove(0);
            let (Variant::WebP(made), Variant::WebP(alone)) = (made, alone) else {
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
    for ((size, _), variant) in wanted.iter().zip(&made) {
        let passed = matches!(variant, Variant::PassThrough { mime: "image/jpeg" });
        assert_eq!(passed, size.pixels() >= 420, "{size:?}: {variant:?}");
    }
    assert!(render(&file(b"no image"), &wanted, &unhurried()).is_err());
}

#[test]
fn what_is_appended_to_a_jpeg_does_not_matter() {
    let rgb = quarters(400, 300, DISPLAYED);
    let bytes = [jpeg(400, 300, &rgb), b"\0\0\0\x18ftypmp42".repeat(1000)].concat();
    assert_quarters(&seen(&bytes, "200", Fit::Cover), DISPLAYED, "a motion photo");
}

#[test]
fn a_better_quality_makes_a_larger_file() {
    let file = file(&jpeg(500, 400, &photo(500, 400)));
    let bytes = |quality| {
        let config = VariantConfig { quality, ..unhurried() };
        match &render(&file, &[(size("300"), Fit::Cover)], &config).unwrap()[..] {
            [Variant::WebP(bytes)] => bytes.len(),
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
            let variant = webp_of(&file, "400", Fit::Cover);
            let is_lossless = &variant[12..16] == b"VP8L";
            assert_eq!(is_lossless, expected, "{what} {orientation}: {} bytes", variant.len());
        }
    }
}

#[test]
fn a_palette_shows_what_its_colours_show() {
    let (width, height) = (900, 830);
    let mut random = fastrand::Rng::with_seed(8);
    let colors: Vec<[u8; 4]> =
        std::iter::repeat_with(|| [0; 4].map(|_| random.u8(..))).take(200).collect();
    // In stripes of some length, so that rows are worth a filter.
    let points = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let samples: Vec<u8> =
        points.map(|(x, y)| u8::try_from((x / 7 + y / 5) % 200).unwrap()).collect();
    let part = |count: usize| {
        let parts = colors.iter().flat_map(move |color| color[..count].iter().copied());
        parts.collect::<Vec<u8>>()
    };
    let shown = |count: usize| {
        let shown = samples.iter().flat_map(|at| colors[usize::from(*at)][..count].iter().copied());
        shown.collect::<Vec<u8>>()
    };
    let indexed = |alpha: Option<Vec<u8>>| {
        png(width, height, ColorType::Indexed, BitDepth::Eight, &samples, |info| {
            info.palette = Some(part(3).into());
            info.trns = alpha.map(Into::into);
        })
    };
    let alpha = colors.iter().map(|color| color[3]).collect();

    for (palette, color, channels) in
        [(indexed(None), ColorType::Rgb, 3), (indexed(Some(alpha)), ColorType::Rgba, 4)]
    {
        let colors = png(width, height, color, BitDepth::Eight, &shown(channels), |_| {});
        for size in ["200", "400"] {
            let [palette, colors] =
                [&palette, &colors].map(|file| webp_of(file, size, Fit::Inside));
            assert!(palette == colors, "{color:?} {size}");
        }
    }
}

#[test]
fn a_spare_thread_changes_no_variant() {
    let (width, height) = (900, 700);
    let noise = |bytes: usize| {
        let mut random = fastrand::Rng::with_seed(5);
        std::iter::repeat_with(|| random.u8(..)).take(bytes).collect::<Vec<u8>>()
    };
    let pixels = (width * height) as usize;
    let of = |color, depth, bytes: usize| png(width, height, color, depth, &noise(bytes), |_| {});
    let palette = png(width, height, ColorType::Indexed, BitDepth::Eight, &noise(pixels), |info| {
        info.palette = Some(noise(3 * 256).into());
    });
    let veiled = png(width, height, ColorType::Indexed, BitDepth::Eight, &noise(pixels), |info| {
        info.palette = Some(noise(3 * 256).into());
        info.trns = Some(noise(100).into());
    });
    let rgb = of(ColorType::Rgb, BitDepth::Eight, 3 * pixels);
    let cut = rgb[..rgb.len() / 2].to_vec();
    let mut damaged = rgb.clone();
    damaged[rgb.len() / 2] ^= 0x10;

    for (what, bytes) in [
        ("RGB", rgb),
        ("cut", cut),
        ("damaged", damaged),
        ("RGBA", of(ColorType::Rgba, BitDepth::Eight, 4 * pixels)),
        ("16 bits", of(ColorType::Rgb, BitDepth::Sixteen, 6 * pixels)),
        ("palette", palette),
        ("palette with alpha", veiled),
    ] {
        let file = file(&bytes);
        let wanted = [(size("200"), Fit::Cover), (size("400"), Fit::Inside)];
        let rendering = assess(&file, &wanted, Small::PassesThrough, &unhurried()).unwrap();
        let [alone, aided] = [&NoSpare as &dyn Spare, &NewThreads].map(|spare| {
            let mut made = Vec::new();
            let outcome = rendering.run(&file, 80.0, Deadline::NONE, spare, |index, variant| {
                made.push((index, variant));
                ControlFlow::Continue(())
            });
            (outcome.map(|_| ()).map_err(|error| error.to_string()), made)
        });
        assert_eq!(alone, aided, "{what}");
        assert_eq!(alone.1.len(), 2, "{what}");
    }
}
