//! Bindings. A constraint of the database (`bindings_active`) prevents two active bindings of one
//! organization.
//!
//! # Locking
//! An upload holds the lock of its organization's binding until it is committed. Settling holds the lock of
//! all bindings. A change of a binding therefore waits for decisions that depend on the binding.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::event::EventKind;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::{Binding, BindingChange, NewBinding};
use crate::domain::time::clock::Timestamp;
use crate::metadata::events::of_binding;
use crate::metadata::{BindingOutcome, Bindings};

use super::{events, row};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Lock, Sql};

macro_rules! columns {
    () => {
        "id, organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from, effective_to"
    };
}

pub(in crate::metadata::postgres) const ACTIVE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = $1 AND is_active");

pub(in crate::metadata::postgres) const ALL_ACTIVE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = ANY ($1) AND is_active");

pub(in crate::metadata::postgres) const NEWEST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM bindings WHERE organization_id = $1 ORDER BY id DESC LIMIT 1"
);

pub(in crate::metadata::postgres) const LIST_OF_ONE: &str =
    concat!("SELECT ", columns!(), " FROM bindings WHERE organization_id = $1 ORDER BY id DESC");

const LIST: &str = concat!("SELECT ", columns!(), " FROM bindings ORDER BY id DESC");

const INSERT: &str = "INSERT INTO bindings
     (organization_id, organization_name, storage_provider, sync_enabled, is_active, effective_from)
     VALUES ($1, $2, $3, $4, true, $5)
     ON CONFLICT (organization_id) WHERE is_active DO NOTHING RETURNING id";

pub(in crate::metadata::postgres) const UPDATE: &str =
    "UPDATE bindings SET organization_name = $2, storage_provider = $3,
     sync_enabled = $4, is_active = $5, effective_to = $6 WHERE id = $1";

#[async_trait]
impl Bindings for PostgresMetadata {
    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>> {
        self.engine
            .read("reading a binding", &organization, |sql, one| Box::pin(active(sql, *one)))
            .await
    }

    async fn active_bindings(&self, organizations: &[OrganizationNumber]) -> Result<Vec<Binding>> {
        let numbers: Vec<i64> = organizations.iter().map(|one| one.get()).collect();
        self.engine
            .read("reading bindings", &numbers, |sql, numbers| {
                Box::pin(async move {
                    let mut bindings = Vec::new();
                    for (_, binding) in all_active(sql, numbers).await? {
                        bindings.extend(sql.pass_over(binding)?);
                    }
                    Ok(bindings)
                })
            })
            .await
    }

    async fn list_bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<Binding>> {
        self.engine
            .read("listing bindings", &organization, |sql, organization| {
                Box::pin(async move {
                    match organization {
                        Some(one) => sql.collect(LIST_OF_ONE, &[&one.get()], binding).await,
                        None => sql.collect(LIST, &[], binding).await,
                    }
                })
            })
            .await
    }

    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome> {
        self.engine
            .write("creating a binding", (binding, now), |sql, (new, now)| {
                Box::pin(async move {
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
                    let begun = Binding::begun(row.try_get(0)?, new, *now);
                    let created = of_binding(EventKind::BindingCreated, &begun, *now);
                    events::put(sql, &created).await?;
                    Ok(BindingOutcome::Done(begun))
                })
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
        let wanted = (organization, change, active_providers.to_vec(), now);
        self.engine
            .write("changing a binding", wanted, |sql, (organization, change, providers, now)| {
                Box::pin(async move {
                    lock(sql, *organization).await?;
                    if let Some(mut binding) = active(sql, *organization).await? {
                        binding.change(change, *now);
                        return update(sql, binding, *now).await;
                    }

                    if change.is_active != Some(true) {
                        return Ok(BindingOutcome::NoneActive);
                    }
                    let newest = sql.first(NEWEST, &[&organization.get()]).await?;
                    let Some(mut binding) = newest.map(|row| binding(&row)).transpose()? else {
                        return Ok(BindingOutcome::NoneActive);
                    };

                    if !binding.resume(change, providers) {
                        return Ok(BindingOutcome::ProviderInactive(binding.provider));
                    }
                    update(sql, binding, *now).await
                })
            })
            .await
    }
}

/// Reads the active binding.
pub(in crate::metadata::postgres) async fn active(
    sql: &Sql,
    organization: OrganizationNumber,
) -> Result<Option<Binding>, Fault> {
    let row = sql.first(ACTIVE, &[&organization.get()]).await?;
    row.map(|row| binding(&row)).transpose()
}

/// Reads the active bindings of several organizations. A damaged binding is a separate error.
pub(in crate::metadata::postgres) async fn all_active(
    sql: &Sql,
    organizations: &[i64],
) -> Result<Vec<(i64, Result<Binding, Fault>)>, Fault> {
    let rows = sql.rows(ALL_ACTIVE, &[&organizations]).await?;
    rows.iter().map(|row| Ok((row.try_get(1)?, binding(row)))).collect()
}

/// Waits for all decisions that depend on the organization's binding. Changes run one at a time.
async fn lock(sql: &Sql, organization: OrganizationNumber) -> Result<(), Fault> {
    sql.lock(Lock::Binding(organization)).await?;
    sql.lock(Lock::Bindings).await
}

async fn update(sql: &Sql, binding: Binding, now: Timestamp) -> Result<BindingOutcome, Fault> {
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
    events::put(sql, &of_binding(EventKind::BindingChanged, &binding, now)).await?;
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
