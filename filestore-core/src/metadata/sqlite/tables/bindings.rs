//! Bindings. A constraint of the database (`bindings_active`) prevents two active bindings of one
//! organization.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::event::EventKind;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::{Binding, BindingChange, NewBinding};
use crate::domain::time::clock::Timestamp;
use crate::metadata::events::of_binding;
use crate::metadata::{BindingOutcome, Bindings};

use super::{events, row};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::session::writer::WriteTx;

macro_rules! columns {
    () => {
        "id, organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from, effective_to"
    };
}

pub(in crate::metadata::sqlite) const ACTIVE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = ?1 AND is_active = 1");

pub(in crate::metadata::sqlite) const NEWEST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM bindings WHERE organization_id = ?1 ORDER BY id DESC LIMIT 1"
);

pub(in crate::metadata::sqlite) const LIST_OF_ONE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = ?1 ORDER BY id DESC");

const LIST: &str = concat!("SELECT ", columns!(), " FROM bindings ORDER BY id DESC");

const INSERT: &str = "INSERT INTO bindings
     (organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from)
     VALUES (?1, ?2, ?3, ?4, 1, ?5)";

pub(in crate::metadata::sqlite) const UPDATE: &str =
    "UPDATE bindings SET organization_name = ?2, storage_provider = ?3,
     sync_enabled = ?4, is_active = ?5, effective_to = ?6 WHERE id = ?1";

#[async_trait]
impl Bindings for SqliteMetadata {
    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>> {
        self.readers.check()?;
        let ticket = match self.caches.bindings.get(organization) {
            Ok(active) => return Ok(active),
            Err(ticket) => ticket,
        };

        let caches = Arc::clone(&self.caches);
        self.readers
            .run("reading a binding", move |sql| {
                let active = active(sql, organization)?;
                caches.bindings.insert(ticket, organization, active.as_ref());
                Ok(active)
            })
            .await
    }

    async fn active_bindings(&self, organizations: &[OrganizationNumber]) -> Result<Vec<Binding>> {
        let mut bindings = Vec::new();
        for organization in organizations {
            bindings.extend(self.active_binding(*organization).await?);
        }
        Ok(bindings)
    }

    async fn list_bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<Binding>> {
        self.readers
            .run("listing bindings", move |sql| match organization {
                Some(organization) => row::collect(sql, LIST_OF_ONE, [organization.get()], binding),
                None => row::collect(sql, LIST, [], binding),
            })
            .await
    }

    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome> {
        self.writer
            .run("creating a binding", move |tx| {
                let params = params![
                    binding.organization.get(),
                    binding.organization_name,
                    binding.provider.as_str(),
                    binding.sync_enabled,
                    now.as_millis(),
                ];

                tx.touch_bindings();
                match row::execute(tx.sql, INSERT, params) {
                    Ok(_) => {
                        let begun = Binding::begun(tx.sql.last_insert_rowid(), &binding, now);
                        events::put(tx.sql, &of_binding(EventKind::BindingCreated, &begun, now))?;
                        Ok(BindingOutcome::Done(begun))
                    }
                    Err(fault) if fault.is_duplicate() => Ok(BindingOutcome::AlreadyActive),
                    Err(fault) => Err(fault),
                }
            })
            .await
    }

    async fn change_binding(
        &self,
        organization: OrganizationNumber,
        change: BindingChange,
        active_providers: &[ProviderCode],
        now: Timestamp,
    ) -> Result<BindingOutcome> {
        let providers = active_providers.to_vec();
        self.writer
            .run("changing a binding", move |tx| {
                if let Some(mut binding) = active(tx.sql, organization)? {
                    binding.change(&change, now);
                    return update(tx, binding, now);
                }

                if change.is_active != Some(true) {
                    return Ok(BindingOutcome::NoneActive);
                }
                let Some(mut binding) = row::first(tx.sql, NEWEST, [organization.get()], binding)?
                else {
                    return Ok(BindingOutcome::NoneActive);
                };

                if !binding.resume(&change, &providers) {
                    return Ok(BindingOutcome::ProviderInactive(binding.provider));
                }
                update(tx, binding, now)
            })
            .await
    }
}

/// Reads the active binding.
pub(in crate::metadata::sqlite) fn active(
    sql: &Connection,
    organization: OrganizationNumber,
) -> Result<Option<Binding>, Fault> {
    row::first(sql, ACTIVE, [organization.get()], binding)
}

fn update(tx: &mut WriteTx<'_>, binding: Binding, now: Timestamp) -> Result<BindingOutcome, Fault> {
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
    events::put(tx.sql, &of_binding(EventKind::BindingChanged, &binding, now))?;
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
