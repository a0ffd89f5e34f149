//! The contract of [`BlobStore`], as a test suite for every implementation.
//!
//! Each function takes a store without other users, and checks one promise. The promises of the local disk
//! (staging, crash states, durability) have their tests in its module, and so have the promises of providers.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use sha2::Digest;

use super::{BlobInfo, BlobStore, ByteStream, Priority};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{BlobId, Sha256};
use crate::domain::time::clock::Timestamp;

/// Returns a new key. All keys of the suite have the same day.
pub(super) fn fresh_key() -> BlobKey {
    let day = Timestamp::from_millis(1_795_248_930_123);
    BlobKey::new(&"42".parse().unwrap(), &"gallery".parse().unwrap(), day, BlobId::generate(day))
}

/// Returns bytes that differ at any two offsets, for all practical lengths.
pub(super) fn content(length: usize) -> Vec<u8> {
    (0u32..).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).take(length).collect()
}

/// Returns the correct description of `bytes`.
pub(super) fn info(bytes: &[u8]) -> BlobInfo {
    BlobInfo {
        size_bytes: bytes.len() as u64,
        sha256: Sha256(sha2::Sha256::digest(bytes).into()),
        content_type: "text/plain".to_owned(),
        content_disposition: Some("attachment".to_owned()),
    }
}

/// Returns `bytes` in pieces of an odd length, so that no piece ends at the end of a block or a chunk.
pub(super) fn source(bytes: &[u8]) -> ByteStream {
    let pieces: Vec<_> =
        bytes.chunks(99_991).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

/// Stores `bytes` with the correct description.
pub(super) async fn put(store: &dyn BlobStore, key: &BlobKey, bytes: &[u8]) -> Result<()> {
    store.put(key, &info(bytes), source(bytes), Priority::Request).await
}

/// Reads `range` to its end. `None` if the blob is absent.
pub(super) async fn get(
    store: &dyn BlobStore,
    key: &BlobKey,
    size_bytes: u64,
    range: Range<u64>,
) -> Result<Option<Vec<u8>>> {
    let Some(read) = store.read(key, size_bytes, range.clone()).await? else { return Ok(None) };
    let pieces: Vec<Bytes> = read.into_stream(range).try_collect().await?;

    assert!(pieces.iter().all(|piece| piece.len() <= 256 << 10), "no piece is too large");
    Ok(Some(pieces.concat()))
}

/// Checks all promises in turn. `fault` is the kind of error for stored bytes that cannot be right.
pub(super) async fn keeps_the_contract(store: &dyn BlobStore, fault: ErrorKind) {
    what_is_written_is_read_back(store).await;
    ranges_are_those_of_a_slice(store).await;
    an_absent_blob_is_none(store).await;
    a_blob_that_is_shorter_than_recorded_is_an_error(store, fault).await;
    bytes_that_are_not_what_was_said_leave_nothing(store).await;
    a_source_that_breaks_leaves_nothing(store).await;
    removing_twice_is_done_and_leaves_the_others(store).await;
}

async fn what_is_written_is_read_back(store: &dyn BlobStore) {
    const BLOCK: usize = 256 * 1024;

    for length in [0, 1, 4096, 8192, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 17] {
        let (key, content) = (fresh_key(), content(length));
        put(store, &key, &content).await.unwrap();

        let read = get(store, &key, length as u64, 0..length as u64).await.unwrap().unwrap();
        assert!(read == content, "{length} bytes");
    }
}

async fn ranges_are_those_of_a_slice(store: &dyn BlobStore) {
    let (key, content) = (fresh_key(), content(700_001));
    put(store, &key, &content).await.unwrap();
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
        let read = get(store, &key, size, range.clone()).await.unwrap().unwrap();
        let slice = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        assert!(read == content[slice], "{range:?}");
    }

    for beyond in [0..size + 1, size..size + 1, size + 5..size + 10] {
        assert!(get(store, &key, size, beyond.clone()).await.is_err(), "{beyond:?}");
    }
}

async fn an_absent_blob_is_none(store: &dyn BlobStore) {
    for size in [0, 1, 1 << 20] {
        assert!(get(store, &fresh_key(), size, 0..size).await.unwrap().is_none());
    }
}

async fn a_blob_that_is_shorter_than_recorded_is_an_error(store: &dyn BlobStore, fault: ErrorKind) {
    let (key, content) = (fresh_key(), content(1000));
    put(store, &key, &content).await.unwrap();

    for (size, range) in [(1001, 0..1001), (1 << 20, 0..1 << 20)] {
        let error = get(store, &key, size, range).await.unwrap_err();
        assert_eq!(error.kind(), fault);
        assert!(!error.message().contains(key.as_str()), "{error}");
    }
}

pub(super) async fn bytes_that_are_not_what_was_said_leave_nothing(store: &dyn BlobStore) {
    for length in [10, 6 << 20] {
        let bytes = content(length);
        let honest = info(&bytes);
        let lies = [
            BlobInfo { sha256: Sha256([7; 32]), ..honest.clone() },
            BlobInfo { size_bytes: honest.size_bytes + 1, ..honest.clone() },
            BlobInfo { size_bytes: honest.size_bytes - 1, ..honest },
        ];

        for lie in lies {
            let key = fresh_key();
            let put = store.put(&key, &lie, source(&bytes), Priority::Background).await;
            assert_eq!(put.unwrap_err().kind(), ErrorKind::DigestMismatch);
            assert!(get(store, &key, 0, 0..0).await.unwrap().is_none());
        }
    }
}

pub(super) async fn a_source_that_breaks_leaves_nothing(store: &dyn BlobStore) {
    for length in [10, 6 << 20] {
        let (key, bytes) = (fresh_key(), content(length));
        let broken = stream::once(async { Err(Error::new(ErrorKind::Internal, "the disk broke")) });
        let breaking = source(&bytes).take(length / 200_000).chain(broken).boxed();

        let put = store.put(&key, &info(&bytes), breaking, Priority::Request).await;
        assert_eq!(put.unwrap_err().message(), "the disk broke");
        assert!(get(store, &key, 0, 0..0).await.unwrap().is_none());
    }
}

async fn removing_twice_is_done_and_leaves_the_others(store: &dyn BlobStore) {
    let (kept, gone, never) = (fresh_key(), fresh_key(), fresh_key());
    put(store, &kept, b"kept").await.unwrap();
    put(store, &gone, b"gone").await.unwrap();

    for _ in 0..2 {
        let outcomes = store.remove(vec![gone.clone(), never.clone()]).await;
        assert_eq!(outcomes.len(), 2);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert!(get(store, &gone, 4, 0..4).await.unwrap().is_none());
    }

    assert_eq!(get(store, &kept, 4, 0..4).await.unwrap().unwrap(), b"kept");
    assert!(store.remove(Vec::new()).await.is_empty());
}
