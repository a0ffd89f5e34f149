//! The target providers of an organization's waiting files.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use crate::domain::id::{OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::bindings;
use crate::metadata::stored;

/// Jumps from pair to pair, independently of the number of files in each pair.
pub(in crate::metadata::postgres) const PAIRS: &str = "WITH RECURSIVE pairs AS (
     (SELECT organization_id, storage_provider FROM files
      WHERE sync_status = 'PENDING' AND purge_status IS NULL
      ORDER BY organization_id, storage_provider LIMIT 1)
     UNION ALL
     SELECT next.organization_id, next.storage_provider FROM pairs CROSS JOIN LATERAL (
      SELECT organization_id, storage_provider FROM files
      WHERE sync_status = 'PENDING' AND purge_status IS NULL
      AND (organization_id, storage_provider) > (pairs.organization_id, pairs.storage_provider)
      ORDER BY organization_id, storage_provider LIMIT 1) AS next)
     SELECT organization_id, storage_provider FROM pairs";

/// An organization, and the holder of its files.
pub(super) type Pair = (OrganizationId, ProviderCode);

/// The providers in the active bindings of organizations.
pub(super) struct Destinations {
    /// By the organization's number. `None` for an unreadable binding.
    bound: BTreeMap<i64, Option<ProviderCode>>,
}

impl Destinations {
    /// Reads the bindings of organizations. Skips damaged bindings.
    pub(super) async fn read<'o>(
        sql: &Sql,
        organizations: impl Iterator<Item = &'o OrganizationId>,
    ) -> Result<Self, Fault> {
        let mut numbers: Vec<i64> =
            organizations.filter_map(OrganizationId::number).map(OrganizationNumber::get).collect();
        numbers.sort_unstable();
        numbers.dedup();

        let mut bound = BTreeMap::new();
        if !numbers.is_empty() {
            for (number, binding) in bindings::all_active(sql, &numbers).await? {
                let binding = sql.pass_over(binding)?;
                bound.insert(number, binding.map(|binding| binding.provider));
            }
        }
        Ok(Self { bound })
    }

    /// Returns the target for files of `organization` at `holder`: the provider of the active binding, unless
    /// that is LOCAL or `holder` itself. If the provider is no longer configured, the files wait.
    pub(super) fn of(
        &self,
        organization: &OrganizationId,
        holder: &ProviderCode,
    ) -> Destination<'_> {
        let number = organization.number().map(OrganizationNumber::get);
        match number.and_then(|number| self.bound.get(&number)) {
            Some(None) => Destination::Unreadable,
            Some(Some(provider)) if !provider.is_local() && provider != holder => {
                Destination::Provider(provider)
            }
            _ => Destination::Nowhere,
        }
    }
}

/// The target for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination<'d> {
    Provider(&'d ProviderCode),
    Nowhere,
    /// The binding exists and is damaged.
    Unreadable,
}

impl<'d> Destination<'d> {
    pub(super) fn provider(self) -> Option<&'d ProviderCode> {
        match self {
            Self::Provider(provider) => Some(provider),
            Self::Nowhere | Self::Unreadable => None,
        }
    }
}

/// Lists the pairs of organization and holder with waiting files. Skips unreadable pairs.
pub(super) async fn pairs(sql: &Sql) -> Result<Vec<Pair>, Fault> {
    sql.collect(PAIRS, &[], pair).await
}

/// Reads the pair in the first two columns.
pub(super) fn pair(row: &Row) -> Result<Pair, Fault> {
    let (organization, holder): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
    stored::pair(organization, holder).map_err(|source| Fault::Row {
        what: format!("files of organization {organization:?} at provider {holder:?}"),
        source,
    })
}
