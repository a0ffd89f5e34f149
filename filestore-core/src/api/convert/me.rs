//! The caller and the service.

use crate::api::{
    AccessMode, KeyReply, MAX_DELETED_AT_ONCE, MeFeatures, MeKey, MeLimits, MeReply, MeStore,
};
use crate::domain::access::key::ApiKey;
use crate::domain::config::{StoreConfig, VariantConfig};
use crate::domain::id::StoreId;

impl MeReply {
    /// Creates the reply to a caller who shows `key`, or none.
    pub fn of(
        mode: AccessMode,
        key: Option<&ApiKey>,
        store: StoreId,
        config: &StoreConfig,
    ) -> Self {
        Self {
            mode,
            key: key.map(|key| KeyReply::from(key).into()),
            store: MeStore { id: store.to_string(), version: env!("CARGO_PKG_VERSION").to_owned() },
            limits: config.into(),
            features: (&config.variants).into(),
        }
    }
}

impl From<KeyReply> for MeKey {
    fn from(key: KeyReply) -> Self {
        Self {
            id: key.id,
            name: key.name,
            organizations: key.organizations,
            scopes: key.scopes,
            expires_at: key.expires_at,
        }
    }
}

impl From<&StoreConfig> for MeLimits {
    fn from(config: &StoreConfig) -> Self {
        let limits = &config.limits;
        Self {
            max_file_size: limits.max_file_size,
            max_batch_items: limits.max_batch_items as u64,
            max_batch_size: limits.max_batch_size,
            max_resumable_size: config.uploads.max_size,
            max_ids: MAX_DELETED_AT_ONCE as u64,
            temp_ttl_secs: config.temp_ttl.as_secs(),
            purge_grace_secs: config.purge_grace.as_secs(),
            quota_files: config.quota_files,
            quota_bytes: config.quota_bytes,
        }
    }
}

impl From<&VariantConfig> for MeFeatures {
    fn from(variants: &VariantConfig) -> Self {
        let types = variants.converters.iter().flat_map(|converter| converter.types.clone());
        let mut converted_types: Vec<String> = types.collect();
        converted_types.sort_unstable();
        converted_types.dedup();
        Self { animated: variants.animated, converted_types, resumable: true }
    }
}
