//! Bindings: the choice of a provider for an organization's new files.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::SyncStatus;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::{Binding, BindingChange, NewBinding};
use crate::metadata::BindingOutcome;
use crate::service::FileStore;

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
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    store: &'a FileStore,
}

impl<'a> Bindings<'a> {
    pub(in crate::service) fn of(store: &'a FileStore) -> Self {
        Self { store }
    }
}

impl Bindings<'_> {
    /// Creates the organization's active binding. Returns `BindingAlreadyActive` if there is an active
    /// binding. Returns `UnknownProvider` or `ProviderInactive` if the provider does not accept files.
    pub async fn create(self, new: NewBinding) -> Result<Binding> {
        new.check()?;
        self.store.inner.stores.providers().check_for_binding(&new.provider)?;
        done(self.store.inner.metadata.create_binding(new, self.store.inner.now()).await?)
    }

    /// Changes the active binding. With `is_active: Some(true)`, resumes the newest terminated binding.
    /// `NoActiveBinding` if there is no such binding.
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

    /// Returns true for each record with a blob that the sync worker copies to a provider, now or
    /// later. If the answer is false, a PENDING file stays where it is.
    ///
    /// ```no_run
    /// # use filestore_core::{FileStore, ListRequest, Scope};
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let page = store.scoped(&Scope::All).list(&ListRequest::default()).await?;
    /// let awaited = store.bindings().awaits_copy(&page.items).await?;
    /// println!("{} files wait", awaited.into_iter().filter(|awaits| *awaits).count());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn awaits_copy(self, records: &[FileRecord]) -> Result<Vec<bool>> {
        // Only PENDING files ask for bindings, all in one look-up.
        let pending = records.iter().filter(|record| record.state.sync() == SyncStatus::Pending);
        let numbers: BTreeSet<OrganizationNumber> =
            pending.filter_map(|record| record.organization_id.number()).collect();
        let numbers: Vec<_> = numbers.into_iter().collect();
        let bindings = if numbers.is_empty() {
            Vec::new()
        } else {
            self.store.inner.metadata.active_bindings(&numbers).await?
        };

        let bound: BTreeMap<OrganizationNumber, ProviderCode> =
            bindings.into_iter().map(|binding| (binding.organization, binding.provider)).collect();
        let awaits = |record: &FileRecord| {
            let number = record.organization_id.number();
            record.awaits_copy(number.and_then(|number| bound.get(&number)))
        };
        Ok(records.iter().map(awaits).collect())
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
            "the organization has an active binding: update or terminate the binding",
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
