//! Media types and names, from the bytes and from the client, and their order of preference.

mod families;
#[cfg(any(test, feature = "internals"))]
pub mod fetch;
mod media_type;
mod params;
mod sniffing;

use crate::domain::error::{Error, Result};

pub(crate) use self::families::{is_binary, refines};
pub use self::media_type::{MEDIA_TYPE_CHARS, MediaType, is_range};
pub use self::params::{Param, ParamSyntax, Params};
pub use self::sniffing::{SNIFF_BYTES, sniff};

/// Media type of bytes without any other type.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// Returns the media type for the extension of a name, if known. [`OCTET_STREAM`] says nothing.
pub fn type_by_extension(name: &str) -> Option<&'static str> {
    let known = mime_guess::from_path(name).first_raw()?;
    (known != OCTET_STREAM).then_some(match known {
        // RFC 8081 registers the types of fonts.
        "application/font-woff" => "font/woff",
        "application/font-sfnt" => "font/otf",
        other => other,
    })
}

/// Returns the essence of a media type: lower case, without parameters. [`OCTET_STREAM`] for text
/// that is not a media type.
pub fn essence(mime: &str) -> String {
    MediaType::parse(mime)
        .map_or(OCTET_STREAM.to_owned(), |known| known.into_essence().into_owned())
}

/// Returns the type that listings filter by (the column `media_type`). Old records can have text
/// that is not a media type.
pub(super) fn listed_as(mime: &str) -> String {
    mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Checks a media type from a client, see [`MediaType::parse`]. `InvalidField` if it is invalid.
pub fn check_mime_type(field: &str, mime: &str) -> Result<()> {
    if MediaType::parse(mime).is_some() {
        return Ok(());
    }

    let message = format!(
        "{field} is a media type such as image/png or text/plain; charset=utf-8, \
         at most {MEDIA_TYPE_CHARS} characters"
    );
    Err(Error::invalid(field, message).with_limit(MEDIA_TYPE_CHARS as u64))
}

fn is_token(text: &str) -> bool {
    !matches!(text, "" | "*") && text.bytes().all(is_token_byte)
}

/// Tests whether a byte can be in a token of RFC 9110 (section 5.6.2).
pub fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// Chooses the media type of a new blob. `given` has passed [`check_mime_type`] and always wins.
///
/// A detected type is next (see [`sniff`]), in the most exact form: if the detected type is that of a
/// container, a type of its family from the part or from the extension replaces it. For example, a
/// ZIP archive called `a.docx` is a document.
///
/// Bytes without a detected type, and text, have the type of the part (except octet-stream), else
/// that of the extension. Text ignores a part type that text never has if the extension says better:
/// `a.csv` stays `text/csv` if a browser calls it a workbook.
pub fn choose_type(
    given: Option<&str>,
    sniffed: Option<&str>,
    part: Option<&str>,
    name: &str,
) -> String {
    if let Some(given) = given {
        return given.to_owned();
    }

    let part = part.filter(|mime| essence(mime) != OCTET_STREAM);
    let chosen = match sniffed {
        Some("text/plain") => part
            .filter(|mime| !(families::is_binary(mime) && has_extension_of_text(name)))
            .or_else(|| type_by_extension(name))
            .or(sniffed),
        Some(signature) => part
            .filter(|mime| refines(signature, &essence(mime)))
            .or_else(|| families::refined_by_extension(signature, name))
            .or(sniffed),
        None => part.or_else(|| type_by_extension(name)),
    };
    chosen.unwrap_or(OCTET_STREAM).to_owned()
}

fn has_extension_of_text(name: &str) -> bool {
    type_by_extension(name).is_some_and(|mime| mime.starts_with("text/"))
}

/// Chooses the extension of a new blob: lower case `[a-z0-9]{1,10}` from the name, else from the
/// detected type, else empty.
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

/// Checks a name from a client: 1 to `limit` characters, without control characters. `InvalidField`
/// if not. To upload without a name, leave out the field.
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

/// Extracts a file name from the name of a form part: the last component after `/` or `\`, without
/// control characters, cut to `limit` characters. `None` if no characters remain. The caller has
/// decoded `%22 %0D %0A` (WHATWG HTML, multipart/form-data encoding).
pub fn name_from_part(file_name: &str, limit: usize) -> Option<String> {
    let last = file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).take(limit).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(choose_type(None, None, None, "a.woff"), "font/woff");
        assert_eq!(choose_type(None, None, None, "a.otf"), "font/otf");
    }

    #[test]
    fn a_container_yields_to_the_part_then_to_the_extension() {
        let zip = Some("application/zip");
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        assert_eq!(choose_type(None, zip, Some(docx), "a.xlsx"), docx);
        assert_eq!(choose_type(None, zip, Some("application/x-zip-compressed"), "a.docx"), docx);
        assert_eq!(choose_type(None, zip, Some("image/png"), "a.docx"), docx);
        assert_eq!(choose_type(None, zip, Some("image/png"), "a.png"), "application/zip");
        let gpx = "application/gpx+xml; charset=utf-8";
        assert_eq!(choose_type(None, Some("text/xml"), Some(gpx), "a"), gpx);
    }

    #[test]
    fn text_ignores_a_binary_type_if_the_extension_says_text() {
        let text = Some("text/plain");
        assert_eq!(choose_type(None, text, Some("image/bmp"), "a.csv"), "text/csv");
        assert_eq!(choose_type(None, text, Some("application/vnd.ms-excel"), "a.csv"), "text/csv");
        assert_eq!(choose_type(None, text, Some("image/bmp"), "a.bmp"), "image/bmp");
        assert_eq!(choose_type(None, text, Some("application/json"), "a.txt"), "application/json");
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

        let error = check_mime_type("mime_type", "text/plain;,text/javascript").unwrap_err();
        assert_eq!(
            (error.details().field.as_deref(), error.details().limit),
            (Some("mime_type"), Some(255))
        );
    }

    #[test]
    fn a_part_s_type_that_is_none_counts_as_absent() {
        for part in ["image/*", "text/plain;,text/html", "text/html,", "png", ""] {
            assert_eq!(choose_type(None, None, Some(part), "x.gif"), "image/gif", "{part}");
        }
    }
}
