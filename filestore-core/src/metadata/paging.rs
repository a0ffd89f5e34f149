//! Pages of listings, the same in every engine.
//!
//! A listing is answered from ranges of one index, each of which holds records of one status (and
//! organization, where the scope names several) in the order asked for. They are merged record by
//! record. Filters that the index does not answer are tried on each record; a page looks at
//! [`LOOKED_AT`] records at most beyond those it shows, so that no filter costs more in a large table.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::domain::id::{FileId, OrganizationId};
use crate::domain::listing::{ListFilter, ListPosition};
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;

use super::ListedFiles;

/// Above every id: a ULID starts with a digit up to 7.
pub(super) const NO_BOUND: &str = "8";

/// The most records that one page looks at beyond those it shows.
const LOOKED_AT: usize = 5000;

/// The index that answers a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// `files_by_status`, `…_organization`, `…_sub_system` or `…_both`.
    Plain,
    Type,
    Term,
    /// The names after a given one.
    Names,
    /// One name.
    Name,
}

impl Index {
    /// Chooses the index of a listing that is not by name.
    pub(super) fn of(filter: &ListFilter, in_one_organization: bool) -> Self {
        match (in_one_organization, filter.metadata.is_empty(), &filter.mime_type) {
            (true, false, _) => Self::Term,
            (true, true, Some(_)) => Self::Type,
            _ => Self::Plain,
        }
    }
}

/// Returns the organizations to look at, each once; `None` stands for all of them.
pub(super) fn organizations(filter: &ListFilter, scope: &Scope) -> Vec<Option<OrganizationId>> {
    match (&filter.organization_id, scope) {
        (Some(one), scope) if scope.covers(one) => vec![Some(one.clone())],
        (Some(_), _) => Vec::new(),
        (None, Scope::All) => vec![None],
        (None, Scope::Organizations(several)) => {
            let distinct: BTreeSet<_> = several.iter().cloned().collect();
            distinct.into_iter().map(Some).collect()
        }
    }
}

/// Tells if a listing is by name: where the organizations are known, an index has the names.
pub(super) fn is_by_name(filter: &ListFilter, organization: Option<&OrganizationId>) -> bool {
    filter.name_prefix.is_some() && organization.is_some()
}

/// The next record of a range.
pub(super) struct Head {
    pub(super) record: FileRecord,
    pub(super) by_name: bool,
    pub(super) range: usize,
}

impl Head {
    fn position(&self) -> ListPosition {
        ListPosition {
            name: self.by_name.then(|| self.record.original_name.clone()),
            file_id: self.record.file_id,
        }
    }

    /// Returns the key that is greatest for the record to be listed first. Names compare as their
    /// index does, byte by byte.
    fn key(&self) -> (Reverse<Option<&str>>, FileId) {
        let name = self.by_name.then_some(self.record.original_name.as_str());
        (Reverse(name), self.record.file_id)
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// A page that is being filled.
pub(super) struct Page<'f> {
    filter: &'f ListFilter,
    limit: usize,
    listed: ListedFiles,
    passed_over: usize,
}

impl<'f> Page<'f> {
    /// Begins a page of up to `limit` records that `filter` admits.
    pub(super) fn new(filter: &'f ListFilter, limit: usize) -> Self {
        Self { filter, limit, listed: ListedFiles::default(), passed_over: 0 }
    }

    /// Takes the next record in the order of the listing; breaks once the page is full. The page looks
    /// one record further than it shows, so that a page that is the last one says so.
    pub(super) fn take(&mut self, head: Head) -> ControlFlow<()> {
        let is_shown = self.filter.admits(&head.record);
        if is_shown && self.listed.records.len() == self.limit || self.passed_over == LOOKED_AT {
            return ControlFlow::Break(());
        }

        self.listed.next = Some(head.position());
        if is_shown {
            self.listed.records.push(head.record);
        } else {
            self.passed_over += 1;
        }
        ControlFlow::Continue(())
    }

    /// Returns a page behind which there is more.
    pub(super) fn full(self) -> ListedFiles {
        self.listed
    }

    /// Returns the last page.
    pub(super) fn last(self) -> ListedFiles {
        ListedFiles { next: None, ..self.listed }
    }
}
