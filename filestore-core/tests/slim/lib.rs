//! A store without pictures, converters, providers and PostgreSQL: `cargo test -p filestore-slim`. A package of its own,
//! because the core's other tests need crates that this store does not.

#![cfg(test)]

use std::sync::Arc;

use filestore_core::admin::{FsckOptions, NoProgress, copy_records};
use filestore_core::config::{ConverterConfig, MetadataPlace, PostgresConfig, ProviderConfig};
use filestore_core::variants::VariantSize;
use filestore_core::{ErrorKind, FileStore, NewUpload, Scope, StoreConfig};

/// The beginning of a PNG, which a build with pictures would read.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x01\0\x08\x02\0\0\0";

#[tokio::test]
async fn files_are_stored_and_a_variant_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).await.unwrap();
    let new = NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap());
    let record = store.upload(new.with_name("a.png"), PNG).await.unwrap();
    assert_eq!((record.mime_type.as_str(), record.blob.dimensions), ("image/png", None));

    let files = store.scoped(&Scope::All);
    assert_eq!(files.read(record.file_id).await.unwrap(), PNG);
    let size = VariantSize::from_path("200", "200").unwrap();
    let refused = files.variant(record.file_id, size).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotAnImage);
    assert!(refused.message().contains("feature `pictures`"), "{}", refused.message());

    files.delete(record.file_id).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_configuration_with_converters_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    let converter = ConverterConfig::new(["application/pdf"], ["true"]);
    config.variants.converters.push(converter);
    let refused = FileStore::builder(dir.path()).config(config).open().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    assert!(refused.message().contains("feature `converters`"), "{}", refused.message());
}

#[tokio::test]
async fn a_configuration_with_a_provider_is_refused_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let disk = dir.path().join("disk");
    let at_eu = |scheme: &str| ProviderConfig::new("eu".parse().unwrap(), scheme);
    let on_disk = at_eu("fs").with_option("root", disk.to_str().unwrap());

    for config in [at_eu("s3"), at_eu("memory"), on_disk.clone(), on_disk.as_local_backend()] {
        let builder = FileStore::builder(&data).provider(config);
        let refusals = [builder.check().unwrap_err(), builder.open().await.unwrap_err()];
        for refused in refusals {
            assert_eq!(refused.kind(), ErrorKind::Unusable);
            assert!(refused.message().starts_with("provider eu: "), "{}", refused.message());
            assert!(refused.message().contains("feature `providers`"), "{}", refused.message());
        }
    }
    assert!(!disk.exists());
}

#[tokio::test]
async fn a_store_reopens_without_providers_and_finds_its_files_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).await.unwrap();
    let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let content = vec![b'a'; 3 << 20];
    let record = store.upload(new, &content[..]).await.unwrap();
    store.close().await;
    drop(store);

    let store = FileStore::open(dir.path()).await.unwrap();
    let read = store.scoped(&Scope::All).read(record.file_id).await.unwrap();
    assert!(read == content, "{} bytes", read.len());
    assert_eq!(store.admin().providers().len(), 1, "the local disk alone");
    let options = FsckOptions::default();
    let report = store.admin().fsck(options, &|| false, &NoProgress).await.unwrap();
    assert_eq!((report.checked_files, report.found), (1, 0));
    store.close().await;
}

#[tokio::test]
async fn records_in_postgresql_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let place = PostgresConfig::new("postgres://u@127.0.0.1/d");
    let mut config = StoreConfig::default();
    config.metadata = MetadataPlace::Postgres(place);
    let refused = FileStore::builder(dir.path()).config(config).open().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    assert!(refused.message().contains("without the feature postgres"), "{}", refused.message());

    let config = StoreConfig::default();
    let copied = copy_records(dir.path(), &config, Arc::new(NoProgress)).await;
    let refused = copied.unwrap_err();
    assert!(refused.message().contains("without the feature postgres"), "{}", refused.message());
}
