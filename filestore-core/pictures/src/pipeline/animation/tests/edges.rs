//! Times, loops, cut and damaged files, pictures that do not move.

use super::*;
use crate::error::ErrorKind;
use crate::fixtures::{encoded, exif, photo, png, webp, with_chunk, zlib};
use crate::pipeline::animation::assess;

const RED: [u8; 4] = [220, 30, 30, 255];
const BLUE: [u8; 4] = [30, 30, 220, 255];
const GREEN: [u8; 4] = [30, 190, 30, 255];

fn blinking(millis: [u32; 3]) -> Vec<Step> {
    let colors = [RED, BLUE, GREEN].into_iter().zip(millis);
    colors.map(|(color, millis)| Step::flat(0, 0, WIDTH, HEIGHT, color).lasting(millis)).collect()
}

/// The same three frames in each format.
fn formats(millis: [u32; 3]) -> [(&'static str, Vec<u8>); 3] {
    let steps = blinking(millis);
    [
        ("GIF", moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps, None)),
        ("APNG", moving_png(WIDTH, HEIGHT, &steps, 1, None)),
        ("WebP", moving_webp(WIDTH, HEIGHT, &steps, 1, Coding::Lossless)),
    ]
}

fn times(webp: &[u8]) -> Vec<u32> {
    decoded(webp).iter().map(|frame| frame.millis).collect()
}

/// The number of times that a file plays (RFC 9649, section 2.7.1.1).
fn plays(webp: &[u8]) -> u16 {
    let at = webp.windows(4).position(|kind| kind == b"ANIM").unwrap();
    u16::from_le_bytes([webp[at + 12], webp[at + 13]])
}

fn still(bytes: &[u8]) -> Result<Rendered> {
    let wanted = [Wanted::new(200, Fit::Inside)];
    render(&file(bytes), &wanted, &Settings::default()).map(|mut made| made.remove(0))
}

#[test]
fn a_frame_of_ten_milliseconds_or_less_is_shown_for_a_hundred() {
    for (what, bytes) in formats([0, 10, 20]) {
        assert_eq!(times(&moving(&bytes)), [100, 100, 20], "{what}");
    }
}

/// Puts `extension` before the first frame of a GIF.
fn with_extension(gif: &[u8], extension: &[u8]) -> Vec<u8> {
    let flags = gif[10];
    let colors = if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
    let (head, rest) = gif.split_at(13 + colors);
    [head, extension, rest].concat()
}

#[test]
fn extensions_of_a_gif_that_say_nothing_change_nothing() {
    let gif = formats([50; 3])[0].1.clone();
    for extension in [&b"\x21\xFF\x00"[..], b"\x21\x99\x01\x00\x00", b"\x21\xFF\x02hi\x01x\x00"] {
        let made = moving(&with_extension(&gif, extension));
        assert_eq!(times(&made), [50, 50, 50], "{extension:?}");
    }
}

#[test]
fn a_gif_of_millions_of_blocks_ends_where_nobody_goes_on() {
    let gif = formats([50; 3])[0].1.clone();
    let blocks = [&b"\x21\xFE"[..], &b"\x01x".repeat(5 << 20), b"\x00"].concat();
    let bytes = with_extension(&gif, &blocks);
    let file = file(&bytes);
    let assessed =
        assess(&file, Wanted::new(200, Fit::Inside), &Settings::default().limits).unwrap();
    assert!(assessed.is_none(), "{assessed:?}");
}

#[test]
fn the_number_of_plays_is_that_of_the_file() {
    let steps = blinking([50; 3]);
    let (width, height) = (narrow(WIDTH), narrow(HEIGHT));
    // "n more times" is n + 1.
    for (repeats, expected) in
        [(None, 1), (Some(0), 0), (Some(1), 2), (Some(7), 8), (Some(u16::MAX), u16::MAX)]
    {
        let gif = moving_gif(width, height, &steps, repeats);
        assert_eq!(plays(&moving(&gif)), expected, "GIF, {repeats:?}");
    }
    for (given, expected) in [(0, 0), (1, 1), (7, 7), (70_000, u16::MAX)] {
        let png = moving_png(WIDTH, HEIGHT, &steps, given, None);
        assert_eq!(plays(&moving(&png)), expected, "APNG, {given}");
    }
    for given in [0, 1, 7, u16::MAX] {
        let webp = moving_webp(WIDTH, HEIGHT, &steps, given, Coding::Lossless);
        assert_eq!(plays(&moving(&webp)), given, "WebP, {given}");
    }
}

