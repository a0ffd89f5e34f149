//! The overview of a whole store, including background work.

use super::{backlog, fsck, purge, sync};
use crate::FileStore;
use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::event::After;
use crate::domain::file::listing::ListFilter;
use crate::domain::file::status::SyncStatus;
use crate::domain::id::OrganizationId;
use crate::domain::report::PurgeOptions;
use crate::domain::report::load::Load;
use crate::domain::report::overview::{Overview, ProviderStatus};
use crate::domain::report::webhooks::WebhooksOverview;
use crate::domain::time::clock::Timestamp;
use crate::metadata::WebhookRow;
use crate::service::work::overview::{disk_space, faults, provider_states, resumable, unfinished};

/// Number of failing webhooks whose oldest waiting event is looked up.
const MOST_LOOKED_UP: usize = 10;

/// Lists all providers with their health and their waiting work.
pub(crate) async fn providers(store: &FileStore) -> Result<Vec<ProviderStatus>> {
    Ok(provider_states(store, backlog::count(store).await?))
}

/// Returns the state of queues, caches and counters. Does not count single rows or files.
pub(crate) async fn load(store: &FileStore) -> Load {
    let (copied_files, copied_bytes) = store.inner().background.traffic.totals();
    let damage = store.damage();

    Load {
        at: store.inner().now(),
        opened_at: store.inner().opened_at,
        disk: disk_space(store).await,
        unfinished: unfinished(store),
        resumable: resumable(store).await,
        events: store.inner().event_log().await.ok(),
        writes: store.inner().metadata.queued_writes(),
        variants: store.inner().pictures.engine.load(),
        copied_files,
        copied_bytes,
        damaged_rows: damage.damaged_rows,
        missing_blobs: damage.missing_blobs,
        scrub: fsck::status(store).await.ok().and_then(|checks| checks.scrub),
    }
}

/// Returns the whole overview. If the database does not answer, parts of the overview are empty, and the
/// overview reports this.
pub(crate) async fn everything(store: &FileStore) -> Overview {
    let everything = PurgeOptions::default();
    let (
        (database_fault, storage_fault),
        disk,
        resumable,
        events,
        webhooks,
        providers,
        total,
        sync,
        purge,
        checks,
        migrations,
    ) = tokio::join!(
        faults(store),
        disk_space(store),
        resumable(store),
        store.inner().event_log(),
        webhooks(store),
        providers(store),
        store.inner().metadata.total(),
        sync::status(store),
        purge::plan(store, &everything),
        fsck::status(store),
        store.inner().background.running_migrations(),
    );
    let uncounted =
        [providers.as_ref().err(), total.as_ref().err(), sync.as_ref().err(), purge.as_ref().err()];
    let uncounted = uncounted.into_iter().flatten().next().map(|error| error.message().to_owned());

    Overview {
        store_id: store.inner().metadata.store_id(),
        version: env!("CARGO_PKG_VERSION"),
        opened_at: store.inner().opened_at,
        at: store.inner().now(),
        data_dir: store.data_dir().path().to_owned(),
        database_fault: database_fault.or(uncounted),
        storage_fault,
        disk,
        unfinished: unfinished(store),
        resumable,
        events: events.ok(),
        webhooks: webhooks.ok(),
        providers: providers.unwrap_or_else(|_| provider_states(store, Vec::new())),
        total: total.map(|usage| usage.total()).unwrap_or_default(),
        sync_failed_in: failed_in(store, sync.as_ref().is_ok_and(|sync| sync.failed > 0)).await,
        sync: sync.unwrap_or_default(),
        purge: purge.unwrap_or_default(),
        migrations,
        checks: checks.unwrap_or_default(),
        damage: store.damage(),
    }
}

/// Counts the webhooks, and finds the oldest event that waits for one of them.
async fn webhooks(store: &FileStore) -> Result<WebhooksOverview> {
    let rows = store.inner().metadata.webhooks(None).await?;
    let mut all = WebhooksOverview::of(rows.iter().map(WebhookRow::shown));

    let mut failing: Vec<_> = rows.iter().filter(|row| row.disabled.is_none()).collect();
    failing.retain(|row| row.health.failing_since.is_some());
    failing.sort_by_key(|row| row.health.failing_since);
    for row in failing.into_iter().take(MOST_LOOKED_UP) {
        let oldest = oldest_waiting(store, row).await;
        all.oldest_waiting_at = all.oldest_waiting_at.into_iter().chain(oldest).min();
    }
    Ok(all)
}

/// Returns the time of the first event behind the place of a webhook that the webhook gets. `None` if the log cannot be
/// read from there.
async fn oldest_waiting(store: &FileStore, row: &WebhookRow) -> Option<Timestamp> {
    let after = row.place.map_or(After::Start, After::Event);
    let page = store.events(&Scope::All).page(&row.shown().filter(), after, 1).await.ok()?;
    page.events.first().map(|event| event.at)
}

