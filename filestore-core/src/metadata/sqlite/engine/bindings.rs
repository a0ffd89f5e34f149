//! The bindings of organizations to providers.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::metadata::sqlite::{SqliteMetadata, bindings};
use crate::metadata::{BindingOutcome, Bindings};

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
                let active = bindings::active(sql, organization)?;
                caches.bindings.insert(ticket, organization, active.as_ref());
                Ok(active)
            })
            .await
    }

    async fn list_bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<Binding>> {
        self.readers.run("listing bindings", move |sql| bindings::list(sql, organization)).await
    }

    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome> {
        self.writer.run("creating a binding", move |tx| bindings::create(tx, &binding, now)).await
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
                bindings::change(tx, organization, &change, &providers, now)
            })
            .await
    }
}
