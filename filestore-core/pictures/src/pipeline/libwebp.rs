//! libwebp's lossy encoder, called without its safe wrapper.
//!
//! # Purpose
//! The wrapper `webp` passes pixels to libwebp as ARGB, and libwebp converts them to the YUV 4:2:0 that it
//! encodes. This module passes YUV at once. The file is the same, with one copy of the picture less and about
//! 8 % less time at 1000 pixels. Lossless files still use `webp`.
//!
//! libwebp is built without flags for SSE4.1 or AVX2. These flags changed the speed by −3 to +6 %, and the
//! code would crash on older processors.
//!
//! # Safety
//! This is the only module with foreign calls. It checks everything that it passes to libwebp. The number of
//! pixels is the number that libwebp reads. Picture and writer are initialized before use, and their guards
//! free them once on every path. Borrowed samples outlive the picture, and the picture frees only its own
//! samples.

use std::error::Error as StdError;
use std::mem::MaybeUninit;
use std::slice;

use bytes::Bytes;
use libwebp_sys::{
    WebPEncCSP, WebPEncode, WebPMemoryWrite, WebPMemoryWriter, WebPMemoryWriterClear,
    WebPMemoryWriterInit, WebPPicture, WebPPictureFree, WebPPictureImportRGB,
    WebPPictureImportRGBA,
};
use webp::WebPConfig;

use crate::error::{Error, Result, encoder};
use crate::pixels::{Layout, Pixels, video_to_rgb};

/// Encodes `pixels`, which are [`Layout::Rgb`] or [`Layout::Rgba`], as a lossy file.
///
/// Returns [`Encoder`](crate::ErrorKind::Encoder) for other pixels, for sides over 16383, if libwebp refuses
/// the configuration, and if memory is short.
pub(crate) fn encode_lossy(pixels: &Pixels, config: &WebPConfig) -> Result<Bytes> {
    let import = match pixels.layout {
        Layout::Rgb => WebPPictureImportRGB,
        Layout::Rgba => WebPPictureImportRGBA,
        other => return Err(failed(format!("no sRGB pixels: {other:?}"))),
    };
    let row = pixels.width as usize * pixels.layout.channels();
    if row.checked_mul(pixels.height as usize) != Some(pixels.data.len()) {
        return Err(failed("pixels are missing"));
    }
    let stride = i32::try_from(row).map_err(failed)?;

    let mut picture = Picture::new(pixels.width, pixels.height)?;
    // SAFETY: the picture is initialized, and `height` rows of `stride` bytes are there to be read.
    if unsafe { import(&raw mut picture.0, pixels.data.as_ptr(), stride) } == 0 {
        return Err(picture.failed());
    }
    picture.encode(config)
}

/// Encodes `picture` as a lossy file.
///
/// Returns [`Encoder`](crate::ErrorKind::Encoder) for planes of other sizes, for sides over 16383, if libwebp
/// refuses the configuration, and if memory is short.
pub(crate) fn encode_yuv(picture: &mut Yuv, config: &WebPConfig) -> Result<Bytes> {
    let Yuv { width, height, ref mut y, ref mut u, ref mut v, ref mut alpha } = *picture;
    let bytes = |width: u32, height: u32| (width as usize).checked_mul(height as usize);
    let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
    let has_all = bytes(width, height) == Some(y.len())
        && alpha.as_ref().is_none_or(|alpha| alpha.len() == y.len())
        && [&*u, &*v].iter().all(|plane| bytes(half_width, half_height) == Some(plane.len()));
    if !has_all {
        return Err(failed("samples are missing"));
    }

    let mut picture = Picture::new(width, height)?;
    picture.0.y = y.as_mut_ptr();
    picture.0.u = u.as_mut_ptr();
    picture.0.v = v.as_mut_ptr();
    picture.0.y_stride = i32::try_from(width).map_err(failed)?;
    picture.0.uv_stride = i32::try_from(half_width).map_err(failed)?;
    if let Some(alpha) = alpha {
        picture.0.colorspace = WebPEncCSP::WEBP_YUV420A;
        picture.0.a = alpha.as_mut_ptr();
        picture.0.a_stride = picture.0.y_stride;
    }
    picture.encode(config)
}

