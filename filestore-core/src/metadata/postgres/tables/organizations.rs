//! Organizations and their sub-systems, from the totals that triggers keep in slots.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::usage::{KnownOrganization, Standing, Stored, SubSystemUsage, Usage};
use crate::domain::id::{OrganizationId, OrganizationNumber, SubSystem};
use crate::domain::provider::binding::Binding;
use crate::metadata::Organizations;
use crate::metadata::paging::{add_part, parts_limit, scoped_after};

use super::{bindings, row, usage};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Sql;

/// The ids behind one id: of organizations with files, and of those with an active binding.
pub(in crate::metadata::postgres) const NAMES: &str =
    "(SELECT organization_id AS name FROM organization_usage WHERE organization_id > $1
      GROUP BY organization_id HAVING sum(files) > 0 ORDER BY organization_id LIMIT $2)
     UNION (SELECT organization_id::text COLLATE \"C\" FROM bindings
      WHERE is_active AND (organization_id::text COLLATE \"C\") > $1
      ORDER BY organization_id::text COLLATE \"C\" LIMIT $2)
     ORDER BY name LIMIT $2";

pub(in crate::metadata::postgres) const USAGES: &str =
    "SELECT organization_id, sum(files)::bigint, sum(bytes)::bigint FROM organization_usage
     WHERE organization_id = ANY ($1) GROUP BY organization_id";

pub(in crate::metadata::postgres) const SUB_SYSTEMS: &str =
    "SELECT sub_system, sum(files)::bigint, sum(bytes)::bigint, standing FROM sub_system_usage
     WHERE organization_id = $1 AND sub_system > $2 GROUP BY sub_system, standing
     HAVING sum(files) > 0 ORDER BY sub_system, standing LIMIT $3";

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
            // Names that are passed over must not make a page look like the last one.
            while known.len() < limit {
                let rows = sql.rows(NAMES, &[&after, &row::limit(limit)]).await?;
                let mut names = Vec::new();
                for row in &rows {
                    names.extend(sql.pass_over(row::parse(row, 0).map_err(damaged))?);
                }
                known.extend(described(sql, names).await?);

                let Some(last) = rows.last().filter(|_| rows.len() >= limit) else { break };
                after = last.try_get(0)?;
            }
        }
    }
    known.truncate(limit);
    Ok(known)
}

/// Reads the files, bytes and bindings of organizations. Leaves out those without any.
async fn described(sql: &Sql, names: Vec<OrganizationId>) -> Result<Vec<KnownOrganization>, Fault> {
    let texts: Vec<&str> = names.iter().map(OrganizationId::as_str).collect();
    let mut usages = BTreeMap::new();
    for row in sql.rows(USAGES, &[&texts]).await? {
        usages.insert(row.try_get::<_, String>(0)?, usage::stored(&row)?);
    }
    let mut bindings = active(sql, &names).await?;

    let known = names.into_iter().map(|organization_id| {
        let stored = usages.get(organization_id.as_str()).copied().unwrap_or_default();
        let number = organization_id.number().map(OrganizationNumber::get);
        let binding = number.and_then(|number| bindings.remove(&number));
        KnownOrganization { organization_id, stored, binding }
    });
    let has_something = |one: &KnownOrganization| one.stored.files > 0 || one.binding.is_some();
    Ok(known.filter(has_something).collect())
}

/// Reads the active bindings of organizations, by their numbers. Damaged ones are passed over.
async fn active(sql: &Sql, names: &[OrganizationId]) -> Result<BTreeMap<i64, Binding>, Fault> {
    let numbers: Vec<i64> =
        names.iter().filter_map(OrganizationId::number).map(OrganizationNumber::get).collect();
    let mut active = BTreeMap::new();
    for (number, binding) in bindings::all_active(sql, &numbers).await? {
        if let Some(binding) = sql.pass_over(binding)? {
            active.insert(number, binding);
        }
    }
    Ok(active)
}

async fn sub_systems(
    sql: &Sql,
    organization: &OrganizationId,
    after: Option<&SubSystem>,
    limit: usize,
) -> Result<Vec<SubSystemUsage>, Fault> {
    let after = after.map_or("", SubSystem::as_str);
    let rows = row::limit(parts_limit(limit));
    let mut all = Vec::new();
    let parts = sql.collect(SUB_SYSTEMS, &[&organization.as_str(), &after, &rows], part).await?;
    for (name, standing, stored) in parts {
        add_part(&mut all, name, standing, stored);
    }
    all.truncate(limit);
    Ok(all)
}

fn part(row: &Row) -> Result<(SubSystem, Standing, Stored), Fault> {
    let name = row::parse(row, 0).map_err(damaged)?;
    Ok((name, row::parse(row, 3).map_err(damaged)?, usage::stored(row)?))
}

fn damaged(source: Source) -> Fault {
    Fault::Row { what: "a total".into(), source }
}
