//! The making of a cache that is bounded by the weight of few, large entries.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// Makes a cache of entries that weigh at most `capacity_bytes` together; 0 holds nothing. It has one
/// shard, so that one entry may take all of it.
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
