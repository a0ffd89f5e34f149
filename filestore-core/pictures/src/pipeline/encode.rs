//! Encodes pixels as lossy WebP with libwebp. The file contains no metadata.
//!
//! The settings are the result of measurements, see the tables in `benches/compare/README.md`. libwebp only
//! encodes. WebP files from clients are decoded in safe Rust.

use bytes::Bytes;
use webp::{Encoder, PixelLayout, WebPConfig};

use super::libwebp::{Yuv, encode_lossy, encode_yuv};
use crate::error::{Error, Result, encoder};
use crate::pixels::{Layout, Pixels};

/// The effort of libwebp, 0 to 6. Compared with 4, effort 2 takes 0.4 of the time and adds 4 % of bytes.
const METHOD: i32 = 2;
/// The effort for thumbnails. The difference is only a millisecond there.
const THUMBNAIL_METHOD: i32 = 4;
/// The maximum longer side of a thumbnail, in pixels.
const THUMBNAIL_SIDE: u32 = 200;
/// The maximum longer side, in pixels, of pictures that get slightly less quality. Thumbnails are an
/// exception. In small pictures, more of the bytes describe detail that the resize sharpened, and the result
/// is closer to the original. Compared with sharp's files, ours are larger for small pictures, and less alike
/// for large ones.
const SMALL_SIDE: u32 = 300;
/// The quality that small pictures lose, in points of 100. The lower quality saves 4 % of the bytes for 5 %
/// more DSSIM.
const SMALL_DISCOUNT: f32 = 1.0;
/// The strength with which the decoder smooths block edges, 0 to 100. libwebp's default 60 is too weak for
/// the rougher choices of [`METHOD`]. 90 lowers the DSSIM by 3 % without additional time or bytes.
const FILTER_STRENGTH: i32 = 90;
/// The strength with which libwebp moves bits to visible areas, 0 to 100. The value is slightly above
/// libwebp's default 50, and saves half a hundredth of the bytes.
const NOISE_SHAPING: i32 = 60;

/// The minimum share of pixels that equal their left neighbour. Above this share, lossless coding is tried.
/// Scaled diagrams, charts and text have shares from 0.7 to 0.98 at 400 and 1000 pixels. The highest share
/// among 22 photographs and painted gradients was 0.68. The lossless files of these pictures are 6 to 60
/// times as large as the lossy files, and the test costs them 1 % of the time. Near-lossless coding was
/// rarely smaller and often slower.
const FLAT_SHARE: f64 = 0.75;
/// The distance between tested rows. The test takes 0.1 ms for a square of 1000 pixels.
const ROWS_APART: usize = 4;

/// The number of row bands in a lossless sample. The size of these bands predicts the size of the whole file.
const SAMPLE_BANDS: u32 = 4;
/// The share of rows in a sample (one of this many), and the minimum number of rows in a band.
const SAMPLE_SHARE: u32 = 64;
const SAMPLE_ROWS: u32 = 4;
/// The bytes of a lossless file that do not depend on the picture's size.
const LOSSLESS_HEADER_BYTES: usize = 80;
/// The maximum predicted size of a lossless file, in percent of the lossy file. Above this limit, no lossless
/// file is made. Drawings that are smaller as lossless files had predictions of at most 57, and drawings that
/// are larger had at least 200. Only gradients lie between them, and these become lossy files.
const WORTH_PERCENT: usize = 125;

/// Encodes `pixels`, which are [`Layout::Rgb`] or [`Layout::Rgba`], at `quality` (0 to 100). Alpha stays
/// exact. Drawings and screenshots become lossless files if these are smaller.
pub(crate) fn encode(pixels: &Pixels, quality: f32) -> Result<Bytes> {
    let lossy = encode_quickly(pixels, quality)?;
    if !is_flat(&pixels.data, pixels.width as usize, pixels.layout.channels()) {
        return Ok(lossy);
    }
    let sample = sample(pixels, &sampled_rows(pixels.height));
    if !is_worth_lossless(&sample, pixels.height, lossy.len())? {
        return Ok(lossy);
    }

    let lossless = encode_lossless(pixels, &lossless_config()?)?;
    Ok(if lossless.len() <= lossy.len() { lossless } else { lossy })
}

