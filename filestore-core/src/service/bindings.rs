//! Bindings: which provider an organization's new files go to.

use super::FileStore;
use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::metadata::BindingOutcome;

impl FileStore {
    /// Creates the organization's active binding. `BindingAlreadyActive` if it has one,
    /// `UnknownProvider` or `ProviderInactive` if the provider takes no files.
    pub async fn create_binding(&self, new: NewBinding) -> Result<Binding> {
        new.check()?;
        self.inner.stores.providers().check_for_binding(&new.provider)?;
        done(self.inner.metadata.create_binding(new, Timestamp::now()).await?)
    }

    /// Changes the active binding, or resumes the newest terminated one (`is_active: Some(true)`).
    /// `NoActiveBinding` if there is none.
    pub async fn update_binding(
        &self,
        organization: OrganizationNumber,
        change: BindingChange,
    ) -> Result<Binding> {
        change.check()?;
        if let Some(provider) = &change.provider {
            self.inner.stores.providers().check_for_binding(provider)?;
        }
        let active: Vec<ProviderCode> = self
            .inner
            .stores
            .providers()
            .active()
            .into_iter()
            .map(|provider| provider.code.clone())
            .collect();
        done(
            self.inner
                .metadata
                .change_binding(organization, change, &active, Timestamp::now())
                .await?,
        )
    }

    /// Bindings, newest first: of one organization or of all.
    pub async fn list_bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<Binding>> {
        self.inner.metadata.list_bindings(organization).await
    }
}

fn done(outcome: BindingOutcome) -> Result<Binding> {
    match outcome {
        BindingOutcome::Done(binding) => Ok(binding),
        BindingOutcome::AlreadyActive => Err(Error::new(
            ErrorKind::BindingAlreadyActive,
            "the organization has an active binding; update or terminate it",
        )
        .with_field("organization")),
        BindingOutcome::NoneActive => {
            Err(Error::new(ErrorKind::NoActiveBinding, "the organization has no active binding")
                .with_field("organization"))
        }
        BindingOutcome::ProviderInactive(code) => Err(Error::new(
            ErrorKind::ProviderInactive,
            format!("the provider takes no new files: {code}"),
        )
        .with_field("provider")),
    }
}