/// A picture in the form of lossy WebP (RFC 6386, section 2): BT.601, luminance from 16 to 235, and
/// chrominance around 128. Chrominance has half the size, rounded up.
#[derive(Debug)]
pub(crate) struct Yuv {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) y: Vec<u8>,
    pub(crate) u: Vec<u8>,
    pub(crate) v: Vec<u8>,
    /// Opacity, at the size of luminance.
    pub(crate) alpha: Option<Vec<u8>>,
}

impl Yuv {
    /// Converts some rows to RGB. Each 2 × 2 pixels share one sample of chrominance.
    pub(crate) fn rgb(&self, rows: &[u32]) -> Pixels {
        let [whole, half] = [self.width, self.width.div_ceil(2)].map(|width| width as usize);
        let row = |&at: &u32| {
            let at = at as usize;
            let [u, v] = [&self.u, &self.v].map(|plane| &plane[at / 2 * half..][..half]);
            let shared = u.iter().zip(v).flat_map(|chrominance| [chrominance; 2]);
            let pixels = self.y[at * whole..][..whole].iter().zip(shared);
            pixels.flat_map(|(y, (u, v))| video_to_rgb(*y, *u, *v))
        };
        let data = rows.iter().flat_map(row).collect();
        let height = u32::try_from(rows.len()).expect("some of the rows");
        Pixels { layout: Layout::Rgb, width: self.width, height, data }
    }
}

/// A libwebp picture. When dropped, it frees its own samples.
struct Picture(WebPPicture);

impl Picture {
    /// Creates a picture without samples, in the format of lossy files.
    fn new(width: u32, height: u32) -> Result<Self> {
        let made = WebPPicture::new().map_err(|()| failed("another version of libwebp"))?;
        let mut picture = Self(made);
        picture.0.use_argb = 0;
        picture.0.width = i32::try_from(width).map_err(failed)?;
        picture.0.height = i32::try_from(height).map_err(failed)?;
        Ok(picture)
    }

    /// Encodes the samples, which must be set.
    fn encode(mut self, config: &WebPConfig) -> Result<Bytes> {
        let mut writer = Writer::new();
        self.0.writer = Some(WebPMemoryWrite);
        self.0.custom_ptr = (&raw mut writer.0).cast();
        // SAFETY: the picture has its samples; its writer outlives the call and is used by nobody else.
        if unsafe { WebPEncode(config, &raw mut self.0) } == 0 {
            return Err(self.failed());
        }
        Ok(Bytes::copy_from_slice(writer.written()))
    }

    /// Returns the error that libwebp reported.
    fn failed(&self) -> Error {
        failed(format!("{:?}", self.0.error_code))
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: initialized when it was made, and freed here alone.
        unsafe { WebPPictureFree(&raw mut self.0) }
    }
}

/// A libwebp writer. When dropped, it frees its bytes.
struct Writer(WebPMemoryWriter);

impl Writer {
    fn new() -> Self {
        let mut writer = MaybeUninit::<WebPMemoryWriter>::uninit();
        // SAFETY: libwebp sets every field of it.
        unsafe {
            WebPMemoryWriterInit(writer.as_mut_ptr());
            Self(writer.assume_init())
        }
    }

    fn written(&self) -> &[u8] {
        if self.0.mem.is_null() {
            return &[];
        }
        // SAFETY: libwebp wrote `size` bytes at `mem`, which lives until this is dropped.
        unsafe { slice::from_raw_parts(self.0.mem, self.0.size) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: initialized when it was made, and cleared here alone.
        unsafe { WebPMemoryWriterClear(&raw mut self.0) }
    }
}

fn failed(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    encoder("encoding a variant", why)
}

#[cfg(test)]
mod tests {
    use webp::{Encoder, PixelLayout};

    use super::*;

    fn config(quality: f32) -> WebPConfig {
        let mut config = WebPConfig::new().unwrap();
        config.quality = quality;
        config.method = 2;
        config
    }

    fn pixels(layout: Layout, width: u32, height: u32) -> Pixels {
        let mut random = fastrand::Rng::with_seed(3);
        let bytes = width as usize * height as usize * layout.channels();
        let shade = |at: usize| u8::try_from(at * 200 / bytes).unwrap();
        let data = (0..bytes).map(|at| shade(at) + random.u8(0..40)).collect();
        Pixels { layout, width, height, data }
    }

