//! Placement of a new blob, as the organization's active binding demands.
//!
//! | binding | a blob goes |
//! |---|---|
//! | none, or LOCAL | LOCAL |
//! | a CLOUD provider, synced | LOCAL; the sync worker follows |
//! | a CLOUD provider, not synced | to the provider, before the answer |
//!
//! TEMP and THUMBNAIL files are LOCAL whatever the binding. LOCAL is the data directory, or the backend in its
//! place, to which blobs go before the answer as well.

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::status::Location;
use crate::domain::id::{BlobId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::Binding;
use crate::domain::time::clock::Timestamp;
use crate::metadata::BindingSeen;
use crate::service::Inner;

/// The place of a new blob, with the binding that decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::service) struct Placement {
    pub(in crate::service) location: Location,
    pub(in crate::service) provider: ProviderCode,
    pub(in crate::service) seen: BindingSeen,
}

/// Permission of a blob to leave the local disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum MayLeave {
    /// The blob may go to a provider.
    Yes,
    /// The blob stays LOCAL whatever the binding: its file is TEMP or THUMBNAIL.
    No,
}

impl From<bool> for MayLeave {
    fn from(may: bool) -> Self {
        if may { Self::Yes } else { Self::No }
    }
}

impl Placement {
    /// Returns the id that names the blob: its staged id, or a new one for each object that is
    /// written to a provider.
    pub(in crate::service) fn blob_id(&self, staged: BlobId, now: Timestamp) -> BlobId {
        if self.provider.is_local() { staged } else { BlobId::generate(now) }
    }
}

impl Inner {
    /// Decides where a new blob of `organization` goes; one that may not leave goes LOCAL.
    ///
    /// `BindingRequired` if there is no binding and one must be; `ProviderInactive` or
    /// `ProviderUnavailable` if the blob would have to go to a provider that takes none now.
    pub(in crate::service) async fn place(
        &self,
        organization: &OrganizationId,
        may_leave: MayLeave,
    ) -> Result<Placement> {
        let number = organization.number();
        let active = match number {
            Some(number) => self.metadata.active_binding(number).await?,
            None => None,
        };

        if active.is_none() && self.config().require_binding {
            return Err(Error::new(
                ErrorKind::BindingRequired,
                format!("uploads need an active storage binding of organization {organization}"),
            )
            .with_field("organization_id"));
        }

        let through = active
            .as_ref()
            .filter(|binding| may_leave == MayLeave::Yes && self.is_written_through(binding));

        let (location, provider) = if let Some(binding) = through {
            self.stores.providers().check_takes_files(&binding.provider)?;
            (Location::Cloud, binding.provider.clone())
        } else {
            self.opener.check_backend()?;
            (Location::Local, self.stores.providers().holder_of_new(&ProviderCode::local()))
        };

        let active = active.map(|binding| (binding.provider, binding.sync_enabled));
        Ok(Placement { location, provider, seen: BindingSeen { organization: number, active } })
    }

    /// Wakes the sync worker for a committed blob that was placed by `seen`, if the blob has
    /// somewhere to go; the others settle in the worker's own time, many at once.
    pub(in crate::service) fn wake_sync(&self, seen: &BindingSeen) {
        if let Some((provider, true)) = &seen.active
            && self.stores.location(provider) == Location::Cloud
        {
            self.background.sync_wanted.notify();
        }
    }

    fn is_written_through(&self, binding: &Binding) -> bool {
        self.stores.location(&binding.provider) == Location::Cloud && !binding.sync_enabled
    }
}
