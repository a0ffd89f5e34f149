//! Compare-and-set changes of one file.

use super::*;
use crate::domain::file::record::{Dimensions, Thumbhash};
use crate::domain::file::status::{PurgeStatus, Status, SyncStatus};
use crate::domain::provider::binding::NewBinding;

pub(crate) async fn an_update_changes_all_that_may_change(metadata: &dyn Metadata) {
    let old = put(metadata, temp("acme")).await;
    let next = FileRecord {
        original_name: "new".into(),
        mime_type: "image/png".into(),
        ext: "png".into(),
        blob: Blob {
            provider: provider("s3"),
            sha256: Sha256([9; 32]),
            sniffed_type: Some("image/png".into()),
            dimensions: Some(Dimensions { width: 3, height: 4 }),
            ..replaced(&old, 77, at(5)).blob
        },
        state: FileState::uploaded(Location::Cloud),
        expires_at: None,
        metadata: r#"{"a": 1}"#.parse().unwrap(),
        edited_at: Some(at(4)),
        ..replaced(&old, 77, at(5))
    };

    note(metadata, &next).await;
    assert_eq!(metadata.update_file(change(&old, next.clone())).await.unwrap(), Updated::Done);
    assert_eq!(get(metadata, old.file_id).await.as_deref(), Some(&next));
}

pub(crate) async fn an_update_from_another_state_is_lost(metadata: &dyn Metadata) {
    let row =
        |status, sync, purge, location| FileState::from_row(status, sync, purge, location).unwrap();
    let (local, cloud) = (Location::Local, Location::Cloud);
    let record = put(metadata, ready("acme")).await;
    let actual = record.state;
    let seen = Expected::of(&record);
    let others = [
        Expected { version: 2, ..seen },
        Expected { state: row(Status::Thumbnail, SyncStatus::None, None, local), ..seen },
        Expected { state: row(Status::Ready, SyncStatus::None, None, local), ..seen },
        Expected { state: actual.delete(), ..seen },
        Expected { state: row(Status::Ready, SyncStatus::Pending, None, cloud), ..seen },
        Expected { blob: BlobId::generate(at(0)), ..seen },
        Expected { edited_at: Some(at(0)), ..seen },
    ];

    let next = replaced(&record, 5, at(1));
    for expected in others {
        let update = UpdateFile { expected, ..change(&record, next.clone()) };
        assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Lost, "{expected:?}");
    }

    let unknown = ready("acme");
    assert_eq!(
        metadata.update_file(change(&unknown, unknown.clone())).await.unwrap(),
        Updated::Lost
    );
    assert_eq!(
        get(metadata, record.file_id).await.as_deref(),
        Some(&record),
        "nothing was changed"
    );

    let dead = deleted(&record, at(2));
    assert_eq!(metadata.update_file(change(&record, dead.clone())).await.unwrap(), Updated::Done);

    let update = change(&record, next);
    assert_eq!(metadata.update_file(update).await.unwrap(), Updated::Lost, "deleted since");
    assert_eq!(dead.state.purge(), Some(PurgeStatus::SystemPurge));
}

pub(crate) async fn a_move_of_the_bytes_keeps_an_edit_that_it_has_not_seen(
    metadata: &dyn Metadata,
) {
    let seen = put(metadata, ready("acme")).await;
    let edited = FileRecord {
        original_name: "edited".into(),
        mime_type: "text/css".into(),
        ext: "css".into(),
        metadata: r#"{"a": 1}"#.parse().unwrap(),
        edited_at: Some(at(9)),
        updated_at: at(9),
        ..seen.clone()
    };
    assert_eq!(metadata.update_file(change(&seen, edited.clone())).await.unwrap(), Updated::Done);

    let next = FileRecord { updated_at: at(5), ..moved(&seen, "s3") };
    note(metadata, &next).await;
    let late = change(&seen, next.clone());
    assert_eq!(metadata.update_file(late.clone()).await.unwrap(), Updated::Lost);

    let flip = UpdateFile { writes: Writes::Bytes, ..late };
    assert_eq!(metadata.update_file(flip).await.unwrap(), Updated::Done);
    let both = FileRecord { blob: next.blob, state: next.state, ..edited };
    assert_eq!(get(metadata, seen.file_id).await.as_deref(), Some(&both));
}

pub(crate) async fn of_two_concurrent_edits_one_is_done(metadata: &dyn Metadata) {
    let record = put(metadata, ready("acme")).await;
    let rename = |name: &str, millis| FileRecord {
        original_name: name.into(),
        edited_at: Some(at(millis)),
        updated_at: at(millis),
        ..record.clone()
    };

    let (first, second) = (rename("first", 1), rename("second", 2));
    assert_eq!(metadata.update_file(change(&record, first.clone())).await.unwrap(), Updated::Done);
    assert_eq!(metadata.update_file(change(&record, second)).await.unwrap(), Updated::Lost);
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&first));
}

pub(crate) async fn of_two_concurrent_updates_one_is_done(metadata: &dyn Metadata) {
    for round in 0..20 {
        let record = put(metadata, ready("acme")).await;
        let rivals = [replaced(&record, 1, at(round)), replaced(&record, 2, at(round))];
        let [one, other] = rivals.clone().map(|next| metadata.update_file(change(&record, next)));
        let (one, other) = tokio::join!(one, other);
        let outcomes = [one.unwrap(), other.unwrap()];
        let winner = outcomes.iter().position(|outcome| *outcome == Updated::Done).unwrap();
        assert_eq!(outcomes[1 - winner], Updated::Lost);
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&rivals[winner]));
    }
}

