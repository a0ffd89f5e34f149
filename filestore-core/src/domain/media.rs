//! Media types and names: as the bytes show them, as the client names them, and their precedence.

use super::error::{Error, Result};

/// The number of leading bytes that [`sniff`] looks at.
pub const SNIFF_BYTES: usize = 8192;

/// The type of bytes without any other.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// Finds the media type that the first bytes of a blob show, or `None`. `head` holds the first
/// [`SNIFF_BYTES`] bytes, or all of a shorter blob.
///
/// Text has no signature: bytes that are UTF-8 (a character cut at the end of `head` is let
/// through) without control characters other than tab, line feed, form feed and carriage return
/// are `text/plain`, unless they start like markup (`text/html`, `image/svg+xml`, `text/xml`; the
/// WHATWG MIME Sniffing Standard, section 7.1, lists the tags).
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    if head.is_empty() {
        return None;
    }
    if let Some(markup) = sniff_markup(head) {
        return Some(markup);
    }
    match infer::get(head) {
        Some(kind) if !kind.mime_type().starts_with("text/") => Some(canonical(kind.mime_type())),
        _ if is_text(head) => Some("text/plain"),
        _ => None,
    }
}

/// One name per format, the registered one.
fn canonical(mime: &'static str) -> &'static str {
    match mime {
        "audio/x-wav" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        "video/x-m4v" => "video/mp4",
        "audio/m4a" => "audio/mp4",
        other => other,
    }
}

/// Tags that make text HTML (WHATWG MIME Sniffing, section 7.1).
const TAGS: [&str; 18] = [
    "<!doctype html",
    "<html",
    "<head",
    "<script",
    "<iframe",
    "<h1",
    "<div",
    "<font",
    "<table",
    "<a",
    "<style",
    "<title",
    "<b",
    "<body",
    "<br",
    "<p",
    "<img",
    "<meta",
];

fn sniff_markup(head: &[u8]) -> Option<&'static str> {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    if head.first() != Some(&b'<') {
        return None;
    }
    if starts_with(head, "<svg") {
        return Some("image/svg+xml");
    }

    let is_xml = starts_with(head, "<?xml");
    if is_xml || starts_with(head, "<!--") || starts_with(head, "<!doctype svg") {
        let svg = memchr::memmem::find(head, b"<svg").is_some();
        let html = memchr::memmem::find(head, b"<html").is_some();
        return Some(match (svg, html, is_xml) {
            (_, true, _) | (false, false, false) => "text/html",
            (true, ..) => "image/svg+xml",
            (false, false, true) => "text/xml",
        });
    }

    TAGS.iter().any(|tag| opens_with_tag(head, tag)).then_some("text/html")
}

fn starts_with(head: &[u8], text: &str) -> bool {
    head.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
}

/// Tells if `head` opens with `tag` and not with a longer name.
fn opens_with_tag(head: &[u8], tag: &str) -> bool {
    starts_with(head, tag)
        && head.get(tag.len()).is_none_or(|b| b.is_ascii_whitespace() || *b == b'>')
}

fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => head.len(),
        Err(error) if error.error_len().is_none() && head.len() >= SNIFF_BYTES => {
            error.valid_up_to()
        }
        Err(_) => return false,
    };
    head[..valid]
        .iter()
        .all(|b| *b >= 0x20 && *b != 0x7F || matches!(b, b'\t' | b'\n' | 0x0C | b'\r'))
}

/// Looks the media type up by a name's extension, if the extension is known.
pub fn type_by_extension(name: &str) -> Option<&'static str> {
    mime_guess::from_path(name).first_raw()
}

