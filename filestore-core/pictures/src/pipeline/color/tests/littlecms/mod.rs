//! Compares colours with LittleCMS. The profiles and the expected results come from `reference.py`.

use super::*;

/// The largest difference that counts as the same colour, in CIE 1976 ΔE*ab. For nearly all colours, this is
/// stricter than CIEDE2000.
const SAME: f64 = 2.0;

const PROFILES: [(&str, &[u8], Layout); 7] = [
    ("display-p3", include_bytes!("display-p3.icc"), Layout::Rgb),
    ("adobe-rgb", include_bytes!("adobe-rgb.icc"), Layout::Rgb),
    ("prophoto", include_bytes!("prophoto.icc"), Layout::Rgb),
    ("prophoto-table", include_bytes!("prophoto-table.icc"), Layout::Rgb),
    ("adobe-rgb-lut", include_bytes!("adobe-rgb-lut.icc"), Layout::Rgb),
    ("grey-gamma-1.8", include_bytes!("grey-gamma-1.8.icc"), Layout::Grey),
    (
        "press",
        include_bytes!("press.icc"),
        Layout::Inks(Inks { model: InkModel::Cmyk, inverted: false }),
    ),
];

/// The colours in a profile, and the sRGB colours from LittleCMS.
fn expected(profile: &str) -> (Vec<u8>, Vec<u8>) {
    let lines =
        include_str!("expected.txt").lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let bytes =
        |text: &str| text.split(',').map(|value| value.parse().unwrap()).collect::<Vec<u8>>();
    let of_profile: Vec<_> = lines
        .filter(|line| line[0] == profile)
        .map(|line| (bytes(line[1]), bytes(line[2])))
        .collect();
    let (given, seen): (Vec<_>, Vec<_>) = of_profile.into_iter().unzip();
    (given.concat(), seen.concat())
}

/// sRGB (IEC 61966-2-1) to CIE L*a*b*, relative to its own white.
fn lab(rgb: &[u8]) -> [f64; 3] {
    let linear: Vec<f64> = rgb
        .iter()
        .map(|byte| {
            let value = f64::from(*byte) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
        .collect();
    let row = |weights: [f64; 3]| weights.iter().zip(&linear).map(|(w, v)| w * v).sum::<f64>();
    let xyz = [
        row([0.412_456, 0.357_576, 0.180_438]) / 0.950_470,
        row([0.212_673, 0.715_152, 0.072_175]),
        row([0.019_334, 0.119_192, 0.950_304]) / 1.088_830,
    ];
    let [x, y, z] =
        xyz.map(
            |t| if t > 216.0 / 24_389.0 { t.cbrt() } else { (24_389.0 / 27.0 * t + 16.0) / 116.0 },
        );
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn difference(one: &[u8], other: &[u8]) -> f64 {
    lab(one).iter().zip(lab(other)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn the_difference_of_colours_is_measured_as_published() {
    // Red in sRGB is L*a*b* (53.24, 80.09, 67.20).
    let red = lab(&[255, 0, 0]);
    assert!(
        red.iter().zip([53.24, 80.09, 67.20]).all(|(is, want)| (is - want).abs() < 0.02),
        "{red:?}"
    );
    assert!((difference(&[255; 3], &[0; 3]) - 100.0).abs() < 0.01);
}

#[test]
fn colours_are_those_of_littlecms() {
    for (name, profile, layout) in PROFILES {
        let (given, expected) = expected(name);
        let width = u32::try_from(given.len() / layout.channels()).unwrap();
        assert!(width >= 18, "{name} has colours");
        let seen =
            to_srgb(Pixels { layout, width, height: 1, data: given.clone() }, Some(&icc(profile)))
                .data;
        let of_each = seen.chunks(3).zip(expected.chunks(3)).zip(given.chunks(layout.channels()));
        let worst = of_each
            .map(|((is, want), color)| (difference(is, want), color, is, want))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        assert!(
            worst.0 <= SAME,
            "{name}: ΔE {:.2} at {:?}: {:?}, not {:?}",
            worst.0,
            worst.1,
            worst.2,
            worst.3
        );
    }
}

#[test]
fn every_profile_changes_what_is_seen() {
    // Or the comparison above could not fail.
    for (name, profile, layout) in PROFILES {
        let (data, expected) = expected(name);
        let width = u32::try_from(data.len() / layout.channels()).unwrap();
        let ignored = to_srgb(Pixels { layout, width, height: 1, data }, None).data;
        let pairs = ignored.chunks(3).zip(expected.chunks(3));
        assert!(pairs.map(|(is, want)| difference(is, want)).any(|off| off > 3.0 * SAME), "{name}");
        assert!(!profile.is_empty());
    }
}
