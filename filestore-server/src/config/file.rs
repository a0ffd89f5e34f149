//! The configuration file. Every key is optional, none is unknown, units are in the names.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use filestore_core::domain::config::{Durability, Limits, StoreConfig, VariantConfig};
use filestore_core::domain::variant::{Fit, VariantSize};
use serde::Deserialize;

use super::{Config, ConfigError};
use crate::body;
use crate::listen;

/// A table of the file: all keys optional, listed in `$keys` for the test of the documentation.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident { $($key:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Default, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub(super) struct $table { $($key: Option<$type>,)* }
        )*

        /// Every key of every table.
        #[cfg(test)]
        pub(super) const KEYS: &[&str] = &[$($(stringify!($key),)*)*];
    };
}

tables! {
    /// The whole file.
    File {
        listen: SocketAddr,
        data_dir: PathBuf,
        public_url: String,
        trusted_proxies: Vec<String>,
        insecure_no_auth: bool,
        durability: DurabilityName,
        require_binding: bool,
        quota_bytes: u64,
        reserve_bytes: u64,
        limits: LimitsTable,
        lifetimes: LifetimesTable,
        variants: VariantsTable,
        http: HttpTable,
    }
    /// `[limits]`
    LimitsTable {
        max_file_size: u64,
        max_batch_items: usize,
        max_batch_size: u64,
        original_name_chars: usize,
        concurrent_uploads: usize,
    }
    /// `[lifetimes]`
    LifetimesTable {
        temp_ttl_secs: u32,
        purge_grace_secs: u32,
        blob_grace_secs: u32,
        idempotency_ttl_secs: u32,
    }
    /// `[variants]`
    VariantsTable {
        max_pixels: u64,
        max_side: u32,
        decode_memory_bytes: u64,
        queue: usize,
        threads: usize,
        deadline_secs: u32,
        quality: f32,
        memory_cache_bytes: u64,
        disk_cache_bytes: u64,
        intermediate_cache_bytes: u64,
        eager: Vec<String>,
    }
    /// `[http]`
    HttpTable {
        first_byte_secs: u32,
        header_secs: u32,
        keep_alive_idle_secs: u32,
        write_idle_secs: u32,
        body_first_byte_secs: u32,
        body_idle_secs: u32,
        drain_secs: u32,
        drain_bytes: usize,
        stop_secs: u32,
        max_connections: usize,
        buffer_bytes: usize,
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DurabilityName {
    Full,
    Process,
}

impl File {
    /// The configuration: the defaults, changed where the file says so.
    pub(super) fn into_config(self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        put(&mut config.listen, self.listen);
        put(&mut config.data_dir, self.data_dir);
        config.public_url = self.public_url;
        let proxies = self.trusted_proxies.unwrap_or_default();
        config.trusted_proxies = proxies.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        put(&mut config.insecure_no_auth, self.insecure_no_auth);
        let durability = self.durability.map(|name| match name {
            DurabilityName::Full => Durability::Full,
            DurabilityName::Process => Durability::Process,
        });
        put(&mut config.store.durability, durability);
        put(&mut config.store.require_binding, self.require_binding);
        config.store.quota_bytes = self.quota_bytes;
        put(&mut config.store.reserve_bytes, self.reserve_bytes);
        self.limits.unwrap_or_default().apply(&mut config.store.limits);
        self.lifetimes.unwrap_or_default().apply(&mut config.store);
        self.variants.unwrap_or_default().apply(&mut config.store.variants)?;
        self.http.unwrap_or_default().apply(&mut config.http, &mut config.body);
        Ok(config)
    }
}

impl LimitsTable {
    fn apply(self, limits: &mut Limits) {
        put(&mut limits.max_file_size, self.max_file_size);
        put(&mut limits.max_batch_items, self.max_batch_items);
        put(&mut limits.max_batch_size, self.max_batch_size);
        put(&mut limits.original_name_chars, self.original_name_chars);
        put(&mut limits.concurrent_uploads, self.concurrent_uploads);
    }
}

impl LifetimesTable {
    fn apply(self, store: &mut StoreConfig) {
        put_secs(&mut store.temp_ttl, self.temp_ttl_secs);
        put_secs(&mut store.purge_grace, self.purge_grace_secs);
        put_secs(&mut store.blob_grace, self.blob_grace_secs);
        put_secs(&mut store.idempotency_ttl, self.idempotency_ttl_secs);
    }
}

impl VariantsTable {
    fn apply(self, variants: &mut VariantConfig) -> Result<(), ConfigError> {
        put(&mut variants.max_pixels, self.max_pixels);
        put(&mut variants.max_side, self.max_side);
        put(&mut variants.decode_memory_bytes, self.decode_memory_bytes);
        put(&mut variants.queue, self.queue);
        put(&mut variants.threads, self.threads);
        put_secs(&mut variants.deadline, self.deadline_secs);
        put(&mut variants.quality, self.quality);
        put(&mut variants.memory_cache_bytes, self.memory_cache_bytes);
        put(&mut variants.disk_cache_bytes, self.disk_cache_bytes);
        put(&mut variants.intermediate_cache_bytes, self.intermediate_cache_bytes);
        for text in self.eager.unwrap_or_default() {
            let kind = eager_kind(&text)?;
            if !variants.eager.contains(&kind) {
                variants.eager.push(kind);
            }
        }
        Ok(())
    }
}

/// `"200"`, or `"1000/inside"`: a size, and a fit if it is not `cover`.
fn eager_kind(text: &str) -> Result<(VariantSize, Fit), ConfigError> {
    let (size, fit) = text.split_once('/').unwrap_or((text, "cover"));
    let kind = VariantSize::from_path(size, size).and_then(|size| Ok((size, fit.parse()?)));
    kind.map_err(|_| ConfigError::Value {
        key: "variants.eager",
        problem: "must be sizes, each with a fit or without, such as \"200\" or \"1000/inside\"",
    })
}

impl HttpTable {
    fn apply(self, http: &mut listen::Options, body: &mut body::Timeouts) {
        put_secs(&mut http.first_byte, self.first_byte_secs);
        put_secs(&mut http.header, self.header_secs);
        put_secs(&mut http.keep_alive_idle, self.keep_alive_idle_secs);
        put_secs(&mut http.write_idle, self.write_idle_secs);
        put_secs(&mut body.first_byte, self.body_first_byte_secs);
        put_secs(&mut body.idle, self.body_idle_secs);
        put_secs(&mut http.drain, self.drain_secs);
        put(&mut http.drain_bytes, self.drain_bytes);
        put_secs(&mut http.grace, self.stop_secs);
        put(&mut http.max_connections, self.max_connections);
        put(&mut http.buffer_bytes, self.buffer_bytes);
    }
}

fn put<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn put_secs(slot: &mut Duration, secs: Option<u32>) {
    put(slot, secs.map(|secs| Duration::from_secs(secs.into())));
}
