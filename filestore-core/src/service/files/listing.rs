//! Lists files with keyset pagination, so that all pages cost the same.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256 as Hasher};

use super::Files;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::file::listing::{ListFilter, ListOrder, ListPosition};
use crate::domain::file::media;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::PurgeStatus;
use crate::domain::file::usage::Usage;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::time::clock::Timestamp;

/// The minimum, default and maximum number of files on a page.
const PAGE: (usize, usize, usize) = (1, 100, 1000);

/// The maximum number of files in one call of [`Files::records`].
const MAX_RECORDS: usize = 100;

/// The maximum number of custom metadata members in a filter.
const MAX_TERMS: usize = 16;

/// A request for one page of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListRequest {
    /// The filter for the files.
    pub filter: ListFilter,
    /// The maximum number of files on the page, 1 to 1000 (default 100).
    pub limit: Option<usize>,
    /// The [`FilePage::next_cursor`] of the previous page, which must have the same filter.
    pub cursor: Option<String>,
}

impl ListRequest {
    /// Creates a request for the first page of the files that pass `filter`.
    ///
    /// ```
    /// use filestore_core::{ListFilter, ListRequest, Status};
    ///
    /// let request = ListRequest::new(ListFilter::new().status(Status::Ready)).limit(50);
    /// assert_eq!(request.limit, Some(50));
    /// ```
    pub fn new(filter: ListFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Sets the largest number of files on the page, 1 to 1000.
    #[must_use]
    pub fn limit(mut self, files: usize) -> Self {
        self.limit = Some(files);
        self
    }

    /// Continues after the page with this [`FilePage::next_cursor`].
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

/// One page of files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FilePage {
    /// The files, in the order of the [`ListFilter`].
    pub items: Vec<FileRecord>,
    /// The cursor for the next page. `None` on the last page. If few files match the filter, a page can be
    /// short or empty and still have a cursor.
    pub next_cursor: Option<String>,
}

impl Files<'_> {
    /// Lists one page of files.
    ///
    /// Returns `InvalidField` for a limit out of range, for a filter that cannot match any file, and for a
    /// cursor from another listing.
    ///
    /// ```no_run
    /// use filestore_core::{FileStore, ListRequest, Scope};
    ///
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let mut request = ListRequest::default();
    /// loop {
    ///     let page = store.scoped(&Scope::All).list(&request).await?;
    ///     for record in &page.items {
    ///         println!("{} {}", record.file_id, record.original_name);
    ///     }
    ///     let Some(next) = page.next_cursor else { break };
    ///     request.cursor = Some(next);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list(self, request: &ListRequest) -> Result<FilePage> {
        let inner = &self.store.inner;
        let limit = page_limit(request.limit)?;
        let filter = checked(&request.filter, self.store.name_limit())?;
        let mark = filter_mark(&filter, self.scope);
        let after = request.cursor.as_deref();
        let after = after.map(|cursor| decode(cursor, &mark, filter.order)).transpose()?;
        let listed = inner.metadata.list_files(&filter, self.scope, after.as_ref(), limit).await?;

        let next_cursor = listed.next.map(|next| encode(&next, &mark));
        Ok(FilePage { items: listed.records, next_cursor })
    }

    /// Returns the records of up to 100 files, each once, in the order of `ids`. Includes deleted files until the
    /// purge removes them. Leaves out unknown files and files outside the scope.
    ///
    /// Returns `InvalidField` for no files and for too many files.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, changed: &[FileId]) -> filestore_core::Result<()> {
    /// for record in store.scoped(&Scope::All).records(changed).await? {
    ///     println!("{} {}", record.file_id, record.original_name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn records(self, ids: &[FileId]) -> Result<Vec<FileRecord>> {
        if ids.is_empty() || ids.len() > MAX_RECORDS {
            let message = format!("ids are 1 to {MAX_RECORDS} file ids");
            return Err(Error::invalid("ids", message).with_limit(MAX_RECORDS as u64));
        }
        let found = self.store.inner.metadata.files(ids, self.scope).await?;
        let mut by_id: HashMap<_, _> =
            found.into_iter().map(|record| (record.file_id, record)).collect();
        let in_order = ids.iter().filter_map(|id| by_id.remove(id));
        Ok(in_order.map(Arc::unwrap_or_clone).collect())
    }

    /// Counts the files and bytes of `organization`, by location. `Forbidden` for an organization
    /// outside the scope.
    ///
    /// ```no_run
    /// # use filestore_core::{FileStore, Scope};
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let usage = store.scoped(&Scope::All).usage(&"42".parse()?).await?;
    /// println!("{} files, {} bytes", usage.total().files, usage.total().bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn usage(self, organization: &OrganizationId) -> Result<Usage> {
        self.scope.check(organization)?;
        self.store.inner.metadata.usage(organization).await
    }
}

