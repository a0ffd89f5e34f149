//! Bindings. The database itself keeps an organization from having two active ones
//! (`bindings_active`), not only this code.

use rusqlite::{Connection, Row, params};

use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::metadata::BindingOutcome;

use super::fault::{Fault, Source};
use super::row;
use super::writer::WriteTx;

macro_rules! columns {
    () => {
        "id, organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from, effective_to"
    };
}

pub(super) const ACTIVE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = ?1 AND is_active = 1");

pub(super) const NEWEST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM bindings WHERE organization_id = ?1 ORDER BY id DESC LIMIT 1"
);

pub(super) const LIST_OF_ONE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = ?1 ORDER BY id DESC");

const LIST: &str = concat!("SELECT ", columns!(), " FROM bindings ORDER BY id DESC");

const INSERT: &str = "INSERT INTO bindings
     (organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from)
     VALUES (?1, ?2, ?3, ?4, 1, ?5)";

pub(super) const UPDATE: &str = "UPDATE bindings SET organization_name = ?2, storage_provider = ?3,
     sync_enabled = ?4, is_active = ?5, effective_to = ?6 WHERE id = ?1";

pub(super) fn active(
    sql: &Connection,
    organization: OrganizationNumber,
) -> Result<Option<Binding>, Fault> {
    row::first(sql, ACTIVE, [organization.get()], binding)
}

pub(super) fn list(
    sql: &Connection,
    organization: Option<OrganizationNumber>,
) -> Result<Vec<Binding>, Fault> {
    match organization {
        Some(organization) => row::collect(sql, LIST_OF_ONE, [organization.get()], binding),
        None => row::collect(sql, LIST, [], binding),
    }
}

pub(super) fn create(
    tx: &mut WriteTx<'_>,
    new: &NewBinding,
    now: Timestamp,
) -> Result<BindingOutcome, Fault> {
    let params = params![
        new.organization.get(),
        new.organization_name,
        new.provider.as_str(),
        new.sync_enabled,
        now.as_millis(),
    ];

    tx.touch_bindings();
    match row::execute(tx.sql, INSERT, params) {
        Ok(_) => Ok(BindingOutcome::Done(Binding {
            id: tx.sql.last_insert_rowid(),
            organization: new.organization,
            organization_name: new.organization_name.clone(),
            provider: new.provider.clone(),
            sync_enabled: new.sync_enabled,
            is_active: true,
            effective_from: now,
            effective_to: None,
        })),
        Err(fault) if fault.is_duplicate() => Ok(BindingOutcome::AlreadyActive),
        Err(fault) => Err(fault),
    }
}

pub(super) fn change(
    tx: &mut WriteTx<'_>,
    organization: OrganizationNumber,
    change: &BindingChange,
    active_providers: &[ProviderCode],
    now: Timestamp,
) -> Result<BindingOutcome, Fault> {
    if let Some(mut binding) = active(tx.sql, organization)? {
        binding.apply(change);
        if change.is_active == Some(false) {
            binding.is_active = false;
            binding.effective_to = Some(now);
        }
        return update(tx, binding);
    }

    if change.is_active != Some(true) {
        return Ok(BindingOutcome::NoneActive);
    }
    let Some(mut binding) = row::first(tx.sql, NEWEST, [organization.get()], binding)? else {
        return Ok(BindingOutcome::NoneActive);
    };

    binding.apply(change);
    if !active_providers.contains(&binding.provider) {
        return Ok(BindingOutcome::ProviderInactive(binding.provider));
    }

    binding.is_active = true;
    binding.effective_to = None;
    update(tx, binding)
}

fn update(tx: &mut WriteTx<'_>, binding: Binding) -> Result<BindingOutcome, Fault> {
    let params = params![
        binding.id,
        binding.organization_name,
        binding.provider.as_str(),
        binding.sync_enabled,
        binding.is_active,
        binding.effective_to.map(Timestamp::as_millis),
    ];
    tx.touch_bindings();
    row::execute(tx.sql, UPDATE, params)?;
    Ok(BindingOutcome::Done(binding))
}

fn binding(row: &Row<'_>) -> Result<Binding, Fault> {
    read(row).map_err(|source| {
        let id: i64 = row.get(0).unwrap_or_default();
        Fault::Row { what: format!("binding {id}"), source }
    })
}

fn read(row: &Row<'_>) -> Result<Binding, Source> {
    Ok(Binding {
        id: row.get(0)?,
        organization: row.get::<_, i64>(1)?.try_into()?,
        organization_name: row.get(2)?,
        provider: row::parse(row, 3)?,
        sync_enabled: row.get(4)?,
        is_active: row.get(5)?,
        effective_from: Timestamp::from_millis(row.get(6)?),
        effective_to: row.get::<_, Option<i64>>(7)?.map(Timestamp::from_millis),
    })
}
