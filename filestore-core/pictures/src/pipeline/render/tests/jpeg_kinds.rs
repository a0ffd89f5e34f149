//! Tests JPEGs with unusual headers. The results must be like those of browsers.

use super::*;

/// A baseline JPEG in one colour, with these component `ids` and these segments.
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
    seen(bytes, 200, Fit::Cover).at(100, 100)
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
            (ErrorKind::Unsupported, "this kind of JPEG image is not supported"),
            "{what}"
        );
        assert!(probe(&file(&bytes)).is_ok(), "{what} has a size");
    }
}

#[test]
fn a_second_exif_segment_may_know_the_orientation() {
    let colors = STORED_QUARTERS[5].map(|quarter| DISPLAYED[quarter]);
    let plain = jpeg(200, 300, &quarters(200, 300, colors));
    // A directory without entries.
    let silent = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0";
    let bytes = with_segment(&with_segment(&plain, 0xE1, &exif(6)), 0xE1, silent);
    assert_quarters(&seen(&bytes, 200, Fit::Cover), DISPLAYED, "orientation 6");
}

#[test]
fn a_comment_shorter_than_its_own_length_is_empty() {
    let plain = jpeg(300, 300, &quarters(300, 300, DISPLAYED));
    for length in [0, 1] {
        let bytes = [&plain[..2], &[0xFF, 0xFE, 0, length], &plain[2..]].concat();
        assert_quarters(&seen(&bytes, 200, Fit::Cover), DISPLAYED, &format!("{length}"));
    }
}

#[test]
fn thousands_of_comments_are_passed_over() {
    let plain = jpeg(300, 300, &quarters(300, 300, DISPLAYED));
    let comments = b"\xFF\xFE\0\x04hi".repeat(20_000);
    let bytes = [&plain[..2], &comments, &plain[2..]].concat();
    assert_quarters(&seen(&bytes, 200, Fit::Cover), DISPLAYED, "20,000 comments");
}

#[test]
fn a_jpeg_without_its_end_marker_is_shown_whatever_follows_it() {
    let rgb = quarters(300, 300, DISPLAYED);
    let whole = jpeg(300, 300, &rgb);
    let open = &whole[..whole.len() - 2];
    let other = jpeg(64, 64, &photo(64, 64));
    let mut random = fastrand::Rng::with_seed(3);
    let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(2 << 20).collect();
    let expected = webp_of(&whole, 200, Fit::Cover);
    for (what, trailer) in [
        ("nothing", &[][..]),
        ("a frame", b"\xFF\xC0\0\x11\x08\0\x40\0\x40\x03\x01\x22\0\x02\x11\0\x03\x11\0"),
        (
            "each frame marker",
            &(0xC0..=0xCF).flat_map(|m| [0xFF, m, 0, 4, 9, 9]).collect::<Vec<_>>(),
        ),
        ("a JPEG", &other),
        ("a JPEG without its start", &other[2..]),
        ("megabytes of noise", &noise),
        (
            "Samsung's trailer",
            b"\0\0\x01\x0A\x0E\0\0\0Image_UTC_Data1480000000000SEFH\xFF\xC1\0\x08abcdef",
        ),
    ] {
        assert!(webp_of(&[open, trailer].concat(), 200, Fit::Cover) == expected, "{what}");
        let closed = [&whole[..], trailer].concat();
        assert!(webp_of(&closed, 200, Fit::Cover) == expected, "{what} behind the end");
    }
}

#[test]
fn chunks_of_a_profile_may_be_doubled_and_their_number_wrong() {
    let profile = moxcms::ColorProfile::new_display_p3().encode().unwrap();
    // sRGB (200, 100, 50) in Display P3.
    let rgb = jpeg(300, 300, &[189, 106, 62].repeat(300 * 300));
    let middle = profile.len() / 2;
    let chunk = |number: u8, of: u8, part: &[u8]| {
        (0xE2, [&b"ICC_PROFILE\0"[..], &[number, of], part].concat())
    };
    let (first, second) = profile.split_at(middle);
    for (what, chunks) in [
        ("as they should be", vec![chunk(1, 2, first), chunk(2, 2, second)]),
        ("in another order", vec![chunk(2, 2, second), chunk(1, 2, first)]),
        ("doubled", vec![chunk(1, 1, &profile), chunk(1, 1, &profile)]),
        ("too large a number", vec![chunk(1, 9, first), chunk(2, 9, second)]),
        ("too small a number", vec![chunk(1, 1, first), chunk(2, 1, second)]),
    ] {
        let bytes = chunks
            .iter()
            .rev()
            .fold(rgb.clone(), |bytes, (marker, body)| with_segment(&bytes, *marker, body));
        let shown = seen(&bytes, 200, Fit::Cover).at(100, 100);
        let off = shown.iter().zip([200, 100, 50]).map(|(is, want)| is.abs_diff(want)).max();
        assert!(off <= Some(4), "{what}: {shown:?}");
    }
}
