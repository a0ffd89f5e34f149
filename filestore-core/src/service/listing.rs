//! Listing files, newest first, by keyset: a page costs the same wherever it is.

use sha2::{Digest, Sha256 as Hasher};

use super::FileStore;
use crate::domain::error::{Error, Result};
use crate::domain::id::FileId;
use crate::domain::listing::ListFilter;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;

/// The smallest, default and largest number of files on a page.
const PAGE: (usize, usize, usize) = (1, 100, 1000);

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
    /// The files, newest first.
    pub items: Vec<FileRecord>,
    /// The cursor for the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

impl FileStore {
    /// Lists a page of the files of `scope`. `InvalidField` for a limit out of range and for a
    /// cursor that is not one of this filter.
    pub async fn list(&self, request: &ListRequest, scope: &Scope) -> Result<FilePage> {
        let limit = request.limit.unwrap_or(PAGE.1);
        if !(PAGE.0..=PAGE.2).contains(&limit) {
            return Err(Error::invalid(
                "limit",
                format!("limit is an integer from {} to {}", PAGE.0, PAGE.2),
            )
            .with_limit(PAGE.2 as u64));
        }

        let mark = filter_mark(&request.filter);
        let before = request.cursor.as_deref().map(|cursor| decode(cursor, &mark)).transpose()?;
        let mut items =
            self.inner.metadata.list_files(&request.filter, scope, before, limit + 1).await?;

        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| more);
        let next_cursor = last.map(|record| format!("{}-{mark}", record.file_id));
        Ok(FilePage { items, next_cursor })
    }
}

fn decode(cursor: &str, mark: &str) -> Result<FileId> {
    let foreign = || Error::invalid("cursor", "this cursor is not from a page of this listing");
    let (id, of) = cursor.split_once('-').ok_or_else(foreign)?;
    if of != mark {
        return Err(foreign());
    }
    id.parse().map_err(|_| foreign())
}

/// Tells the listings of different filters apart.
fn filter_mark(filter: &ListFilter) -> String {
    let digest = Hasher::digest(format!("{filter:?}"));
    format!("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3])
}
