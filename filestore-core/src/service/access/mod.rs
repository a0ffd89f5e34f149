//! API keys and signed URLs.

pub(super) mod keys;
pub(super) mod key_ring;
pub(super) mod secrets;
pub(super) mod signing;

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::domain::config::SigningConfig;
use crate::domain::error::Result;
use crate::domain::time::clock::Clock;
use crate::metadata::Metadata;

use self::key_ring::KeyRing;
use self::secrets::LoadedSecrets;
use self::signing::SigningSecrets;

/// The API keys and signing secrets of a store. The database contains them, and memory has a copy.
pub(crate) struct Access {
    metadata: Arc<dyn Metadata>,
    clock: Clock,
    keys: KeyRing,
    /// The version of `keys` and `signing`, if other servers can change them.
    loaded: LoadedSecrets,
    /// The secrets that sign URLs.
    pub(super) signing: SigningSecrets,
    /// Held during a change of the keys that sign receipts.
    pub(super) receipt_keys: Mutex<()>,
}

impl Access {
    /// Loads the keys and secrets while the store is opened.
    pub(super) async fn load(
        metadata: Arc<dyn Metadata>,
        clock: Clock,
        config: &SigningConfig,
    ) -> Result<Self> {
        let loaded = LoadedSecrets::before_reading(&*metadata).await?;
        let signing = SigningSecrets::load(&*metadata, config).await?;
        let keys = KeyRing::read(&*metadata).await?;
        Ok(Self { metadata, clock, keys, loaded, signing, receipt_keys: Mutex::new(()) })
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}
