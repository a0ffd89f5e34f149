//! The errors of a picture: what is wrong with it, in the words that a client sees.

use std::error::Error as StdError;

use crate::domain::error::{Error, ErrorKind};

const TOO_SLOW: &str = "the image takes too long to decode";

/// Returns the error of a picture that takes longer than allowed.
pub(crate) fn too_slow() -> Error {
    Error::new(ErrorKind::ImageTooLarge, TOO_SLOW)
}

/// Returns the error of a picture that is over a limit of size, memory or scans.
pub(crate) fn too_large(message: String) -> Error {
    Error::new(ErrorKind::ImageTooLarge, message)
}

/// Returns the error of a picture that grows over its limits while it is decoded.
pub(crate) fn over_memory() -> Error {
    Error::new(ErrorKind::ImageTooLarge, "the image needs too much memory to decode")
}

/// Returns the error of a picture that ends early or says nonsense.
pub(crate) fn corrupt(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(ErrorKind::CorruptImage, "the image is corrupt").with_source(why)
}

/// Returns the error of a blob that is no raster image.
pub(crate) fn not_an_image() -> Error {
    Error::new(ErrorKind::NotAnImage, "the file is not a JPEG, PNG, GIF, WebP, BMP or TIFF image")
}

/// Returns the error of a picture in a known format that has no decoder here.
pub(crate) fn unknown_format(name: &str) -> Error {
    Error::new(ErrorKind::NotAnImage, format!("{name} images are not supported"))
}

/// Returns the error of a picture in a decoded `format`, but of a kind that is not decoded.
pub(crate) fn unsupported(format: &str) -> Error {
    Error::new(ErrorKind::NotAnImage, format!("this kind of {format} image is not supported"))
}

/// Returns true if `error` is the picture's own fault, so that another request would end in the
/// same way. Being too slow is not: the load may have been the reason.
pub(crate) fn is_final(error: &Error) -> bool {
    use ErrorKind::{CorruptImage, ImageTooLarge, NotAnImage};

    matches!(error.kind(), CorruptImage | ImageTooLarge | NotAnImage) && error.message() != TOO_SLOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_load_cannot_change_is_final() {
        assert!(!is_final(&too_slow()) && is_final(&corrupt("nonsense")));
    }
}
