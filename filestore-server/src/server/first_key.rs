//! Creates the first key from its hash in the configuration, for installations without a command line.

use std::path::Path;

use filestore_core::keys::{KeyDigest, KeyScope, NewKey};
use filestore_core::{FileStore, Scope};

use super::StartError;
use crate::config::Config;

/// Creates the first key of a store that never had a key, if the configuration has a hash for it. Refuses a
/// configuration without key checks if there are keys.
pub(super) async fn adopt(config: &Config, store: &FileStore) -> Result<(), StartError> {
    if let Some(digest) = hash(config)? {
        let new = NewKey::new("first", Scope::All, [KeyScope::Admin]);
        if let Some(key) = store.keys().adopt_first(new, digest).await? {
            tracing::info!(key = %key.id, "the first key was made of the configured hash");
        } else {
            tracing::debug!("there are keys: the configured hash is not looked at");
        }
    }
    Ok(())
}

/// Reads the hash of the first key; `None` if the configuration has none.
pub(super) fn hash(config: &Config) -> Result<Option<KeyDigest>, StartError> {
    if config.first_key_hash.is_some() {
        return Ok(config.first_key_hash);
    }
    let Some(path) = &config.first_key_hash_file else { return Ok(None) };

    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let parsed = read.and_then(|text| {
        text.trim().parse().map_err(|error: filestore_core::Error| error.to_string())
    });
    parsed.map(Some).map_err(|problem| StartError::FirstKey { path: path.clone(), problem })
}

/// Returns the command that creates the first key of a data directory.
pub(super) fn command(data_dir: &Path) -> String {
    let dir = data_dir.display();
    format!("`filestore --data-dir {dir} key create --org '*' --scope admin`")
}
