//! Listings: newest or oldest first, by name, or by deletion, with the same indexes as in SQLite.
//!
//! One statement reads a chunk of every range of a page ([`paging`](crate::metadata::paging)). If a range is
//! empty before the page is full, another statement reads its next chunk. A page is therefore usually one
//! round trip and one snapshot. If a page needs several round trips, records that are added or removed in the
//! meantime can be shown or not. No record is shown twice.

use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::listing::{ListFilter, ListOrder, ListPosition, end_of_prefix};
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Status, SyncStatus};
use crate::domain::id::{FileId, OrganizationId, SubSystem};
use crate::domain::time::clock::Timestamp;
use crate::metadata::paging::{
    Head, INDEXED_SYNCS, Index, NO_BOUND, Page, Sorting, behind, indexed_sync, organizations,
    statuses,
};
use crate::metadata::stored::{NEVER, term};
use crate::metadata::{ListedFiles, Listing};

use super::row::{self, COLUMNS, columns, id};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Param, Sql};

/// Longer than every name. This text sorts behind all names.
const LAST_NAME_CHARS: usize = 1100;

/// The maximum number of records of one range in one chunk.
const LARGEST_CHUNK: usize = 1024;

/// The minimum number of records of one range in one chunk, if there are many ranges.
const SMALLEST_CHUNK: usize = 8;

/// The unread records of a range.
#[derive(Debug, Clone)]
enum Rest {
    Nothing,
    /// Records with smaller ids than this one.
    Before(String),
    /// Oldest first: records with ids from this text on.
    From(String),
    /// By deletion: records that were deleted earlier than this, or then and with smaller ids.
    DeletedBefore(i64, String),
    /// By name: records with this name and smaller ids than this one, then records with later names.
    OfName(String, String),
    /// By name: records with this name or a later name.
    FromName(String),
}

/// One range of an index.
#[derive(Debug)]
struct IndexRange {
    organization: Option<OrganizationId>,
    status: Status,
    rest: Rest,
    /// The records that were read, in the listing's order.
    read: VecDeque<FileRecord>,
}

#[async_trait]
impl Listing for PostgresMetadata {
    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<ListedFiles> {
        let wanted = (filter, scope, after, limit);
        self.engine
            .read("listing files", &wanted, |sql, (filter, scope, after, limit)| {
                Box::pin(list(sql, filter, scope, *after, *limit))
            })
            .await
    }
}

/// Lists up to `limit` records after `after`.
async fn list(
    sql: &Sql,
    filter: &ListFilter,
    scope: &Scope,
    after: Option<&ListPosition>,
    limit: usize,
) -> Result<ListedFiles, Fault> {
    // Text in PostgreSQL has no U+0000, and so has no name and no type.
    let has_nul = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains('\0'));
    if has_nul(&filter.name_prefix) || has_nul(&filter.mime_type) {
        return Ok(ListedFiles::default());
    }

    let organizations = organizations(filter, scope);
    let statuses = statuses(filter);
    let sorting = Sorting::of(filter, organizations.first().and_then(Option::as_ref));
    let mut ranges = Vec::new();
    for organization in organizations {
        for &status in statuses {
            let rest = first_rest(filter, sorting, after);
            let organization = organization.clone();
            ranges.push(IndexRange { organization, status, rest, read: VecDeque::new() });
        }
    }
    Merge { sql, filter, sorting, ranges }.page(limit).await
}

/// Returns where a listing continues.
fn first_rest(filter: &ListFilter, sorting: Sorting, after: Option<&ListPosition>) -> Rest {
    let before = after.map_or_else(|| NO_BOUND.to_owned(), |after| id(after.file_id));
    match sorting {
        Sorting::Name => match after.and_then(|after| after.name.clone()) {
            Some(name) => Rest::OfName(name, before),
            None => Rest::FromName(filter.name_prefix.clone().unwrap_or_default()),
        },
        Sorting::Newest => {
            let until = filter.created_before.map(|at| id(FileId::first_at(at)));
            Rest::Before(until.map_or(before.clone(), |until| until.min(before)))
        }
        Sorting::Oldest => {
            let from = filter.created_after.map(|at| id(FileId::first_at(at))).unwrap_or_default();
            let behind = after.map(|after| behind(&id(after.file_id))).unwrap_or_default();
            Rest::From(from.max(behind))
        }
        Sorting::Deleted => {
            let marked = after.and_then(|after| after.marked_at);
            Rest::DeletedBefore(marked.map_or(NEVER, Timestamp::as_millis), before)
        }
    }
}

