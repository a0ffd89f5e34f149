//! Safe serving: which files a browser can show, and with which headers.
//!
//! A file is inline only if browsers cannot run its type and its bytes match the type. All other
//! files are attachments. The caller also adds `X-Content-Type-Options: nosniff` to every reply.
//!
//! The `Content-Type` is never the text from the uploader. The type has one canonical form: the
//! essence, and for inline text one charset from a short list. Old records can have text that is
//! not a media type, and browsers interpret such text in unexpected ways (see [`MediaType`]).

use std::borrow::Cow;

use super::disposition::Disposition;
use super::media::{MediaType, OCTET_STREAM};

/// How to serve a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving<'a> {
    /// The choice between showing and saving the file in the browser.
    pub disposition: Disposition,
    /// Value of the header Content-Type.
    pub content_type: Cow<'a, str>,
    /// Value of the header Content-Security-Policy.
    pub csp: &'static str,
}

/// Loads nothing, runs nothing, and has an opaque origin.
///
/// `default-src` covers neither forms nor the base address, so each policy forbids both by name.
pub const CSP_SANDBOX: &str = "default-src 'none'; sandbox; form-action 'none'; base-uri 'none'";

/// For audio and video. With `sandbox`, Chromium does not load top-level media. Chromium's media
/// page uses inline styles.
pub const CSP_MEDIA: &str = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; \
     form-action 'none'; base-uri 'none'";

/// For PDF. With `sandbox`, Chromium's viewer does not start. The viewer is an embedded object in a
/// page with inline styles.
pub const CSP_PDF: &str = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; \
     form-action 'none'; base-uri 'none'";

