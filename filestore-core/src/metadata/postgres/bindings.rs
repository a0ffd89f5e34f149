//! Bindings. The database itself keeps an organization from having two active ones
//! (`bindings_active`), not only this code.
//!
//! # Locking
//! An upload has the lock of its organization's binding until it is committed, and so has settling that of
//! all bindings: a change of a binding waits for what was decided by it.

use tokio_postgres::Row;

use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::metadata::BindingOutcome;

use super::fault::{Fault, Source};
use super::row;
use super::sql::{Lock, Sql};

macro_rules! columns {
    () => {
        "id, organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from, effective_to"
    };
}

pub(super) const ACTIVE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = $1 AND is_active");

pub(super) const ALL_ACTIVE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = ANY ($1) AND is_active");

pub(super) const NEWEST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM bindings WHERE organization_id = $1 ORDER BY id DESC LIMIT 1"
);

pub(super) const LIST_OF_ONE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = $1 ORDER BY id DESC");

const LIST: &str = concat!("SELECT ", columns!(), " FROM bindings ORDER BY id DESC");

const INSERT: &str = "INSERT INTO bindings
     (organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from)
     VALUES ($1, $2, $3, $4, true, $5)
     ON CONFLICT (organization_id) WHERE is_active DO NOTHING RETURNING id";

pub(super) const UPDATE: &str = "UPDATE bindings SET organization_name = $2, storage_provider = $3,
     sync_enabled = $4, is_active = $5, effective_to = $6 WHERE id = $1";

pub(super) async fn active(
    sql: &Sql,
    organization: OrganizationNumber,
) -> Result<Option<Binding>, Fault> {
    let row = sql.first(ACTIVE, &[&organization.get()]).await?;
    row.map(|row| binding(&row)).transpose()
}

/// Reads the active bindings of several organizations. One that is damaged is an error of its own.
pub(super) async fn all_active(
    sql: &Sql,
    organizations: &[i64],
) -> Result<Vec<(i64, Result<Binding, Fault>)>, Fault> {
    let rows = sql.rows(ALL_ACTIVE, &[&organizations]).await?;
    rows.iter().map(|row| Ok((row.try_get(1)?, binding(row)))).collect()
}

pub(super) async fn list(
    sql: &Sql,
    organization: Option<OrganizationNumber>,
) -> Result<Vec<Binding>, Fault> {
    match organization {
        Some(organization) => sql.collect(LIST_OF_ONE, &[&organization.get()], binding).await,
        None => sql.collect(LIST, &[], binding).await,
    }
}

pub(super) async fn create(
    sql: &Sql,
    new: &NewBinding,
    now: Timestamp,
) -> Result<BindingOutcome, Fault> {
    lock(sql, new.organization).await?;
    let inserted = sql
        .first(
            INSERT,
            &[
                &new.organization.get(),
                &new.organization_name,
                &new.provider.as_str(),
                &new.sync_enabled,
                &now.as_millis(),
            ],
        )
        .await?;

    let Some(row) = inserted else { return Ok(BindingOutcome::AlreadyActive) };
    Ok(BindingOutcome::Done(Binding {
        id: row.try_get(0)?,
        organization: new.organization,
        organization_name: new.organization_name.clone(),
        provider: new.provider.clone(),
        sync_enabled: new.sync_enabled,
        is_active: true,
        effective_from: now,
        effective_to: None,
    }))
}

pub(super) async fn change(
    sql: &Sql,
    organization: OrganizationNumber,
    change: &BindingChange,
    active_providers: &[ProviderCode],
    now: Timestamp,
) -> Result<BindingOutcome, Fault> {
    lock(sql, organization).await?;
    if let Some(mut binding) = active(sql, organization).await? {
        binding.apply(change);
        if change.is_active == Some(false) {
            binding.is_active = false;
            binding.effective_to = Some(now);
        }
        return update(sql, binding).await;
    }

    if change.is_active != Some(true) {
        return Ok(BindingOutcome::NoneActive);
    }
    let newest = sql.first(NEWEST, &[&organization.get()]).await?;
    let Some(mut binding) = newest.map(|row| binding(&row)).transpose()? else {
        return Ok(BindingOutcome::NoneActive);
    };

    binding.apply(change);
    if !active_providers.contains(&binding.provider) {
        return Ok(BindingOutcome::ProviderInactive(binding.provider));
    }

    binding.is_active = true;
    binding.effective_to = None;
    update(sql, binding).await
}

/// Waits for all that is being decided by the binding of the organization. One change comes after the
/// other.
async fn lock(sql: &Sql, organization: OrganizationNumber) -> Result<(), Fault> {
    sql.lock(Lock::Binding(organization)).await?;
    sql.lock(Lock::Bindings).await
}

async fn update(sql: &Sql, binding: Binding) -> Result<BindingOutcome, Fault> {
    sql.execute(
        UPDATE,
        &[
            &binding.id,
            &binding.organization_name,
            &binding.provider.as_str(),
            &binding.sync_enabled,
            &binding.is_active,
            &binding.effective_to.map(Timestamp::as_millis),
        ],
    )
    .await?;
    Ok(BindingOutcome::Done(binding))
}

fn binding(row: &Row) -> Result<Binding, Fault> {
    read(row).map_err(|source| {
        let id: i64 = row.try_get(0).unwrap_or_default();
        Fault::Row { what: format!("binding {id}"), source }
    })
}

fn read(row: &Row) -> Result<Binding, Source> {
    Ok(Binding {
        id: row.try_get(0)?,
        organization: row.try_get::<_, i64>(1)?.try_into()?,
        organization_name: row.try_get(2)?,
        provider: row::parse(row, 3)?,
        sync_enabled: row.try_get(4)?,
        is_active: row.try_get(5)?,
        effective_from: row::instant(row, 6)?,
        effective_to: row::instant_or_none(row, 7)?,
    })
}
