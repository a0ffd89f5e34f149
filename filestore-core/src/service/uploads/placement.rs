//! Placement of a new blob by the active binding of the organization.
//!
//! | binding | place of the blob |
//! |---|---|
//! | none, or LOCAL | LOCAL |
//! | a CLOUD provider, with sync | LOCAL. The sync worker copies it later |
//! | a CLOUD provider, without sync | the provider, before the reply |
//!
//! TEMP and THUMBNAIL files are always LOCAL. LOCAL is the data directory or the backend. If there is a
//! backend, the blob is written to it before the reply.

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::status::Location;
use crate::domain::id::{BlobId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::Binding;
use crate::domain::time::clock::Timestamp;
use crate::metadata::BindingSeen;
use crate::service::Inner;

/// The place of a new blob, and the binding that decided the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::service) struct Placement {
    pub(in crate::service) location: Location,
    pub(in crate::service) provider: ProviderCode,
    pub(in crate::service) seen: BindingSeen,
}

/// States if a blob can leave the local disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum MayLeave {
    /// A provider can store the blob.
    Yes,
    /// The blob is always LOCAL, because its file is TEMP or THUMBNAIL.
    No,
}

impl From<bool> for MayLeave {
    fn from(may: bool) -> Self {
        if may { Self::Yes } else { Self::No }
    }
}

impl Placement {
    /// Returns the blob's id: the staged id, or a new id for each object that is written to a provider.
    pub(in crate::service) fn blob_id(&self, staged: BlobId, now: Timestamp) -> BlobId {
        if self.provider.is_local() { staged } else { BlobId::generate(now) }
    }
}

impl Inner {
    /// Decides the place of a new blob of `organization`. A blob that must not leave is placed LOCAL.
    ///
    /// `BindingRequired` if the store requires a binding and there is none. `ProviderInactive` or
    /// `ProviderUnavailable` if the blob belongs to a provider that does not accept files now.
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

    /// Wakes the sync worker if a committed blob, placed by `seen`, must be copied to a provider. The worker
    /// settles all other records later, many at once.
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
