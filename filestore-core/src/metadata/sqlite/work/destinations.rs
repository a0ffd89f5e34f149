//! The target providers of an organization's waiting files.

use rusqlite::Connection;

use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::{bindings, damage, row};
use crate::metadata::stored;

/// The third value puts the search behind the last row of the pair. With two values it would begin at the
/// first row, and read all waiting rows.
pub(in crate::metadata::sqlite) const NEXT_PAIR: &str =
    "SELECT organization_id, storage_provider FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL
     AND (organization_id, storage_provider, sync_not_before) > (?1, ?2, 9223372036854775807)
     ORDER BY organization_id, storage_provider LIMIT 1";

/// The target for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::metadata::sqlite) enum Destination {
    Provider(ProviderCode),
    Nowhere,
    /// The binding exists and is damaged.
    Unreadable,
}

impl Destination {
    pub(in crate::metadata::sqlite) fn provider(self) -> Option<ProviderCode> {
        match self {
            Self::Provider(provider) => Some(provider),
            Self::Nowhere | Self::Unreadable => None,
        }
    }
}

/// Returns the target for files of `organization` at `holder`: the provider of the active binding, unless
/// that is LOCAL or `holder` itself. If the provider is no longer configured, the files wait. Skips a damaged
/// binding.
pub(in crate::metadata::sqlite) fn destination(
    sql: &Connection,
    organization: &OrganizationId,
    holder: &ProviderCode,
) -> Result<Destination, Fault> {
    let Some(number) = organization.number() else { return Ok(Destination::Nowhere) };
    let Some(binding) = damage::pass_over(bindings::active(sql, number))? else {
        return Ok(Destination::Unreadable);
    };
    Ok(match binding.map(|binding| binding.provider) {
        Some(provider) if !provider.is_local() && provider != *holder => {
            Destination::Provider(provider)
        }
        _ => Destination::Nowhere,
    })
}

/// Returns the next pair of organization and holder with waiting files. Skips unreadable pairs.
pub(in crate::metadata::sqlite) fn next_pair(
    sql: &Connection,
    organization: &str,
    holder: &str,
) -> Result<Option<(OrganizationId, ProviderCode)>, Fault> {
    let (mut organization, mut holder) = (organization.to_owned(), holder.to_owned());
    loop {
        let next = row::first(sql, NEXT_PAIR, [&organization, &holder], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let Some(next) = next else { return Ok(None) };

        (organization, holder) = next;
        if let Some(pair) = damage::pass_over(parse_pair(&organization, &holder))? {
            return Ok(Some(pair));
        }
    }
}

pub(super) fn parse_pair(
    organization: &str,
    holder: &str,
) -> Result<(OrganizationId, ProviderCode), Fault> {
    stored::pair(organization, holder).map_err(|source| Fault::Row {
        what: format!("files of organization {organization:?} at provider {holder:?}"),
        source,
    })
}
