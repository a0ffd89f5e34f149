//! Listings, newest first.
//!
//! Every filter is answered from ranges of one index, each of which holds exactly the rows of one
//! status (and organization, where the scope names several) in the order asked for. Where there are
//! several ranges they are merged row by row, so a page costs its own length however large the
//! table is and however the statuses are mixed.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

use rusqlite::{Connection, Rows, ToSql};

use crate::domain::id::{FileId, OrganizationId, SubSystem};
use crate::domain::listing::ListFilter;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::{PurgeStatus, Status};

use super::damage;
use super::fault::Fault;
use super::row::{self, columns, id};

/// Above every id: a ULID starts with a digit up to 7.
const NO_BOUND: &str = "8";

/// Lists up to `limit` records with ids below `before`.
pub(super) fn list(
    sql: &Connection,
    filter: &ListFilter,
    scope: &Scope,
    before: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    let organizations = organizations(filter, scope);
    let statuses = filter.status.as_ref().map_or(Status::ALL, std::slice::from_ref);
    let before = before.map_or_else(|| NO_BOUND.to_owned(), id);

    // One snapshot for all ranges.
    let transaction = sql.unchecked_transaction()?;
    let mut ranges = Vec::new();
    for organization in &organizations {
        for &status in statuses {
            let query = query(organization.as_ref(), filter, status);
            ranges.push((transaction.prepare_cached(&query)?, organization));
        }
    }
    let mut cursors = Vec::with_capacity(ranges.len());
    for (statement, organization) in &mut ranges {
        let mut params: Vec<(&str, &dyn ToSql)> = vec![(":before", &before)];
        let organization = organization.as_ref().map(OrganizationId::as_str);
        if let Some(organization) = &organization {
            params.push((":organization", organization));
        }
        let sub_system = filter.sub_system.as_ref().map(SubSystem::as_str);
        if let Some(sub_system) = &sub_system {
            params.push((":sub_system", sub_system));
        }
        cursors.push(statement.query(params.as_slice())?);
    }
    merge(&mut cursors, limit)
}

/// Returns the organizations to look at, each once; `None` stands for all of them.
fn organizations(filter: &ListFilter, scope: &Scope) -> Vec<Option<OrganizationId>> {
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

/// Writes the statement of one range. The states are in its text so that each has a prepared
/// statement of its own: several are open at once. Without LIMIT, as rows are only read when they
/// are asked for: SQLite prepares a statement anew each time one is bound to its LIMIT, which took
/// longer than the page.
pub(super) fn query(
    organization: Option<&OrganizationId>,
    filter: &ListFilter,
    status: Status,
) -> String {
    let (index, equal) = match (organization.is_some(), filter.sub_system.is_some()) {
        (false, false) => ("files_by_status", ""),
        (true, false) => ("files_by_organization", "organization_id = :organization AND "),
        (false, true) => ("files_by_sub_system", "sub_system = :sub_system AND "),
        (true, true) => {
            ("files_by_both", "organization_id = :organization AND sub_system = :sub_system AND ")
        }
    };
    let purge = match filter.purge_status {
        None => "IS NULL",
        Some(PurgeStatus::SystemPurge) => "= 'SYSTEM_PURGE'",
    };

    format!(
        "SELECT {} FROM files INDEXED BY {index} WHERE {equal}purge_status {purge} AND status = '{status}' \
         AND file_id < :before ORDER BY file_id DESC",
        columns!()
    )
}

/// The next record of a cursor.
struct Head {
    record: FileRecord,
    cursor: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.record.file_id.cmp(&other.record.file_id)
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

/// Merges up to `limit` records of all cursors, each of which is newest first.
fn merge(cursors: &mut [Rows<'_>], limit: usize) -> Result<Vec<FileRecord>, Fault> {
    let mut heads = BinaryHeap::with_capacity(cursors.len());
    for cursor in 0..cursors.len() {
        heads.extend(next(cursors, cursor)?);
    }

    let mut merged = Vec::new();
    while merged.len() < limit
        && let Some(Head { record, cursor }) = heads.pop()
    {
        merged.push(record);
        heads.extend(next(cursors, cursor)?);
    }
    Ok(merged)
}

fn next(cursors: &mut [Rows<'_>], cursor: usize) -> Result<Option<Head>, Fault> {
    while let Some(row) = cursors[cursor].next()? {
        if let Some(record) = damage::pass_over(row::record(row))? {
            return Ok(Some(Head { record, cursor }));
        }
    }
    Ok(None)
}
