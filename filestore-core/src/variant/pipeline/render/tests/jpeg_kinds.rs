//! JPEGs whose header says odd things, as browsers show them.

use super::*;

/// A baseline JPEG of one colour whose components have the `ids`, with the segments given.
fn flat(color: &[u8], ids: &[u8], segments: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = flat_jpeg(300, 300, color, None);
    let find =
        |bytes: &[u8], marker| bytes.windows(2).position(|pair| pair == [0xFF, marker]).unwrap();
    let (frame, scan) = (find(&bytes, 0xC0), find(&bytes, 0xDA));
    for (index, id) in ids.iter().enumerate() {
        bytes[frame + 10 + 3 * index] = *id;
        bytes[scan + 5 + 2 * index] = *id;
    }
    segments.iter().rev().fold(bytes, |bytes, (marker, body)| with_segment(&bytes, *marker, body))
}

const JFIF: (u8, &[u8]) = (0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
const ADOBE_PLAIN: (u8, &[u8]) = (0xEE, b"Adobe\0\x64\0\0\0\0\0");
const ADOBE_YCC: (u8, &[u8]) = (0xEE, b"Adobe\0\x64\0\0\0\0\x01");

fn middle(bytes: &[u8]) -> [u8; 4] {
    seen(bytes, "200", Fit::Cover).at(100, 100)
}

#[test]
fn jfif_then_adobe_then_the_names_say_what_three_components_are() {
    // As RGB the three are what they are; as YCbCr they are this colour.
    let stored = [110, 90, 200];
    let (rgb, ycc) = ([110, 90, 200, 255], [211, 72, 43, 255]);
    for (what, ids, segments, expected) in [
        ("plain", &[1, 2, 3], &[][..], ycc),
        ("other names", &[7, 8, 9], &[], ycc),
        ("names alone", b"RGB", &[], rgb),
        ("JFIF over names", b"RGB", &[JFIF], ycc),
        ("Adobe 1 over names", b"RGB", &[ADOBE_YCC], ycc),
        ("Adobe 0 and plain names", &[1, 2, 3], &[ADOBE_PLAIN], rgb),
        ("Adobe 0 and other names", &[0, 1, 2], &[ADOBE_PLAIN], rgb),
        ("JFIF over Adobe 0", &[1, 2, 3], &[JFIF, ADOBE_PLAIN], ycc),
        ("an empty JFIF segment is none", &[1, 2, 3], &[(0xE0, b"JFIF\0"), ADOBE_PLAIN], rgb),
    ] {
        let middle = middle(&flat(&stored, ids, segments));
        assert!(close(&middle, &expected), "{what}: {middle:?}");
    }
}

#[test]
fn inks_are_inverted_with_adobes_marker_and_without() {
    for (what, bytes) in [
        ("without", flat_jpeg(300, 300, &[255, 0, 0, 255], None)),
        ("with", flat_jpeg(300, 300, &[255, 0, 0, 255], Some(0))),
    ] {
        let middle = middle(&bytes);
        assert!(close(&middle, &[254, 0, 0, 255]), "{what}: {middle:?}");
    }
}

#[test]
fn an_unsupported_kind_is_not_called_corrupt() {
    let kind = |marker: u8, precision: u8, color: &[u8]| {
        let mut bytes = flat_jpeg(300, 300, color, None);
        let frame = bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
        bytes[frame + 1] = marker;
        bytes[frame + 4] = precision;
        bytes
    };
    let ycc = [90, 128, 128];
    for (what, bytes) in [
        ("lossless", kind(0xC3, 8, &ycc)),
        ("hierarchical", kind(0xC5, 8, &ycc)),
        ("arithmetic", kind(0xC9, 8, &ycc)),
        ("progressive arithmetic", kind(0xCA, 8, &ycc)),
        ("12 bits", kind(0xC1, 12, &ycc)),
        ("two components", kind(0xC0, 8, &[90, 80])),
    ] {
        let error = error(&bytes);
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::NotAnImage, "this kind of JPEG image is not supported"),
            "{what}"
        );
        assert!(probe(&file(&bytes)).is_some(), "{what} has a size");
    }
}

#[test]
fn a_second_exif_segment_may_know_the_orientation() {
    let colors = STORED_QUARTERS[5].map(|quarter| DISPLAYED[quarter]);
    let plain = jpeg(200, 300, &quarters(200, 300, colors));
    // A directory without entries.
    let silent = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0";
    let bytes = with_segment(&with_segment(&plain, 0xE1, &exif(6)), 0xE1, silent);
    assert_quarters(&seen(&bytes, "200", Fit::Cover), DISPLAYED, "orientation 6");
}

#[test]
fn a_comment_shorter_than_its_own_length_is_empty() {
    let plain = jpeg(300, 300, &quarters(300, 300, DISPLAYED));
    for length in [0, 1] {
        let bytes = [&plain[..2], &[0xFF, 0xFE, 0, length], &plain[2..]].concat();
        assert_quarters(&seen(&bytes, "200", Fit::Cover), DISPLAYED, &format!("{length}"));
    }
}

#[test]
fn thousands_of_comments_are_passed_over() {
    let plain = jpeg(300, 300, &quarters(300, 300, DISPLAYED));
    let comments = b"\xFF\xFE\0\x04hi".repeat(20_000);
    let bytes = [&plain[..2], &comments, &plain[2..]].concat();
    assert_quarters(&seen(&bytes, "200", Fit::Cover), DISPLAYED, "20,000 comments");
}
