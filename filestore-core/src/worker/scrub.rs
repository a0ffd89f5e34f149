//! The scrub: a periodic check in the background that only reports.

use std::time::Duration;

use super::fsck;
use super::running::progress::NoProgress;
use crate::FileStore;
use crate::domain::config::ScrubConfig;
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::report::fsck::FsckOptions;
use crate::metadata::CheckName;

/// The maximum time from the opening of a store to its first scrub.
const FIRST_AFTER: Duration = Duration::from_hours(1);

/// Scrubs the store if a scrub is due, or resumes a stopped scrub. Gives way to a requested check.
pub(super) async fn run_if_due(store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let config = store.config().scrub;
    if config.period.is_zero() || !is_due(store, config).await? {
        return Ok(());
    }
    let Some(entry) = store.inner().background.begin_scrub().await? else { return Ok(()) };
    // Another server may have come to the end of one since.
    if !is_due(store, config).await? {
        return Ok(());
    }

    let options = FsckOptions {
        depth: config.depth,
        bytes_per_second: config.bytes_per_second,
        // Reading from a provider may cost money.
        provider: (!config.at_providers).then(ProviderCode::local),
        ..FsckOptions::default()
    };
    let report = fsck::run_as(store, CheckName::Scrub, &options, entry, stop, &NoProgress).await?;
    if report.ended_at.is_some() {
        tracing::info!(
            files = report.checked_files,
            bytes = report.checked_bytes,
            found = report.found,
            "scrubbed the store"
        );
    }
    Ok(())
}

async fn is_due(store: &FileStore, config: ScrubConfig) -> Result<bool> {
    let inner = store.inner();
    let due_at = match inner.metadata.inspection().check_run(CheckName::Scrub).await? {
        None => inner.opened_at.plus(config.period.min(FIRST_AFTER)),
        Some(last) if last.ended_at.is_some() => last.started_at.plus(config.period),
        Some(_) => return Ok(true),
    };
    Ok(inner.now() >= due_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::config::StoreConfig;
    use crate::domain::report::fsck::FsckDepth;
    use crate::domain::time::clock::{ManualClock, Timestamp};
    use crate::service::NewUpload;

    #[tokio::test]
    async fn a_scrub_comes_when_its_period_is_over_and_remembers_its_result() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::now());
        let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"bytes"[..]).await.unwrap();
        store.inner().uploads.publishing.idle().await;
        let blob = dir.path().join("blobs").join(record.blob.key.as_str());

        run_if_due(&store, &|| false).await.unwrap();
        assert_eq!(store.admin().fsck_status().await.unwrap().scrub, None, "not due yet");

        clock.advance(FIRST_AFTER);
        run_if_due(&store, &|| false).await.unwrap();
        let first = store.admin().fsck_status().await.unwrap().scrub.unwrap();
        assert_eq!((first.depth, first.checked_bytes, first.found), (FsckDepth::Deep, 5, 0));

        std::fs::write(&blob, b"bites").unwrap();
        run_if_due(&store, &|| false).await.unwrap();
        assert_eq!(store.admin().fsck_status().await.unwrap().scrub, Some(first), "not due again");
        clock.advance(StoreConfig::default().scrub.period);
        run_if_due(&store, &|| false).await.unwrap();

        let second = store.admin().fsck_status().await.unwrap().scrub.unwrap();
        assert_eq!(second.found, 1);
        assert!(blob.exists(), "a scrub changes nothing");
        assert_eq!(store.admin().load().await.scrub, Some(second));
        assert_eq!(store.admin().overview().await.advice()[0].about, "checks");
        store.close().await;
    }

    #[tokio::test]
    async fn a_scrub_that_was_stopped_goes_on_at_the_next_look() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::now());
        let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
        clock.advance(FIRST_AFTER);

        run_if_due(&store, &|| true).await.unwrap();
        let stopped = store.admin().fsck_status().await.unwrap().scrub.unwrap();
        assert_eq!(stopped.ended_at, None);
        run_if_due(&store, &|| false).await.unwrap();
        let ended = store.admin().fsck_status().await.unwrap().scrub.unwrap();
        assert!(ended.ended_at.is_some() && ended.started_at == stopped.started_at);
        store.close().await;
    }

    #[tokio::test]
    async fn a_period_of_zero_is_no_scrub() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::now());
        let mut config = StoreConfig::default();
        config.scrub.period = Duration::ZERO;
        let builder = FileStore::builder(dir.path()).config(config).clock(clock.clock());
        let store = builder.open().await.unwrap();
        clock.advance(Duration::from_hours(24 * 365));
        run_if_due(&store, &|| false).await.unwrap();
        assert_eq!(store.admin().fsck_status().await.unwrap().scrub, None);
        store.close().await;
    }
}