    #[test]
    fn the_file_is_the_one_of_the_safe_wrapper() {
        for (layout, wrapped) in
            [(Layout::Rgb, PixelLayout::Rgb), (Layout::Rgba, PixelLayout::Rgba)]
        {
            for (width, height) in [(1, 1), (3, 2), (97, 64), (200, 131)] {
                let pixels = pixels(layout, width, height);
                let expected = Encoder::new(&pixels.data, wrapped, width, height);
                let expected = expected.encode_advanced(&config(80.0)).unwrap();
                let file = encode_lossy(&pixels, &config(80.0)).unwrap();
                assert_eq!(file, &expected[..], "{layout:?} {width}×{height}");
            }
        }
    }

    /// Planes of a picture in one colour.
    fn plain(width: u32, height: u32, [y, u, v]: [u8; 3]) -> Yuv {
        let chrominance = width.div_ceil(2) as usize * height.div_ceil(2) as usize;
        Yuv {
            width,
            height,
            y: vec![y; width as usize * height as usize],
            u: vec![u; chrominance],
            v: vec![v; chrominance],
            alpha: None,
        }
    }

    #[test]
    fn the_alpha_of_planes_is_kept() {
        let mut half = plain(40, 30, [81, 90, 240]);
        half.alpha = Some((0..1200).map(|at| if at % 40 < 20 { 255 } else { 0 }).collect());
        let file = encode_yuv(&mut half, &config(90.0)).unwrap();
        let seen = image::load_from_memory(&file).unwrap().into_rgba8();
        assert!(seen.get_pixel(5, 5).0[0] > 245);
        assert_eq!([5, 35].map(|x| seen.get_pixel(x, 20).0[3]), [255, 0]);
    }

    #[test]
    fn planes_are_encoded_as_they_are() {
        for (width, height) in [(1, 1), (3, 2), (97, 64), (200, 131)] {
            // Red: BT.601 in video range.
            let file = encode_yuv(&mut plain(width, height, [81, 90, 240]), &config(90.0)).unwrap();
            let seen = image::load_from_memory(&file).unwrap().into_rgb8();
            assert_eq!(seen.dimensions(), (width, height));
            let last = seen.get_pixel(width - 1, height - 1).0;
            assert!(last[0] > 245 && last[1] < 10 && last[2] < 10, "{width}×{height}: {last:?}");
        }
    }

    #[test]
    fn rows_of_planes_are_converted_as_a_decoder_does() {
        let mut picture = plain(5, 3, [81, 90, 240]);
        picture.y[10..].fill(145);
        picture.u[3..].fill(54);
        picture.v[3..].fill(34);
        let rows = picture.rgb(&[0, 2]);
        assert_eq!((rows.width, rows.height, rows.data.len()), (5, 2, 30));
        for (pixels, color) in rows.data.chunks(15).zip([[254, 0, 0], [0, 255, 1]]) {
            let near = |(is, want): (&u8, &u8)| is.abs_diff(*want) <= 2;
            assert!(pixels.chunks(3).all(|pixel| pixel.iter().zip(&color).all(near)), "{pixels:?}");
        }
    }

    #[test]
    fn planes_of_other_sizes_are_an_error() {
        let good = || plain(9, 7, [81, 90, 240]);
        assert!(encode_yuv(&mut good(), &config(80.0)).is_ok());
        let [mut y, mut u, mut v, mut a] = [good(), good(), good(), good()];
        a.alpha = Some(vec![255; 8 * 7]);
        y.y.pop();
        u.u.pop();
        v.v.push(0);
        for mut bad in [y, u, v, a, plain(16_384, 1, [0; 3]), plain(0, 0, [0; 3])] {
            assert!(encode_yuv(&mut bad, &config(80.0)).is_err());
        }
    }

    #[test]
    fn what_cannot_be_encoded_is_an_error() {
        let mut short = pixels(Layout::Rgb, 20, 20);
        short.data.pop();
        assert!(encode_lossy(&short, &config(80.0)).is_err());
        assert!(encode_lossy(&pixels(Layout::Grey, 2, 2), &config(80.0)).is_err());
        assert!(encode_lossy(&pixels(Layout::Rgb, 16_384, 1), &config(80.0)).is_err());
        assert!(encode_lossy(&pixels(Layout::Rgb, 0, 0), &config(80.0)).is_err());
        assert!(encode_lossy(&pixels(Layout::Rgb, 2, 2), &config(-1.0)).is_err());
    }
}
