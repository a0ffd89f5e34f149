//! The header block of one part (RFC 7578 section 4, RFC 2183).

use std::borrow::Cow;

use filestore_core::Result;
use filestore_core::web::media::is_token_byte;

use super::charset::Charset;
use super::file_name::{browser_decoded, file_name};
use super::{malformed, params};

/// A part's header block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartHeader {
    /// The form field's name.
    pub name: String,
    /// The file name as sent, decoded, including any directory. Invalid UTF-8 is replaced. Empty if a browser
    /// sends a file field without a file.
    pub file_name: Option<String>,
    /// The Content-Type as sent, if ASCII. The code that chooses a type decides if it is a media type.
    pub content_type: Option<String>,
}

/// Parses a header block: the lines between a boundary line and the empty line. Each line ends in CRLF.
pub(super) fn parse(block: &[u8]) -> Result<PartHeader> {
    let (mut disposition, mut content_type, mut encoding) = (None, None, None);
    for line in lines(block)? {
        let (name, value) = field(&line)?;
        let slot = match name.to_ascii_lowercase().as_slice() {
            b"content-disposition" => &mut disposition,
            b"content-type" => &mut content_type,
            b"content-transfer-encoding" => &mut encoding,
            _ => continue,
        };
        if slot.replace(value.to_vec()).is_some() {
            return Err(malformed("a part repeats a header"));
        }
    }

    check_encoding(encoding.as_deref())?;
    let (name, file_name) =
        names(&disposition.ok_or_else(|| malformed("a part has no content-disposition"))?)?;
    Ok(PartHeader { name, file_name, content_type: content_type.and_then(ascii) })
}

impl PartHeader {
    /// Returns the encoding that the `charset` of the Content-Type names, if it is known.
    pub(super) fn charset(&self) -> Option<Charset> {
        let content_type = self.content_type.as_deref()?;
        let params = &content_type[content_type.find(';')?..];
        let params = params::parse(params.as_bytes(), is_token_byte).ok()?;
        Charset::of(&params::find(&params, "charset")?.value)
    }
}

/// Splits a block into lines without their CRLF. CR and LF stand nowhere but at the end of a line.
///
/// A line that begins with a blank continues the line before (RFC 5322 section 2.2.3, the grammar of MIME), as
/// mail libraries write long headers. The first line continues none, and a line of blanks alone is refused:
/// some parsers take it for the end of the header.
fn lines(block: &[u8]) -> Result<Vec<Cow<'_, [u8]>>> {
    let text = block.strip_suffix(b"\r\n").unwrap_or(block);
    let mut lines: Vec<Cow<'_, [u8]>> = Vec::new();
    let mut start = 0;

    for end in memchr::memmem::find_iter(text, b"\r\n").chain([text.len()]) {
        let line = &text[start..end];
        start = end + 2;
        if line.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(malformed("a part's header has a stray control character"));
        }

        match (line.first(), lines.last_mut()) {
            (Some(b' ' | b'\t'), Some(before)) if !line.trim_ascii().is_empty() => {
                before.to_mut().extend_from_slice(line);
            }
            (Some(b' ' | b'\t'), _) => {
                return Err(malformed("a part's header has a line that continues no other"));
            }
            _ => lines.push(Cow::Borrowed(line)),
        }
    }

    Ok(lines)
}

/// Splits a line into name and value. Names do not start with a space, so folded lines are refused.
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

/// Returns the text, which no media type is that is not ASCII.
fn ascii(value: Vec<u8>) -> Option<String> {
    String::from_utf8(value).ok().filter(|text| text.is_ascii())
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

    let file_name = file_name(&params).map_err(|error| error.with_field(&name))?;
    Ok((name, file_name))
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
    fn a_name_that_cannot_be_read_is_refused_with_its_field() {
        assert!(disposition(b"form-data; name=\"\xFF\"").is_err());
        for bad in [
            &b"form-data; name=f; filename=\"\x81\""[..],
            b"form-data; name=f; filename*=GBK''a",
            b"form-data; name=f; filename*=UTF-8''%FF",
        ] {
            let error = disposition(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::MalformedBody);
            assert_eq!(error.details().field.as_deref(), Some("f"), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_folded_line_is_one_line() {
        for (block, file_name, content_type) in [
            (
                "Content-Disposition: form-data; name=\"f\";\r\n filename*=UTF-8''gr%C3%B6%C3%9Fe\r\n",
                Some("größe"),
                None,
            ),
            (
                "Content-Disposition:\r\n\tform-data; name=f;\r\n  filename=\"a\r\n b.txt\"\r\n",
                Some("a b.txt"),
                None,
            ),
            (
                "Content-Type: text/plain;\r\n charset=utf-8\r\nContent-Disposition: form-data; name=f\r\n",
                None,
                Some("text/plain; charset=utf-8"),
            ),
            ("X: a\r\n b\r\nContent-Disposition: form-data; name=f\r\n", None, None),
        ] {
            let header = parse(block.as_bytes()).unwrap();
            assert_eq!(header.name, "f", "{block:?}");
            assert_eq!(header.file_name.as_deref(), file_name, "{block:?}");
            assert_eq!(header.content_type.as_deref(), content_type, "{block:?}");
        }
    }

    #[test]
    fn the_charset_of_a_part_is_one_that_is_known() {
        for (content_type, charset) in [
            ("text/plain; charset=ISO-8859-1", Some(Charset::Windows1252)),
            ("text/plain;charset=\"utf-8\"", Some(Charset::Utf8)),
            ("text/plain; charset=utf-16", None),
            ("text/plain; charset", None),
            ("text/plain", None),
        ] {
            let block = format!(
                "Content-Disposition: form-data; name=f\r\nContent-Type: {content_type}\r\n"
            );
            assert_eq!(parse(block.as_bytes()).unwrap().charset(), charset, "{content_type}");
        }
    }

    #[test]
    fn other_headers_are_ignored_and_bad_blocks_refused() {
        let good = "X-Other: 1\r\nX-Other: 2\r\ncontent-type:\ttext/plain; charset=x \r\n\
                    CONTENT-DISPOSITION: form-data; name=f\r\nContent-Transfer-Encoding: BINARY\r\n";
        let header = parse(good.as_bytes()).unwrap();
        assert_eq!(header.content_type.as_deref(), Some("text/plain; charset=x"));
        let odd =
            parse("Content-Disposition: form-data; name=f\r\nContent-Type: a/ä\r\n".as_bytes());
        assert_eq!(odd.unwrap().content_type, None, "a type that is none is as if absent");

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
            " Content-Disposition: form-data; name=f\r\n",
            &format!("{start} \r\n"),
            &format!("{start} \t\r\n x\r\n"),
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
