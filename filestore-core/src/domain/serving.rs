//! The safe-serving policy: the uploaded files that a browser may show, and the rules for each.
//!
//! A file is shown inline only if its claimed type is one that browsers cannot run, and its bytes
//! agree with the claim. All else is saved. Beside the decision every reply carries
//! `X-Content-Type-Options: nosniff`, which the caller adds.

use std::borrow::Cow;

use super::disposition::Disposition;
use super::media::essence;

/// The way to serve a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving<'a> {
    /// The disposition: a browser shows the file or saves it.
    pub disposition: Disposition,
    /// The value of the header Content-Type.
    pub content_type: Cow<'a, str>,
    /// The value of the header Content-Security-Policy.
    pub csp: &'static str,
}

/// Nothing loads, nothing runs, the origin is nobody's.
pub const CSP_SANDBOX: &str = "default-src 'none'; sandbox";

/// For audio and video: under `sandbox` Chromium fetches no top-level media, and the page it makes
/// around them is laid out by inline style.
pub const CSP_MEDIA: &str = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'";

/// For PDF: Chromium's viewer does not start under `sandbox`; it is an embedded object, in a page
/// laid out by inline style.
pub const CSP_PDF: &str = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'";

/// Types that are one format under several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Png,
    Jpeg,
    Gif,
    Webp,
    Avif,
    Text,
    Mp4,
    Webm,
    Mp3,
    Ogg,
    Wav,
    Pdf,
}

impl Family {
    /// Returns the family of a type that browsers can show and cannot run.
    fn of(mime: &str) -> Option<Self> {
        Some(match essence(mime).as_str() {
            "image/png" => Self::Png,
            "image/jpeg" | "image/jpg" | "image/pjpeg" => Self::Jpeg,
            "image/gif" => Self::Gif,
            "image/webp" => Self::Webp,
            "image/avif" => Self::Avif,
            "text/plain" => Self::Text,
            "video/mp4" | "audio/mp4" | "audio/x-m4a" | "video/x-m4v" => Self::Mp4,
            "video/webm" | "audio/webm" => Self::Webm,
            "audio/mpeg" | "audio/mp3" => Self::Mp3,
            "audio/ogg" | "video/ogg" | "application/ogg" | "audio/opus" => Self::Ogg,
            "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Self::Wav,
            "application/pdf" => Self::Pdf,
            _ => return None,
        })
    }

    const fn csp(self) -> &'static str {
        match self {
            Self::Png | Self::Jpeg | Self::Gif | Self::Webp | Self::Avif | Self::Text => {
                CSP_SANDBOX
            }
            Self::Mp4 | Self::Webm | Self::Mp3 | Self::Ogg | Self::Wav => CSP_MEDIA,
            Self::Pdf => CSP_PDF,
        }
    }
}

/// The type of bytes of which nothing is said.
const OCTETS: &str = "application/octet-stream";

/// Tests whether pages take such a file in by a tag, whatever its disposition is: scripts and style
/// sheets (WHATWG MIME Sniffing, JavaScript MIME type essences). An application on the same origin trusts
/// these.
fn is_taken_in(mime: &str) -> bool {
    let essence = essence(mime);
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    let script = subtype.strip_prefix("x-").unwrap_or(subtype);
    match kind {
        "text" => {
            matches!(script, "css" | "javascript" | "ecmascript" | "jscript" | "livescript")
                || script.starts_with("javascript1.")
        }
        "application" => matches!(script, "javascript" | "ecmascript"),
        _ => false,
    }
}

/// Decides how to serve a file of type `claimed` whose bytes show `sniffed` (see
/// [`super::media::sniff`]), where the client may ask for `requested`: a requested attachment
/// always is one, and `Inline` makes no file inline that would not be inline by itself.
pub fn decide<'a>(
    claimed: &'a str,
    sniffed: Option<&str>,
    requested: Option<Disposition>,
) -> Serving<'a> {
    let shown = Family::of(claimed).filter(|family| {
        requested != Some(Disposition::Attachment) && sniffed.and_then(Family::of) == Some(*family)
    });

    match shown {
        Some(family) => Serving {
            disposition: Disposition::Inline,
            content_type: with_charset(family, claimed),
            csp: family.csp(),
        },
        None => Serving {
            disposition: Disposition::Attachment,
            content_type: Cow::Borrowed(if is_taken_in(claimed) { OCTETS } else { claimed }),
            csp: CSP_SANDBOX,
        },
    }
}

