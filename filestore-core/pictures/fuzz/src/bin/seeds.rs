//! Writes the first corpus of the fuzz targets: one small picture for each path through the decoders. The
//! program creates all pictures itself.
//!
//! Run with `cargo run --bin seeds` in this folder, after a change of the pictures.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use image::ImageFormat;
use jpeg_encoder::{ColorType as JpegColor, Encoder as JpegEncoder, SamplingFactor};
use moxcms::ColorProfile;
use png::{BitDepth, ColorType};
use tiff::encoder::colortype::{CMYK8, ColorType as TiffColor, Gray16, RGB8, RGB32Float, RGBA8};
use tiff::encoder::{Compression, DeflateLevel, Predictor, TiffEncoder, TiffValue};

#[expect(dead_code, reason = "the tests of the core use all of it")]
#[path = "../../../src/fixtures/pictures.rs"]
mod pictures;
#[path = "../../../src/fixtures/animations.rs"]
mod animations;
#[expect(dead_code, reason = "the tests of the core use all of it")]
#[path = "../../../src/fixtures/tiffs.rs"]
mod tiffs;

use animations::*;
use pictures::*;
use tiffs::{Tiff, lzw_literals, pack_bits, zlib};

/// The smallest width that needs a resize.
const WIDTH: u32 = 216;
const HEIGHT: u32 = 24;
const COLORS: [[u8; 3]; 4] = [RED, GREEN, BLUE, WHITE];

/// A name and a picture.
type Seed = (&'static str, Vec<u8>);

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for (format, seeds) in [
        ("jpeg", jpegs()),
        ("png", pngs()),
        ("gif", gifs()),
        ("webp", webps()),
        ("bmp", bmps()),
        ("tiff", tiffs()),
        ("animated", animations()),
    ] {
        let folder = root.join(format);
        fs::create_dir_all(&folder).expect("a folder");
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes).expect("writing a seed");
        }
    }
}

/// Frames with every disposal and blending, at different positions.
fn animations() -> Vec<Seed> {
    let steps = [
        Step::flat(0, 0, WIDTH, HEIGHT, [220, 30, 30, 255]),
        Step { end: End::Cleared, ..Step::flat(20, 4, 50, 10, [30, 30, 220, 255]) },
        Step {
            end: End::Undone,
            interlaced: true,
            ..Step::flat(40, 6, 60, 12, [30, 200, 30, 255])
        },
        Step { replaces: true, ..Step::flat(100, 2, 90, 20, [0, 0, 0, 0]) }.lasting(0),
        Step::flat(10, 10, 9, 9, [240, 240, 240, 255]),
    ];
    let glass: Vec<_> = steps
        .iter()
        .map(|step| {
            let rgba = step.rgba.chunks(4).flat_map(|p| [p[0], p[1], p[2], p[3] / 2]).collect();
            Step { rgba, ..step.clone() }
        })
        .collect();
    let apart = [90; 4].repeat((WIDTH * HEIGHT) as usize);
    vec![
        ("gif", moving_gif(WIDTH as u16, HEIGHT as u16, &steps, Some(3))),
        ("png", moving_png(WIDTH, HEIGHT, &glass, 2, None)),
        ("png-apart", moving_png(WIDTH, HEIGHT, &steps, 0, Some(&apart))),
        ("webp-lossless", moving_webp(WIDTH, HEIGHT, &glass, 2, Coding::Lossless)),
        ("webp-lossy", moving_webp(WIDTH, HEIGHT, &glass, 0, Coding::Lossy)),
    ]
}

fn rgb() -> Vec<u8> {
    quarters(WIDTH, HEIGHT, COLORS)
}

