//! The conversion to sRGB: the plain rules, broken profiles, and LittleCMS as a reference.

use super::*;

mod littlecms;

fn pixel(layout: Layout, data: &[u8]) -> Pixels {
    Pixels { layout, width: 1, height: 1, data: data.to_vec() }
}

fn inks(model: InkModel, inverted: bool) -> Layout {
    Layout::Inks(Inks { model, inverted })
}

#[test]
fn grey_and_inks_become_rgb_without_a_profile() {
    for (layout, data, expected) in [
        (Layout::Grey, &[77][..], &[77, 77, 77][..]),
        (Layout::GreyAlpha, &[77, 9], &[77, 77, 77, 9]),
        (inks(InkModel::Cmyk, false), &[255, 0, 0, 0], &[0, 255, 255]),
        (inks(InkModel::Cmyk, true), &[0, 255, 255, 255], &[0, 255, 255]),
        (inks(InkModel::Cmyk, true), &[255, 255, 255, 128], &[128, 128, 128]),
        // Red as Adobe stores it: inks inverted, then the luminance of their complements (cyan).
        (inks(InkModel::Ycck, true), &[179, 171, 1, 255], &[255, 0, 0]),
    ] {
        let converted = to_srgb(pixel(layout, data), None).data;
        let close = converted.iter().zip(expected).all(|(is, want)| is.abs_diff(*want) <= 2);
        assert!(close && converted.len() == expected.len(), "{layout:?}: {converted:?}");
    }
}

#[test]
fn a_wide_gamut_profile_is_converted_and_alpha_stays() {
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    // sRGB (200, 100, 50) is (189, 106, 62) in Display P3 (CSS Color 4, sample conversions).
    let converted = to_srgb(pixel(Layout::Rgba, &[189, 106, 62, 40]), Some(&profile)).data;
    for (is, want) in converted.iter().zip([200, 100, 50, 40]) {
        assert!(is.abs_diff(want) <= 2, "{converted:?}");
    }
}

#[test]
fn a_grey_profile_is_converted() {
    let linear = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
    // Linear 55/255 is about 128 in sRGB.
    let converted = to_srgb(pixel(Layout::GreyAlpha, &[55, 9]), Some(&linear));
    assert_eq!((converted.layout, converted.data[3]), (Layout::Rgba, 9));
    assert!(converted.data[..3].iter().all(|grey| grey.abs_diff(128) <= 2), "{converted:?}");
}

/// A CMYK profile whose every ink darkens: L = 100 · (1 − black) · (1 − mean of the others),
/// as a `lut8Type` with two grid points a side (ICC.1:2001, section 6.5.8).
fn dark_inks_profile() -> Vec<u8> {
    let ramp: Vec<u8> = (0..=255).collect();
    let grid = (0..16u32).flat_map(|corner| {
        // The first ink varies slowest.
        let [c, m, y, k] = [8, 4, 2, 1].map(|bit| u32::from(corner & bit != 0));
        let light = 255 * (1 - k) * (3 - c - m - y) / 3;
        [u8::try_from(light).unwrap(), 128, 128]
    });
    let identity: [[u32; 3]; 3] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    let mut table = b"mft1\0\0\0\0\x04\x03\x02\0".to_vec();
    table.extend(identity.iter().flatten().flat_map(|one| (one << 16).to_be_bytes()));
    table.extend(ramp.repeat(4));
    table.extend(grid);
    table.extend(ramp.repeat(3));
    let size = 128 + 4 + 12 + table.len();
    let mut profile = vec![0; 128];
    profile[..4].copy_from_slice(&u32::try_from(size).unwrap().to_be_bytes());
    profile[8] = 2;
    profile[12..24].copy_from_slice(b"prtrCMYKLab ");
    profile[36..40].copy_from_slice(b"acsp");
    // The D50 illuminant of the connection space.
    profile[68..80].copy_from_slice(&[0, 0, 0xF6, 0xD6, 0, 1, 0, 0, 0, 0, 0xD3, 0x2D]);
    profile.extend([0, 0, 0, 1]);
    profile.extend(b"A2B0");
    profile.extend(144u32.to_be_bytes());
    profile.extend(u32::try_from(table.len()).unwrap().to_be_bytes());
    profile.extend(table);
    profile
}

#[test]
fn inks_are_converted_by_their_profile() {
    let profile = dark_inks_profile();
    // No ink is white, black ink is black; half of it has L 50, which is 119 in sRGB. Without
    // the profile, pure cyan would be a colour.
    for (stored, grey) in [
        ([255; 4], 255),
        ([255, 255, 255, 0], 0),
        ([255, 255, 255, 128], 119),
        ([0, 255, 255, 255], 163),
    ] {
        let converted = to_srgb(pixel(inks(InkModel::Cmyk, true), &stored), Some(&profile)).data;
        assert!(
            converted.iter().all(|light| light.abs_diff(grey) <= 3),
            "{stored:?}: {converted:?}"
        );
    }
}

#[test]
fn an_srgb_profile_changes_nothing() {
    let profile = ColorProfile::new_srgb().encode().unwrap();
    assert!(OfProfile::new(Layout::Rgb, &profile).is_none());
}

#[test]
fn a_conversion_that_was_prepared_serves_many_pictures() {
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    let prepared = ToSrgb::new(Layout::Rgba, Some(&profile));
    for light in [0, 9, 120, 255] {
        let picture = pixel(Layout::Rgba, &[light, 106, 62, 40]);
        let converted = prepared.convert(picture.clone());
        assert_eq!(converted, to_srgb(picture.clone(), Some(&profile)));
        assert_ne!(converted, picture);
    }
}

#[test]
fn a_broken_or_foreign_profile_is_ignored() {
    let good = ColorProfile::new_display_p3().encode().unwrap();
    let cut: Vec<&[u8]> = (0..good.len()).step_by(7).map(|end| &good[..end]).collect();
    for profile in cut {
        // Some cuts leave a usable profile; none may fail.
        assert_eq!(to_srgb(pixel(Layout::Rgb, &[9, 9, 9]), Some(profile)).data.len(), 3);
    }
    assert_eq!(to_srgb(pixel(Layout::Grey, &[9]), Some(&good)).data, [9, 9, 9]);
    assert_eq!(to_srgb(pixel(Layout::Rgb, &[1, 2, 3]), Some(b"nonsense")).data, [1, 2, 3]);
}
