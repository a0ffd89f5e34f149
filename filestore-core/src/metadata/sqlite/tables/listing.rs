//! Listings: newest or oldest first, by name, or by deletion.
//!
//! Several ranges ([`paging`](crate::metadata::paging)) are merged row by row. The cost of a page depends
//! only on its length, not on the size of the table or the mix of statuses.
//!
//! | filter | index | order |
//! |---|---|---|
//! | `name_prefix`, in known organizations | `files_by_name` | name, newest first |
//! | metadata, in known organizations | `file_terms` (the first member) | newest first |
//! | `mime_type`, in known organizations | `files_by_type` | newest first |
//! | `order=deleted` | `files_by_deletion`, `…_of_all` | latest deletion first |
//! | organization, sub-system, both, neither | `files_by_organization`, … | newest first |
//!
//! The first matching row decides. `order=oldest` reads an index by ids forwards. `created_after` and `created_before` limit the ids, because ids begin with
//! their time.

use std::collections::BinaryHeap;

use async_trait::async_trait;
use rusqlite::types::Value;
use rusqlite::{Connection, Rows, ToSql};

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::listing::{ListFilter, ListOrder, ListPosition, end_of_prefix};
use crate::domain::file::status::{PurgeStatus, Status, SyncStatus};
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::time::clock::Timestamp;
use crate::metadata::paging::{
    Head, INDEXED_SYNCS, Index, NO_BOUND, Page, Sorting, behind, indexed_sync, organizations,
    statuses,
};
use crate::metadata::stored::{NEVER, term};
use crate::metadata::{ListedFiles, Listing};

use super::damage;
use super::row::{self, columns, id};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;

