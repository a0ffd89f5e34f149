//! Bindings: which provider an organization's new files go to.

use super::FileStore;
use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::metadata::BindingOutcome;

/// The bindings of organizations to providers; from [`FileStore::bindings`].
///
/// ```no_run
/// use filestore_core::bindings::NewBinding;
/// use filestore_core::FileStore;
///
/// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
/// let new = NewBinding::new(42.try_into()?, "Acme", "s3".parse()?).with_sync();
/// let binding = store.bindings().create(new).await?;
/// assert!(binding.is_active);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    store: &'a FileStore,
}

impl FileStore {
    /// Returns the bindings: which provider the new files of an organization go to.
    pub fn bindings(&self) -> Bindings<'_> {
        Bindings { store: self }
    }
}

impl Bindings<'_> {
    /// Creates the organization's active binding. `BindingAlreadyActive` if it has one,
    /// `UnknownProvider` or `ProviderInactive` if the provider takes no files.
    pub async fn create(self, new: NewBinding) -> Result<Binding> {
        new.check()?;
        self.store.inner.stores.providers().check_for_binding(&new.provider)?;
        done(self.store.inner.metadata.create_binding(new, self.store.inner.now()).await?)
    }

    /// Changes the active binding, or resumes the newest terminated one (`is_active: Some(true)`).
    /// `NoActiveBinding` if there is none.
    pub async fn update(
        self,
        organization: OrganizationNumber,
        change: BindingChange,
    ) -> Result<Binding> {
        change.check()?;
        if let Some(provider) = &change.provider {
            self.store.inner.stores.providers().check_for_binding(provider)?;
        }

        let active: Vec<ProviderCode> = self
            .store
            .inner
            .stores
            .providers()
            .active()
            .into_iter()
            .map(|provider| provider.code.clone())
            .collect();

        done(
            self.store
                .inner
                .metadata
                .change_binding(organization, change, &active, self.store.inner.now())
                .await?,
        )
    }

    /// Lists bindings, newest first: of one organization or of all.
    pub async fn list(self, organization: Option<OrganizationNumber>) -> Result<Vec<Binding>> {
        self.store.inner.metadata.list_bindings(organization).await
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
