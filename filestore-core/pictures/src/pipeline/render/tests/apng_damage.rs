//! Animated PNGs whose default picture is hidden, and whose first frame is cut or damaged. Chromium shows the
//! rows of the frame that arrived, and never the default picture.

use super::*;
use crate::animate;

const SIDE: u32 = 300;
const HIDDEN: [u8; 4] = [9, 9, 9, 255];

/// An animation with frames of a photograph, which do not compress well, and a grey default picture.
fn animation(frames: usize) -> Vec<u8> {
    let rgba: Vec<u8> = photo(SIDE, SIDE).chunks(3).flat_map(|p| [p[0], p[1], p[2], 255]).collect();
    let frame = Step { rgba, ..Step::flat(0, 0, SIDE, SIDE, HIDDEN) };
    let apart = HIDDEN.repeat((SIDE * SIDE) as usize);
    moving_png(SIDE, SIDE, &vec![frame; frames], 0, Some(&apart))
}

/// The photograph itself.
fn photograph() -> Seen {
    let bytes = png(SIDE, SIDE, ColorType::Rgb, BitDepth::Eight, &photo(SIDE, SIDE), |_| {});
    seen(&bytes, 200, Fit::Cover)
}

/// The positions of the chunks with this name.
fn places(bytes: &[u8], name: [u8; 4]) -> Vec<usize> {
    let found = bytes.windows(4).enumerate().filter(|(_, found)| *found == name);
    found.map(|(at, _)| at - 4).collect()
}

/// Checks that the upper rows are the photograph's, and that the lower rows are transparent.
fn assert_upper_rows(shown: &Seen, what: &str) {
    let good = photograph();
    for x in [20, 100, 180] {
        assert_eq!(shown.at(x, 20)[3], 255, "{what}: the upper rows");
        assert!(close(&shown.at(x, 20), &good.at(x, 20)), "{what}: {:?}", shown.at(x, 20));
        assert_eq!(shown.at(x, 190)[3], 0, "{what}: the lower rows");
    }
}

#[test]
fn a_damaged_first_frame_never_shows_the_hidden_picture() {
    for frames in [1, 2] {
        let whole = animation(frames);
        let data = places(&whole, *b"fdAT")[0];
        let length = u32::from_be_bytes(whole[data..data + 4].try_into().unwrap()) as usize;

        let mut half = whole.clone();
        let middle = data + 12 + length / 2;
        half[middle..data + 8 + length].fill(0xFF);
        assert_upper_rows(&seen(&half, 200, Fit::Cover), &format!("{frames} frames"));

        let mut all = whole.clone();
        all[data + 12..data + 8 + length].fill(0xFF);
        assert_eq!(error(&all).kind(), ErrorKind::Corrupt, "{frames} frames");
    }
}

#[test]
fn a_cut_animation_never_shows_the_hidden_picture() {
    let whole = animation(1);
    let (frame, data) = (places(&whole, *b"fcTL")[0], places(&whole, *b"fdAT")[0]);
    let rest = whole.len() - data;
    assert_upper_rows(&seen(&whole[..data + rest / 2], 200, Fit::Cover), "half of the frame");
    for cut in [frame, frame + 10, data, data + 20] {
        assert_eq!(error(&whole[..cut]).kind(), ErrorKind::Corrupt, "cut at {cut}");
    }
}

#[test]
fn a_first_frame_outside_the_canvas_is_corrupt() {
    let mut bytes = animation(2);
    let frame = places(&bytes, *b"fcTL")[0];
    // Its left side, behind the length, the name, the number of the chunk and the size.
    bytes[frame + 20..frame + 24].copy_from_slice(&SIDE.to_be_bytes());
    let sum = crc32(&bytes[frame + 4..frame + 8 + 26]).to_be_bytes();
    bytes[frame + 8 + 26..frame + 8 + 30].copy_from_slice(&sum);
    assert_eq!(error(&bytes).kind(), ErrorKind::Corrupt);
}

#[test]
fn a_picture_that_only_seems_to_be_an_animation_is_shown() {
    let whole = animation(2);
    let control = places(&whole, *b"acTL")[0];
    // A wrong checksum, and more frames than an animation can have.
    let mut unsure = whole.clone();
    unsure[control + 16] ^= 1;
    let mut many = whole.clone();
    many[control + 8] = 0x90;
    let sum = crc32(&many[control + 4..control + 16]).to_be_bytes();
    many[control + 16..control + 20].copy_from_slice(&sum);
    for (what, bytes) in [("checksum", unsure), ("frames", many)] {
        let shown = seen(&bytes, 200, Fit::Cover).at(100, 100);
        assert!(close(&shown, &HIDDEN), "{what}: {shown:?}");
    }
}

#[test]
fn the_still_answer_for_an_animation_with_one_sound_frame_is_this_frame() {
    let mut bytes = animation(2);
    let data = places(&bytes, *b"fdAT")[1];
    let end = bytes.len() - 16;
    bytes[data + 12..end].fill(0xFF);
    let made = animate(&file(&bytes), Wanted::cover(200), &unhurried()).unwrap();
    let Rendered::WebP(made) = made else { panic!("{made:?}") };
    let shown = Seen::of(&made);
    let good = photograph();
    assert!(shown.mean_difference(&good) < 1.0, "{}", shown.mean_difference(&good));
}