fn jpegs() -> Vec<Seed> {
    let with = |color: JpegColor, data: &[u8], set: &dyn Fn(&mut JpegEncoder<&mut Vec<u8>>)| {
        let mut bytes = Vec::new();
        let mut encoder = JpegEncoder::new(&mut bytes, 50);
        set(&mut encoder);
        encoder.encode(data, WIDTH as u16, HEIGHT as u16, color).expect("a JPEG");
        bytes
    };
    let grain = photo(WIDTH, HEIGHT);
    let grey: Vec<u8> = grain.chunks(3).map(|pixel| pixel[0]).collect();
    let inks: Vec<u8> =
        grain.chunks(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 20]).collect();
    let profile = ColorProfile::new_display_p3().encode().expect("a profile");
    let rgb = JpegColor::Rgb;
    vec![
        ("baseline-444", with(rgb, &grain, &|e| e.set_sampling_factor(SamplingFactor::R_4_4_4))),
        ("baseline-420", with(rgb, &grain, &|e| e.set_sampling_factor(SamplingFactor::R_4_2_0))),
        ("baseline-422", with(rgb, &grain, &|e| e.set_sampling_factor(SamplingFactor::R_4_2_2))),
        ("baseline-440", with(rgb, &grain, &|e| e.set_sampling_factor(SamplingFactor::R_4_4_0))),
        ("baseline-411", with(rgb, &grain, &|e| e.set_sampling_factor(SamplingFactor::R_4_1_1))),
        ("restarts", with(rgb, &grain, &|e| e.set_restart_interval(5))),
        ("optimized", with(rgb, &grain, &|e| e.set_optimized_huffman_tables(true))),
        (
            "progressive-420",
            with(rgb, &grain, &|e| {
                e.set_sampling_factor(SamplingFactor::R_4_2_0);
                e.set_progressive_scans(8);
            }),
        ),
        (
            "progressive-444-restarts",
            with(rgb, &grain, &|e| {
                e.set_progressive_scans(4);
                e.set_restart_interval(3);
            }),
        ),
        ("progressive-grey", with(JpegColor::Luma, &grey, &|e| e.set_progressive(true))),
        ("progressive-dc-only", progressive_jpeg()),
        ("grey", with(JpegColor::Luma, &grey, &|_| {})),
        ("cmyk", with(JpegColor::Cmyk, &inks, &|_| {})),
        ("ycck", with(JpegColor::CmykAsYcck, &inks, &|_| {})),
        ("cmyk-plain", flat_jpeg(256, 8, &[10, 200, 100, 3], None)),
        ("exif", with_segment(&with(rgb, &grain, &|_| {}), 0xE1, &exif(6))),
        (
            "profile",
            with(rgb, &grain, &|e| e.add_icc_profile(&profile).expect("a profile that fits")),
        ),
    ]
}

fn pngs() -> Vec<Seed> {
    let plain = |color, depth, data: &[u8]| png(WIDTH, HEIGHT, color, depth, data, |_| {});
    let (rows, pixels) = (HEIGHT as usize, (WIDTH * HEIGHT) as usize);
    let palette = |info: &mut png::Info<'_>| {
        info.palette = Some(vec![0, 0, 0, 220, 30, 30].into());
        info.trns = Some(vec![255, 128].into());
    };
    let profile = ColorProfile::new_display_p3().encode().expect("a profile");
    let rgb8 = plain(ColorType::Rgb, BitDepth::Eight, &rgb());
    vec![
        ("grey-1", plain(ColorType::Grayscale, BitDepth::One, &vec![0x5A; 27 * rows])),
        ("grey-alpha-8", plain(ColorType::GrayscaleAlpha, BitDepth::Eight, &vec![90; 2 * pixels])),
        (
            "grey-alpha-16",
            plain(ColorType::GrayscaleAlpha, BitDepth::Sixteen, &vec![90; 4 * pixels]),
        ),
        ("rgb-16", plain(ColorType::Rgb, BitDepth::Sixteen, &vec![90; 6 * pixels])),
        ("rgba-8", plain(ColorType::Rgba, BitDepth::Eight, &vec![90; 4 * pixels])),
        (
            "palette-1",
            png(WIDTH, HEIGHT, ColorType::Indexed, BitDepth::One, &vec![0x5A; 27 * rows], palette),
        ),
        (
            "palette-8",
            png(WIDTH, HEIGHT, ColorType::Indexed, BitDepth::Eight, &vec![1; pixels], palette),
        ),
        (
            "exif-text",
            with_chunk(&with_chunk(&rgb8, *b"eXIf", &exif(5)[6..]), *b"tEXt", b"Author\0me"),
        ),
        (
            "profile",
            png(WIDTH, HEIGHT, ColorType::Rgb, BitDepth::Eight, &rgb(), |info| {
                info.icc_profile = Some(profile.into());
            }),
        ),
        ("animated", animated_png(WIDTH, HEIGHT, &[&rgb(), &rgb()])),
        ("rgb-8", rgb8),
    ]
}

