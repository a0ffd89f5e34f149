//! Formats that share a container, and so its signature.
//!
//! The first bytes of a word processor's document, of an app and of a map show one thing: a ZIP
//! archive. The sender knows more. So the type that a signature shows yields to a type of the same
//! family, from the form part or from the extension. A type of another family changes nothing.

use super::{MediaType, essence};

/// Tests whether `essence` names a format of the family that a signature of `sniffed` stands for.
/// `sniffed` is a type that [`sniff`](super::sniff) returns, `essence` is in lower case without
/// parameters.
pub(crate) fn refines(sniffed: &str, essence: &str) -> bool {
    match sniffed {
        "application/zip" => is_in_zip(essence),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => {
            begins(essence, &["application/vnd.ms-word.", OOXML_WORD])
        }
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => {
            begins(essence, &["application/vnd.ms-excel.", OOXML_EXCEL])
        }
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => {
            begins(essence, &["application/vnd.ms-powerpoint.", OOXML_POWERPOINT])
        }
        "application/vnd.oasis.opendocument.text"
        | "application/vnd.oasis.opendocument.spreadsheet"
        | "application/vnd.oasis.opendocument.presentation" => begins(essence, &[sniffed]),

        "application/x-ole-storage" => is_in_ole(essence),
        "text/xml" => is_xml(essence),
        // A document of another kind can contain a drawing or a page.
        "image/svg+xml" => essence.ends_with("+xml") && essence != "application/xhtml+xml",
        "text/html" => {
            essence.ends_with("+xml") && essence != "image/svg+xml" || HAS_TAGS.contains(&essence)
        }
        "audio/ogg" | "audio/opus" => essence.ends_with("+ogg") || OGG.contains(&essence),
        "video/x-ms-wmv" => ASF.contains(&essence),
        "image/tiff" => RAW.contains(&essence),
        "video/mp4" => matches!(essence, "audio/mp4" | "audio/x-m4a"),
        "video/webm" => essence == "audio/webm",
        "video/x-matroska" => MATROSKA.contains(&essence),
        "application/x-x509-ca-cert" => DER.contains(&essence),
        "application/vnd.sqlite3" => essence.ends_with("+sqlite3"),
        _ => false,
    }
}

/// Returns the type for the extension of `name`, if it names a format of the family of `sniffed`.
pub(super) fn refined_by_extension(sniffed: &str, name: &str) -> Option<&'static str> {
    let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
    let own = EXTENSIONS.iter().filter(|(known, _)| *known == extension).map(|(_, mime)| *mime);
    let common = mime_guess::from_ext(&extension);
    own.chain(common.iter_raw()).find(|mime| refines(sniffed, &essence(mime)))
}

/// Tests whether a type names a format that text never is.
pub(crate) fn is_binary(mime: &str) -> bool {
    let Some(media_type) = MediaType::parse(mime) else { return false };
    let essence = media_type.essence();
    let is_medium = begins(essence, &["image/", "audio/", "video/", "font/"]);
    is_medium && !essence.ends_with("+xml") || is_in_zip(essence) || is_in_ole(essence)
}

fn begins(essence: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| essence.starts_with(start))
}

const OOXML_WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.";
const OOXML_EXCEL: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.";
const OOXML_POWERPOINT: &str = "application/vnd.openxmlformats-officedocument.presentationml.";

fn is_in_zip(essence: &str) -> bool {
    essence.ends_with("+zip") || begins(essence, &ZIP_FAMILIES) || ZIP.contains(&essence)
}

fn is_in_ole(essence: &str) -> bool {
    OLE.contains(&essence)
}

/// Tests for XML (RFC 7303).
fn is_xml(essence: &str) -> bool {
    essence.ends_with("+xml")
        || begins(essence, &["application/xml", "text/xml"])
        || XML.contains(&essence)
}

/// Types that are XML without saying so.
const XML: [&str; 5] =
    ["application/x-plist", "text/xsl", "text/mathml", "text/x-opml", "text/vnd.wap.wml"];

