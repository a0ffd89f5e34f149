//! The header block of one part (RFC 7578 section 4, RFC 2183, RFC 8187).

use filestore_core::web::media::is_token_byte;
use filestore_core::{Error, Result};
use percent_encoding::percent_decode;

use super::{malformed, params};

/// The header block of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartHeader {
    /// The name of the form field.
    pub name: String,
    /// The file name as sent, decoded, with any directory the client put in front; bytes that are
    /// no UTF-8 are replaced. Empty when a browser sends a file field without a file.
    pub file_name: Option<String>,
    /// The Content-Type, as sent.
    pub content_type: Option<String>,
}

/// Parses a header block: the lines between a boundary line and the empty line, each ending in CRLF.
pub(super) fn parse(block: &[u8]) -> Result<PartHeader> {
    let (mut disposition, mut content_type, mut encoding) = (None, None, None);
    for line in lines(block)? {
        let (name, value) = field(line)?;
        let slot = match name.to_ascii_lowercase().as_slice() {
            b"content-disposition" => &mut disposition,
            b"content-type" => &mut content_type,
            b"content-transfer-encoding" => &mut encoding,
            _ => continue,
        };
        if slot.replace(value).is_some() {
            return Err(malformed("a part repeats a header"));
        }
    }

    check_encoding(encoding)?;
    let (name, file_name) =
        names(disposition.ok_or_else(|| malformed("a part has no content-disposition"))?)?;
    Ok(PartHeader { name, file_name, content_type: content_type.map(media_type).transpose()? })
}

/// Splits a block into lines without their CRLF. CR and LF stand nowhere but at the end of a line.
fn lines(block: &[u8]) -> Result<Vec<&[u8]>> {
    let text = block.strip_suffix(b"\r\n").unwrap_or(block);
    let mut lines = Vec::new();
    let mut start = 0;

    for end in memchr::memmem::find_iter(text, b"\r\n").chain([text.len()]) {
        let line = &text[start..end];
        if line.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(malformed("a part's header has a stray control character"));
        }
        lines.push(line);
        start = end + 2;
    }

    Ok(lines)
}

/// Splits a line into name and value. A folded line starts with a space, which no name does.
fn field(line: &[u8]) -> Result<(&[u8], &[u8])> {
    let colon =
        memchr::memchr(b':', line).ok_or_else(|| malformed("a part's header line has no colon"))?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if name.is_empty() || !name.iter().copied().all(is_token_byte) {
        return Err(malformed("a part's header name has a bad character"));
    }
    if value.iter().any(|b| b.is_ascii_control() && *b != b'\t') {
        return Err(malformed("a part's header value has a control character"));
    }
    Ok((name, value))
}

fn check_encoding(encoding: Option<&[u8]>) -> Result<()> {
    match encoding.map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"binary" | b"7bit" | b"8bit") => Ok(()),
        Some(_) => {
            Err(malformed("a part has a content-transfer-encoding other than binary, 7bit, 8bit"))
        }
    }
}

fn media_type(value: &[u8]) -> Result<String> {
    let text = str::from_utf8(value).ok().filter(|text| text.is_ascii());
    text.map(str::to_owned).ok_or_else(|| malformed("a part's content-type is not ASCII"))
}

/// Reads the name and the file name of a Content-Disposition.
fn names(value: &[u8]) -> Result<(String, Option<String>)> {
    let (kind, rest) = value.split_at(memchr::memchr(b';', value).unwrap_or(value.len()));
    if !kind.trim_ascii().eq_ignore_ascii_case(b"form-data") {
        return Err(malformed("a part's content-disposition is not form-data"));
    }

    let params = params::parse(rest, is_token_byte)
        .map_err(|why| malformed(format!("a part's content-disposition is malformed: {why}")))?;
    let name = params::find(&params, "name").ok_or_else(|| malformed("a part has no name"))?;
    let name = String::from_utf8(browser_decoded(&name.value))
        .map_err(|_| malformed("a part's name is not UTF-8"))?;

    let file_name = match (params::find(&params, "filename"), params::find(&params, "filename*")) {
        (Some(plain), _) => {
            Some(String::from_utf8_lossy(&browser_decoded(&plain.value)).into_owned())
        }
        (None, Some(extended)) if !extended.quoted => Some(extended_value(&extended.value)?),
        (None, Some(_)) => return Err(malformed("a part's filename* is quoted")),
        (None, None) => None,
    };

    Ok((name, file_name))
}

/// Decodes a name as the WHATWG multipart/form-data encoding wrote it: `%22`, `%0D` and `%0A`. Every
/// other percent sign was typed by the user.
fn browser_decoded(value: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;

    while let Some((byte, after)) = rest.split_first() {
        let (byte, after) = match rest.get(..3) {
            Some(b"%22") => (b'"', &rest[3..]),
            Some(b"%0D") => (b'\r', &rest[3..]),
            Some(b"%0A") => (b'\n', &rest[3..]),
            _ => (*byte, after),
        };
        decoded.push(byte);
        rest = after;
    }

    decoded
}

/// Reads an RFC 8187 value in UTF-8: `UTF-8'language'percent-encoded`. RFC 7578 section 4.2 bars such
/// values from forms, but some clients send nothing else.
fn extended_value(value: &[u8]) -> Result<String> {
    let mut pieces = value.splitn(3, |b| *b == b'\'');
    let charset = pieces.next().unwrap_or_default();
    let encoded = pieces.nth(1).ok_or_else(not_extended)?;

    let escapes_whole = encoded
        .split(|b| *b == b'%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit));
    if !charset.eq_ignore_ascii_case(b"utf-8") || !escapes_whole {
        return Err(not_extended());
    }

    percent_decode(encoded)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| not_extended())
}

