//! The conversion to sRGB: the plain rules, broken profiles, and LittleCMS as a reference.

use super::*;
use crate::fixtures::dark_inks_profile;

mod littlecms;

fn icc(bytes: &[u8]) -> Profile {
    Profile::Icc(bytes.to_vec())
}

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
    let converted = to_srgb(pixel(Layout::Rgba, &[189, 106, 62, 40]), Some(&icc(&profile))).data;
    for (is, want) in converted.iter().zip([200, 100, 50, 40]) {
        assert!(is.abs_diff(want) <= 2, "{converted:?}");
    }
}

#[test]
fn a_grey_profile_is_converted() {
    let linear = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
    // Linear 55/255 is about 128 in sRGB.
    let converted = to_srgb(pixel(Layout::GreyAlpha, &[55, 9]), Some(&icc(&linear)));
    assert_eq!((converted.layout, converted.data[3]), (Layout::Rgba, 9));
    assert!(converted.data[..3].iter().all(|grey| grey.abs_diff(128) <= 2), "{converted:?}");
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
        let converted =
            to_srgb(pixel(inks(InkModel::Cmyk, true), &stored), Some(&icc(&profile))).data;
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
    let prepared = ToSrgb::new(Layout::Rgba, Some(&icc(&profile)));
    for light in [0, 9, 120, 255] {
        let picture = pixel(Layout::Rgba, &[light, 106, 62, 40]);
        let converted = prepared.convert(picture.clone());
        assert_eq!(converted, to_srgb(picture.clone(), Some(&icc(&profile))));
        assert_ne!(converted, picture);
    }
}

#[test]
fn a_broken_or_foreign_profile_is_ignored() {
    let good = ColorProfile::new_display_p3().encode().unwrap();
    let cut: Vec<&[u8]> = (0..good.len()).step_by(7).map(|end| &good[..end]).collect();
    for profile in cut {
        // Some cuts leave a usable profile; none may fail.
        assert_eq!(to_srgb(pixel(Layout::Rgb, &[9, 9, 9]), Some(&icc(profile))).data.len(), 3);
    }
    assert_eq!(to_srgb(pixel(Layout::Grey, &[9]), Some(&icc(&good))).data, [9, 9, 9]);
    assert_eq!(to_srgb(pixel(Layout::Rgb, &[1, 2, 3]), Some(&icc(b"nonsense"))).data, [1, 2, 3]);
}

#[test]
fn numbers_convert_every_layout_but_inks() {
    // Light as it is: 55/255 is about 128 in sRGB.
    let linear = Defined { transfer: Transfer::Gamma(1.0), primaries: Primaries::SRGB };
    for (layout, data, expected) in [
        (Layout::Grey, &[55][..], &[128, 128, 128][..]),
        (Layout::GreyAlpha, &[55, 9], &[128, 128, 128, 9]),
        (Layout::Rgb, &[55, 0, 255], &[128, 0, 255]),
        (Layout::Rgba, &[55, 0, 255, 9], &[128, 0, 255, 9]),
    ] {
        let converted = to_srgb(pixel(layout, data), Some(&Profile::Defined(linear))).data;
        let close = converted.iter().zip(expected).all(|(is, want)| is.abs_diff(*want) <= 1);
        assert!(close && converted.len() == expected.len(), "{layout:?}: {converted:?}");
    }
    let cmyk = pixel(inks(InkModel::Cmyk, false), &[255, 0, 0, 0]);
    assert_eq!(to_srgb(cmyk, Some(&Profile::Defined(linear))).data, [0, 255, 255]);
}

#[test]
fn numbers_that_say_srgb_change_nothing() {
    let srgb = Defined { transfer: Transfer::Srgb, primaries: Primaries::SRGB };
    assert!(ToSrgb::new(Layout::Rgb, Some(&Profile::Defined(srgb))).is_without_profile());
}
