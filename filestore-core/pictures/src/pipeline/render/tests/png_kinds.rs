//! Tests PNGs of every kind. A second thread must not change the result.

use super::*;

#[test]
fn alpha_is_kept_without_fringes() {
    // Opaque green on the left, fully transparent magenta on the right.
    let row: Vec<u8> = (0..400)
        .flat_map(|x| if x < 200 { [30, 200, 30, 255] } else { [255, 0, 255, 0] })
        .collect();
    let bytes = png(400, 400, ColorType::Rgba, BitDepth::Eight, &row.repeat(400), |_| {});
    let small = seen(&bytes, 250, Fit::Cover);
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
        let middle = seen(&bytes, 250, Fit::Cover).at(100, 100);
        assert!(close(&middle, &expected), "{what}: {middle:?}");
        assert_eq!(middle[3], expected[3], "{what}: alpha is exact");
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
        for size in [200, 400] {
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
        let wanted = [Wanted::new(200, Fit::Cover), Wanted::new(400, Fit::Inside)];
        let rendering = assess(&file, &wanted, Small::PassesThrough, &unhurried().limits).unwrap();
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