/// Encodes `pixels` like [`encode`], but never as a lossless file, because lossless coding can take ten times
/// as long.
pub(crate) fn encode_quickly(pixels: &Pixels, quality: f32) -> Result<Bytes> {
    encode_lossy(pixels, &lossy_config(pixels.width.max(pixels.height), quality)?)
}

/// Encodes `picture` as [`encode_quickly`] does.
pub(crate) fn encode_planes(picture: &mut Yuv, quality: f32) -> Result<Bytes> {
    let config = lossy_config(picture.width.max(picture.height), quality)?;
    encode_yuv(picture, &config)
}

/// Predicts if a lossless file of `picture` can be smaller than `lossy_bytes`.
pub(crate) fn may_be_lossless(picture: &Yuv, lossy_bytes: usize) -> Result<bool> {
    let height = picture.height;
    if !is_flat(&picture.y, picture.width as usize, 1) {
        return Ok(false);
    }
    is_worth_lossless(&picture.rgb(&sampled_rows(height)), height, lossy_bytes)
}

fn lossy_config(longer_side: u32, quality: f32) -> Result<WebPConfig> {
    let mut config = default_config()?;
    config.quality = quality_at(longer_side, quality);
    config.method = method_at(longer_side);
    config.sns_strength = NOISE_SHAPING;
    config.filter_strength = FILTER_STRENGTH;
    config.alpha_quality = 100;
    Ok(config)
}

/// Returns the quality for libwebp, 0 to 100. `quality` is the configured value.
fn quality_at(longer_side: u32, quality: f32) -> f32 {
    let is_discounted = longer_side > THUMBNAIL_SIDE && longer_side <= SMALL_SIDE;
    let discount = if is_discounted { SMALL_DISCOUNT } else { 0.0 };
    (quality - discount).clamp(0.0, 100.0)
}

fn method_at(longer_side: u32) -> i32 {
    if longer_side <= THUMBNAIL_SIDE { THUMBNAIL_METHOD } else { METHOD }
}

/// Returns true if large parts of a picture with rows of `width` pixels have a single colour each. A lossless
/// file of such a picture can be smaller than a lossy one.
#[expect(clippy::cast_precision_loss, reason = "counts of pixels, far below 2^52")]
fn is_flat(samples: &[u8], width: usize, channels: usize) -> bool {
    let rows = samples.chunks_exact(width * channels).step_by(ROWS_APART);

    let (mut equal, mut seen) = (0, 0);
    for row in rows {
        let pairs = row[channels..].chunks_exact(channels).zip(row.chunks_exact(channels));
        seen += pairs.len();
        equal += pairs.filter(|(pixel, left)| pixel == left).count();
    }

    equal as f64 >= FLAT_SHARE * seen as f64
}

/// Predicts if a lossless file can be smaller than `lossy_bytes`, from sampled rows of a picture with this
/// `height`.
///
/// A whole lossless file takes up to ten times as long as the lossy file. The sample takes a twentieth of the
/// lossy file's time: 0.1 ms at 200 pixels, 3 ms at 1000.
fn is_worth_lossless(sample: &Pixels, height: u32, lossy_bytes: usize) -> Result<bool> {
    let mut config = lossless_config()?;
    config.method = 0;
    config.quality = 0.0;

    let growing = encode_lossless(sample, &config)?.len().saturating_sub(LOSSLESS_HEADER_BYTES);
    let all = growing * height as usize / sample.height as usize + LOSSLESS_HEADER_BYTES;
    Ok(100 * all <= WORTH_PERCENT * lossy_bytes)
}

/// Chooses the rows of a sample: a few bands, evenly distributed over the picture.
fn sampled_rows(height: u32) -> Vec<u32> {
    let rows = (height / SAMPLE_SHARE).max(SAMPLE_ROWS);
    if rows * SAMPLE_BANDS >= height {
        return (0..height).collect();
    }
    let bands = (0..SAMPLE_BANDS).map(|band| {
        let first = (2 * band + 1) * height / (2 * SAMPLE_BANDS) - rows / 2;
        first..first + rows
    });
    bands.flatten().collect()
}

