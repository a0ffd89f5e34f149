//! Organizations and their sub-systems, from the totals that triggers keep.

use async_trait::async_trait;
use rusqlite::{Connection, params};

use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::file::usage::{KnownOrganization, Standing, Stored, SubSystemUsage, Usage};
use crate::domain::id::{OrganizationId, SubSystem};
use crate::metadata::Organizations;
use crate::metadata::paging::{SubSystemPage, scoped_after};

use super::{bindings, damage, row, usage};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};

/// The ids behind one id: of organizations with files, and of those with an active binding.
pub(in crate::metadata::sqlite) const IDS: &str = "SELECT organization_id FROM (
      SELECT DISTINCT organization_id FROM organization_usage
      WHERE organization_id > ?1 AND files > 0 ORDER BY organization_id LIMIT ?2)
     UNION SELECT id FROM (
      SELECT CAST(organization_id AS TEXT) AS id FROM bindings INDEXED BY bindings_by_name
      WHERE is_active = 1 AND CAST(organization_id AS TEXT) > ?1
      ORDER BY CAST(organization_id AS TEXT) LIMIT ?2)
     ORDER BY 1 LIMIT ?2";

pub(in crate::metadata::sqlite) const SUB_SYSTEMS: &str =
    "SELECT sub_system, files, bytes, standing FROM sub_system_usage
     WHERE organization_id = ?1 AND sub_system > ?2 AND files > 0
     ORDER BY sub_system, standing";

#[async_trait]
impl Organizations for SqliteMetadata {
    async fn list_organizations(
        &self,
        scope: &Scope,
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<KnownOrganization>> {
        let (scope, after) = (scope.clone(), after.cloned());
        self.readers
            .run("listing organizations", move |sql| {
                // One snapshot for all look-ups.
                let snapshot = sql.unchecked_transaction()?;
                list(&snapshot, &scope, after.as_ref(), limit)
            })
            .await
    }

    async fn list_sub_systems(
        &self,
        organization: &OrganizationId,
        after: Option<&SubSystem>,
        limit: usize,
    ) -> Result<Vec<SubSystemUsage>> {
        let (organization, after) = (organization.clone(), after.cloned());
        self.readers
            .run("listing sub-systems", move |sql| {
                sub_systems(sql, &organization, after.as_ref(), limit)
            })
            .await
    }

    async fn total(&self) -> Result<Usage> {
        self.readers.run("adding totals up", usage::total).await
    }
}

fn list(
    sql: &Connection,
    scope: &Scope,
    after: Option<&OrganizationId>,
    limit: usize,
) -> Result<Vec<KnownOrganization>, Fault> {
    let mut known = Vec::new();
    match scope {
        Scope::Organizations(list) => known = described(sql, scoped_after(list, after), limit)?,
        Scope::All => {
            let mut after = after.map_or("", OrganizationId::as_str).to_owned();
            // Damaged ids are skipped. Read on, so that a short page means the end.
            while known.len() < limit {
                let params = params![after, row::limit(limit)];
                let texts: Vec<String> =
                    row::collect_whole(sql, IDS, params, |row| Ok(row.get(0)?))?;
                let mut ids = Vec::new();
                for text in &texts {
                    let id = text.parse().map_err(|source: Error| Fault::Row {
                        what: format!("organization {text:?}"),
                        source: source.into(),
                    });
                    ids.extend(damage::pass_over(id)?);
                }
                known.extend(described(sql, ids, limit - known.len())?);

                let Some(last) = texts.last().filter(|_| texts.len() >= limit) else { break };
                after.clone_from(last);
            }
        }
    }
    Ok(known)
}

/// Reads the files, bytes and bindings of up to `limit` organizations. Leaves out those without any.
fn described(
    sql: &Connection,
    ids: Vec<OrganizationId>,
    limit: usize,
) -> Result<Vec<KnownOrganization>, Fault> {
    let mut known = Vec::new();
    for organization_id in ids {
        if known.len() == limit {
            break;
        }
        let stored = usage::by_location(sql, &organization_id)?.total();
        let binding = match organization_id.number() {
            Some(number) => damage::pass_over(bindings::active(sql, number))?.flatten(),
            None => None,
        };
        if stored.files > 0 || binding.is_some() {
            known.push(KnownOrganization { organization_id, stored, binding });
        }
    }
    Ok(known)
}

/// Reads the totals until the page is full. Damaged totals are skipped and do not count, unlike with a limit
/// in the query itself.
fn sub_systems(
    sql: &Connection,
    organization: &OrganizationId,
    after: Option<&SubSystem>,
    limit: usize,
) -> Result<Vec<SubSystemUsage>, Fault> {
    let after = after.map_or("", SubSystem::as_str);
    let mut statement = sql.prepare_cached(SUB_SYSTEMS)?;
    let mut rows = statement.query(params![organization.as_str(), after])?;

    let mut page = SubSystemPage::new(limit);
    while let Some(row) = rows.next()? {
        let read = sub_system_row(row, organization);
        let Some((name, standing, stored)) = damage::pass_over(read)? else { continue };
        if page.take(name, standing, stored).is_break() {
            break;
        }
    }
    Ok(page.into_listed())
}

fn sub_system_row(
    row: &rusqlite::Row<'_>,
    organization: &OrganizationId,
) -> Result<(SubSystem, Standing, Stored), Fault> {
    let read = || {
        let stored = Stored { files: row::unsigned(row, 1)?, bytes: row::unsigned(row, 2)? };
        Ok((row::parse(row, 0)?, row::parse(row, 3)?, stored))
    };
    read().map_err(|source: Source| {
        let name = row.get(0).unwrap_or_else(|_| String::from("?"));
        let what = format!("a total of sub-system {name:?} of organization {organization}");
        Fault::Row { what, source }
    })
}