#[test]
fn a_default_picture_that_is_no_frame_is_not_shown() {
    let apart = [9, 9, 9, 255].repeat((WIDTH * HEIGHT) as usize);
    let png = moving_png(WIDTH, HEIGHT, &blinking([50; 3]), 0, Some(&apart));
    let shown: Vec<_> =
        decoded(&moving(&png)).iter().map(|frame| frame.rgba[(100, 70)].0).collect();
    assert_eq!(shown.len(), 3);
    for (is, want) in shown.into_iter().zip([RED, BLUE, GREEN]) {
        assert!(close(is, want), "{is:?}");
    }
}

#[test]
fn an_opaque_animation_has_no_alpha() {
    const HAS_ALPHA: u8 = 0x10;
    for (what, bytes) in formats([50; 3]) {
        let made = moving(&bytes);
        assert_eq!(made[20] & HAS_ALPHA, 0, "{what}");
        assert!(!made.windows(4).any(|kind| kind == b"ALPH"), "{what}");
    }
}

#[test]
fn an_animation_is_upright_and_cropped_as_its_still_variant() {
    let steps = blinking([50; 3]);
    let upright = moving_png(WIDTH, HEIGHT, &steps, 0, None);
    let turned = with_chunk(&upright, *b"eXIf", &exif(6)[6..]);
    for (bytes, fit, expected) in [
        (&upright, Fit::Inside, (200, 150)),
        (&turned, Fit::Inside, (150, 200)),
        (&upright, Fit::Cover, (200, 200)),
    ] {
        let made = animate(&file(bytes), Wanted::new(200, fit), &Settings::default()).unwrap();
        let Rendered::WebP(made) = made else { panic!("{made:?}") };
        let seen = decoded(&made);
        assert_eq!((seen.len(), seen[0].rgba.dimensions()), (3, expected), "{fit:?}");
    }
}

#[test]
fn a_frame_is_placed_upright_too() {
    // Stored on its side: the left half of the second frame is its lower half.
    let steps = [Step::flat(0, 0, WIDTH, HEIGHT, RED), Step::flat(0, 0, WIDTH / 2, HEIGHT, BLUE)];
    let png = with_chunk(&moving_png(WIDTH, HEIGHT, &steps, 0, None), *b"eXIf", &exif(8)[6..]);
    let seen = decoded(&moving(&png));
    let second = &seen[1].rgba;
    assert_eq!(second.dimensions(), (150, 200));
    assert!(close(second[(75, 50)].0, RED) && close(second[(75, 150)].0, BLUE));
}

#[test]
fn a_picture_that_does_not_move_gives_its_still_variant() {
    let rgb = photo(WIDTH, HEIGHT);
    let one = &blinking([50; 3])[..1];
    for (what, bytes) in [
        ("GIF", encoded(WIDTH, HEIGHT, &rgb, image::ImageFormat::Gif)),
        ("JPEG", encoded(WIDTH, HEIGHT, &rgb, image::ImageFormat::Jpeg)),
        ("WebP", webp(WIDTH, HEIGHT, &rgb, &[])),
        ("PNG", png(WIDTH, HEIGHT, png::ColorType::Rgb, png::BitDepth::Eight, &rgb, |_| {})),
        ("GIF of one frame", moving_gif(narrow(WIDTH), narrow(HEIGHT), one, Some(0))),
        ("APNG of one frame", moving_png(WIDTH, HEIGHT, one, 0, None)),
        ("WebP of one frame", moving_webp(WIDTH, HEIGHT, one, 0, Coding::Lossless)),
    ] {
        assert_eq!(made(&bytes).unwrap(), still(&bytes).unwrap(), "{what}");
    }
    // As small as asked: the animation itself.
    let small =
        moving_gif(9, 9, &[Step::flat(0, 0, 9, 9, RED), Step::flat(0, 0, 9, 9, BLUE)], None);
    assert_eq!(made(&small).unwrap(), Rendered::PassThrough { mime: "image/gif" });
}

#[test]
fn of_a_cut_animation_the_whole_frames_are_shown() {
    for (what, bytes) in formats([50; 3]) {
        let mut most = 0;
        for percent in (4..=100).step_by(4) {
            let cut = &bytes[..bytes.len() * percent / 100];
            let shown = match made(cut) {
                Ok(Rendered::WebP(webp)) if &webp[12..16] == b"VP8X" && webp[20] & 2 != 0 => {
                    let seen = decoded(&webp);
                    let colors = seen.iter().zip([RED, BLUE, GREEN]);
                    for (frame, want) in colors {
                        assert!(close(frame.rgba[(100, 70)].0, want), "{what} at {percent} %");
                    }
                    seen.len()
                }
                outcome => {
                    assert_eq!(
                        outcome.map_err(|error| error.kind()),
                        still(cut).map_err(|error| error.kind()),
                        "{what} at {percent} %"
                    );
                    1
                }
            };
            assert!(shown >= most, "{what}: fewer frames of more bytes");
            most = shown;
        }
        assert_eq!(most, 3, "{what}");
    }
}

