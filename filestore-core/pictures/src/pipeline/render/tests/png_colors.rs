//! The words of a PNG on its colours, in the order in which they count.

use super::*;

/// sRGB (200, 100, 50), and how Display P3 stores it.
const SHOWN: [u8; 3] = [200, 100, 50];
const IN_P3: [u8; 3] = [189, 106, 62];

fn numbers(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn gamma(value: u32) -> ([u8; 4], Vec<u8>) {
    (*b"gAMA", numbers(&[value]))
}

/// The chromaticities of Display P3, and of sRGB, in parts of 100,000.
const P3: [u32; 8] = [31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000];
const SRGB: [u32; 8] = [31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000];

fn chromaticities(values: [u32; 8]) -> ([u8; 4], Vec<u8>) {
    (*b"cHRM", numbers(&values))
}

fn points(primaries: u8, transfer: u8) -> ([u8; 4], Vec<u8>) {
    (*b"cICP", vec![primaries, transfer, 0, 1])
}

fn of(color: ColorType, pixel: &[u8], chunks: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    let data = pixel.repeat(300 * 300);
    let plain = png(300, 300, color, BitDepth::Eight, &data, |_| {});
    chunks.iter().rev().fold(plain, |png, (kind, body)| with_chunk(&png, *kind, body))
}

fn middle(bytes: &[u8]) -> [u8; 4] {
    seen(bytes, 200, Fit::Cover).at(100, 100)
}

fn near(is: &[u8], want: &[u8]) -> bool {
    is.iter().zip(want).all(|(is, want)| is.abs_diff(*want) <= 4)
}

#[test]
fn gamma_and_chromaticities_are_applied_to_every_kind() {
    // Light as it is: 55/255 is about 128 in sRGB.
    let linear = [gamma(100_000)];
    for (color, pixel, expected) in [
        (ColorType::Grayscale, &[55][..], [128, 128, 128, 255]),
        (ColorType::GrayscaleAlpha, &[55, 90], [128, 128, 128, 90]),
        (ColorType::Rgb, &[55, 0, 255], [128, 0, 255, 255]),
        (ColorType::Rgba, &[55, 0, 255, 90], [128, 0, 255, 90]),
    ] {
        let shown = middle(&of(color, pixel, &linear));
        assert!(near(&shown, &expected), "{color:?}: {shown:?}");
    }
    for (what, chunks, pixel, expected) in [
        ("a gamma of 0.02", vec![gamma(2_000)], [230, 250, 255], [17, 164, 255]),
        ("a gamma of 1/1.8", vec![gamma(55_556)], [128; 3], [147; 3]),
        ("gamma as of sRGB", vec![gamma(45_455)], SHOWN, SHOWN),
        ("a gamma of 0", vec![gamma(0)], SHOWN, SHOWN),
        ("primaries alone", vec![chromaticities(P3)], IN_P3, SHOWN),
        ("both", vec![gamma(45_455), chromaticities(P3)], IN_P3, SHOWN),
        ("primaries of sRGB", vec![gamma(45_455), chromaticities(SRGB)], SHOWN, SHOWN),
        ("primaries that make no sense", vec![chromaticities([0; 8])], SHOWN, SHOWN),
    ] {
        let shown = middle(&of(ColorType::Rgb, &pixel, &chunks));
        assert!(near(&shown[..3], &expected), "{what}: {shown:?}, not {expected:?}");
    }
}

#[test]
fn code_points_are_applied() {
    for (what, primaries, transfer, pixel, expected) in [
        ("Display P3", 12, 13, IN_P3, SHOWN),
        ("sRGB", 1, 13, SHOWN, SHOWN),
        ("BT.2020", 9, 14, [172, 161, 141], [188, 170, 149]),
        ("BT.2020 in 12 bits", 9, 15, [172, 161, 141], [188, 170, 149]),
        ("light as it is", 1, 8, [55, 0, 255], [128, 0, 255]),
        ("a gamma of 2.8", 1, 5, [128; 3], [106; 3]),
        ("PQ, the white of a page", 9, 16, [148; 3], [190; 3]),
        ("PQ, a light that no page has", 9, 16, [255; 3], [255; 3]),
        ("HLG, the white of a page", 9, 18, [191; 3], [190; 3]),
    ] {
        let shown = middle(&of(ColorType::Rgb, &pixel, &[points(primaries, transfer)]));
        assert!(near(&shown[..3], &expected), "{what}: {shown:?}, not {expected:?}");
    }
}

#[test]
fn the_dark_of_sixteen_bits_keeps_its_shades() {
    // Light as it is: 65 of 65535 is 3 of 255 in sRGB, and nothing in 8 bits.
    for (color, dark, expected) in [
        (ColorType::Rgb, vec![65u16, 130, 656], [3, 7, 25, 255]),
        (ColorType::Rgba, vec![65, 130, 656, 0x5A5A], [3, 7, 25, 0x5A]),
        (ColorType::Grayscale, vec![656], [25, 25, 25, 255]),
    ] {
        let pixel: Vec<u8> = dark.iter().flat_map(|sample| sample.to_be_bytes()).collect();
        let data = pixel.repeat(300 * 300);
        let plain = png(300, 300, color, BitDepth::Sixteen, &data, |_| {});
        let (kind, body) = gamma(100_000);
        let shown = middle(&with_chunk(&plain, kind, &body));
        assert!(near(&shown, &expected), "{color:?}: {shown:?}");
    }
}

#[test]
fn the_words_on_colour_count_in_their_order() {
    let profile = ColorProfile::new_adobe_rgb().encode().unwrap();
    let icc = (*b"iCCP", [&b"profile\0\0"[..], &zlib(&profile)].concat());
    let srgb = (*b"sRGB", vec![0]);
    let linear = gamma(100_000);
    let p3 = points(12, 13);
    // Display P3 stores this colour of Adobe RGB otherwise.
    let shown = |chunks: &[([u8; 4], Vec<u8>)]| middle(&of(ColorType::Rgb, &IN_P3, chunks));
    let by_profile = shown(std::slice::from_ref(&icc));
    assert!(!near(&by_profile[..3], &SHOWN) && !near(&by_profile[..3], &IN_P3), "{by_profile:?}");

    for (what, chunks, expected) in [
        ("code points before a profile", vec![icc.clone(), p3.clone()], SHOWN),
        ("in any order", vec![p3.clone(), icc.clone()], SHOWN),
        ("code points before sRGB", vec![p3.clone(), srgb.clone(), linear.clone()], SHOWN),
        (
            "a profile before gamma",
            vec![linear.clone(), icc.clone()],
            [by_profile[0], by_profile[1], by_profile[2]],
        ),
        ("sRGB before gamma", vec![linear.clone(), srgb, chromaticities(P3)], IN_P3),
        (
            "points that name nothing",
            vec![points(2, 2), icc.clone()],
            [by_profile[0], by_profile[1], by_profile[2]],
        ),
        ("points with a matrix", vec![(*b"cICP", vec![12, 13, 1, 1])], IN_P3),
        (
            "points with a matrix before a profile",
            vec![(*b"cICP", vec![12, 13, 1, 1]), icc.clone()],
            [by_profile[0], by_profile[1], by_profile[2]],
        ),
        ("points of an unknown range", vec![(*b"cICP", vec![12, 13, 0, 2])], IN_P3),
        ("points that are too short", vec![(*b"cICP", vec![12, 13, 0])], IN_P3),
        ("points that are too long", vec![(*b"cICP", vec![12, 13, 0, 1, 0])], IN_P3),
        (
            "words on light that are too long",
            vec![(*b"mDCV", vec![0; 25]), (*b"cLLI", vec![0; 9]), p3.clone()],
            SHOWN,
        ),
        ("points of a narrow range", vec![(*b"cICP", vec![12, 13, 0, 0])], IN_P3),
    ] {
        let is = shown(&chunks);
        assert!(near(&is[..3], &expected), "{what}: {is:?}, not {expected:?}");
    }
}

#[test]
fn a_palette_and_what_came_of_a_cut_file_have_these_colours_too() {
    let plain = png(300, 300, ColorType::Indexed, BitDepth::Eight, &vec![1; 300 * 300], |info| {
        info.palette = Some([[0; 3], IN_P3].concat().into());
    });
    let shown = middle(&with_chunk(&plain, *b"cICP", &[12, 13, 0, 1]));
    assert!(near(&shown[..3], &SHOWN), "{shown:?}");

    let whole = of(ColorType::Rgb, &IN_P3, &[points(12, 13)]);
    let shown = middle(&whole[..whole.len() - 14]);
    assert!(near(&shown[..3], &SHOWN), "{shown:?}");
}

#[test]
fn an_animation_has_the_colours_of_its_still_variant() {
    let [red, green, blue] = IN_P3;
    let steps = [[red, green, blue, 255], [9, 9, 9, 255]];
    let steps = steps.map(|color| Step::flat(0, 0, 300, 300, color));
    let plain = moving_png(300, 300, &steps, 0, None);
    let bytes = with_chunk(&plain, *b"cICP", &[12, 13, 0, 1]);
    let still = middle(&bytes);
    assert!(near(&still[..3], &SHOWN), "{still:?}");
    let made = crate::animate(&file(&bytes), Wanted::cover(200), &unhurried()).unwrap();
    let Rendered::WebP(made) = made else { panic!("{made:?}") };
    let frames = webp::AnimDecoder::new(&made).decode().unwrap();
    let frame = frames.get_frame(0).unwrap();
    let shown = &frame.get_image()[..3];
    assert!(near(shown, &SHOWN), "{shown:?}");
}

#[test]
fn the_first_frame_is_shown_of_an_animation_whose_default_picture_is_none() {
    let (red, blue) = ([220, 30, 30, 255], [30, 30, 220, 255]);
    let apart = [9, 9, 9, 255].repeat(300 * 300);
    let steps = [Step::flat(0, 0, 300, 300, red), Step::flat(0, 0, 300, 300, blue)];
    for count in [1, 2] {
        let bytes = moving_png(300, 300, &steps[..count], 0, Some(&apart));
        assert!(near(&middle(&bytes), &red), "{count} frames");
    }
    // A frame that does not cover the canvas.
    let part = [Step::flat(0, 0, 150, 300, red), Step::flat(0, 0, 300, 300, blue)];
    let shown = seen(&moving_png(300, 300, &part, 0, Some(&apart)), 200, Fit::Cover);
    assert!(near(&shown.at(50, 100), &red) && shown.at(150, 100)[3] == 0);

    // The default picture is the first frame.
    let usual = moving_png(300, 300, &steps, 0, None);
    assert!(near(&middle(&usual), &red));
    // Greys have the profile of greys.
    let profile = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
    let steps = [Step::flat(0, 0, 300, 300, [55, 55, 55, 255])];
    let bytes = moving_png_of(
        (ColorType::Grayscale, Some(profile)),
        (300, 300),
        &steps,
        0,
        Some(&vec![200; 300 * 300]),
    );
    let shown = middle(&bytes);
    assert!(near(&shown, &[128, 128, 128, 255]), "{shown:?}");
}