/// Beginnings of types that are ZIP archives.
const ZIP_FAMILIES: [&str; 8] = [
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
    "application/vnd.sun.xml.",
    "application/vnd.ms-word.",
    "application/vnd.ms-excel.",
    "application/vnd.ms-powerpoint.",
    "application/vnd.ms-visio.",
    "application/x-iwork-",
];

/// Types that are ZIP archives.
const ZIP: [&str; 27] = [
    "application/java-archive",
    "application/x-java-archive",
    "application/vnd.android.package-archive",
    "application/x-itunes-ipa",
    "application/x-ios-app",
    "application/x-xpinstall",
    "application/vsix",
    "application/vnd.ms-appx",
    "application/vnd.ms-officetheme",
    "application/oxps",
    "application/vnd.ms-xpsdocument",
    "application/vnd.google-earth.kmz",
    "application/vnd.recordare.musicxml",
    "application/vnd.apple.pages",
    "application/vnd.apple.numbers",
    "application/vnd.apple.keynote",
    "application/vnd.adobe.indesign-idml-package",
    "application/vnd.hancom.hwpx",
    "application/vnd.geogebra.file",
    "application/vnd.comicbook",
    "application/x-cbz",
    "application/x-krita",
    "application/x-3mf",
    "application/vnd.ms-3mfdocument",
    "application/vnd.ms-package.3dmanufacturing-3dmodel+xml",
    "model/3mf",
    "image/openraster",
];

/// Types that are OLE compound files ([MS-CFB]).
const OLE: [&str; 18] = [
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.ms-outlook",
    "application/vnd.ms-project",
    "application/vnd.ms-works",
    "application/vnd.ms-publisher",
    "application/x-mspublisher",
    "application/vnd.visio",
    "application/x-msi",
    "application/x-ms-installer",
    "application/vnd.hancom.hwp",
    "application/x-hwp",
    "application/haansofthwp",
    "application/vnd.stardivision.writer",
    "application/vnd.stardivision.calc",
    "application/vnd.stardivision.impress",
    "image/vnd.fpx",
];

/// Types of text that can begin with a tag of HTML and is no page.
const HAS_TAGS: [&str; 5] = [
    "text/markdown",
    "text/x-markdown",
    "application/x-httpd-php",
    "application/x-php",
    "text/x-php",
];

const OGG: [&str; 7] = [
    "audio/ogg",
    "video/ogg",
    "application/ogg",
    "audio/opus",
    "audio/vorbis",
    "audio/speex",
    "video/x-theora",
];

const ASF: [&str; 5] = [
    "audio/x-ms-wma",
    "video/x-ms-wmv",
    "video/x-ms-asf",
    "application/vnd.ms-asf",
    "video/x-ms-wm",
];

const MATROSKA: [&str; 5] = [
    "audio/x-matroska",
    "video/matroska",
    "audio/matroska",
    "video/matroska-3d",
    "video/x-matroska-3d",
];

/// Raw pictures of cameras that are TIFF files.
const RAW: [&str; 23] = [
    "image/tiff",
    "image/x-adobe-dng",
    "image/dng",
    "image/x-dcraw",
    "image/x-canon-cr2",
    "image/x-nikon-nef",
    "image/x-nikon-nrw",
    "image/x-sony-arw",
    "image/x-sony-sr2",
    "image/x-sony-srf",
    "image/x-pentax-pef",
    "image/x-samsung-srw",
    "image/x-epson-erf",
    "image/x-kodak-dcr",
    "image/x-kodak-kdc",
    "image/x-kodak-k25",
    "image/x-hasselblad-3fr",
    "image/x-hasselblad-fff",
    "image/x-leaf-mos",
    "image/x-mamiya-mef",
    "image/x-phaseone-iiq",
    "image/x-minolta-mrw",
    "image/x-leica-rwl",
];