#[test]
fn only_the_end_mark_may_be_missing() {
    for ((what, bytes), mark) in formats([50; 3]).into_iter().zip([1, 12, 0]) {
        let made = moving(&bytes[..bytes.len() - mark]);
        assert_eq!(times(&made), [50, 50, 50], "{what}");
    }
}

#[test]
fn what_comes_before_a_damaged_frame_is_shown() {
    for (what, mut bytes) in formats([50; 3]) {
        // From the last frame's kind to its pixels; for a WebP to the size that its picture says.
        let (kind, skipped, after): (&[u8], usize, usize) = match what {
            "GIF" => (b"\x2C", 12, 1),
            "APNG" => (b"fdAT", 8, 12),
            _ => (b"ANMF", 8 + 16 + 8 + 1, 0),
        };
        let last = bytes.windows(kind.len()).rposition(|found| found == kind).unwrap();
        let end = bytes.len() - after;
        bytes[last + skipped..end].fill(0xFF);
        assert_eq!(times(&moving(&bytes)), [50, 50], "{what}");
    }
}

#[test]
fn a_frame_of_a_webp_outside_its_canvas_ends_the_animation() {
    let mut steps = blinking([50; 3]);
    steps.push(Step::flat(WIDTH - 10, 0, 20, 20, RED));
    let webp = moving_webp(WIDTH, HEIGHT, &steps, 0, Coding::Lossless);
    assert_eq!(times(&moving(&webp)), [50, 50, 50]);
}

#[test]
fn an_interlaced_apng_is_shown() {
    let rows = |light: u8| -> Vec<u8> {
        // Each pass as its rows: no filter, then grey pixels.
        let passes =
            [(0, 8, 0, 8), (4, 8, 0, 8), (0, 4, 4, 8), (2, 4, 0, 4), (0, 2, 2, 4), (1, 2, 0, 2)];
        let passes = passes.into_iter().chain([(0, 1, 1, 2)]);
        passes
            .flat_map(|(x, across, y, down)| {
                let row = (x..240usize).step_by(across).count();
                (y..240usize).step_by(down).flat_map(move |_| [vec![0], vec![light; row]].concat())
            })
            .collect()
    };
    let header = [&240u32.to_be_bytes()[..], &240u32.to_be_bytes(), &[8, 0, 0, 0, 1]].concat();
    let control = |number: u32| {
        let numbers = [number, 240, 240, 0, 0].map(u32::to_be_bytes).concat();
        [&numbers[..], &[0, 50, 3, 232, 0, 0]].concat()
    };
    let parts: [(&[u8; 4], Vec<u8>); 6] = [
        (b"IHDR", header),
        (b"acTL", [2u32, 0].map(u32::to_be_bytes).concat()),
        (b"fcTL", control(0)),
        (b"IDAT", zlib(&rows(40))),
        (b"fcTL", control(1)),
        (b"fdAT", [&2u32.to_be_bytes()[..], &zlib(&rows(200))].concat()),
    ];
    let mut bytes = b"\x89PNG\r\n\x1A\n".to_vec();
    for (kind, body) in parts.iter().chain([&(b"IEND", Vec::new())]) {
        bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        let named = [&kind[..], body].concat();
        bytes.extend(&named);
        bytes.extend(crate::fixtures::crc32(&named).to_be_bytes());
    }

    let seen = decoded(&moving(&bytes));
    let lights: Vec<_> = seen.iter().map(|frame| frame.rgba[(99, 101)].0[0]).collect();
    assert_eq!(lights.len(), 2);
    assert!(lights[0].abs_diff(40) < 8 && lights[1].abs_diff(200) < 8, "{lights:?}");
}

#[test]
fn what_is_no_picture_is_refused_as_ever() {
    for bytes in [&b"plain text"[..], b"", b"GIF89a"] {
        let refused = made(bytes).unwrap_err().kind();
        assert_eq!(refused, still(bytes).unwrap_err().kind());
        assert!(matches!(refused, ErrorKind::NotAnImage | ErrorKind::Corrupt));
    }
}