fn gifs() -> Vec<Seed> {
    let (width, height) = (WIDTH as u16, HEIGHT as u16);
    let palette = [RED, GREEN, BLUE, WHITE].concat();
    let make = |screen: (u16, u16), frames: Vec<gif::Frame<'_>>| {
        let mut bytes = Vec::new();
        let mut encoder =
            gif::Encoder::new(&mut bytes, screen.0, screen.1, &palette).expect("a GIF");
        for frame in frames {
            encoder.write_frame(&frame).expect("a frame");
        }
        drop(encoder);
        bytes
    };
    let frame = |width: u16, height: u16, seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        let buffer: Vec<u8> =
            (0..usize::from(width) * usize::from(height)).map(|_| random.u8(..4)).collect();
        gif::Frame { width, height, buffer: buffer.into(), ..gif::Frame::default() }
    };
    let transparent = gif::Frame { transparent: Some(2), ..frame(width, height, 1) };
    let interlaced = gif::Frame { interlaced: true, ..frame(width, height, 2) };
    let local = gif::Frame {
        palette: Some([WHITE, BLUE, RED, GREEN].concat()),
        left: 9,
        top: 4,
        dispose: gif::DisposalMethod::Previous,
        ..frame(50, 9, 3)
    };
    // Says that it has 4 billion pixels.
    let mut huge = make((width, height), vec![frame(width, height, 4)]);
    let descriptor = 13
        + palette.len()
        + huge[13 + palette.len()..].iter().position(|byte| *byte == 0x2C).expect("a frame");
    huge[descriptor + 5..][..4].fill(0xFF);
    vec![
        ("huge-frame", huge),
        ("plain", make((width, height), vec![frame(width, height, 4)])),
        ("transparent", make((width, height), vec![transparent])),
        ("interlaced", make((width, height), vec![interlaced])),
        ("small-frame-local-palette", make((width, height), vec![local.clone()])),
        ("animated", make((width, height), vec![frame(width, height, 5), local])),
        ("frame-larger-than-screen", make((210, 10), vec![frame(width, height, 6)])),
    ]
}

fn webps() -> Vec<Seed> {
    fn still(data: &[u8]) -> webp::Encoder<'_> {
        webp::Encoder::from_rgb(data, WIDTH, HEIGHT)
    }
    let rgba: Vec<u8> = rgb().chunks(3).flat_map(|p| [p[0], p[1], p[2], p[0]]).collect();
    let alpha = webp::Encoder::from_rgba(&rgba, WIDTH, HEIGHT);
    let frames = [still(&rgb()).encode(30.0).to_vec(), still(&rgb()).encode_lossless().to_vec()];
    vec![
        ("lossy", still(&photo(WIDTH, HEIGHT)).encode(30.0).to_vec()),
        (
            "lossless",
            webp::Encoder::from_rgb(&photo(WIDTH, 4), WIDTH, 4).encode_lossless().to_vec(),
        ),
        ("lossless-flat", still(&rgb()).encode_lossless().to_vec()),
        ("lossy-alpha", alpha.encode(50.0).to_vec()),
        ("lossy-simple-filter", lossy_with(|config| config.filter_type = 0)),
        ("lossy-partitions", lossy_with(|config| config.partitions = 3)),
        ("lossless-alpha", alpha.encode_lossless().to_vec()),
        ("exif", webp(WIDTH, HEIGHT, &rgb(), &exif(7)[6..])),
        ("animated", animated_webp(WIDTH, HEIGHT, &frames.each_ref().map(|frame| &frame[..]))),
    ]
}

