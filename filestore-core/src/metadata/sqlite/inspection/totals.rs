//! Stored totals, compared with the sums of their files.

use async_trait::async_trait;
use rusqlite::{Connection, params};

use crate::domain::error::Result;
use crate::metadata::inspection::Sums;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::row;
use crate::metadata::{DriftedTotal, Total, Totals};

pub(super) const NEXT_OF_FILES: &str = "SELECT min(organization_id) FROM files
     INDEXED BY files_by_organization WHERE organization_id > ?1";

pub(super) const NEXT_OF_USAGE: &str =
    "SELECT min(organization_id) FROM organization_usage WHERE organization_id > ?1";

pub(super) const STORED: &str =
    "SELECT storage_location, files, bytes FROM organization_usage WHERE organization_id = ?1";

pub(super) const COUNTED: &str = "SELECT storage_location, 1, size_bytes
     FROM files INDEXED BY files_by_organization WHERE organization_id = ?1";

pub(super) const STORED_PARTS: &str = "SELECT sub_system || ' ' || standing, files, bytes
     FROM sub_system_usage WHERE organization_id = ?1";

pub(super) const COUNTED_PARTS: &str = "SELECT sub_system || ' ' ||
     CASE WHEN purge_status IS NOT NULL THEN 'DELETED' WHEN status = 'TEMP' THEN 'TEMP' ELSE 'LIVE' END,
     1, size_bytes FROM files INDEXED BY files_by_organization WHERE organization_id = ?1";

const STORED_SYNCS: &str = "SELECT sync_status, files, 0 FROM sync_totals";

/// Reads the whole table, because no index contains the sync status.
const COUNTED_SYNCS: &str =
    "SELECT sync_status, count(*), 0 FROM files WHERE purge_status IS NULL GROUP BY sync_status";

const ADD_TO_USAGE: &str = "UPDATE organization_usage SET files = files + ?3, bytes = bytes + ?4
     WHERE organization_id = ?1 AND storage_location = ?2";

const PUT_USAGE: &str = "INSERT INTO organization_usage VALUES (?1, ?2, ?3, ?4)";

const ADD_TO_PART: &str = "UPDATE sub_system_usage SET files = files + ?4, bytes = bytes + ?5
     WHERE organization_id = ?1 AND sub_system = ?2 AND standing = ?3";

const PUT_PART: &str = "INSERT INTO sub_system_usage VALUES (?1, ?2, ?3, ?4, ?5)";

const FORGET_PART: &str = "DELETE FROM sub_system_usage
     WHERE organization_id = ?1 AND sub_system = ?2 AND files = 0 AND bytes = 0";

const ADD_TO_SYNCS: &str = "UPDATE sync_totals SET files = files + ?2 WHERE sync_status = ?1";

#[async_trait]
impl Totals for SqliteMetadata {
    async fn organizations(&self, after: &str, limit: usize) -> Result<Vec<String>> {
        let after = after.to_owned();
        self.readers
            .run("listing organizations", move |sql| {
                // From organization to organization, however many files each has.
                let mut all: Vec<String> = Vec::new();
                while all.len() < limit {
                    let last = all.last().map_or(after.as_str(), String::as_str);
                    let of_files = next(sql, NEXT_OF_FILES, last)?;
                    let of_usage = next(sql, NEXT_OF_USAGE, last)?;
                    match of_files.into_iter().chain(of_usage).min() {
                        Some(next) => all.push(next),
                        None => break,
                    }
                }
                Ok(all)
            })
            .await
    }

    async fn drifted_totals(&self, organization: Option<&str>) -> Result<Vec<DriftedTotal>> {
        let organization = organization.map(str::to_owned);
        self.readers
            .run("adding totals up", move |sql| match &organization {
                Some(organization) => drift_of_usage(sql, organization),
                None => drift_of_syncs(sql),
            })
            .await
    }

    async fn correct_totals(&self, drifted: &[DriftedTotal]) -> Result<()> {
        let drifted = drifted.to_vec();
        self.writer
            .run("correcting totals", move |tx| {
                // The triggers that keep a total change it and its files alike, so the difference of the two
                // is now what it was when it was found.
                for DriftedTotal { total, stored, counted } in &drifted {
                    let (files, bytes) = (counted.0 - stored.0, counted.1 - stored.1);
                    match total {
                        Total::Syncs { status } => {
                            row::execute(tx.sql, ADD_TO_SYNCS, params![status, files])?;
                        }
                        Total::Usage { organization, location } => {
                            let lacking = params![organization, location, files, bytes];
                            if row::execute(tx.sql, ADD_TO_USAGE, lacking)? == 0 {
                                row::execute(tx.sql, PUT_USAGE, lacking)?;
                            }
                        }
                        Total::SubSystem { organization, sub_system, standing } => {
                            let lacking = params![organization, sub_system, standing, files, bytes];
                            if row::execute(tx.sql, ADD_TO_PART, lacking)? == 0 {
                                row::execute(tx.sql, PUT_PART, lacking)?;
                            }
                            row::execute(tx.sql, FORGET_PART, params![organization, sub_system])?;
                        }
                    }
                }
                Ok(())
            })
            .await
    }
}

fn next(sql: &Connection, query: &str, after: &str) -> Result<Option<String>, Fault> {
    Ok(row::first(sql, query, [after], |row| Ok(row.get::<_, Option<String>>(0)?))?.flatten())
}

fn drift_of_usage(sql: &Connection, organization: &str) -> Result<Vec<DriftedTotal>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let stored = sums(&snapshot, STORED, [organization])?;
    let counted = sums(&snapshot, COUNTED, [organization])?;
    let mut drifted = Sums::compare(&stored, &counted, |location| Total::Usage {
        organization: organization.to_owned(),
        location: location.to_owned(),
    });

    let stored = sums(&snapshot, STORED_PARTS, [organization])?;
    let counted = sums(&snapshot, COUNTED_PARTS, [organization])?;
    drifted.extend(Sums::compare(&stored, &counted, |part| Total::of_part(organization, part)));
    Ok(drifted)
}

fn drift_of_syncs(sql: &Connection) -> Result<Vec<DriftedTotal>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let stored = sums(&snapshot, STORED_SYNCS, [])?;
    let counted = sums(&snapshot, COUNTED_SYNCS, [])?;
    Ok(Sums::compare(&stored, &counted, |status| Total::Syncs { status: status.to_owned() }))
}

fn sums(sql: &Connection, query: &str, params: impl rusqlite::Params) -> Result<Sums, Fault> {
    let mut statement = sql.prepare_cached(query)?;
    let mut rows = statement.query(params)?;

    let mut sums = Sums::default();
    while let Some(row) = rows.next()? {
        sums.add(row.get(0)?, row.get(1)?, row.get(2)?);
    }
    Ok(sums)
}
