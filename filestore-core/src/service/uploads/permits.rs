//! Permits of running signed uploads.
//!
//! The commit of an upload uses up its permit. Until then, memory and an entry for other servers hold the
//! permit ([`PermitGuard`]), so that a signed URL never allows more than one staged file at a time.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::access::signed_url::UploadPermit;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;
use crate::domain::report::erasure::erased_since_signed;
use crate::service::Inner;
use crate::service::access::signing::permit_spent;
use crate::service::work::under_way::{Entered, Entry};

/// Nonces of permits with a running upload.
#[derive(Debug, Default)]
pub(in crate::service) struct PermitsInUse(Mutex<HashSet<String>>);

/// The exclusive right to run an upload with a permit. A drop lets the next upload in.
#[derive(Debug)]
pub(super) struct PermitGuard {
    running: Arc<PermitsInUse>,
    nonce: String,
    entry: Option<Entry>,
}

impl Drop for PermitGuard {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.nonce);
    }
}

impl PermitGuard {
    /// Claims a permit for an upload to `organization`. The commit checks again if the permit is used up.
    ///
    /// `SignatureUsed` if another upload used the permit, or is running with it. `SignatureInvalid` if the
    /// organization was erased after the URL was signed.
    pub(super) async fn claim(
        inner: &Inner,
        organization: &OrganizationId,
        permit: &UploadPermit,
    ) -> Result<Self> {
        if inner.metadata.is_erased_since(organization, permit.era).await? {
            return Err(erased_since_signed());
        }
        let running = &inner.uploads.permits;
        if !running.0.lock().insert(permit.nonce.clone()) {
            return Err(in_use());
        }

        let nonce = permit.nonce.clone();
        let mut guard = Self { running: Arc::clone(running), nonce, entry: None };
        let entered = inner.background.enter(format!("permit {}", permit.nonce)).await?;
        if inner.metadata.is_permit_used(&permit.nonce).await? {
            return Err(permit_spent());
        }
        match entered {
            Entered::Alone(entry) => guard.entry = entry,
            Entered::Elsewhere => return Err(in_use()),
        }
        Ok(guard)
    }
}

fn in_use() -> Error {
    let message = "an upload with this signed URL still runs: each is good for one file";
    Error::new(ErrorKind::SignatureUsed, message).with_retry_after_secs(1)
}