fn not_extended() -> Error {
    malformed("a part's filename* is not an UTF-8 value of RFC 8187")
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestore_core::ErrorKind;

    fn disposition(value: &[u8]) -> Result<PartHeader> {
        parse(&[b"Content-Disposition: ", value, b"\r\n"].concat())
    }

    #[test]
    fn names_are_read_as_browsers_and_curl_send_them() {
        for (value, name, file_name) in [
            (r#"form-data; name="file""#, "file", None),
            (r#"FORM-DATA; NAME="file"; FileName="a.png""#, "file", Some("a.png")),
            ("form-data; name=file; filename=a.png", "file", Some("a.png")),
            (r#"form-data; name="f"; filename="""#, "f", Some("")),
            (r#"form-data; name="f"; filename="grüße 🎉.png""#, "f", Some("grüße 🎉.png")),
            (r#"form-data; name="f"; filename="say %22hi%22.txt""#, "f", Some("say \"hi\".txt")),
            (r#"form-data; name="f"; filename="say \"hi\".txt""#, "f", Some("say \"hi\".txt")),
            (r#"form-data; name="f"; filename="C:\new\x.txt""#, "f", Some("C:\\new\\x.txt")),
            (r#"form-data; name="f"; filename="a%0D%0Ab%20c%.txt""#, "f", Some("a\r\nb%20c%.txt")),
            (r#"form-data; name="f"; filename="a;b=c.txt""#, "f", Some("a;b=c.txt")),
            ("form-data; name=f; filename*=UTF-8''na%C3%AFve.txt", "f", Some("naïve.txt")),
            ("form-data; name=f; filename*=utf-8'en'a%22b", "f", Some("a\"b")),
            ("form-data; name=f; filename=plain; filename*=UTF-8''other", "f", Some("plain")),
            ("form-data; name=f; size=12; x=y;", "f", None),
        ] {
            let header = disposition(value.as_bytes()).unwrap();
            assert_eq!(
                (header.name.as_str(), header.file_name.as_deref()),
                (name, file_name),
                "{value}"
            );
        }
    }

    #[test]
    fn a_file_name_cannot_smuggle_a_parameter() {
        for (value, file_name) in [
            (r#"form-data; name="f"; filename="a\"; name=\"b""#, Some("a\"; name=\"b")),
            (r#"form-data; name="f"; filename="a%22; name=%22b""#, Some("a\"; name=\"b")),
            (r#"form-data; name="f"; filename="a"; name="b""#, None),
            (r#"form-data; filename="a\\"; name="b"; name="c""#, None),
            ("form-data; name=x; name=y", None),
            ("form-data; name=x; filename=a; filename=b", None),
            ("form-data; name=x; filename*=UTF-8''a; filename*=UTF-8''b", None),
            (r#"form-data; name="x"" filename="y""#, None),
            (r#"form-data; name="x; filename=y"#, None),
        ] {
            match (disposition(value.as_bytes()), file_name) {
                (Ok(header), Some(expected)) => {
                    assert_eq!(
                        (header.name.as_str(), header.file_name.as_deref()),
                        ("f", Some(expected))
                    );
                }
                (Err(error), None) => assert_eq!(error.kind(), ErrorKind::MalformedBody, "{value}"),
                (found, _) => panic!("{value} gave {found:?}"),
            }
        }
    }

    #[test]
    fn what_is_not_utf8_is_replaced_in_file_names_and_refused_in_names() {
        let header = disposition(b"form-data; name=f; filename=\"a\xFF.txt\"").unwrap();
        assert_eq!(header.file_name.as_deref(), Some("a\u{FFFD}.txt"));
        assert!(disposition(b"form-data; name=\"\xFF\"").is_err());

        for bad in [
            "form-data; name=f; filename*=ISO-8859-1''a",
            "form-data; name=f; filename*=UTF-8''%FF",
            "form-data; name=f; filename*=UTF-8''%4",
            "form-data; name=f; filename*=UTF-8''%+1",
            "form-data; name=f; filename*=abc",
            r#"form-data; name=f; filename*="UTF-8''a""#,
        ] {
            assert!(disposition(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn other_headers_are_ignored_and_bad_blocks_refused() {
        let good = "X-Other: 1\r\nX-Other: 2\r\ncontent-type:\ttext/plain; charset=x \r\n\
                    CONTENT-DISPOSITION: form-data; name=f\r\nContent-Transfer-Encoding: BINARY\r\n";
        let header = parse(good.as_bytes()).unwrap();
        assert_eq!(header.content_type.as_deref(), Some("text/plain; charset=x"));

        let start = "Content-Disposition: form-data; name=f\r\n";

        for bad in [
            "",
            "\r\n",
            "Content-Type: text/plain\r\n",
            "Content-Disposition: attachment; name=f\r\n",
            "Content-Disposition: form-data\r\n",
            "Content-Disposition: form-data; filename=a\r\n",
            &format!("{start}{start}"),
            &format!("{start}Content-Type: a/b\r\nContent-Type: a/b\r\n"),
            &format!("{start}Content-Type: a/ä\r\n"),
            &format!("{start}Content-Transfer-Encoding: base64\r\n"),
            &format!("{start}Content-Transfer-Encoding: quoted-printable\r\n"),
            &format!("{start} folded: x\r\n"),
            &format!("{start}\tfolded\r\n"),
            &format!("{start}no colon\r\n"),
            &format!("{start}: no name\r\n"),
            &format!("{start}X Y: z\r\n"),
            &format!("{start}X : z\r\n"),
            &format!("{start}X: a\rb\r\n"),
            &format!("{start}X: a\nb\r\n"),
            &format!("{start}X: a\0b\r\n"),
            &format!("{start}X: a\x08b\r\n"),
            "Content-Disposition: form-data;\r\n name=f\r\n",
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