/// A lossy WebP with the settings that `set` changes.
fn lossy_with(set: impl FnOnce(&mut webp::WebPConfig)) -> Vec<u8> {
    let mut config = webp::WebPConfig::new().expect("a configuration");
    config.quality = 30.0;
    set(&mut config);
    let rgb = photo(WIDTH, HEIGHT);
    let encoder = webp::Encoder::from_rgb(&rgb, WIDTH, HEIGHT);
    encoder.encode_advanced(&config).expect("an encoded picture").to_vec()
}

fn bmps() -> Vec<Seed> {
    let palette = [RED, GREEN, BLUE, WHITE].map(|[r, g, b]| [b, g, r, 0]).concat();
    let stride = |bits: u32| (WIDTH * bits).div_ceil(32) as usize * 4;
    let rows = HEIGHT as usize;
    // Runs of 108 pixels, a literal, a jump, and the end of the picture.
    let mut runs: Vec<u8> =
        (0..HEIGHT).flat_map(|row| [108, row as u8 % 4, 108, 1, 0, 0]).collect();
    runs.extend([0, 2, 3, 1, 0, 4, 1, 2, 3, 0, 0, 1]);
    let masks =
        [0x00F8_0000u32, 0x0000_FC00, 0x0000_00F8, 0xFF00_0000].map(u32::to_le_bytes).concat();
    vec![
        ("rgb-24", encoded(WIDTH, HEIGHT, &rgb(), ImageFormat::Bmp)),
        (
            "palette-1",
            bmp(WIDTH, HEIGHT as i32, 1, 0, &palette[..8], &vec![0x5A; stride(1) * rows]),
        ),
        ("palette-4", bmp(WIDTH, HEIGHT as i32, 4, 0, &palette, &vec![0x12; stride(4) * rows])),
        ("palette-8", bmp(WIDTH, HEIGHT as i32, 8, 0, &palette, &vec![2; stride(8) * rows])),
        ("rle-8", bmp(WIDTH, HEIGHT as i32, 8, 1, &palette, &runs)),
        ("rle-4", bmp(WIDTH, HEIGHT as i32, 4, 2, &palette, &runs)),
        ("rgb-16", bmp(WIDTH, HEIGHT as i32, 16, 0, &[], &vec![0x5A; stride(16) * rows])),
        ("bitfields-32", bmp(WIDTH, HEIGHT as i32, 32, 3, &masks, &vec![0x5A; stride(32) * rows])),
        ("top-down", bmp(WIDTH, -(HEIGHT as i32), 8, 0, &palette, &vec![3; stride(8) * rows])),
        ("rle-8-top-down", bmp(WIDTH, -(HEIGHT as i32), 8, 1, &palette, &runs)),
        ("os2-rle-24", os2_runs()),
    ]
}

/// Runs of 24 bits, behind the second header of OS/2.
fn os2_runs() -> Vec<u8> {
    let runs: Vec<u8> = (0..HEIGHT).flat_map(|_| [216, 30, 200, 30, 0, 0]).collect();
    let plain = bmp(WIDTH, HEIGHT as i32, 24, 4, &[0; 24], &[&runs[..], &[0, 1]].concat());
    let mut bytes = plain;
    bytes[14] = 64;
    // The bytes behind the first 40 are a part of the header then.
    bytes[46..50].fill(0);
    bytes
}

