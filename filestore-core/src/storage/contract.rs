//! The contract of a blob store: a suite that every back end passes.
//!
//! Each function takes a store that nothing else uses and checks one promise. What only the local
//! disk promises (staging, crash states, durability) is tested beside it.

use std::ops::Range;

use bytes::Bytes;

use crate::domain::clock::Timestamp;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::path::BlobKey;

/// What the suite needs of a back end.
pub(super) trait BlobStore {
    /// Stores `content` under a key that was never used.
    async fn put(&self, key: &BlobKey, content: &[u8]) -> Result<()>;
    /// Reads `range` of a blob of `size_bytes`; `None` if it is absent.
    async fn get(&self, key: &BlobKey, size_bytes: u64, range: Range<u64>)
    -> Result<Option<Bytes>>;
    /// Removes blobs; one outcome per key, in order.
    async fn remove(&self, keys: Vec<BlobKey>) -> Vec<Result<()>>;
}

/// A key of a day that its blob shares with the others of the suite.
pub(super) fn fresh_key() -> BlobKey {
    let day = Timestamp::from_millis(1_795_248_930_123);
    BlobKey::new(&"42".parse().unwrap(), &"gallery".parse().unwrap(), day, BlobId::generate(day))
}

/// Bytes that differ wherever two offsets differ, for all practical lengths.
pub(super) fn content(length: usize) -> Vec<u8> {
    (0u32..).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).take(length).collect()
}

/// Every promise in turn.
pub(super) async fn keeps_the_contract(store: &impl BlobStore) {
    what_is_written_is_read_back(store).await;
    ranges_are_those_of_a_slice(store).await;
    an_absent_blob_is_none(store).await;
    a_blob_of_another_length_is_an_error(store).await;
    removing_twice_is_done_and_leaves_the_others(store).await;
}

async fn what_is_written_is_read_back(store: &impl BlobStore) {
    const BLOCK: usize = 256 * 1024;
    for length in [0, 1, 4096, 8192, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 17] {
        let (key, content) = (fresh_key(), content(length));
        store.put(&key, &content).await.unwrap();
        let read = store.get(&key, length as u64, 0..length as u64).await.unwrap().unwrap();
        assert!(read == content, "{length} bytes");
    }
}

async fn ranges_are_those_of_a_slice(store: &impl BlobStore) {
    let (key, content) = (fresh_key(), content(700_001));
    store.put(&key, &content).await.unwrap();
    let size = content.len() as u64;
    for range in [
        0..0,
        0..1,
        0..2,
        1..2,
        5..262_149,
        262_143..262_145,
        100..600_000,
        size - 1..size,
        size..size,
    ] {
        let read = store.get(&key, size, range.clone()).await.unwrap().unwrap();
        let slice = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        assert!(read == content[slice], "{range:?}");
    }
    for beyond in [0..size + 1, size..size + 1, size + 5..size + 10] {
        assert!(store.get(&key, size, beyond.clone()).await.is_err(), "{beyond:?}");
    }
}

async fn an_absent_blob_is_none(store: &impl BlobStore) {
    for size in [0, 1, 1 << 20] {
        assert!(store.get(&fresh_key(), size, 0..size).await.unwrap().is_none());
    }
}

async fn a_blob_of_another_length_is_an_error(store: &impl BlobStore) {
    let (key, content) = (fresh_key(), content(1000));
    store.put(&key, &content).await.unwrap();
    for (size, range) in
        [(999, 0..999), (1001, 0..1001), (0, 0..0), (999, 0..10), (1 << 20, 0..1 << 20)]
    {
        let error = store.get(&key, size, range).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(!error.message().contains(key.as_str()), "{error}");
    }
}

async fn removing_twice_is_done_and_leaves_the_others(store: &impl BlobStore) {
    let (kept, gone, never) = (fresh_key(), fresh_key(), fresh_key());
    store.put(&kept, b"kept").await.unwrap();
    store.put(&gone, b"gone").await.unwrap();
    for _ in 0..2 {
        let outcomes = store.remove(vec![gone.clone(), never.clone()]).await;
        assert_eq!(outcomes.len(), 2);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert!(store.get(&gone, 4, 0..4).await.unwrap().is_none());
    }
    assert_eq!(store.get(&kept, 4, 0..4).await.unwrap().unwrap(), "kept");
    assert!(store.remove(Vec::new()).await.is_empty());
}