/// Copies `rows` of a picture into one smaller picture.
fn sample(pixels: &Pixels, rows: &[u32]) -> Pixels {
    let row = pixels.width as usize * pixels.layout.channels();
    let sampled = rows.iter().map(|&at| &pixels.data[at as usize * row..][..row]);
    let data = sampled.collect::<Vec<_>>().concat();
    Pixels { height: u32::try_from(rows.len()).expect("some of the rows"), data, ..*pixels }
}

fn lossless_config() -> Result<WebPConfig> {
    let mut config = default_config()?;
    config.lossless = 1;
    Ok(config)
}

fn encode_lossless(pixels: &Pixels, config: &WebPConfig) -> Result<Bytes> {
    let layout = match pixels.layout {
        Layout::Rgb => PixelLayout::Rgb,
        Layout::Rgba => PixelLayout::Rgba,
        other => return Err(failed(format!("no sRGB pixels: {other:?}"))),
    };
    Encoder::new(&pixels.data, layout, pixels.width, pixels.height)
        .encode_advanced(config)
        .map(|file| Bytes::copy_from_slice(&file))
        .map_err(|error| failed(format!("{error:?}")))
}

fn default_config() -> Result<WebPConfig> {
    WebPConfig::new().map_err(|()| failed("no WebP configuration".to_owned()))
}