fn tiffs() -> Vec<Seed> {
    vec![
        ("plain", tiff(WIDTH, HEIGHT, &rgb(), 6)),
        ("lzw", tiff_of::<RGB8>(Compression::Lzw, Predictor::Horizontal, &rgb())),
        (
            "deflate",
            tiff_of::<RGB8>(Compression::Deflate(DeflateLevel::Fast), Predictor::None, &rgb()),
        ),
        ("packbits", tiff_of::<RGB8>(Compression::Packbits, Predictor::None, &rgb())),
        ("rgba", tiff_of::<RGBA8>(Compression::Lzw, Predictor::None, &samples(4))),
        ("cmyk", tiff_of::<CMYK8>(Compression::Lzw, Predictor::None, &samples(4))),
        (
            "grey-16",
            tiff_of::<Gray16>(
                Compression::Lzw,
                Predictor::None,
                &vec![23_130; (WIDTH * HEIGHT) as usize],
            ),
        ),
        (
            "rgb-float",
            tiff_of::<RGB32Float>(
                Compression::Lzw,
                Predictor::None,
                &vec![0.5; (3 * WIDTH * HEIGHT) as usize],
            ),
        ),
    ]
    .into_iter()
    .chain(tiffs_by_tag())
    .collect()
}

/// TIFFs of kinds that the encoder does not write.
fn tiffs_by_tag() -> Vec<Seed> {
    let sides = (WIDTH, HEIGHT);
    let plain = || Tiff::new(sides, 2, 3, &rgb());
    let pairs: Vec<u8> = (0..WIDTH * HEIGHT).flat_map(|at| [at as u8 & 3, at as u8]).collect();
    let colors: Vec<u64> = (0..3 << 8).map(|at| at * 80).collect();
    let jpeg = flat_jpeg(WIDTH as u16, HEIGHT as u16, &[110, 90, 200], None);
    let tiles = plain().in_tiles((64, 16), 3, 8, zlib);
    let misplaced = Tiff { places: 273, lengths: None, ..tiles.clone() };
    let big = Tiff { is_big: true, big_endian: true, ..plain() };
    let reversed = |rows: &[u8]| pack_bits(rows).iter().map(|byte| byte.reverse_bits()).collect();
    vec![
        ("tiles", tiles.write()),
        ("tiles-in-strip-tags", misplaced.write()),
        ("strips-lzw", plain().in_strips(5, 3 * WIDTH as usize, 5, lzw_literals).write()),
        ("big", big.write()),
        (
            "reversed",
            plain().in_strips(9, 3 * WIDTH as usize, 32_773, reversed).with(266, 3, &[2]).write(),
        ),
        (
            "palette-alpha",
            Tiff::new(sides, 3, 2, &pairs).with(320, 3, &colors).with(338, 3, &[2]).write(),
        ),
        ("jpeg", Tiff::new(sides, 6, 3, &[]).compressed(7, vec![jpeg]).write()),
        (
            "fax",
            Tiff::new(sides, 0, 1, &[])
                .with(258, 3, &[1])
                .compressed(4, vec![vec![0xFF; 27]])
                .write(),
        ),
    ]
}

fn samples(channels: u32) -> Vec<u8> {
    vec![90; (channels * WIDTH * HEIGHT) as usize]
}

fn tiff_of<C: TiffColor>(
    compression: Compression,
    predictor: Predictor,
    data: &[C::Inner],
) -> Vec<u8>
where
    [C::Inner]: TiffValue,
{
    let mut bytes = Cursor::new(Vec::new());
    TiffEncoder::new(&mut bytes)
        .expect("a TIFF")
        .with_compression(compression)
        .with_predictor(predictor)
        .write_image::<C>(WIDTH, HEIGHT, data)
        .expect("a picture");
    bytes.into_inner()
}
