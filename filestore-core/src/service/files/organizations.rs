//! Organizations and their sub-systems, page by page, from totals: no record is read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Files;
use super::listing::{foreign, mark, page_limit};
use crate::domain::error::Result;
use crate::domain::file::usage::{KnownOrganization, SubSystemUsage};
use crate::domain::id::{OrganizationId, SubSystem};

/// A request for one page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRequest {
    /// The maximum number of items on the page, 1 to 1000 (default 100).
    pub limit: Option<usize>,
    /// The [`Page::next_cursor`] of the same list's previous page.
    pub cursor: Option<String>,
}

impl PageRequest {
    /// Creates a request for the first page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of items on the page, 1 to 1000.
    #[must_use]
    pub fn limit(mut self, items: usize) -> Self {
        self.limit = Some(items);
        self
    }

    /// Continues after the page with this [`Page::next_cursor`].
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items, in the list order.
    pub items: Vec<T>,
    /// The cursor for the next page. `None` on the last page.
    pub next_cursor: Option<String>,
}

impl Files<'_> {
    /// Lists one page of the organizations that have files or an active binding, with their totals, in the order
    /// of their ids. Costs the same however many files they have.
    ///
    /// `InvalidField` for a limit out of range and for a cursor of another list.
    ///
    /// ```no_run
    /// # use filestore_core::{FileStore, PageRequest, Scope};
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let page = store.scoped(&Scope::All).organizations(&PageRequest::new()).await?;
    /// for one in &page.items {
    ///     println!("{} {} files", one.organization_id, one.stored.files);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn organizations(self, request: &PageRequest) -> Result<Page<KnownOrganization>> {
        let list = mark(&format!("organizations {:?}", self.scope));
        let (limit, after) = position::<OrganizationId>(request, &list)?;
        let metadata = &self.store.inner.metadata;
        let found = metadata.list_organizations(self.scope, after.as_ref(), limit + 1).await?;
        Ok(page(found, limit, &list, |one| one.organization_id.as_str()))
    }

    /// Lists one page of the sub-systems of `organization` that have files, with their totals, in the order of
    /// their names. Costs the same however many files they have.
    ///
    /// `Forbidden` for an organization outside the scope. `InvalidField` for a limit out of range and for a
    /// cursor of another list.
    ///
    /// ```no_run
    /// # use filestore_core::{FileStore, PageRequest, Scope};
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let request = PageRequest::new();
    /// let page = store.scoped(&Scope::All).sub_systems(&"42".parse()?, &request).await?;
    /// for one in &page.items {
    ///     println!("{} {} bytes", one.sub_system, one.total.bytes);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sub_systems(
        self,
        organization: &OrganizationId,
        request: &PageRequest,
    ) -> Result<Page<SubSystemUsage>> {
        self.scope.check(organization)?;
        let list = mark(&format!("sub-systems of {organization}"));
        let (limit, after) = position::<SubSystem>(request, &list)?;
        let metadata = &self.store.inner.metadata;
        let found = metadata.list_sub_systems(organization, after.as_ref(), limit + 1).await?;
        Ok(page(found, limit, &list, |one| one.sub_system.as_str()))
    }
}

/// Reads the length of a page and the name behind which it begins.
fn position<N: std::str::FromStr>(request: &PageRequest, list: &str) -> Result<(usize, Option<N>)> {
    let limit = page_limit(request.limit)?;
    let after = request.cursor.as_deref().map(|cursor| decode(cursor, list)).transpose()?;
    Ok((limit, after))
}

/// Makes a page of up to `limit` items of those found, which are one more if another page follows.
fn page<T>(mut found: Vec<T>, limit: usize, list: &str, name: impl Fn(&T) -> &str) -> Page<T> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| has_more).map(|last| encode(name(last), list));
    Page { items: found, next_cursor }
}

/// Writes a position as `<name>-<mark>`.
fn encode(name: &str, list: &str) -> String {
    format!("{}-{list}", URL_SAFE_NO_PAD.encode(name))
}

fn decode<N: std::str::FromStr>(cursor: &str, list: &str) -> Result<N> {
    let (name, of) = cursor.rsplit_once('-').ok_or_else(foreign)?;
    if of != list {
        return Err(foreign());
    }
    let bytes = URL_SAFE_NO_PAD.decode(name).map_err(|_| foreign())?;
    let name = String::from_utf8(bytes).map_err(|_| foreign())?;
    name.parse().map_err(|_| foreign())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_a_list_reads_back_and_no_other_text_does() {
        for name in ["42", "a_b-C", "x"] {
            let cursor = encode(name, "0badcafe");
            let read: OrganizationId = decode(&cursor, "0badcafe").unwrap();
            assert_eq!(read.as_str(), name, "{cursor}");
            assert!(decode::<OrganizationId>(&cursor, "0badcaff").is_err());
        }
        for bad in ["", "-", "0badcafe", "%-0badcafe", "_w-0badcafe", "YSBi-0badcafe"] {
            let error = decode::<OrganizationId>(bad, "0badcafe").unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("cursor"), "{bad}");
        }
    }
}