/// Returns the essence of a media type: lower case, without parameters.
pub fn essence(mime: &str) -> String {
    mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Checks a media type as a client gives it: `type/subtype` of RFC 9110 tokens with optional
/// parameters, printable ASCII, at most 255 characters, no white space around it. A range such as
/// `image/*` is no type.
pub fn check_mime_type(field: &str, mime: &str) -> Result<()> {
    let (kind, sub) =
        mime.split(';').next().unwrap_or_default().trim().split_once('/').unwrap_or_default();
    let printable = mime.bytes().all(|b| (0x20..0x7F).contains(&b)) && mime.trim() == mime;
    if mime.len() <= 255 && printable && is_token(kind) && is_token(sub) {
        return Ok(());
    }

    Err(Error::invalid(
        field,
        format!("{field} is a media type such as image/png, at most 255 characters"),
    )
    .with_limit(255))
}

fn is_token(text: &str) -> bool {
    !matches!(text, "" | "*") && text.bytes().all(is_token_byte)
}

/// Tells if a byte may stand in an RFC 9110 token (section 5.6.2).
pub fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// Chooses the media type of a new blob, by precedence: given, else sniffed, else the part's
/// own type unless that is octet-stream, else by extension, else octet-stream.
///
/// "Sniffed" means by a signature: bytes that look like text say less than the part's type or the
/// extension (a `.csv` is text too), so `text/plain` comes after both.
pub fn choose_type(
    given: Option<&str>,
    sniffed: Option<&str>,
    part: Option<&str>,
    name: &str,
) -> String {
    let signature = sniffed.filter(|mime| *mime != "text/plain");
    let part = part.filter(|mime| {
        let essence = essence(mime);
        essence != OCTET_STREAM && check_mime_type("mime_type", mime).is_ok()
    });

    given
        .or(signature)
        .or(part)
        .or_else(|| type_by_extension(name))
        .or(sniffed)
        .unwrap_or(OCTET_STREAM)
        .to_owned()
}

/// Chooses the extension of a new blob: lower case `[a-z0-9]{1,10}` from the name, else from the
/// sniffed type, else empty.
pub fn extension(name: &str, sniffed: Option<&str>) -> String {
    let from_name = name.rsplit_once('.').map(|(_, ext)| ext.to_ascii_lowercase());
    from_name
        .filter(|ext| is_extension(ext))
        .or_else(|| sniffed.and_then(extension_of_type).map(str::to_owned))
        .unwrap_or_default()
}

fn is_extension(ext: &str) -> bool {
    (1..=10).contains(&ext.len()) && ext.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn extension_of_type(mime: &str) -> Option<&'static str> {
    Some(match mime {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/tiff" => "tif",
        "image/bmp" => "bmp",
        "image/avif" => "avif",
        "image/svg+xml" => "svg",
        "text/plain" => "txt",
        "text/html" => "html",
        "text/xml" => "xml",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/wav" => "wav",
        "video/mp4" => "mp4",
        "video/webm" => "webm",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        other => mime_guess::get_mime_extensions_str(other)?.first()?,
    })
}

/// Checks a name as a client gives it: at most `limit` characters, none of them a control
/// character. An empty name is refused: leave the field out instead.
pub fn check_name(name: &str, limit: usize) -> Result<()> {
    let field = "original_name";
    if name.is_empty() {
        return Err(Error::invalid(field, "original_name is empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(field, "original_name has a control character"));
    }

    if name.chars().count() > limit {
        return Err(Error::invalid(
            field,
            format!("original_name has more than {limit} characters"),
        )
        .with_limit(limit as u64));
    }
    Ok(())
}

/// Takes a file's name from that of a part: the last component after `/` or `\`, control characters
/// dropped, cut to `limit` characters; `None` if nothing is left. The caller has decoded
/// `%22 %0D %0A` (WHATWG HTML, multipart/form-data encoding).
pub fn name_from_part(file_name: &str, limit: usize) -> Option<String> {
    let last = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).take(limit).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_show_their_type() {
        for (head, mime) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xFF\xD8\xFF\xE0\0\x10JFIF", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"plain text\n", Some("text/plain")),
            ("grüße".as_bytes(), Some("text/plain")),
            (b"<!DOCTYPE html><p>", Some("text/html")),
            (b"  <svg xmlns='http://www.w3.org/2000/svg'>", Some("image/svg+xml")),
            (b"<?xml version='1.0'?><svg>", Some("image/svg+xml")),
            (b"<?xml version='1.0'?><feed>", Some("text/xml")),
            (b"\0\x01\x02\x03", None),
            (b"", None),
        ] {
            assert_eq!(sniff(head), mime, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn the_given_type_wins_then_the_bytes_then_the_part_then_the_extension() {
        let png = Some("image/png");
        assert_eq!(choose_type(Some("a/b"), png, Some("c/d"), "x.gif"), "a/b");
        assert_eq!(choose_type(None, png, Some("c/d"), "x.gif"), "image/png");
        assert_eq!(choose_type(None, None, Some("c/d"), "x.gif"), "c/d");
        assert_eq!(choose_type(None, None, Some("application/octet-stream"), "x.gif"), "image/gif");
        assert_eq!(choose_type(None, Some("text/plain"), None, "table.csv"), "text/csv");
        assert_eq!(choose_type(None, Some("text/plain"), None, "noext"), "text/plain");
        assert_eq!(choose_type(None, None, None, "noext"), OCTET_STREAM);
    }

    #[test]
    fn the_extension_is_short_lower_case_and_from_the_name_first() {
        assert_eq!(extension("Photo.JPEG", Some("image/png")), "jpeg");
        assert_eq!(extension("archive.tar.gz", None), "gz");
        assert_eq!(extension("noext", Some("image/png")), "png");
        assert_eq!(extension("evil.p/hp", None), "");
        assert_eq!(extension("x.waytoolongextension", Some("image/gif")), "gif");
        assert_eq!(extension("x.", None), "");
    }

    #[test]
    fn a_part_name_keeps_its_last_component() {
        assert_eq!(name_from_part("C:\\fake\\a b.png", 255).as_deref(), Some("a b.png"));
        assert_eq!(name_from_part("../../etc/passwd", 255).as_deref(), Some("passwd"));
        assert_eq!(name_from_part("dir/", 255), None);
        assert_eq!(name_from_part("a\r\nb", 255).as_deref(), Some("ab"));
        assert_eq!(name_from_part(&"é".repeat(300), 255).unwrap().chars().count(), 255);
    }

    #[test]
    fn names_and_types_are_checked() {
        assert!(check_name("🎉 party.png", 255).is_ok());
        assert!(check_name("", 255).is_err());
        assert!(check_name("a\nb", 255).is_err());
        assert_eq!(check_name(&"x".repeat(256), 255).unwrap_err().details().limit, Some(255));

        for good in [
            "image/png",
            "text/plain; charset=utf-8",
            "text/plain ;x=y",
            "application/vnd.api+json",
        ] {
            assert!(check_mime_type("mime_type", good).is_ok(), "{good}");
        }

        for bad in ["", "png", "image/", "/png", "image/p ng", "image/png\r\nX: y", "ä/b"] {
            assert!(check_mime_type("mime_type", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_range_of_types_or_white_space_around_a_type_is_refused() {
        for bad in ["*/*", "image/*", "*/png", " image/png", "image/png ", "image/png; "] {
            assert!(check_mime_type("mime_type", bad).is_err(), "{bad:?}");
        }
        assert_eq!(choose_type(None, None, Some("image/*"), "x.gif"), "image/gif");
    }
}