/// Types that are one value in DER.
const DER: [&str; 15] = [
    "application/x-x509-ca-cert",
    "application/x-x509-user-cert",
    "application/pkix-cert",
    "application/pkix-crl",
    "application/pkcs8",
    "application/pkcs10",
    "application/pkcs12",
    "application/x-pkcs12",
    "application/pkcs7-mime",
    "application/x-pkcs7-mime",
    "application/pkcs7-signature",
    "application/x-pkcs7-signature",
    "application/x-pkcs7-certificates",
    "application/timestamp-reply",
    "application/timestamp-query",
];

/// Extensions that the common table lacks, or takes for something else. They count only within
/// their family: a text file can be called `.key` too.
const EXTENSIONS: [(&str, &str); 34] = [
    ("pages", "application/vnd.apple.pages"),
    ("numbers", "application/vnd.apple.numbers"),
    ("key", "application/vnd.apple.keynote"),
    ("3mf", "model/3mf"),
    ("ora", "image/openraster"),
    ("idml", "application/vnd.adobe.indesign-idml-package"),
    ("hwpx", "application/vnd.hancom.hwpx"),
    ("cbz", "application/vnd.comicbook+zip"),
    ("usdz", "model/vnd.usdz+zip"),
    ("vsdx", "application/vnd.ms-visio.drawing"),
    ("appx", "application/vnd.ms-appx"),
    ("msix", "application/vnd.ms-appx"),
    ("ipa", "application/x-ios-app"),
    ("msi", "application/x-msi"),
    ("msp", "application/x-msi"),
    ("hwp", "application/vnd.hancom.hwp"),
    ("fb2", "application/x-fictionbook+xml"),
    ("tcx", "application/vnd.garmin.tcx+xml"),
    ("xmp", "application/rdf+xml"),
    ("xsl", "application/xslt+xml"),
    ("xslt", "application/xslt+xml"),
    ("mml", "application/mathml+xml"),
    ("m4a", "audio/mp4"),
    ("m4b", "audio/mp4"),
    ("m4r", "audio/mp4"),
    ("srw", "image/x-samsung-srw"),
    ("3fr", "image/x-hasselblad-3fr"),
    ("fff", "image/x-hasselblad-fff"),
    ("mos", "image/x-leaf-mos"),
    ("mef", "image/x-mamiya-mef"),
    ("iiq", "image/x-phaseone-iiq"),
    ("p12", "application/pkcs12"),
    ("pfx", "application/pkcs12"),
    ("gpkg", "application/geopackage+sqlite3"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_yields_to_its_own_family_only() {
        for (sniffed, other) in [
            ("application/zip", "application/msword"),
            ("application/zip", "application/x-zip-compressed"),
            ("application/zip", "text/html"),
            ("application/zip", "image/png"),
            ("application/x-ole-storage", "application/vnd.android.package-archive"),
            (
                "application/vnd.oasis.opendocument.text",
                "application/vnd.oasis.opendocument.spreadsheet",
            ),
            ("application/epub+zip", "application/java-archive"),
            ("text/xml", "text/html"),
            ("text/html", "text/plain"),
            ("text/html", "text/css"),
            ("text/html", "text/javascript"),
            ("audio/ogg", "video/mp4"),
            ("video/mp4", "video/webm"),
            ("image/tiff", "image/png"),
            ("image/png", "image/apng"),
            ("application/pdf", "application/zip"),
        ] {
            assert!(!refines(sniffed, other), "{sniffed} to {other}");
        }
    }

    #[test]
    fn an_extension_counts_in_its_family_only() {
        for (sniffed, name, mime) in [
            ("application/zip", "talk.KEY", Some("application/vnd.apple.keynote")),
            ("application/x-ole-storage", "talk.key", None),
            ("application/zip", "a.aab", None),
            ("image/tiff", "a.erf", Some("image/x-epson-erf")),
            ("application/zip", "docx", None),
            ("application/zip", "a.", None),
        ] {
            assert_eq!(refined_by_extension(sniffed, name), mime, "{sniffed} {name}");
        }
    }
}
