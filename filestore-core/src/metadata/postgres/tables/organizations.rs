//! Organizations and their sub-systems, from the totals that triggers keep in slots.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::file::usage::{KnownOrganization, Standing, Stored, SubSystemUsage, Usage};
use crate::domain::id::{OrganizationId, OrganizationNumber, SubSystem};
use crate::domain::provider::binding::Binding;
use crate::metadata::Organizations;
use crate::metadata::paging::{SubSystemPage, scoped_after};

use super::{bindings, row, usage};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Param, Sql};

/// The ids behind one id: of organizations with files, and of those with an active binding.
pub(in crate::metadata::postgres) const IDS: &str =
    "(SELECT organization_id AS id FROM organization_usage WHERE organization_id > $1
      GROUP BY organization_id HAVING sum(files) > 0 ORDER BY organization_id LIMIT $2)
     UNION (SELECT organization_id::text COLLATE \"C\" FROM bindings
      WHERE is_active AND (organization_id::text COLLATE \"C\") > $1
      ORDER BY organization_id::text COLLATE \"C\" LIMIT $2)
     ORDER BY id LIMIT $2";

pub(in crate::metadata::postgres) const USAGES: &str =
    "SELECT organization_id, sum(files)::bigint, sum(bytes)::bigint FROM organization_usage
     WHERE organization_id = ANY ($1) GROUP BY organization_id";

/// The totals of an organization behind one total: its sub-system and standing.
pub(in crate::metadata::postgres) const SUB_SYSTEMS: &str =
    "SELECT sub_system, sum(files)::bigint, sum(bytes)::bigint, standing FROM sub_system_usage
     WHERE organization_id = $1 AND (sub_system, standing) > ($2, $3) GROUP BY sub_system, standing
     HAVING sum(files) > 0 ORDER BY sub_system, standing LIMIT $4";

/// A text behind every standing.
const AFTER_STANDINGS: &str = "~";

#[async_trait]
impl Organizations for PostgresMetadata {
    async fn list_organizations(
        &self,
        scope: &Scope,
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<KnownOrganization>> {
        self.engine
            .read_snapshot(
                "listing organizations",
                &(scope, after, limit),
                |sql, (scope, after, limit)| Box::pin(list(sql, scope, *after, *limit)),
            )
            .await
    }

    async fn list_sub_systems(
        &self,
        organization: &OrganizationId,
        after: Option<&SubSystem>,
        limit: usize,
    ) -> Result<Vec<SubSystemUsage>> {
        self.engine
            .read(
                "listing sub-systems",
                &(organization, after, limit),
                |sql, (organization, after, limit)| {
                    Box::pin(sub_systems(sql, organization, *after, *limit))
                },
            )
            .await
    }

    async fn total(&self) -> Result<Usage> {
        self.engine
            .read_snapshot("adding totals up", &(), |sql, ()| Box::pin(usage::total(sql)))
            .await
    }
}

async fn list(
    sql: &Sql,
    scope: &Scope,
    after: Option<&OrganizationId>,
    limit: usize,
) -> Result<Vec<KnownOrganization>, Fault> {
    let mut known = Vec::new();
    match scope {
        Scope::Organizations(list) => known = described(sql, scoped_after(list, after)).await?,
        Scope::All => {
            let mut after = after.map_or("", OrganizationId::as_str).to_owned();
            // Damaged ids are skipped. Read on, so that a short page means the end.
            while known.len() < limit {
                let rows = sql.rows(IDS, &[&after, &row::limit(limit)]).await?;
                let mut ids = Vec::new();
                for row in &rows {
                    let text: &str = row.try_get(0)?;
                    let id = text.parse().map_err(|source: Error| Fault::Row {
                        what: format!("organization {text:?}"),
                        source: source.into(),
                    });
                    ids.extend(sql.pass_over(id)?);
                }
                known.extend(described(sql, ids).await?);

                let Some(last) = rows.last().filter(|_| rows.len() >= limit) else { break };
                after = last.try_get(0)?;
            }
        }
    }
    known.truncate(limit);
    Ok(known)
}

/// Reads the files, bytes and bindings of organizations. Leaves out those without any.
async fn described(sql: &Sql, ids: Vec<OrganizationId>) -> Result<Vec<KnownOrganization>, Fault> {
    let texts: Vec<&str> = ids.iter().map(OrganizationId::as_str).collect();
    let mut usages = BTreeMap::new();
    for row in sql.rows(USAGES, &[&texts]).await? {
        usages.insert(row.try_get::<_, String>(0)?, usage::stored(&row)?);
    }
    let mut bindings = active(sql, &ids).await?;

    let known = ids.into_iter().map(|organization_id| {
        let stored = usages.get(organization_id.as_str()).copied().unwrap_or_default();
        let number = organization_id.number().map(OrganizationNumber::get);
        let binding = number.and_then(|number| bindings.remove(&number));
        KnownOrganization { organization_id, stored, binding }
    });
    let has_something = |one: &KnownOrganization| one.stored.files > 0 || one.binding.is_some();
    Ok(known.filter(has_something).collect())
}

/// Reads the active bindings of organizations, by their numbers. Damaged ones are passed over.
async fn active(sql: &Sql, ids: &[OrganizationId]) -> Result<BTreeMap<i64, Binding>, Fault> {
    let numbers: Vec<i64> =
        ids.iter().filter_map(OrganizationId::number).map(OrganizationNumber::get).collect();
    let mut active = BTreeMap::new();
    for (number, binding) in bindings::all_active(sql, &numbers).await? {
        if let Some(binding) = sql.pass_over(binding)? {
            active.insert(number, binding);
        }
    }
    Ok(active)
}

/// Reads the totals until the page is full. Damaged totals are skipped and do not count, so that a short page
/// means the end.
async fn sub_systems(
    sql: &Sql,
    organization: &OrganizationId,
    after: Option<&SubSystem>,
    limit: usize,
) -> Result<Vec<SubSystemUsage>, Fault> {
    let mut after = (after.map_or("", SubSystem::as_str).to_owned(), AFTER_STANDINGS.to_owned());
    // All totals of a full page, and the total that shows that the page is full.
    let wanted = limit.saturating_mul(Standing::ALL.len()).saturating_add(1);
    let mut page = SubSystemPage::new(limit);

    loop {
        let (name, standing) = &after;
        let params: [Param<'_>; 4] = [&organization.as_str(), name, standing, &row::limit(wanted)];
        let rows = sql.rows(SUB_SYSTEMS, &params).await?;
        for row in &rows {
            let read = sub_system_row(row, organization);
            let Some((name, standing, stored)) = sql.pass_over(read)? else { continue };
            if page.take(name, standing, stored).is_break() {
                return Ok(page.into_listed());
            }
        }

        let Some(last) = rows.last().filter(|_| rows.len() >= wanted) else {
            return Ok(page.into_listed());
        };
        after = (last.try_get(0)?, last.try_get(3)?);
    }
}

fn sub_system_row(
    row: &Row,
    organization: &OrganizationId,
) -> Result<(SubSystem, Standing, Stored), Fault> {
    let read = || {
        let stored = Stored { files: row::unsigned(row, 1)?, bytes: row::unsigned(row, 2)? };
        Ok((row::parse(row, 0)?, row::parse(row, 3)?, stored))
    };
    read().map_err(|source: Source| {
        let name = row::raw_id(row);
        let what = format!("a total of sub-system {name:?} of organization {organization}");
        Fault::Row { what, source }
    })
}