/// Returns the statement that reads chunks of ranges. `$1` are their organizations, `$2` their statuses, `$3`
/// and `$4` their bounds, `$5` the length of a chunk, and `$6` the filter.
pub(in crate::metadata::postgres) fn query(
    index: Index,
    in_one_organization: bool,
    filter: &ListFilter,
) -> String {
    let deleted = if filter.purge_status.is_some() { "" } else { "NOT " };
    let own = if in_one_organization { "organization_id = part.organization AND " } else { "" };
    let state = format!("{own}{deleted}is_deleted AND status = part.status");
    let direction = if filter.order == ListOrder::Oldest { "" } else { " DESC" };
    let newest =
        format!("file_id >= part.bound AND file_id < part.place ORDER BY file_id{direction}");

    let rest = match index {
        Index::Plain if filter.sub_system.is_some() => {
            format!("files WHERE {state} AND sub_system = $6 AND {newest}")
        }
        Index::Plain => format!("files WHERE {state} AND {newest}"),
        Index::Sync => {
            let sync = indexed_sync(filter).map_or("", SyncStatus::as_str);
            format!("files WHERE {own}{deleted}is_deleted AND sync_status = '{sync}' AND {INDEXED_SYNCS} AND {newest}")
        }
        Index::Type => format!("files WHERE {state} AND media_type = $6 AND {newest}"),
        Index::Term => format!(
            "file_terms JOIN files ON file_id = of_file WHERE of_organization = part.organization AND term = $6
             AND {deleted}file_terms.is_deleted AND in_status = part.status AND of_file >= part.bound
             AND of_file < part.place ORDER BY of_file{direction}"
        ),
        Index::Deleted => format!(
            "files WHERE {own}is_deleted AND (purge_marked_at, file_id) < (part.bound::bigint, part.place)
             ORDER BY purge_marked_at DESC, file_id DESC"
        ),
        Index::Names => format!(
            "files WHERE {state} AND original_name >= part.place AND original_name < part.bound
             ORDER BY original_name, file_id DESC"
        ),
        Index::Name => format!(
            "files WHERE {state} AND original_name = part.place AND file_id < part.bound ORDER BY file_id DESC"
        ),
    };
    format!(
        "SELECT file.*, part.number FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
         WITH ORDINALITY AS part (organization, status, place, bound, number)
         CROSS JOIN LATERAL (SELECT {} FROM {rest} LIMIT $5) AS file",
        columns!()
    )
}

/// Ranges to merge by their records.
struct Merge<'m> {
    sql: &'m Sql,
    filter: &'m ListFilter,
    sorting: Sorting,
    ranges: Vec<IndexRange>,
}

impl Merge<'_> {
    /// Returns at most `limit` records that pass the filter.
    async fn page(mut self, limit: usize) -> Result<ListedFiles, Fault> {
        let mut heads = BinaryHeap::with_capacity(self.ranges.len());
        let mut chunk = self.first_chunk(limit);
        self.fill(chunk).await?;
        for range in 0..self.ranges.len() {
            heads.extend(self.next(range));
        }

        let (mut page, mut taken) = (Page::new(self.filter, limit), BTreeSet::new());
        while let Some(head) = heads.pop() {
            let range = head.range;
            // It has come to another range since that was read.
            let is_new = taken.insert(head.record.file_id);
            if is_new && page.take(head).is_break() {
                return Ok(page.full());
            }

            if self.ranges[range].read.is_empty() && !self.ranges[range].is_over() {
                chunk = (2 * chunk).min(LARGEST_CHUNK);
                self.fill(chunk).await?;
            }
            heads.extend(self.next(range));
        }
        Ok(page.last())
    }

    /// Returns the size of the first chunk of each range. If there are few ranges, one of them can contain
    /// the whole page. If there are many, they share it.
    fn first_chunk(&self, limit: usize) -> usize {
        let page = limit.saturating_add(1);
        let share = if self.ranges.len() <= Status::ALL.len() {
            page
        } else {
            (2 * page / self.ranges.len()).max(SMALLEST_CHUNK).min(page)
        };
        share.min(LARGEST_CHUNK)
    }

    fn next(&mut self, range: usize) -> Option<Head> {
        let record = self.ranges[range].read.pop_front()?;
        Some(Head { record, sorting: self.sorting, range })
    }

    /// Reads chunks until each range has a record or is at its end.
    async fn fill(&mut self, chunk: usize) -> Result<(), Fault> {
        while self.ranges.iter().any(IndexRange::is_dry) {
            for index in [Index::Plain, Index::Name, Index::Names] {
                self.read(index, chunk).await?;
            }
        }
        Ok(())
    }

    /// Reads a chunk of each empty range in this index that is not at its end. [`Index::Plain`] stands for
    /// all indexes except by name.
    async fn read(&mut self, index: Index, chunk: usize) -> Result<(), Fault> {
        let dry: Vec<usize> = (0..self.ranges.len())
            .filter(|&range| {
                self.ranges[range].is_dry() && self.ranges[range].rest.index() == index
            })
            .collect();
        let Some(&first) = dry.first() else { return Ok(()) };

        let in_one_organization = self.ranges[first].organization.is_some();
        let index = match index {
            Index::Plain => Index::of(self.filter, in_one_organization),
            by_name => by_name,
        };
        let query = query(index, in_one_organization, self.filter);
        let rows = self.rows(&query, index, &dry, chunk).await?;

        let mut read = vec![0; dry.len()];
        let mut last: Vec<Option<&Row>> = vec![None; dry.len()];
        for row in &rows {
            let number: i64 = row.try_get(COLUMNS)?;
            let at = usize::try_from(number - 1)?;
            let record = self.sql.pass_over(row::record(row))?;
            self.ranges[dry[at]].read.extend(record);
            read[at] += 1;
            last[at] = Some(row);
        }
        for (at, range) in dry.into_iter().enumerate() {
            let behind = last[at].filter(|_| read[at] == chunk);
            self.ranges[range].go_on(behind)?;
        }
        Ok(())
    }

    async fn rows(
        &self,
        query: &str,
        index: Index,
        dry: &[usize],
        chunk: usize,
    ) -> Result<Vec<Row>, Fault> {
        let ranges = || dry.iter().map(|&range| &self.ranges[range]);
        let organization = |range: &IndexRange| match &range.organization {
            Some(organization) => organization.to_string(),
            None => String::new(),
        };
        let organizations: Vec<String> = ranges().map(organization).collect();
        let statuses: Vec<&str> = ranges().map(|range| range.status.as_str()).collect();
        let bounds = ranges().map(|range| range.rest.bounds(self.filter));
        let (places, bounds): (Vec<String>, Vec<String>) = bounds.unzip();
        let chunk = row::limit(chunk);

        let mut params: Vec<Param<'_>> = vec![&organizations, &statuses, &places, &bounds, &chunk];
        let term = self.filter.metadata.first().map(|(key, value)| term(key, value));
        let term = term.as_ref().map(<[u8; 16]>::as_slice);
        let part = self.filter.sub_system.as_ref().map(SubSystem::as_str);
        match index {
            Index::Term => params.push(&term),
            Index::Type => params.push(&self.filter.mime_type),
            Index::Plain if part.is_some() => params.push(&part),
            _ => {}
        }
        self.sql.rows(query, &params).await
    }
}