/// Adds UTF-8 to a text type that names no charset: bytes sniffed as text are UTF-8.
fn with_charset(family: Family, claimed: &str) -> Cow<'_, str> {
    let names_charset = claimed.split(';').skip(1).any(|param| {
        param.trim_start().get(..8).is_some_and(|name| name.eq_ignore_ascii_case("charset="))
    });
    if family == Family::Text && !names_charset {
        let claimed = claimed.trim_end_matches([';', ' ']);
        return Cow::Owned(format!("{claimed}; charset=utf-8"));
    }
    Cow::Borrowed(claimed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Disposition::{Attachment, Inline};

    #[test]
    fn types_that_cannot_run_are_shown_if_their_bytes_agree() {
        for (claimed, sniffed, csp) in [
            ("image/png", "image/png", CSP_SANDBOX),
            ("IMAGE/PNG; x=y", "image/png", CSP_SANDBOX),
            ("image/jpg", "image/jpeg", CSP_SANDBOX),
            ("image/gif", "image/gif", CSP_SANDBOX),
            ("image/webp", "image/webp", CSP_SANDBOX),
            ("image/avif", "image/avif", CSP_SANDBOX),
            ("video/mp4", "video/mp4", CSP_MEDIA),
            ("audio/mp4", "video/mp4", CSP_MEDIA),
            ("audio/webm", "video/webm", CSP_MEDIA),
            ("audio/mpeg", "audio/mpeg", CSP_MEDIA),
            ("video/ogg", "audio/ogg", CSP_MEDIA),
            ("application/ogg", "audio/ogg", CSP_MEDIA),
            ("audio/x-wav", "audio/wav", CSP_MEDIA),
            ("audio/wave", "audio/wav", CSP_MEDIA),
            ("application/pdf", "application/pdf", CSP_PDF),
        ] {
            for requested in [None, Some(Inline)] {
                let expected = Serving { disposition: Inline, content_type: claimed.into(), csp };
                assert_eq!(decide(claimed, Some(sniffed), requested), expected);
            }
            let saved =
                Serving { disposition: Attachment, content_type: claimed.into(), csp: CSP_SANDBOX };
            assert_eq!(decide(claimed, Some(sniffed), Some(Attachment)), saved);
        }
    }

    #[test]
    fn what_can_run_is_unknown_or_disagrees_is_saved_whatever_is_asked() {
        for (claimed, sniffed) in [
            ("text/html", Some("text/html")),
            ("text/html", Some("text/plain")),
            ("image/svg+xml", Some("image/svg+xml")),
            ("text/xml", Some("text/xml")),
            ("application/xhtml+xml", Some("text/xml")),
            ("text/csv", Some("text/plain")),
            ("application/json", Some("text/plain")),
            ("application/octet-stream", Some("image/png")),
            ("image/tiff", Some("image/tiff")),
            ("video/x-matroska", Some("video/webm")),
            // the bytes say something else
            ("image/png", Some("text/html")),
            ("image/png", Some("image/svg+xml")),
            ("image/png", Some("image/gif")),
            ("image/png", None),
            ("text/plain", Some("text/html")),
            ("text/plain", None),
            ("application/pdf", Some("text/html")),
            ("video/mp4", Some("video/webm")),
            ("", None),
        ] {
            for requested in [None, Some(Inline), Some(Attachment)] {
                let expected = Serving {
                    disposition: Attachment,
                    content_type: claimed.into(),
                    csp: CSP_SANDBOX,
                };
                assert_eq!(decide(claimed, sniffed, requested), expected, "{claimed} {sniffed:?}");
            }
        }
    }

    #[test]
    fn scripts_and_style_sheets_lose_their_type() {
        for claimed in [
            "text/javascript",
            "Text/JavaScript; charset=utf-8",
            "application/javascript",
            "application/x-javascript",
            "text/x-ecmascript",
            "application/ecmascript",
            "text/javascript1.5",
            "text/jscript",
            "text/livescript",
            "text/css",
        ] {
            for requested in [None, Some(Inline), Some(Attachment)] {
                let how = decide(claimed, Some("text/plain"), requested);
                assert_eq!(
                    (how.disposition, &*how.content_type),
                    (Attachment, OCTETS),
                    "{claimed}"
                );
            }
        }
        for claimed in ["text/csv", "application/json", "image/javascript", "javascript", ""] {
            assert_eq!(decide(claimed, None, None).content_type, claimed);
        }
    }

    #[test]
    fn text_shown_gets_a_charset_unless_it_names_one() {
        for (claimed, content_type) in [
            ("text/plain", "text/plain; charset=utf-8"),
            ("text/plain; format=flowed", "text/plain; format=flowed; charset=utf-8"),
            ("text/plain;", "text/plain; charset=utf-8"),
            ("text/plain; charset=iso-8859-1", "text/plain; charset=iso-8859-1"),
            ("text/plain;CHARSET=\"x\"", "text/plain;CHARSET=\"x\""),
        ] {
            assert_eq!(decide(claimed, Some("text/plain"), None).content_type, content_type);
        }

        assert_eq!(
            decide("text/plain", Some("text/plain"), Some(Attachment)).content_type,
            "text/plain"
        );
    }
}