/// One range of an index: a statement, and the values of its parameters.
#[derive(Debug)]
struct Range {
    query: String,
    values: Vec<(&'static str, Value)>,
}

#[async_trait]
impl Listing for SqliteMetadata {
    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<ListedFiles> {
        let (filter, scope, after) = (filter.clone(), scope.clone(), after.cloned());
        self.readers
            .run("listing files", move |sql| list(sql, &filter, &scope, after.as_ref(), limit))
            .await
    }
}

/// Lists up to `limit` records after `after`.
fn list(
    sql: &Connection,
    filter: &ListFilter,
    scope: &Scope,
    after: Option<&ListPosition>,
    limit: usize,
) -> Result<ListedFiles, Fault> {
    let organizations = organizations(filter, scope);
    let statuses = statuses(filter);

    let mut ranges = Vec::new();
    for organization in &organizations {
        for &status in statuses {
            ranges.extend(ranges_of(filter, organization.as_ref(), status, after));
        }
    }

    // One snapshot for all ranges.
    let transaction = sql.unchecked_transaction()?;
    let mut statements = Vec::with_capacity(ranges.len());
    for range in &ranges {
        statements.push(transaction.prepare_cached(&range.query)?);
    }
    let mut cursors = Vec::with_capacity(ranges.len());
    for (statement, range) in statements.iter_mut().zip(&ranges) {
        let values: Vec<(&str, &dyn ToSql)> =
            range.values.iter().map(|(name, value)| (*name, value as &dyn ToSql)).collect();
        cursors.push(statement.query(values.as_slice())?);
    }

    let sorting = Sorting::of(filter, organizations.first().and_then(Option::as_ref));
    Merge { cursors, sorting }.page(filter, limit)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Returns the remaining ranges of a listing for one organization (or all, if `None`) and one status.
fn ranges_of(
    filter: &ListFilter,
    organization: Option<&OrganizationId>,
    status: Status,
    after: Option<&ListPosition>,
) -> Vec<Range> {
    let range = |index, values| Range {
        query: query(index, organization.is_some(), filter, status),
        values,
    };
    let before = match (after, filter.order) {
        (Some(after), ListOrder::Newest | ListOrder::Deleted) => id(after.file_id),
        _ => NO_BOUND.to_owned(),
    };

    let mut values: Vec<(&'static str, Value)> = Vec::new();
    values.extend(organization.map(|organization| (":organization", text(organization.as_str()))));

    if filter.order == ListOrder::Deleted {
        let marked = after.and_then(|after| after.marked_at).map_or(NEVER, Timestamp::as_millis);
        values.extend([(":marked", Value::Integer(marked)), (":before", Value::Text(before))]);
        return vec![range(Index::Deleted, values)];
    }
    if let Some(prefix) = filter.name_prefix.as_ref().filter(|_| organization.is_some()) {
        // No text is after a blob.
        let end = end_of_prefix(prefix).map_or(Value::Blob(Vec::new()), Value::Text);
        let Some(name) = after.and_then(|after| after.name.as_ref()) else {
            values.extend([(":from", text(prefix)), (":end", end)]);
            return vec![range(Index::Names, values)];
        };

        let mut one = values.clone();
        one.extend([(":name", text(name)), (":before", Value::Text(before))]);
        // The least text after a name is the name with the least character behind it.
        values.extend([(":from", Value::Text(format!("{name}\0"))), (":end", end)]);
        return vec![range(Index::Name, one), range(Index::Names, values)];
    }

    let until = filter.created_before.map(|at| id(FileId::first_at(at)));
    let before = until.map_or(before.clone(), |until| until.min(before));
    let mut from = filter.created_after.map(|at| id(FileId::first_at(at))).unwrap_or_default();
    if let Some(after) = after.filter(|_| filter.order == ListOrder::Oldest) {
        from = from.max(behind(&id(after.file_id)));
    }
    values.extend([(":from", Value::Text(from)), (":before", Value::Text(before))]);

    let index = Index::of(filter, organization.is_some());
    match (index, filter.metadata.first(), &filter.mime_type, &filter.sub_system) {
        (Index::Term, Some((key, value)), ..) => {
            values.push((":term", Value::Blob(term(key, value).to_vec())));
        }
        (Index::Type, _, Some(mime_type), _) => values.push((":media_type", text(mime_type))),
        (Index::Plain, _, _, Some(part)) => values.push((":sub_system", text(part.as_str()))),
        _ => {}
    }
    vec![range(index, values)]
}

/// Returns the statement of one range. The states are in its text, so that each has its own prepared
/// statement, because several are open at once. The statement has no LIMIT, because rows are read on request.
/// SQLite would prepare a statement again for each LIMIT, which took longer than the page.
pub(in crate::metadata::sqlite) fn query(
    index: Index,
    in_one_organization: bool,
    filter: &ListFilter,
    status: Status,
) -> String {
    let (purge, is_deleted) = match filter.purge_status {
        None => ("IS NULL", 0),
        Some(PurgeStatus::SystemPurge) => ("= 'SYSTEM_PURGE'", 1),
    };
    let (name, equal) = match (in_one_organization, filter.sub_system.is_some()) {
        (false, false) => ("files_by_status", ""),
        (true, false) => ("files_by_organization", "organization_id = :organization AND "),
        (false, true) => ("files_by_sub_system", "sub_system = :sub_system AND "),
        (true, true) => {
            ("files_by_both", "organization_id = :organization AND sub_system = :sub_system AND ")
        }
    };

    let state = format!("purge_status {purge} AND status = '{status}'");
    let own = format!("organization_id = :organization AND {state}");
    let direction = if filter.order == ListOrder::Oldest { "" } else { " DESC" };
    let newest = format!("AND file_id >= :from AND file_id < :before ORDER BY file_id{direction}");
    let rest = match index {
        Index::Plain => format!("files INDEXED BY {name} WHERE {equal}{state} {newest}"),
        Index::Type => {
            format!(
                "files INDEXED BY files_by_type WHERE {own} AND media_type = :media_type {newest}"
            )
        }
        Index::Sync => {
            let sync = indexed_sync(filter).map_or("", SyncStatus::as_str);
            let (name, own) = if in_one_organization {
                ("files_by_sync", "organization_id = :organization AND ")
            } else {
                ("files_by_sync_of_all", "")
            };
            format!(
                "files INDEXED BY {name} WHERE {own}sync_status = '{sync}' AND {INDEXED_SYNCS}
                 AND purge_status IS NULL {newest}"
            )
        }
        Index::Term => format!(
            "file_terms CROSS JOIN files ON file_id = of_file WHERE of_organization = :organization AND term = :term \
             AND is_deleted = {is_deleted} AND in_status = '{status}' AND of_file >= :from AND of_file < :before \
             ORDER BY of_file{direction}"
        ),
        Index::Deleted => {
            let (name, own) = if in_one_organization {
                ("files_by_deletion", "organization_id = :organization AND ")
            } else {
                ("files_by_deletion_of_all", "")
            };
            format!(
                "files INDEXED BY {name} WHERE {own}purge_status = 'SYSTEM_PURGE'
                 AND (purge_marked_at, file_id) < (:marked, :before) ORDER BY purge_marked_at DESC, file_id DESC"
            )
        }
        Index::Names => format!(
            "files INDEXED BY files_by_name WHERE {own} AND original_name >= :from AND original_name < :end \
             ORDER BY original_name, file_id DESC"
        ),
        Index::Name => format!(
            "files INDEXED BY files_by_name WHERE {own} AND original_name = :name AND file_id < :before \
             ORDER BY file_id DESC"
        ),
    };
    format!("SELECT {} FROM {rest}", columns!())
}

/// Cursors to merge by their records. Each cursor returns its records in the listing's order.
struct Merge<'s> {
    cursors: Vec<Rows<'s>>,
    sorting: Sorting,
}

impl Merge<'_> {
    /// Returns at most `limit` records that pass `filter`.
    fn page(mut self, filter: &ListFilter, limit: usize) -> Result<ListedFiles, Fault> {
        let mut heads = BinaryHeap::with_capacity(self.cursors.len());
        for cursor in 0..self.cursors.len() {
            heads.extend(self.next(cursor)?);
        }

        let mut page = Page::new(filter, limit);
        while let Some(head) = heads.pop() {
            let cursor = head.range;
            if page.take(head).is_break() {
                return Ok(page.full());
            }
            heads.extend(self.next(cursor)?);
        }
        Ok(page.last())
    }

    fn next(&mut self, cursor: usize) -> Result<Option<Head>, Fault> {
        while let Some(row) = self.cursors[cursor].next()? {
            if let Some(record) = damage::pass_over(row::record(row))? {
                return Ok(Some(Head { record, sorting: self.sorting, range: cursor }));
            }
        }
        Ok(None)
    }
}
