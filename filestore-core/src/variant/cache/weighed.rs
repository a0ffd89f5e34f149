//! Creates caches with few, large entries and a limit on their total weight.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// Creates a cache of entries with a total weight of at most `capacity_bytes`. 0 disables the cache. The
/// cache has one shard, so that one entry can use the whole cache.
pub(super) fn weighed<K, V, W>(capacity_bytes: u64, weighter: W) -> Cache<K, V, W>
where
    K: Hash + Eq,
    V: Clone,
    W: Weighter<K, V> + Clone,
{
    let options = OptionsBuilder::new()
        .weight_capacity(capacity_bytes)
        .estimated_items_capacity(64)
        .shards(1)
        .build()
        .expect("the two required options are set");
    Cache::with_options(
        options,
        weighter,
        DefaultHashBuilder::default(),
        DefaultLifecycle::default(),
    )
}
