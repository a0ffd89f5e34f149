//! libwebp's lossy encoder without the detour of its safe wrapper.
//!
//! # Purpose
//! `webp` hands pixels over as ARGB, which libwebp then converts to the YUV 4:2:0 that it
//! encodes. Imported as YUV at once, the same file comes out with one copy of the picture less and
//! in some 8 % less time at 1000 pixels. Lossless files still go through `webp`.
//!
//! Flags for SSE4.1 or AVX2 in libwebp's build gave −3 to +6 % of speed and would fault on older
//! processors: they are left off.
//!
//! # Safety
//! The one place with foreign calls. All that libwebp is given is checked here: the pixels are as
//! many as libwebp reads, and picture and writer are initialized before they are used and freed
//! once, by their guards, on every way out.

use std::error::Error as StdError;
use std::mem::MaybeUninit;
use std::slice;

use bytes::Bytes;
use libwebp_sys::{
    WebPEncode, WebPMemoryWrite, WebPMemoryWriter, WebPMemoryWriterClear, WebPMemoryWriterInit,
    WebPPicture, WebPPictureFree, WebPPictureImportRGB, WebPPictureImportRGBA,
};
use webp::WebPConfig;

use crate::domain::error::{Error, Result};
use crate::variant::pixels::{Layout, Pixels};

/// Encodes `pixels`, which are [`Layout::Rgb`] or [`Layout::Rgba`], as a lossy file.
///
/// [`Internal`](crate::ErrorKind::Internal) for other pixels, sides over 16383, a configuration that
/// libwebp refuses, and where memory is short.
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

    let mut picture =
        Picture(WebPPicture::new().map_err(|()| failed("another version of libwebp"))?);
    let mut writer = Writer::new();
    picture.0.use_argb = 0;
    picture.0.width = i32::try_from(pixels.width).map_err(failed)?;
    picture.0.height = i32::try_from(pixels.height).map_err(failed)?;
    picture.0.writer = Some(WebPMemoryWrite);
    picture.0.custom_ptr = (&raw mut writer.0).cast();

    // SAFETY: the picture is initialized, and `height` rows of `stride` bytes are there to be read.
    if unsafe { import(&raw mut picture.0, pixels.data.as_ptr(), stride) } == 0 {
        return Err(failed(format!("{:?}", picture.0.error_code)));
    }
    // SAFETY: the picture has its samples; its writer outlives the call and is used by nobody else.
    if unsafe { WebPEncode(config, &raw mut picture.0) } == 0 {
        return Err(failed(format!("{:?}", picture.0.error_code)));
    }
    Ok(Bytes::copy_from_slice(writer.written()))
}

/// A picture that frees its samples.
struct Picture(WebPPicture);

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: initialized when it was made, and freed here alone.
        unsafe { WebPPictureFree(&raw mut self.0) }
    }
}

/// A writer that frees its bytes.
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
    Error::internal("encoding a variant", why)
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