pub(crate) async fn an_update_that_grows_is_checked_against_the_quota(metadata: &dyn Metadata) {
    put(metadata, sized(ready("acme"), 50)).await;
    let mut record = put(metadata, sized(ready("acme"), 50)).await;
    for (size_bytes, quota, expected) in [
        (61, 110, Updated::OverQuota),
        (60, 110, Updated::Done),
        (60, 20, Updated::Done),
        (59, 20, Updated::Done),
        (60, 20, Updated::OverQuota),
    ] {
        let next = replaced(&record, size_bytes, at(1));
        let update = UpdateFile { quota_bytes: Some(quota), ..change(&record, next.clone()) };
        assert_eq!(
            metadata.update_file(update).await.unwrap(),
            expected,
            "{size_bytes} of {quota}"
        );
        if expected == Updated::Done {
            record = next;
        }
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    }
}

pub(crate) async fn an_update_placed_by_another_binding_is_refused(metadata: &dyn Metadata) {
    let binding = NewBinding {
        organization: number(7),
        organization_name: "Seven".into(),
        provider: provider("s3"),
        sync_enabled: false,
    };

    metadata.create_binding(binding, at(0)).await.unwrap();
    let record = put(metadata, ready("7")).await;
    let placed = |active: Option<(&str, bool)>| UpdateFile {
        binding: Some(BindingSeen {
            organization: Some(number(7)),
            active: active.map(|(code, sync_enabled)| (provider(code), sync_enabled)),
        }),
        ..change(&record, replaced(&record, 5, at(1)))
    };

    for stale in [None, Some(("s3", true)), Some(("gcs", false))] {
        assert_eq!(metadata.update_file(placed(stale)).await.unwrap(), Updated::PlacementStale);
    }
    assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(metadata.update_file(placed(Some(("s3", false)))).await.unwrap(), Updated::Done);
}

pub(crate) async fn a_change_is_visible_at_once_in_memory_too(metadata: &dyn Metadata) {
    let mut record = put(metadata, ready("acme")).await;
    for round in 1..50 {
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
        let next = replaced(&record, 5, at(round));
        metadata.update_file(change(&record, next.clone())).await.unwrap();
        let cached = metadata.cached_file(record.file_id, &Scope::All);
        assert!(cached.is_none_or(|cached| *cached == next), "an old record in memory");
        record = next;
    }
}

pub(crate) async fn deleting_marks_once_and_restoring_clears_the_mark(metadata: &dyn Metadata) {
    let due = async |now| {
        metadata.purge_backlog(DueFiles::marked_before(at(now)), at(now)).await.unwrap().due
    };
    let first = put_deleted(metadata, ready("acme"), at(10)).await;
    let again = deleted(&first, at(20));
    assert_eq!(metadata.update_file(change(&first, again.clone())).await.unwrap(), Updated::Done);
    assert_eq!((due(9).await, due(10).await), (0, 1), "the first mark stays");

    let back = restored(&again);
    assert_eq!(metadata.update_file(change(&again, back.clone())).await.unwrap(), Updated::Done);
    assert_eq!(due(1000).await, 0);
    assert_eq!(get(metadata, back.file_id).await.as_deref(), Some(&back));

    let third = deleted(&back, at(30));
    assert_eq!(metadata.update_file(change(&back, third)).await.unwrap(), Updated::Done);
    assert_eq!((due(29).await, due(30).await), (0, 1), "a new mark");
}

pub(crate) async fn a_placeholder_stays_with_the_bytes_it_shows(metadata: &dyn Metadata) {
    let record = put(metadata, ready("7")).await;
    let (one, other) = (Thumbhash::new(&[1; 20]).unwrap(), Thumbhash::new(&[2; 21]).unwrap());
    let shown = async || {
        let found = metadata.file(record.file_id, &Scope::All).await.unwrap().unwrap();
        found.blob.thumbhash.clone()
    };

    let foreign = Sha256([99; 32]);
    metadata.note_thumbhash(record.file_id, &foreign, &one).await.unwrap();
    metadata.note_thumbhash(FileId::generate(at(0)), &foreign, &one).await.unwrap();
    assert_eq!(shown().await, None, "another blob's");
    let sha256 = record.blob.sha256;
    metadata.note_thumbhash(record.file_id, &sha256, &one).await.unwrap();
    assert_eq!(shown().await, Some(one.clone()));
    let noted = metadata.file(record.file_id, &Scope::All).await.unwrap().unwrap();
    assert_eq!(noted.updated_at, record.updated_at, "nothing that a client did has changed");

    // A move of the bytes that was decided before the placeholder came keeps it.
    let moved =
        FileRecord { blob: Blob { stored_at: at(3), ..record.blob.clone() }, ..record.clone() };
    assert_eq!(metadata.update_file(change(&record, moved.clone())).await.unwrap(), Updated::Done);
    assert_eq!(shown().await, Some(one));

    let next = FileRecord {
        blob: Blob { sha256: foreign, ..replaced(&moved, 9, at(5)).blob },
        ..replaced(&moved, 9, at(5))
    };
    assert_eq!(metadata.update_file(change(&moved, next)).await.unwrap(), Updated::Done);
    assert_eq!(shown().await, None, "other bytes have none");
    metadata.note_thumbhash(record.file_id, &sha256, &other).await.unwrap();
    assert_eq!(shown().await, None, "a note that comes too late");
}
