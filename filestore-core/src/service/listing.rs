//! Listing files by keyset: a page costs the same wherever it is.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256 as Hasher};

use super::FileStore;
use crate::domain::error::{Error, Result};
use crate::domain::listing::{ListFilter, ListPosition};
use crate::domain::media;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;

/// The smallest, default and largest number of files on a page.
const PAGE: (usize, usize, usize) = (1, 100, 1000);

/// The most members of custom metadata that one listing may ask for.
const MAX_TERMS: usize = 16;

/// A request for one page of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListRequest {
    /// The filter that the files pass.
    pub filter: ListFilter,
    /// The largest number of files on the page, 1 to 1000; 100 if not given.
    pub limit: Option<usize>,
    /// The cursor that the page before ended with: its [`FilePage::next_cursor`], of the same
    /// filter.
    pub cursor: Option<String>,
}

/// One page of files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FilePage {
    /// The files, in the order that [`ListFilter`] says.
    pub items: Vec<FileRecord>,
    /// The cursor for the next page; `None` on the last one. Where a filter lets only few files
    /// through, a page may be short, or empty, and have one.
    pub next_cursor: Option<String>,
}

impl FileStore {
    /// Lists a page of the files of `scope`. `InvalidField` for a limit out of range, for a filter that
    /// no file can pass, and for a cursor that is not one of this filter.
    pub async fn list(&self, request: &ListRequest, scope: &Scope) -> Result<FilePage> {
        let limit = request.limit.unwrap_or(PAGE.1);
        if !(PAGE.0..=PAGE.2).contains(&limit) {
            return Err(Error::invalid(
                "limit",
                format!("limit is an integer from {} to {}", PAGE.0, PAGE.2),
            )
            .with_limit(PAGE.2 as u64));
        }

        let filter = self.checked(&request.filter)?;
        let mark = filter_mark(&filter, scope);
        let after = request.cursor.as_deref().map(|cursor| decode(cursor, &mark)).transpose()?;
        let listed = self.inner.metadata.list_files(&filter, scope, after.as_ref(), limit).await?;

        let next_cursor = listed.next.map(|next| encode(&next, &mark));
        Ok(FilePage { items: listed.records, next_cursor })
    }

    /// Brings a filter into the form that the metadata are asked in.
    fn checked(&self, filter: &ListFilter) -> Result<ListFilter> {
        let mut filter = filter.clone();
        // Every name begins with nothing.
        filter.name_prefix = filter.name_prefix.filter(|prefix| !prefix.is_empty());
        let limit = self.name_limit();
        if filter.name_prefix.as_ref().is_some_and(|prefix| prefix.chars().count() > limit) {
            let message = format!("name_prefix has at most {limit} characters");
            return Err(Error::invalid("name_prefix", message).with_limit(limit as u64));
        }

        if let Some(mime_type) = &filter.mime_type {
            media::check_mime_type("mime_type", mime_type)?;
            if mime_type.contains(';') {
                let message = "mime_type is a type without parameters, such as text/plain";
                return Err(Error::invalid("mime_type", message));
            }
            filter.mime_type = Some(media::essence(mime_type));
        }

        if filter.metadata.len() > MAX_TERMS {
            let message = format!("a listing asks for at most {MAX_TERMS} members of metadata");
            return Err(Error::invalid("metadata", message).with_limit(MAX_TERMS as u64));
        }
        // One order, so that the same filter has the same cursors.
        filter.metadata.sort_unstable();
        Ok(filter)
    }
}

/// Writes a position as `<id>-<mark>`, and `-<name>` in a listing by name.
fn encode(position: &ListPosition, mark: &str) -> String {
    let mut cursor = format!("{}-{mark}", position.file_id);
    if let Some(name) = &position.name {
        write!(cursor, "-{}", URL_SAFE_NO_PAD.encode(name)).expect("a string takes every write");
    }
    cursor
}

fn foreign() -> Error {
    Error::invalid("cursor", "this cursor is not from a page of this listing")
}

fn decode(cursor: &str, mark: &str) -> Result<ListPosition> {
    let mut parts = cursor.splitn(3, '-');
    let (id, of, name) = (parts.next(), parts.next(), parts.next());
    if of != Some(mark) {
        return Err(foreign());
    }

    let name = name.map(|name| {
        let bytes = URL_SAFE_NO_PAD.decode(name).ok()?;
        String::from_utf8(bytes).ok()
    });
    let name = match name {
        Some(None) => return Err(foreign()),
        Some(Some(name)) => Some(name),
        None => None,
    };
    let file_id = id.unwrap_or_default().parse().map_err(|_| foreign())?;
    Ok(ListPosition { name, file_id })
}

/// Tells listings apart: those of different filters, and of callers who see different organizations, as
/// these may have another order.
fn filter_mark(filter: &ListFilter, scope: &Scope) -> String {
    let digest = Hasher::digest(format!("{filter:?} {scope:?}"));
    format!("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_no_other_text_does() {
        let file_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        for name in [None, Some(""), Some("a-b.txt"), Some("-"), Some("é\u{10FFFF}\n")] {
            let position = ListPosition { name: name.map(str::to_owned), file_id };
            let cursor = encode(&position, "0badcafe");
            assert_eq!(decode(&cursor, "0badcafe").unwrap(), position, "{cursor}");
            assert!(cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            assert!(decode(&cursor, "0badcaff").is_err());
        }

        for bad in [
            "",
            "-",
            "x-0badcafe",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV-0badcafe-%",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV-0badcafe-_w",
        ] {
            assert_eq!(
                decode(bad, "0badcafe").unwrap_err().details().field.as_deref(),
                Some("cursor"),
                "{bad}"
            );
        }
    }
}
