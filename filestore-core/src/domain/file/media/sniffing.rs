//! The media type that the first bytes of a file show.
//!
//! Most signatures are letters, and some are only two: a bitmap begins with `BM`, a program with `MZ`.
//! Text begins with letters too. So text is recognized first, and a signature counts only if the
//! bytes cannot be text, or if the format itself is text with an unmistakable first line.

/// Number of leading bytes that [`sniff`] reads.
pub const SNIFF_BYTES: usize = 8192;

/// Detects the media type from the first bytes of a blob. `head` has the first [`SNIFF_BYTES`]
/// bytes, or all bytes of a shorter blob. `None` if the type is unknown.
///
/// Bytes are `text/plain` if they are UTF-8 without control characters, except tab, line feed, form
/// feed and carriage return. `head` can end in the middle of a UTF-8 character. If the text begins
/// like markup, the type is `text/html`, `image/svg+xml` or `text/xml` (the WHATWG MIME Sniffing
/// Standard, section 7.1, lists the tags). PDF, RTF and PostScript have their own types.
///
/// Text in another encoding has no type, even if it begins with the letters of a signature.
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    if head.is_empty() {
        return None;
    }
    if let Some(markup) = sniff_markup(head) {
        return Some(markup);
    }
    if let Some(document) = sniff_document(head) {
        return Some(document);
    }

    if is_text(head) {
        return Some("text/plain");
    }
    let Some(kind) = infer::get(head) else {
        return is_tiff(head).then_some("image/tiff");
    };
    let is_believed = !kind.mime_type().starts_with("text/")
        && !is_text_of_some_charset(head)
        && is_confirmed(kind.mime_type(), head);
    is_believed.then(|| registered(kind))
}

/// Returns true for a TIFF or a BigTIFF (TIFF 6.0, section 2). `infer` does not know BigTIFF, and refuses a TIFF
/// whose first pixels look like a raw photograph.
fn is_tiff(head: &[u8]) -> bool {
    matches!(head, [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..])
}

/// Returns the registered name of a format.
fn registered(kind: infer::Type) -> &'static str {
    match (kind.mime_type(), kind.extension()) {
        ("audio/x-wav", _) => "audio/wav",
        ("audio/x-flac", _) => "audio/flac",
        ("video/x-m4v", _) => "video/mp4",
        ("audio/m4a", _) => "audio/mp4",
        ("application/font-woff", "woff2") => "font/woff2",
        ("application/font-woff", _) => "font/woff",
        ("application/font-sfnt", "otf") => "font/otf",
        ("application/font-sfnt", _) => "font/ttf",
        ("application/octet-stream", "eot") => "application/vnd.ms-fontobject",
        (other, _) => other,
    }
}

/// Tests whether more than the first two bytes show the format.
fn is_confirmed(mime: &str, head: &[u8]) -> bool {
    match mime {
        // The size of the header that follows the file header: 12 in the oldest version, 124 in the newest.
        "image/bmp" => {
            matches!(head.get(14..18), Some([size, 0, 0, 0]) if (12..=124).contains(size))
        }
        // Object files begin with the number of a machine, which any two bytes can be.
        "application/x-executable" => head.starts_with(b"\x7FELF"),
        "application/x-llvm" => head.starts_with(b"BC\xC0\xDE"),
        "application/postscript" => head.starts_with(b"%!PS"),
        _ => true,
    }
}

/// Finds the formats whose files can be text from the first byte to the last.
fn sniff_document(head: &[u8]) -> Option<&'static str> {
    if let Some([major, b'.', minor, rest @ ..]) = head.strip_prefix(b"%PDF-") {
        let is_version = major.is_ascii_digit() && minor.is_ascii_digit();
        return (is_version && ends_line(rest)).then_some("application/pdf");
    }
    if let Some(rest) = head.strip_prefix(b"{\\rtf") {
        let is_control = rest.first().is_some_and(|b| b.is_ascii_digit() || *b == b'\\');
        return is_control.then_some("application/rtf");
    }
    let rest = head.strip_prefix(b"%!PS")?;
    (rest.starts_with(b"-Adobe-") || ends_line(rest)).then_some("application/postscript")
}

