//! The limits of animations: each names itself.

use super::super::render::assess;
use super::*;
use crate::error::{Error, ErrorKind};
use crate::pipeline::image_file::Deadline;
use crate::settings::Limits;

fn three_frames() -> Vec<u8> {
    let colors = [[220, 30, 30, 255], [30, 30, 220, 255], [30, 190, 30, 255]];
    let steps = colors.map(|color| Step::flat(0, 0, WIDTH, HEIGHT, color));
    moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps, Some(0))
}

fn refused(set: impl FnOnce(&mut Limits)) -> Error {
    let mut settings = Settings::default();
    set(&mut settings.limits);
    animate(&file(&three_frames()), Wanted::new(200, Fit::Cover), &settings).unwrap_err()
}

#[test]
fn each_limit_is_named_in_its_refusal() {
    let pixels = u64::from(WIDTH * HEIGHT);
    let refusals = [
        (refused(|limits| limits.animation.max_frames = 2), 2, "2 frames"),
        (refused(|limits| limits.animation.max_pixels = 3 * pixels - 1), 3 * pixels - 1, "pixels"),
        (refused(|limits| limits.animation.max_bytes = 100), 100, "100 bytes"),
        (refused(|limits| limits.animation.cpu = Duration::ZERO), 0, "processor time"),
        (refused(|limits| limits.memory_bytes = 1 << 20), 1 << 20, "memory"),
        (refused(|limits| limits.max_side = WIDTH - 1), u64::from(WIDTH) - 1, "pixels a side"),
    ];
    for (error, limit, word) in refusals {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert_eq!(error.limit(), Some(limit), "{error}");
        assert!(error.message().contains(word), "{error}");
    }
}

#[test]
fn an_animation_at_its_limits_is_made() {
    let mut settings = Settings::default();
    settings.limits.animation.max_frames = 3;
    settings.limits.animation.max_pixels = 3 * u64::from(WIDTH * HEIGHT);
    let made = animate(&file(&three_frames()), Wanted::new(200, Fit::Inside), &settings).unwrap();
    let Rendered::WebP(webp) = made else { panic!("{made:?}") };
    assert_eq!(decoded(&webp).len(), 3);
}

#[test]
fn work_ends_between_two_frames_when_nobody_waits_or_time_is_over() {
    let (bytes, settings) = (file(&three_frames()), Settings::default());
    let animation =
        assess(&bytes, Wanted::new(200, Fit::Cover), &settings.limits).unwrap().unwrap();

    let asked = std::cell::Cell::new(0);
    let once = || asked.replace(asked.get() + 1) == 0;
    let stopped = animation.run(&bytes, &settings, Deadline::NONE, &once).unwrap_err();
    assert_eq!((stopped.kind(), asked.get()), (ErrorKind::Stopped, 2));

    let late = Deadline::after(Duration::ZERO);
    let late = animation.run(&bytes, &settings, late, &|| true).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TooSlow);
}

#[test]
fn a_large_frame_of_a_gif_counts_as_large_as_it_is() {
    let steps = [
        Step::flat(0, 0, WIDTH, HEIGHT, [220, 30, 30, 255]),
        Step::flat(0, 0, 4 * WIDTH, 4 * HEIGHT, [30, 30, 220, 255]),
    ];
    let bytes = moving_gif(narrow(WIDTH), narrow(HEIGHT), &steps, None);
    let mut settings = Settings::default();
    settings.limits.animation.max_pixels = 10 * u64::from(WIDTH * HEIGHT);
    let error = animate(&file(&bytes), Wanted::new(200, Fit::Cover), &settings).unwrap_err();
    assert!(error.message().ends_with(&(17 * WIDTH * HEIGHT).to_string()), "{error}");
}
