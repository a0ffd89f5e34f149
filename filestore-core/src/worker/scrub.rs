//! The scrub: a check of the background, which looks at everything once in a while and changes nothing.

use std::time::Duration;

use super::progress::NoProgress;
use crate::FileStore;
use crate::domain::config::ScrubConfig;
use crate::domain::error::Result;
use crate::domain::fsck::FsckOptions;
use crate::domain::provider::ProviderCode;
use crate::metadata::CheckName;

/// Longest time from the opening of a store to its first scrub.
const FIRST_AFTER: Duration = Duration::from_hours(1);

impl FileStore {
    /// Scrubs the store if that is due, or goes on with a scrub that was stopped. Leaves the turn to a
    /// check that was asked for.
    pub async fn scrub_if_due(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let config = self.config().scrub;
        if config.period.is_zero() || !self.is_scrub_due(config).await? {
            return Ok(());
        }
        let Some(entry) = self.inner().begin_scrub().await? else { return Ok(()) };
        // Another server may have come to the end of one since.
        if !self.is_scrub_due(config).await? {
            return Ok(());
        }

        let options = FsckOptions {
            depth: config.depth,
            bytes_per_second: config.bytes_per_second,
            // Reading from a provider may cost money.
            provider: (!config.at_providers).then(ProviderCode::local),
            ..FsckOptions::default()
        };
        let report = self.check_as(CheckName::Scrub, &options, entry, stop, &NoProgress).await?;
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

    async fn is_scrub_due(&self, config: ScrubConfig) -> Result<bool> {
        let inner = self.inner();
        let due_at = match inner.metadata.check_run(CheckName::Scrub).await? {
            None => inner.opened_at.plus(config.period.min(FIRST_AFTER)),
            Some(last) if last.ended_at.is_some() => last.started_at.plus(config.period),
            Some(_) => return Ok(true),
        };
        Ok(inner.now() >= due_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::{ManualClock, Timestamp};
    use crate::domain::config::StoreConfig;
    use crate::domain::fsck::FsckDepth;
    use crate::service::NewUpload;

    #[tokio::test]
    async fn a_scrub_comes_when_its_period_is_over_and_remembers_its_result() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::now());
        let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"bytes"[..]).await.unwrap();
        store.inner().publishing.idle().await;
        let blob = dir.path().join("blobs").join(record.blob.key.as_str());

        store.scrub_if_due(&|| false).await.unwrap();
        assert_eq!(store.admin().fsck_status().await.unwrap().scrub, None, "not due yet");

        clock.advance(FIRST_AFTER);
        store.scrub_if_due(&|| false).await.unwrap();
        let first = store.admin().fsck_status().await.unwrap().scrub.unwrap();
        assert_eq!((first.depth, first.checked_bytes, first.found), (FsckDepth::Deep, 5, 0));

        std::fs::write(&blob, b"bites").unwrap();
        store.scrub_if_due(&|| false).await.unwrap();
        assert_eq!(store.admin().fsck_status().await.unwrap().scrub, Some(first), "not due again");
        clock.advance(StoreConfig::default().scrub.period);
        store.scrub_if_due(&|| false).await.unwrap();

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

        store.scrub_if_due(&|| true).await.unwrap();
        let stopped = store.admin().fsck_status().await.unwrap().scrub.unwrap();
        assert_eq!(stopped.ended_at, None);
        store.scrub_if_due(&|| false).await.unwrap();
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
        store.scrub_if_due(&|| false).await.unwrap();
        assert_eq!(store.admin().fsck_status().await.unwrap().scrub, None);
        store.close().await;
    }
}
