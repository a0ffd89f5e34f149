//! The bindings of organizations to providers.

use async_trait::async_trait;

use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::metadata::postgres::{PostgresMetadata, bindings};
use crate::metadata::{BindingOutcome, Bindings};

#[async_trait]
impl Bindings for PostgresMetadata {
    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>> {
        self.engine
            .read("reading a binding", &organization, |sql, one| {
                Box::pin(bindings::active(sql, *one))
            })
            .await
    }

    async fn list_bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<Binding>> {
        self.engine
            .read("listing bindings", &organization, |sql, one| Box::pin(bindings::list(sql, *one)))
            .await
    }

    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome> {
        self.engine
            .write("creating a binding", (binding, now), |sql, (binding, now)| {
                Box::pin(bindings::create(sql, binding, *now))
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
            .write("changing a binding", wanted, |sql, (organization, change, active, now)| {
                Box::pin(bindings::change(sql, *organization, change, active, *now))
            })
            .await
    }
}
