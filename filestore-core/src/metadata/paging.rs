//! Pages of listings, the same in every engine.
//!
//! A listing reads ranges of one index. Each range contains the records of one status (and of one
//! organization, if the scope names several) in the requested order. The ranges are merged record by record.
//! Filters without an index are tested on each record. A page reads at most [`LOOKED_AT`] additional records,
//! so no filter is slow in a large table.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::domain::access::scope::Scope;
use crate::domain::file::listing::{ListFilter, ListOrder, ListPosition};
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Status, SyncStatus};
use crate::domain::file::usage::{Standing, Stored, SubSystemUsage};
use crate::domain::id::{OrganizationId, SubSystem};
use crate::domain::time::clock::Timestamp;

use super::ListedFiles;

/// A bound above every id. A ULID starts with a digit up to 7.
pub(super) const NO_BOUND: &str = "8";

/// The maximum number of records that a page reads in addition to the records it shows.
const LOOKED_AT: usize = 5000;

/// The index for a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// `files_by_status`, `…_organization`, `…_sub_system` or `…_both`.
    Plain,
    Type,
    Term,
    /// `files_by_sync` or `…_of_all`.
    Sync,
    /// The names after a given one.
    Names,
    /// A single name.
    Name,
    /// `files_by_deletion` or `…_of_all`.
    Deleted,
}

impl Index {
    /// Chooses the index of a listing that is not by name.
    pub(super) fn of(filter: &ListFilter, in_one_organization: bool) -> Self {
        if filter.order == ListOrder::Deleted {
            return Self::Deleted;
        }
        match (in_one_organization, filter.metadata.is_empty(), &filter.mime_type) {
            (true, false, _) => Self::Term,
            _ if indexed_sync(filter).is_some() => Self::Sync,
            (true, true, Some(_)) => Self::Type,
            _ => Self::Plain,
        }
    }
}

/// The sync statuses of the rows in `files_by_sync`, as the index names them. Most files have another one.
pub(super) const INDEXED_SYNCS: &str = "sync_status IN ('PENDING', 'SYNCING', 'FAILED')";

/// Returns the sync status that a filter asks an index for.
pub(super) fn indexed_sync(filter: &ListFilter) -> Option<SyncStatus> {
    filter.sync_status.filter(|sync| {
        let is_indexed =
            matches!(sync, SyncStatus::Pending | SyncStatus::Syncing | SyncStatus::Failed);
        is_indexed && filter.purge_status.is_none()
    })
}

/// Returns the statuses to look at. Only READY files have another sync status than NONE. The index by deletion has
/// all statuses in one range, for which the first one stands.
pub(super) fn statuses(filter: &ListFilter) -> &[Status] {
    if filter.order == ListOrder::Deleted {
        return &Status::ALL[..1];
    }
    let asked = filter.status.as_ref().map_or(Status::ALL, std::slice::from_ref);
    match filter.sync_status {
        None | Some(SyncStatus::None) => asked,
        Some(_) if asked.contains(&Status::Ready) => &[Status::Ready],
        Some(_) => &[],
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

/// Returns the organizations of a scope behind one id, each once, in their order.
pub(super) fn scoped_after(
    scope: &[OrganizationId],
    after: Option<&OrganizationId>,
) -> Vec<OrganizationId> {
    let distinct: BTreeSet<_> =
        scope.iter().filter(|one| after.is_none_or(|at| *one > at)).collect();
    distinct.into_iter().cloned().collect()
}

/// The key by which a listing sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sorting {
    /// Name, then newest first.
    Name,
    /// Newest first.
    Newest,
    /// Oldest first.
    Oldest,
    /// Latest deletion first, then newest first.
    Deleted,
}

impl Sorting {
    /// Returns the order of a listing. Where the organizations are known, an index has the names.
    pub(super) fn of(filter: &ListFilter, organization: Option<&OrganizationId>) -> Self {
        match filter.order {
            ListOrder::Oldest => Self::Oldest,
            ListOrder::Deleted => Self::Deleted,
            ListOrder::Newest if filter.name_prefix.is_some() && organization.is_some() => {
                Self::Name
            }
            ListOrder::Newest => Self::Newest,
        }
    }
}

/// Returns the least text behind an id: it sorts before every other id that comes later.
pub(super) fn behind(id: &str) -> String {
    format!("{id}0")
}

/// The next record of a range.
pub(super) struct Head {
    pub(super) record: FileRecord,
    pub(super) sorting: Sorting,
    pub(super) range: usize,
}

impl Head {
    fn position(&self) -> ListPosition {
        let is = |sorting| self.sorting == sorting;
        ListPosition {
            name: is(Sorting::Name).then(|| self.record.original_name.clone()),
            file_id: self.record.file_id,
            marked_at: self.marked_at().filter(|_| is(Sorting::Deleted)),
        }
    }

    fn marked_at(&self) -> Option<Timestamp> {
        self.record.deletion.map(|deletion| deletion.marked_at)
    }
}

/// The greatest head is listed first. Names compare byte by byte, like in their index.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let newest = self.record.file_id.cmp(&other.record.file_id);
        match self.sorting {
            Sorting::Newest => newest,
            Sorting::Oldest => newest.reverse(),
            Sorting::Name => {
                let (own, others) = (&self.record.original_name, &other.record.original_name);
                others.cmp(own).then(newest)
            }
            Sorting::Deleted => self.marked_at().cmp(&other.marked_at()).then(newest),
        }
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

/// A page while it is filled.
pub(super) struct Page<'f> {
    filter: &'f ListFilter,
    limit: usize,
    listed: ListedFiles,
    passed_over: usize,
}

impl<'f> Page<'f> {
    /// Begins a page of at most `limit` records that pass `filter`.
    pub(super) fn new(filter: &'f ListFilter, limit: usize) -> Self {
        Self { filter, limit, listed: ListedFiles::default(), passed_over: 0 }
    }

    /// Adds the next record in the listing's order. Breaks when the page is full. The page reads one
    /// record more than it shows, so that it knows if it is the last page.
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

    /// Returns a page that is not the last one.
    pub(super) fn full(self) -> ListedFiles {
        self.listed
    }

    /// Returns the last page.
    pub(super) fn last(self) -> ListedFiles {
        ListedFiles { next: None, ..self.listed }
    }
}

/// A page of sub-systems while it is filled from their totals.
pub(super) struct SubSystemPage {
    limit: usize,
    listed: Vec<SubSystemUsage>,
}

impl SubSystemPage {
    /// Begins a page of at most `limit` sub-systems.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, listed: Vec::new() }
    }

    /// Adds the next total to its sub-system, the last one or a new one. Totals come in the order of names.
    /// Breaks at the first total that belongs to the next page.
    pub(super) fn take(
        &mut self,
        name: SubSystem,
        standing: Standing,
        stored: Stored,
    ) -> ControlFlow<()> {
        if self.listed.last().is_none_or(|last| last.sub_system != name) {
            if self.listed.len() >= self.limit {
                return ControlFlow::Break(());
            }
            self.listed.push(SubSystemUsage::new(name));
        }
        if let Some(last) = self.listed.last_mut() {
            last.add(standing, stored);
        }
        ControlFlow::Continue(())
    }

    /// Returns the page.
    pub(super) fn into_listed(self) -> Vec<SubSystemUsage> {
        self.listed
    }
}
