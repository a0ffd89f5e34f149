//! `Upload-Concat` (tus 1.0, concatenation): `partial`, or `final;` and the URLs of the parts.

use filestore_core::uploads::UploadAddress;
use filestore_core::{Error, Result};

/// The place of an upload in a concatenation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Concat {
    /// The header as it was sent, which each later reply repeats.
    pub(crate) text: String,
    /// The parts of a final upload; `None` for a part.
    pub(crate) parts: Option<Vec<UploadAddress>>,
}

impl Concat {
    /// Reads the header. A part is a URL or a path, of which the last segment counts.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let parts = match text.split_once(';') {
            None if text == "partial" => None,
            Some(("final", urls)) => {
                let segments = urls.split_ascii_whitespace().map(last_segment);
                let parts: Result<Vec<UploadAddress>> = segments.map(str::parse).collect();
                Some(parts.map_err(|_| bad("a part is the URL of an upload"))?)
            }
            _ => return Err(bad("it is `partial`, or `final;` and the URLs of the parts")),
        };
        Ok(Self { text: text.to_owned(), parts })
    }
}

fn last_segment(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    path.rsplit('/').next().unwrap_or_default()
}

fn bad(problem: &str) -> Error {
    Error::invalid("Upload-Concat", format!("Upload-Concat is not understood: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV.kq3VxJ0m2pQeT8rLw1uYzA";

    #[test]
    fn parts_are_named_by_url_or_path() {
        assert_eq!(Concat::parse("partial").unwrap().parts, None);
        let text = format!("final;https://x.example/a/uploads/{PART} /api/v1/uploads/{PART}/");
        let read = Concat::parse(&text).unwrap();
        assert_eq!(read.text, text);
        let parts = read.parts.unwrap();
        assert_eq!(parts.iter().map(UploadAddress::to_segment).collect::<Vec<_>>(), [PART; 2]);
        assert_eq!(Concat::parse("final;").unwrap().parts.unwrap(), []);
    }

    #[test]
    fn other_words_and_other_urls_are_refused() {
        for bad in ["", "final", "Partial", "partial;", "final;/x", "final;/files/1.2"] {
            assert!(Concat::parse(bad).is_err(), "{bad}");
        }
    }
}
