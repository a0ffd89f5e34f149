//! Tests that pictures are refused before they take time or memory.

use super::*;

#[test]
fn what_is_no_raster_image_is_refused_as_such() {
    for bytes in [
        &b""[..],
        b"just text",
        b"BM is how this text begins, and it goes on for a while",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='900' height='900'/>",
        b"<!DOCTYPE html><img src=x>",
        b"%PDF-1.7\n%\xE2\xE3\xCF\xD3",
        // An icon and a cursor.
        b"\0\0\x01\0\x01\0\x20\x20\0\0\x01\0\x20\0\x68\x04\0\0\x16\0\0\0",
        b"\0\0\x02\0\x01\0\x20\x20\0\0\x01\0\x01\0\x68\x04\0\0\x16\0\0\0",
    ] {
        assert_eq!(
            error(bytes).kind(),
            ErrorKind::NotAnImage,
            "{}",
            String::from_utf8_lossy(bytes)
        );
        assert_eq!(probed(bytes), None);
    }
}

#[test]
fn avif_and_heic_are_refused_by_their_names() {
    for (bytes, message) in [
        (&b"\0\0\0\x18ftypavif\0\0\0\0mif1avif"[..], "AVIF images are not supported"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC images are not supported"),
    ] {
        let error = error(bytes);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, message));
        assert_eq!(probed(bytes), None);
    }
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
        let refused = assess(
            &file(&bytes),
            &[Wanted::new(200, Fit::Cover)],
            Small::PassesThrough,
            &unhurried().limits,
        );
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TooLarge, "{what}");
        assert_eq!(error(&bytes).kind(), ErrorKind::TooLarge, "{what}");
        assert!(probe(&file(&bytes)).is_ok(), "{what} has a size");
    }
}

#[test]
fn a_bitstream_larger_than_its_canvas_is_refused_before_it_is_decoded() {
    let inner = b"VP8 \x0A\0\0\0\x10\0\0\x9D\x01\x2A\xFF\x3F\xFF\x3F";
    let bytes =
        [&b"RIFF\x30\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x2B\x01\0\x2B\x01\0"[..], inner].concat();
    let refused = assess(
        &file(&bytes),
        &[Wanted::new(200, Fit::Cover)],
        Small::PassesThrough,
        &unhurried().limits,
    )
    .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_profile_that_inflates_without_end_is_ignored() {
    // 64 MiB of zeros deflate to 64 KiB.
    let rgb = BLUE.repeat(300 * 300);
    let bytes = png(300, 300, ColorType::Rgb, BitDepth::Eight, &rgb, |info| {
        info.icc_profile = Some(vec![0; 64 << 20].into());
    });
    assert!(bytes.len() < 1 << 20, "the bomb is small: {}", bytes.len());
    assert_quarters(&seen(&bytes, 200, Fit::Cover), [BLUE; 4], "profile ignored");
}

#[test]
fn hundreds_of_scans_over_a_large_frame_are_refused_before_they_are_decoded() {
    let mut bytes = b"\xFF\xD8\xFF\xC2\0\x0B\x08\x18\x6A\x1F\x40\x01\x01\x11\0".to_vec();
    for _ in 0..100 {
        bytes.extend(b"\xFF\xDA\0\x08\x01\x01\0\0\0\0\0");
    }
    let error = error(&bytes);
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("scans: 100"), "{error:?}");
}

#[test]
fn a_picture_that_needs_more_than_the_whole_budget_is_too_large() {
    let limits = Limits { memory_bytes: 17 << 20, ..unhurried().limits };
    let bytes = jpeg(900, 900, &photo(900, 900));
    let refused =
        assess(&file(&bytes), &[Wanted::new(200, Fit::Cover)], Small::PassesThrough, &limits)
            .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    assert_eq!(refused.limit(), Some(17 << 20));
}

#[test]
fn work_stops_when_its_time_is_over() {
    let limits = unhurried().limits;
    let rgb = photo(1200, 900);
    for bytes in [
        jpeg(1200, 900, &rgb),
        png(1200, 900, ColorType::Rgb, BitDepth::Eight, &rgb, |_| {}),
        webp(1200, 900, &rgb, &[]),
    ] {
        let file = file(&bytes);
        let work =
            assess(&file, &[Wanted::new(200, Fit::Cover)], Small::PassesThrough, &limits).unwrap();
        // Long enough to pass the first check, far too short to decode in.
        let deadline = Deadline::after(Duration::from_micros(300));
        let error = work
            .run(&file, 80.0, deadline, &NoSpare, |_, _| ControlFlow::Continue(()))
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::TooSlow, "the image takes too long to decode")
        );
    }
}