impl IndexRange {
    fn is_over(&self) -> bool {
        matches!(self.rest, Rest::Nothing)
    }

    fn is_dry(&self) -> bool {
        self.read.is_empty() && !self.is_over()
    }

    /// Continues behind the last row of a chunk, if there can be more rows.
    fn go_on(&mut self, last: Option<&Row>) -> Result<(), Fault> {
        let rest = std::mem::replace(&mut self.rest, Rest::Nothing);
        self.rest = match (rest, last) {
            (Rest::OfName(name, _), None) => Rest::FromName(least_after(&name)),
            (Rest::Nothing, _) | (_, None) => Rest::Nothing,
            (Rest::Before(_), Some(last)) => Rest::Before(row::raw_id(last)),
            (Rest::From(_), Some(last)) => Rest::From(behind(&row::raw_id(last))),
            (Rest::DeletedBefore(..), Some(last)) => {
                Rest::DeletedBefore(last.try_get("purge_marked_at")?, row::raw_id(last))
            }
            (Rest::OfName(..) | Rest::FromName(_), Some(last)) => {
                Rest::OfName(last.try_get("original_name")?, row::raw_id(last))
            }
        };
        Ok(())
    }
}

impl Rest {
    /// Returns the index of the range. [`Index::Plain`] stands for all indexes except by name.
    fn index(&self) -> Index {
        match self {
            Self::OfName(..) => Index::Name,
            Self::FromName(_) => Index::Names,
            Self::Nothing | Self::Before(_) | Self::From(_) | Self::DeletedBefore(..) => {
                Index::Plain
            }
        }
    }

    /// Returns the two bounds of the range, for [`query`].
    fn bounds(&self, filter: &ListFilter) -> (String, String) {
        match self {
            Self::Nothing => (String::new(), String::new()),
            Self::Before(before) => {
                let from = filter.created_after.map(|at| id(FileId::first_at(at)));
                (before.clone(), from.unwrap_or_default())
            }
            Self::From(from) => {
                let until = filter.created_before.map(|at| id(FileId::first_at(at)));
                (until.unwrap_or_else(|| NO_BOUND.to_owned()), from.clone())
            }
            Self::DeletedBefore(marked, before) => (before.clone(), marked.to_string()),
            Self::OfName(name, before) => (name.clone(), before.clone()),
            Self::FromName(name) => {
                let end = filter.name_prefix.as_deref().and_then(end_of_prefix);
                let last = || String::from(char::MAX).repeat(LAST_NAME_CHARS);
                (name.clone(), end.unwrap_or_else(last))
            }
        }
    }
}

/// Returns the smallest possible name after `name`. Names contain no control characters, so U+0001 comes
/// before every possible next character. PostgreSQL text cannot contain U+0000.
fn least_after(name: &str) -> String {
    format!("{name}\u{1}")
}