/// Returns the organization of the newest FAILED file, if there are any.
async fn failed_in(store: &FileStore, are_any: bool) -> Option<OrganizationId> {
    if !are_any {
        return None;
    }
    let filter = ListFilter::new().sync_status(SyncStatus::Failed);
    let page = store.inner().metadata.list_files(&filter, &Scope::All, None, 1).await.ok()?;
    page.records.into_iter().next().map(|record| record.organization_id)
}

#[cfg(test)]
mod tests {
    use crate::FileStore;
    use crate::domain::access::scope::Scope;
    use crate::domain::config::StoreConfig;
    use crate::domain::provider::ProviderConfig;
    use crate::domain::provider::health::BreakerState;
    use crate::service::NewUpload;

    #[tokio::test]
    async fn an_overview_shows_the_store_its_providers_and_what_waits() {
        let dir = tempfile::tempdir().unwrap();
        let memory = ProviderConfig::new("mem".parse().unwrap(), "memory");
        let config = StoreConfig { providers: vec![memory], ..StoreConfig::default() };
        let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"bytes"[..]).await.unwrap();
        store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
        let mut unfinished = store.uploads().begin_unclaimed();
        unfinished.begin_file().await.unwrap();

        let overview = store.admin().overview().await;
        assert_eq!(overview.data_dir, store.data_dir().path());
        assert_eq!((overview.database_fault.clone(), overview.storage_fault.clone()), (None, None));
        assert!(overview.disk.is_some_and(|disk| disk.total_bytes > disk.free_bytes));
        assert_eq!((overview.unfinished.files, overview.purge.purged), (1, 0));
        assert_eq!((overview.total.files, overview.total.bytes), (1, 5), "until it is purged");
        assert_eq!((overview.purge.waiting, overview.purge.waiting_bytes), (1, 5));
        let due = overview.purge.next_due_at.unwrap();
        assert!(due > store.now() && due <= store.now().plus(store.config().purge_grace));

        let [local, memory] = &overview.providers[..] else { panic!("{:?}", overview.providers) };
        assert_eq!((local.state(), local.backlog.purge.count), (None, 0), "it is not due yet");
        assert_eq!((memory.state(), memory.backlog.is_empty()), (Some(BreakerState::Closed), true));
        store.close().await;
    }

    #[cfg(feature = "webhooks")]
    #[tokio::test]
    async fn an_overview_shows_the_webhooks_and_what_waits_for_failing_ones() {
        use crate::metadata::{LaneSave, Lease};

        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let new = || crate::webhooks::NewWebhook::new("https://example.org/".parse().unwrap());
        let (failing, _) = store.webhooks().create(new()).await.unwrap();
        let (disabled, _) = store.webhooks().create(new()).await.unwrap();
        store.webhooks().disable(disabled.id).await.unwrap();
        let file = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        store.upload(file, &b"bytes"[..]).await.unwrap();
        let shown = store.admin().overview().await.webhooks.unwrap();
        assert_eq!((shown.ok, shown.failing, shown.disabled), (1, 0, 1));
        assert_eq!(shown.oldest_waiting_at, None);

        let (metadata, now) = (&store.inner().metadata, store.now());
        let lease = Lease { owner: "a server", now, until: now.plus(crate::tasks::HANG) };
        let claimed = metadata.claim_lane(failing.id, lease).await.unwrap().unwrap();
        let mut health = claimed.health;
        health.failing_since = Some(now);
        let save = LaneSave {
            id: failing.id,
            owner: "a server".to_owned(),
            now,
            place: claimed.place,
            ahead: Vec::new(),
            health,
            failed: Vec::new(),
            retried: Vec::new(),
            disable: None,
        };
        metadata.save_lane(save).await.unwrap().unwrap();
        let shown = store.admin().overview().await.webhooks.unwrap();
        assert_eq!((shown.failing, shown.failing_since), (1, Some(now)));
        assert!(shown.oldest_waiting_at.is_some_and(|at| at <= now), "{shown:?}");
        store.close().await;
    }

    #[tokio::test]
    async fn the_load_counts_where_variants_came_from() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let new = NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap());
        let record = store.upload(new, &b"no picture"[..]).await.unwrap();
        assert!(store.scoped(&Scope::All).variant(record.file_id, 200).await.is_err());

        let load = store.admin().load().await;
        assert_eq!((load.variants.made, load.variants.failed), (0, 1));
        assert!(load.variants.threads > 0 && load.variants.tasks.max > 0);
        assert_eq!(load.writes.waiting, 0);
        assert!(load.disk.is_some() && load.writes.max > 0);
        store.close().await;
    }

    #[tokio::test]
    async fn a_database_that_does_not_answer_is_said_and_hides_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        store.close().await;
        let overview = store.admin().overview().await;
        assert!(overview.database_fault.is_some());
        assert_eq!(overview.providers.len(), 1);
        assert_eq!(overview.advice()[0].about, "database");
    }
}