/// Checks a page's length.
pub(super) fn page_limit(asked: Option<usize>) -> Result<usize> {
    let limit = asked.unwrap_or(PAGE.1);
    if (PAGE.0..=PAGE.2).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("limit is an integer from {} to {}", PAGE.0, PAGE.2);
    Err(Error::invalid("limit", message).with_limit(PAGE.2 as u64))
}

/// Brings a filter into the form that the database is asked in. Names have at most `limit` characters.
fn checked(filter: &ListFilter, limit: usize) -> Result<ListFilter> {
    let mut filter = filter.clone();
    // Every name begins with nothing.
    filter.name_prefix = filter.name_prefix.filter(|prefix| !prefix.is_empty());
    if filter.name_prefix.as_ref().is_some_and(|prefix| prefix.chars().count() > limit) {
        let message = format!("name_prefix has at most {limit} characters");
        return Err(Error::invalid("name_prefix", message).with_limit(limit as u64));
    }

    check_order(&filter)?;

    // Every name contains nothing.
    filter.name_contains = filter.name_contains.filter(|part| !part.is_empty());
    if filter.name_contains.as_ref().is_some_and(|part| part.chars().count() > limit) {
        let message = format!("name_contains has at most {limit} characters");
        return Err(Error::invalid("name_contains", message).with_limit(limit as u64));
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

/// Refuses an order that does not go with the filter.
fn check_order(filter: &ListFilter) -> Result<()> {
    if filter.order != ListOrder::Newest && filter.name_prefix.is_some() {
        return Err(Error::invalid("order", "order goes without name_prefix, which sorts by name"));
    }
    if filter.order == ListOrder::Deleted && filter.purge_status != Some(PurgeStatus::SystemPurge) {
        let message = "order=deleted goes with purge_status=SYSTEM_PURGE";
        return Err(Error::invalid("order", message));
    }
    Ok(())
}

/// Encodes a position as `<id>-<mark>`, followed by `-<name>` in a listing by name, and by `-<milliseconds>` in a
/// listing by deletion.
fn encode(position: &ListPosition, mark: &str) -> String {
    let mut cursor = format!("{}-{mark}", position.file_id);
    if let Some(marked_at) = position.marked_at {
        write!(cursor, "-{}", marked_at.as_millis()).expect("a string takes every write");
    }
    if let Some(name) = &position.name {
        write!(cursor, "-{}", URL_SAFE_NO_PAD.encode(name)).expect("a string takes every write");
    }
    cursor
}

pub(super) fn foreign() -> Error {
    Error::invalid("cursor", "this cursor is not from a page of this listing")
}

fn decode(cursor: &str, mark: &str, order: ListOrder) -> Result<ListPosition> {
    let mut parts = cursor.splitn(3, '-');
    let (id, of, key) = (parts.next(), parts.next(), parts.next());
    if of != Some(mark) {
        return Err(foreign());
    }
    let file_id = id.unwrap_or_default().parse().map_err(|_| foreign())?;
    if order == ListOrder::Deleted {
        let millis = key.and_then(|key| key.parse().ok()).ok_or_else(foreign)?;
        let marked_at = Some(Timestamp::from_millis(millis));
        return Ok(ListPosition { name: None, file_id, marked_at });
    }

    let name = key.map(|name| {
        let bytes = URL_SAFE_NO_PAD.decode(name).ok()?;
        String::from_utf8(bytes).ok()
    });
    let name = match name {
        Some(None) => return Err(foreign()),
        Some(Some(name)) => Some(name),
        None => None,
    };
    Ok(ListPosition { name, file_id, marked_at: None })
}

/// Returns a mark that identifies a listing. The mark depends on the filter and on the caller's scope,
/// because both can change the order.
fn filter_mark(filter: &ListFilter, scope: &Scope) -> String {
    // A filter that an older version lacks is left out while it is unused: servers of both versions may answer
    // pages of one listing.
    let mut listing = format!("{filter:?} {scope:?}");
    for unused in ["sync_status: None, ", ", name_contains: None", ", order: Newest"] {
        listing = listing.replacen(unused, "", 1);
    }
    mark(&listing)
}

/// Makes the mark of a listing of all that its pages depend on.
pub(super) fn mark(listing: &str) -> String {
    hex::encode(&Hasher::digest(listing)[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_no_other_text_does() {
        let file_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        for name in [None, Some(""), Some("a-b.txt"), Some("-"), Some("é\u{10FFFF}\n")] {
            let position = ListPosition { name: name.map(str::to_owned), file_id, marked_at: None };
            let cursor = encode(&position, "0badcafe");
            let read = decode(&cursor, "0badcafe", ListOrder::Newest);
            assert_eq!(read.unwrap(), position, "{cursor}");
            assert!(cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            assert!(decode(&cursor, "0badcaff", ListOrder::Newest).is_err());
            assert!(decode(&cursor, "0badcafe", ListOrder::Deleted).is_err());
        }
        let marked_at = Some(Timestamp::from_millis(1_764_280_800_123));
        let position = ListPosition { name: None, file_id, marked_at };
        let cursor = encode(&position, "0badcafe");
        assert_eq!(decode(&cursor, "0badcafe", ListOrder::Deleted).unwrap(), position);

        for bad in [
            "",
            "-",
            "x-0badcafe",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV-0badcafe-%",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV-0badcafe-_w",
        ] {
            assert_eq!(
                decode(bad, "0badcafe", ListOrder::Newest).unwrap_err().details().field.as_deref(),
                Some("cursor"),
                "{bad}"
            );
        }
    }

    #[test]
    fn an_unused_filter_leaves_the_cursors_of_older_servers_as_they_are() {
        let filter = ListFilter::new().organization("1".parse().unwrap());
        let older = "ListFilter { organization_id: Some(OrganizationId(\"1\")), sub_system: None, status: None, \
                     purge_status: None, name_prefix: None, mime_type: None, created_after: None, \
                     created_before: None, metadata: [] } All";
        assert_eq!(filter_mark(&filter, &Scope::All), mark(older));
        let oldest = filter.clone().order(ListOrder::Oldest);
        assert_ne!(filter_mark(&oldest, &Scope::All), mark(older));
    }

    #[test]
    fn an_order_goes_with_the_filters_that_have_it() {
        let refused = |filter: ListFilter| {
            checked(&filter, 255).err().and_then(|error| error.details().field.clone())
        };
        let order = Some("order".to_owned());
        let named = ListFilter::new().name_prefix("a");
        assert_eq!(refused(named.clone().order(ListOrder::Oldest)), order);
        assert_eq!(refused(named.order(ListOrder::Newest)), None);
        assert_eq!(refused(ListFilter::new().order(ListOrder::Deleted)), order);
        assert_eq!(refused(ListFilter::new().deleted().order(ListOrder::Deleted)), None);
        assert_eq!(refused(ListFilter::new().name_prefix("").order(ListOrder::Oldest)), None);
        let long = ListFilter::new().name_contains("x".repeat(256));
        assert_eq!(refused(long), Some("name_contains".to_owned()));
    }
}