fn failed(why: String) -> Error {
    encoder("encoding a variant", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: u32 = 240;

    fn picture(layout: Layout, color: impl Fn(u32, u32) -> [u8; 4]) -> Pixels {
        let channels = layout.channels();
        let points = (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (x, y)));
        let data = points.flat_map(|(x, y)| color(x, y).into_iter().take(channels)).collect();
        Pixels { layout, width: SIDE, height: SIDE, data }
    }

    /// Boxes with dark borders, as in a chart; the last channel is half transparent outside.
    fn chart(x: u32, y: u32) -> [u8; 4] {
        match (x % 80, y % 60) {
            (0..=9, _) | (_, 0..=9) => [255, 255, 255, 128],
            (10 | 79, _) | (_, 10 | 59) => [20, 20, 60, 255],
            _ => [200, 220, 240, 255],
        }
    }

    fn grain(x: u32, y: u32) -> [u8; 4] {
        let mut random = fastrand::Rng::with_seed(u64::from(y * SIDE + x));
        let light = u8::try_from((x + y) / 3).unwrap();
        [light + random.u8(0..9), light / 2 + random.u8(0..9), random.u8(40..49), 255]
    }

    fn looks_flat(pixels: &Pixels) -> bool {
        is_flat(&pixels.data, pixels.width as usize, pixels.layout.channels())
    }

    /// The first chunk's name (WebP container specification, "simple file format").
    fn is_lossless(file: &[u8]) -> bool {
        file.windows(4).any(|name| name == b"VP8L")
    }

    #[test]
    fn a_drawing_is_lossless_and_exact() {
        for layout in [Layout::Rgb, Layout::Rgba] {
            let drawing = picture(layout, chart);
            let file = encode(&drawing, 80.0).unwrap();
            assert!(is_lossless(&file), "{layout:?}");
            let decoded = image::load_from_memory(&file).unwrap();
            let seen = if layout == Layout::Rgb {
                decoded.into_rgb8().into_raw()
            } else {
                decoded.into_rgba8().into_raw()
            };
            assert!(seen == drawing.data, "{layout:?}");
        }
    }

    #[test]
    fn a_photograph_is_lossy_and_never_tried_otherwise() {
        let photo = picture(Layout::Rgb, grain);
        assert!(!looks_flat(&photo));
        assert!(!is_lossless(&encode(&photo, 80.0).unwrap()));
    }

    #[test]
    fn a_lossless_file_that_would_be_larger_is_not_made() {
        let height = 1000;
        let of = |color: &dyn Fn(u32, u32) -> [u8; 4]| {
            let points = (0..height).flat_map(|y| (0..height).map(move |x| (x, y)));
            let data = points.flat_map(|(x, y)| color(x, y).into_iter().take(3)).collect();
            Pixels { layout: Layout::Rgb, width: height, height, data }
        };
        // What a smooth photograph becomes: steps of several pixels in each channel.
        let shade = |at: u32, most: u32| u8::try_from(20 + at * most / height).unwrap();
        let smooth = of(&|x, y| [shade(x, 130), shade(y, 90), shade(u32::midpoint(x, y), 70), 255]);
        for (what, pixels, expected) in [("chart", of(&chart), true), ("smooth", smooth, false)] {
            assert!(looks_flat(&pixels), "{what}");
            let lossy = encode_lossy(&pixels, &default_config().unwrap()).unwrap();
            let sample = sample(&pixels, &sampled_rows(height));
            let is_worth = is_worth_lossless(&sample, height, lossy.len()).unwrap();
            assert_eq!(is_worth, expected, "{what}");
        }
    }

    #[test]
    fn of_planes_only_drawings_may_be_smaller_without_loss() {
        let side = 400;
        // Luminance alone; or grain in it.
        let planes = |luminance: &dyn Fn(u32, u32) -> u8| {
            let y = (0..side).flat_map(|y| (0..side).map(move |x| luminance(x, y))).collect();
            let [u, v] = [128, 128].map(|none| vec![none; (side * side / 4) as usize]);
            Yuv { width: side, height: side, y, u, v, alpha: None }
        };
        let chart = planes(&|x, y| chart(x, y)[0].clamp(16, 235));
        let smooth = planes(&|x, y| u8::try_from(20 + x / 4 + y / 5).unwrap());
        let photo = planes(&|x, y| grain(x % SIDE, y % SIDE)[0].max(16));
        for (what, mut picture, expected) in
            [("chart", chart, true), ("smooth", smooth, false), ("photo", photo, false)]
        {
            let lossy = encode_planes(&mut picture, 80.0).unwrap();
            assert_eq!(may_be_lossless(&picture, lossy.len()).unwrap(), expected, "{what}");
        }
    }

    #[test]
    fn a_sample_has_bands_from_all_of_the_picture() {
        for height in [1, 15, 16, 17, 200, 640, 1000] {
            let data =
                (0..height).flat_map(|y| [u8::try_from(y * 255 / height).unwrap(); 6]).collect();
            let pixels = Pixels { layout: Layout::Rgb, width: 2, height, data };
            let sample = sample(&pixels, &sampled_rows(height));
            assert_eq!(sample.data.len(), 6 * sample.height as usize);
            assert!(sample.height <= height && sample.height >= height.min(16), "{height}");
            let (first, last) = (sample.data[0], sample.data[sample.data.len() - 1]);
            assert!(height < 200 || (first > 10 && first < 60 && last > 190), "{first} {last}");
        }
    }

    #[test]
    fn a_flat_picture_that_is_smaller_lossy_stays_lossy() {
        // Enough grain in a fifth of the rows that exactness costs more than it saves.
        let mixed = picture(Layout::Rgb, |x, y| if y % 60 < 12 { grain(x, y) } else { [255; 4] });
        assert!(looks_flat(&mixed));
        assert!(!is_lossless(&encode(&mixed, 80.0).unwrap()));
    }

    #[test]
    fn thumbnails_get_more_effort_and_small_pictures_a_little_less_quality() {
        let settings =
            [1, 200, 201, 300, 301, 16_383].map(|side| (quality_at(side, 80.0), method_at(side)));
        assert_eq!(settings, [(80.0, 4), (80.0, 4), (79.0, 2), (79.0, 2), (80.0, 2), (80.0, 2)]);
    }

    #[test]
    fn every_configured_quality_is_one_that_libwebp_takes() {
        for quality in [-1.0, 0.0, 0.2, 100.0, 100.5, 1000.0] {
            for side in [200, 300, 1000] {
                assert!((0.0..=100.0).contains(&quality_at(side, quality)), "{quality} at {side}");
            }
            encode(&picture(Layout::Rgb, grain), quality).unwrap();
        }
    }

    #[test]
    fn single_pixels_and_columns_are_encoded() {
        for (width, height) in [(1, 1), (1, 9), (9, 1)] {
            let data = vec![90; (width * height * 3) as usize];
            let file = encode(&Pixels { layout: Layout::Rgb, width, height, data }, 80.0).unwrap();
            let decoded = image::load_from_memory(&file).unwrap();
            assert_eq!((decoded.width(), decoded.height()), (width, height));
        }
    }
}