/// Media types that mean the same format.
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
    /// Returns the family of a type that browsers can show but not run.
    fn of(essence: &str) -> Option<Self> {
        Some(match essence {
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

/// Content-Type of text without a charset. Bytes that are detected as text are UTF-8.
const TEXT: &str = "text/plain; charset=utf-8";

/// Tests whether pages can load such a file with a tag and any disposition: scripts and style
/// sheets (WHATWG MIME Sniffing, JavaScript MIME type essences). An application on the same origin
/// would trust them.
fn is_taken_in(essence: &str) -> bool {
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

/// Tests whether the type is useless without its parameters, which are not sent. For example, some
/// readers of `multipart` guess a missing boundary and then trust each part's type.
fn needs_params(essence: &str) -> bool {
    essence.starts_with("multipart/")
}

impl Serving<'_> {
    /// Returns true if older versions of filestore send the same `Content-Type` for `claimed`, so
    /// that objects they stored need no override. Versions before 0.2 sent the text from the
    /// uploader.
    pub fn is_of_every_version(&self, claimed: &str) -> bool {
        self.content_type == claimed
            || MediaType::parse(claimed)
                .is_some_and(|known| known.essence() == claimed && !needs_params(claimed))
    }
}

/// Decides how to serve a file of type `claimed` with bytes of type `sniffed` (see
/// [`super::media::sniff`]). If `requested` is `Attachment`, the file is an attachment. `Inline`
/// keeps the decision. An invalid media type counts as [`OCTET_STREAM`].
pub fn decide<'a>(
    claimed: &'a str,
    sniffed: Option<&str>,
    requested: Option<Disposition>,
) -> Serving<'a> {
    let Some(media_type) = MediaType::parse(claimed) else { return saved(OCTET_STREAM.into()) };
    let family = Family::of(media_type.essence()).filter(|family| {
        requested != Some(Disposition::Attachment) && sniffed.and_then(Family::of) == Some(*family)
    });

    match family {
        Some(family) => Serving {
            disposition: Disposition::Inline,
            content_type: match (family, media_type.charset()) {
                (Family::Text, None | Some("utf-8")) => TEXT.into(),
                (Family::Text, Some(charset)) => format!("text/plain; charset={charset}").into(),
                _ => media_type.into_essence(),
            },
            csp: family.csp(),
        },
        None if is_taken_in(media_type.essence()) || needs_params(media_type.essence()) => {
            saved(OCTET_STREAM.into())
        }
        None => saved(media_type.into_essence()),
    }
}

fn saved(content_type: Cow<'_, str>) -> Serving<'_> {
    Serving { disposition: Disposition::Attachment, content_type, csp: CSP_SANDBOX }
}

#[cfg(test)]
mod tests {
    use super::super::media::essence;
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
                let content_type = essence(claimed).into();
                let expected = Serving { disposition: Inline, content_type, csp };
                assert_eq!(decide(claimed, Some(sniffed), requested), expected);
            }
            let expected = saved(essence(claimed).into());
            assert_eq!(decide(claimed, Some(sniffed), Some(Attachment)), expected);
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
        ] {
            for requested in [None, Some(Inline), Some(Attachment)] {
                let expected = saved(claimed.into());
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
                    (Attachment, OCTET_STREAM),
                    "{claimed}"
                );
            }
        }
        for claimed in ["text/csv", "application/json", "image/javascript"] {
            assert_eq!(decide(claimed, None, None).content_type, claimed);
        }
    }

    #[test]
    fn only_the_canonical_form_of_a_type_is_sent() {
        for (claimed, sniffed, sent) in [
            ("Text/CSV; charset=utf-8; header=present", None, "text/csv"),
            ("text/html; charset=utf-7", None, "text/html"),
            ("IMAGE/PNG; charset=utf-8", Some("image/png"), "image/png"),
            ("video/mp4; codecs=\"avc1.4d002a, mp4a.40.2\"", Some("video/mp4"), "video/mp4"),
            ("multipart/x-mixed-replace; boundary=b", None, OCTET_STREAM),
            // no media types
            ("text/plain;,text/javascript", Some("text/plain"), OCTET_STREAM),
            ("text/plain;,text/css", Some("text/plain"), OCTET_STREAM),
            ("video/mp4;,text/html", Some("video/mp4"), OCTET_STREAM),
            ("application/pdf;,text/html", Some("application/pdf"), OCTET_STREAM),
            ("image/png, text/html", Some("image/png"), OCTET_STREAM),
            ("text/plain\r\nX: y", Some("text/plain"), OCTET_STREAM),
            ("javascript", None, OCTET_STREAM),
            ("", None, OCTET_STREAM),
        ] {
            let how = decide(claimed, sniffed, None);
            assert_eq!(how.content_type, sent, "{claimed}");
            let is_shown = matches!(sent, "image/png" | "video/mp4");
            assert_eq!(how.disposition == Inline, is_shown, "{claimed}");
        }
    }

    #[test]
    fn an_object_that_an_older_version_stored_may_have_another_type() {
        for (claimed, of_every_version) in [
            ("image/png", true),
            ("text/plain", true),
            ("text/plain; charset=utf-8", true),
            ("text/css", true),
            ("image/PNG", false),
            ("image/png; x=y", false),
            ("text/plain;charset=utf-8", false),
            ("text/plain;,text/javascript", false),
            ("multipart/mixed", false),
        ] {
            let how = decide(claimed, Some(&essence(claimed)), None);
            assert_eq!(how.is_of_every_version(claimed), of_every_version, "{claimed}");
        }
    }

    #[test]
    fn text_shown_has_the_charset_that_it_names_if_that_is_known_else_utf_8() {
        for (claimed, content_type) in [
            ("text/plain", TEXT),
            ("text/plain; format=flowed", TEXT),
            ("text/plain;", TEXT),
            ("text/plain; charset=UTF-8", TEXT),
            ("text/plain; charset=iso-8859-1", "text/plain; charset=iso-8859-1"),
            ("text/plain;CHARSET=\"Windows-1252\"", "text/plain; charset=windows-1252"),
            ("text/plain; charset=utf-7", TEXT),
            ("text/plain; charset=utf-16le", TEXT),
            ("text/plain; charset=\"x,text/html\"", TEXT),
        ] {
            assert_eq!(decide(claimed, Some("text/plain"), None).content_type, content_type);
        }

        assert_eq!(
            decide("text/plain", Some("text/plain"), Some(Attachment)).content_type,
            "text/plain"
        );
    }
}