/// Tests whether the line has only blanks left.
fn ends_line(rest: &[u8]) -> bool {
    let next = rest.iter().find(|b| !matches!(b, b' ' | b'\t'));
    matches!(next, None | Some(b'\r' | b'\n'))
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

/// Tests whether `head` begins with exactly this tag, and not with a longer name.
fn opens_with_tag(head: &[u8], tag: &str) -> bool {
    starts_with(head, tag)
        && head.get(tag.len()).is_none_or(|b| b.is_ascii_whitespace() || *b == b'>')
}

/// Tests whether the bytes are text in UTF-8.
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

/// Tests whether the bytes can be text in an encoding that contains ASCII, for example ISO-8859-1 or
/// Shift_JIS: they begin with an ASCII character, and none is a binary data byte (WHATWG MIME
/// Sniffing, section 4.2). Compressed and encoded data of more than a few bytes contain such bytes.
fn is_text_of_some_charset(head: &[u8]) -> bool {
    let is_binary = |b: &u8| matches!(b, 0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F);
    head.first().is_some_and(|b| (0x20..0x7F).contains(b)) && !head.iter().any(is_binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_show_their_type() {
        for (head, mime) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xFF\xD8\xFF\xE0\0\x10JFIF", Some("image/jpeg")),
            (b"GIF89a\x01\0\x01\0\x80\0\0", Some("image/gif")),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"II*\0\x08\0\0\0\0\0", Some("image/tiff")),
            (b"MM\0*\0\0\0\x08\0\0", Some("image/tiff")),
            (b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0", Some("image/tiff")),
            (b"MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10", Some("image/tiff")),
            // The pixels after the header contain a C, or an R one byte later.
            (b"II*\0\x30\0\0\0C\0", Some("image/tiff")),
            (b"II*\0\x30\0\0\0\0R", Some("image/tiff")),
            (b"II*\0\x10\0\0\0CR\x02\0", Some("image/x-canon-cr2")),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n1 0 obj", Some("application/pdf")),
            (b"wOFF\0\x01\0\0\0\0\0\x2C", Some("font/woff")),
            (b"wOF2\0\x01\0\0\0\0\0\x2C", Some("font/woff2")),
            (b"OTTO\0\x01\0\0\0\0\0\0", Some("font/otf")),
            (b"\0\x01\0\0\0\x0A\0\0\0\0\0\0", Some("font/ttf")),
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

    /// The letters with which signatures begin.
    const LETTERS: [&str; 26] = [
        "BM",
        "MZ",
        "ID3",
        "OggS",
        "GIF87a",
        "GIF89a",
        "RIFF",
        "fLaC",
        "MThd",
        "FORM",
        "8BPS",
        "BC",
        "BZh",
        "FWS",
        "CWS",
        "PK",
        "Rar!",
        "SQLi",
        "Cr24",
        "MSCF",
        "AC1015",
        "DSD ",
        "MAC ",
        "%PDF",
        "%!",
        "-----BEGIN ",
    ];

    #[test]
    fn text_is_text_whatever_letters_it_begins_with() {
        for letters in LETTERS {
            for rest in ["", ";Preis\n1;2\n", " is where it begins, and this is text: größer"] {
                let text = format!("{letters}{rest}");
                assert_eq!(sniff(text.as_bytes()), Some("text/plain"), "{text}");
            }
            let western: Vec<u8> =
                [letters.as_bytes(), b" Gr\xF6\xDFe \x80 and some words"].concat();
            assert_eq!(sniff(&western), None, "{letters} in Windows-1252");
            let japanese: Vec<u8> = [letters.as_bytes(), b"\x82\xA0\x82\xA2\n"].concat();
            assert_eq!(sniff(&japanese), None, "{letters} in Shift_JIS");
        }
        let far = format!("{}%PDF-1.7 begins a document", "a line of a note\n".repeat(40));
        assert_eq!(sniff(far.as_bytes()), Some("text/plain"));
    }

    #[test]
    fn documents_that_are_text_need_the_whole_first_line() {
        for (head, mime) in [
            (&b"%PDF-1.4\n1 0 obj\n<< >>\nendobj\n"[..], "application/pdf"),
            (b"%PDF-1.4 is how a document begins", "text/plain"),
            (b"{\\rtf1\\ansi Hello}", "application/rtf"),
            (b"{\\rtf is a word of RTF", "text/plain"),
            (b"%!PS-Adobe-3.0 EPSF-3.0\n", "application/postscript"),
            (b"%!PS\nshowpage\n", "application/postscript"),
            (b"%!TEX program = xelatex\n\\documentclass{article}\n", "text/plain"),
        ] {
            assert_eq!(sniff(head), Some(mime), "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn two_bytes_alone_show_no_binary_format() {
        for head in [
            &b"BM\x01\x02\x03\x04 and no header of a picture\0\0"[..],
            b"\0\x02\x03\x04\x05\x06\x07\x08",
            b"\x64\x86\x01\x02\0\0",
            b"\x4C\x01\x01\x02\0\0",
            b"BC\x01\x02\x03\x04",
        ] {
            assert_eq!(sniff(head), None, "{head:02x?}");
        }
    }
}
