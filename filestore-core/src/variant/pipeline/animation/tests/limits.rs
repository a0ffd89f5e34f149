//! The limits of animations: each names itself.

use super::super::render::assess;
use super::*;
use crate::domain::error::ErrorKind;
use crate::variant::pipeline::image_file::Deadline;
use crate::variant::pipeline::refusal::is_final;

fn three_frames() -> Vec<u8> {
    let colors = [[220, 30, 30, 255], [30, 30, 220, 255], [30, 190, 30, 255]];
    let steps = colors.map(|color| Step::flat(0, 0, WIDTH, HEIGHT, color));
    moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps, Some(0))
}

fn refused(set: impl FnOnce(&mut VariantConfig)) -> crate::domain::error::Error {
    let mut config = VariantConfig::default();
    set(&mut config);
    animate(&file(&three_frames()), size("200"), Fit::Cover, &config).unwrap_err()
}

#[test]
fn each_limit_is_named_in_its_refusal() {
    let pixels = u64::from(WIDTH * HEIGHT);
    let refusals = [
        (refused(|config| config.animation.max_frames = 2), 2, "2 frames"),
        (refused(|config| config.animation.max_pixels = 3 * pixels - 1), 3 * pixels - 1, "pixels"),
        (refused(|config| config.animation.max_bytes = 100), 100, "100 bytes"),
        (refused(|config| config.animation.cpu = Duration::ZERO), 0, "processor time"),
        (refused(|config| config.decode_memory_bytes = 1 << 20), 1 << 20, "memory"),
        (refused(|config| config.max_side = WIDTH - 1), u64::from(WIDTH) - 1, "pixels a side"),
    ];
    for (error, limit, word) in refusals {
        assert_eq!(error.kind(), ErrorKind::ImageTooLarge, "{error}");
        assert_eq!(error.details().limit, Some(limit), "{error}");
        assert!(error.message().contains(word), "{error}");
        assert!(is_final(&error), "{error}");
    }
}

#[test]
fn an_animation_at_its_limits_is_made() {
    let mut config = VariantConfig::default();
    config.animation.max_frames = 3;
    config.animation.max_pixels = 3 * u64::from(WIDTH * HEIGHT);
    let made = animate(&file(&three_frames()), size("200"), Fit::Inside, &config).unwrap();
    let Variant::WebP(webp) = made else { panic!("{made:?}") };
    assert_eq!(decoded(&webp).len(), 3);
}

#[test]
fn work_ends_between_two_frames_when_nobody_waits_or_time_is_over() {
    let (bytes, config) = (file(&three_frames()), VariantConfig::default());
    let animation = assess(&bytes, size("200"), Fit::Cover, &config).unwrap().unwrap();

    let asked = std::cell::Cell::new(0);
    let once = || asked.replace(asked.get() + 1) == 0;
    let stopped = animation.run(&bytes, &config, Deadline::NONE, &once).unwrap_err();
    assert_eq!((stopped.kind(), asked.get()), (ErrorKind::Busy, 2));

    let late = Deadline::after(Duration::ZERO);
    let late = animation.run(&bytes, &config, late, &|| true).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::ImageTooLarge);
    assert!(!is_final(&late), "{late}");
}

#[test]
fn a_large_frame_of_a_gif_counts_as_large_as_it_is() {
    let steps = [
        Step::flat(0, 0, WIDTH, HEIGHT, [220, 30, 30, 255]),
        Step::flat(0, 0, 4 * WIDTH, 4 * HEIGHT, [30, 30, 220, 255]),
    ];
    let bytes = moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps, None);
    let mut config = VariantConfig::default();
    config.animation.max_pixels = 10 * u64::from(WIDTH * HEIGHT);
    let error = animate(&file(&bytes), size("200"), Fit::Cover, &config).unwrap_err();
    assert!(error.message().ends_with(&(17 * WIDTH * HEIGHT).to_string()), "{error}");
}
