//! Settling of files that need no copy, and counts.

use super::*;
use crate::domain::file::status::{Status, SyncStatus};
use crate::domain::provider::binding::{BindingChange, NewBinding};
use crate::metadata::SyncCounts;

pub(crate) async fn bind(metadata: &dyn Metadata, organization: i64, code: &str) {
    let binding = NewBinding {
        organization: number(organization),
        organization_name: "name".into(),
        provider: provider(code),
        sync_enabled: true,
    };
    metadata.create_binding(binding, at(0)).await.unwrap();
}

async fn settle(metadata: &dyn Metadata) -> Vec<FileId> {
    sorted(metadata.settle_sync(100).await.unwrap())
}

pub(crate) async fn files_with_nowhere_to_go_are_settled(metadata: &dyn Metadata) {
    assert_eq!(settle(metadata).await, []);

    bind(metadata, 2, "LOCAL").await;
    bind(metadata, 4, "s3").await;
    let terminate = BindingChange { is_active: Some(false), ..BindingChange::default() };
    metadata.change_binding(number(4), terminate, &[], at(1)).await.unwrap();
    let mut waiting = Vec::new();

    for organization in ["acme", "0", "1", "2", "4", "9007199254740992"] {
        let record = put(metadata, ready(organization)).await;
        get(metadata, record.file_id).await;
        waiting.push(record);
    }

    let ids = sorted(waiting.iter().map(|record| record.file_id).collect());
    assert_eq!(settle(metadata).await, ids);

    for record in waiting {
        let settled = FileRecord { state: record.state.settle().unwrap(), ..record };
        assert_eq!(
            get(metadata, settled.file_id).await.as_deref(),
            Some(&settled),
            "updated_at stays"
        );
    }

    assert_eq!(settle(metadata).await, []);
}

pub(crate) async fn files_bound_elsewhere_wait(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    bind(metadata, 70, "LOCAL").await;
    let local = put(metadata, ready("7")).await;
    bind(metadata, 8, "gone-from-the-configuration").await;
    let unreachable = put(metadata, ready("8")).await;
    let elsewhere = put(metadata, in_cloud(ready("7"), "gcs")).await;
    let alike = put(metadata, ready("70")).await;

    assert_eq!(settle(metadata).await, [alike.file_id]);

    for record in [&local, &elsewhere, &unreachable] {
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(record));
    }
}

pub(crate) async fn files_already_there_are_settled(metadata: &dyn Metadata) {
    bind(metadata, 7, "s3").await;
    let there = put(metadata, in_cloud(ready("7"), "s3")).await;
    assert_eq!(settle(metadata).await, [there.file_id]);
    let settled = get(metadata, there.file_id).await.unwrap();
    assert_eq!(
        (settled.state.sync(), settled.state.location()),
        (SyncStatus::None, Location::Cloud)
    );
}

pub(crate) async fn settling_stops_at_the_limit_and_goes_on(metadata: &dyn Metadata) {
    bind(metadata, 5, "s3").await;
    for organization in ["1", "1", "1", "5", "5", "6", "6"] {
        put(metadata, ready(organization)).await;
    }
    let mut settled = Vec::new();
    for _ in 0..4 {
        settled.push(metadata.settle_sync(2).await.unwrap().len());
    }

    assert_eq!(settled, [2, 2, 1, 0], "past the two that wait");
    assert_eq!(metadata.settle_sync(0).await.unwrap(), []);
}

pub(crate) async fn deleted_files_are_not_settled(metadata: &dyn Metadata) {
    put_deleted(metadata, ready("acme"), at(1)).await;
    put(metadata, temp("acme")).await;
    assert_eq!(settle(metadata).await, []);
}

pub(crate) async fn the_queue_of_an_organization_is_counted(metadata: &dyn Metadata) {
    for (name, sync) in [
        ("7", SyncStatus::Pending),
        ("7", SyncStatus::Pending),
        ("7", SyncStatus::Syncing),
        ("7", SyncStatus::Failed),
        ("7", SyncStatus::None),
        ("8", SyncStatus::Pending),
    ] {
        let state = FileState::from_row(Status::Ready, sync, None, Location::Local).unwrap();
        put(metadata, FileRecord { state, ..ready(name) }).await;
    }
    put_deleted(metadata, ready("7"), at(1)).await;

    let counts = metadata.sync_queue_of(&organization("7")).await.unwrap();
    let expected = SyncCounts { pending: 2, syncing: 1, failed: 1, ..SyncCounts::default() };
    assert_eq!(counts, expected);
    let nobody = metadata.sync_queue_of(&organization("9")).await.unwrap();
    assert_eq!(nobody, SyncCounts::default());
}

pub(crate) async fn counts_follow_every_change(metadata: &dyn Metadata) {
    let counts = async || metadata.sync_counts().await.unwrap();
    assert_eq!(counts().await, SyncCounts::default());

    let record = put(metadata, ready("acme")).await;
    put(metadata, temp("acme")).await;
    assert_eq!(counts().await, SyncCounts { none: 1, pending: 1, ..SyncCounts::default() });

    settle(metadata).await;
    assert_eq!(counts().await, SyncCounts { none: 2, ..SyncCounts::default() });

    let old = FileRecord { state: record.state.settle().unwrap(), ..record };
    let next = moved(&old, "s3");
    note(metadata, &next).await;
    assert_eq!(metadata.update_file(change(&old, next.clone())).await.unwrap(), Updated::Done);

    let copied = SyncCounts { none: 1, synced: 1, ..SyncCounts::default() };
    assert_eq!(counts().await, copied);

    let dead = deleted(&next, at(1));
    metadata.update_file(change(&next, dead.clone())).await.unwrap();
    let left = SyncCounts { none: 1, ..SyncCounts::default() };
    assert_eq!(counts().await, left, "deleted ones are left out");

    let back = restored(&dead);
    metadata.update_file(change(&dead, back.clone())).await.unwrap();
    assert_eq!(counts().await, copied);

    metadata.update_file(change(&back, deleted(&back, at(2)))).await.unwrap();
    metadata
        .claim_purges(
            lease("run", at(2), at(9)),
            &ProviderCode::local(),
            DueFiles::marked_before(at(2)),
            9,
        )
        .await
        .unwrap();
    metadata.finish_purges("run", &[Purged::of(back.file_id)], at(0)).await.unwrap();
    assert_eq!(counts().await, left);
}
