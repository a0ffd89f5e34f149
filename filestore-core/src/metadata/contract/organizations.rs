//! Organizations and their sub-systems, with what they store.

use super::syncs::bind;
use super::*;
use crate::domain::file::usage::{Stored, SubSystemUsage};

fn part(record: FileRecord, sub_system: &str) -> FileRecord {
    FileRecord { sub_system: sub_system.parse().unwrap(), ..record }
}

fn stored(files: u64, bytes: u64) -> Stored {
    Stored { files, bytes }
}

/// Lists all organizations of `scope`, in pages of `limit`: id, files, bytes, provider of the binding.
async fn listed(
    metadata: &dyn Metadata,
    scope: &Scope,
    limit: usize,
) -> Vec<(String, u64, u64, Option<String>)> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = metadata.list_organizations(scope, after.as_ref(), limit).await.unwrap();
        assert!(page.len() <= limit);
        after = page.last().map(|last| last.organization_id.clone());
        all.extend(page.iter().map(|one| {
            let provider = one.binding.as_ref().map(|binding| binding.provider.to_string());
            (one.organization_id.to_string(), one.stored.files, one.stored.bytes, provider)
        }));
        if page.len() < limit {
            return all;
        }
    }
}

pub(crate) async fn organizations_with_files_or_a_binding_are_listed(metadata: &dyn Metadata) {
    assert_eq!(listed(metadata, &Scope::All, 9).await, []);
    for (name, size) in [("acme", 1), ("7", 20), ("7", 300), ("B", 4000), ("10", 1)] {
        put(metadata, sized(ready(name), size)).await;
    }
    put(metadata, sized(in_cloud(ready("7"), "s3"), 50_000)).await;
    bind(metadata, 7, "s3").await;
    bind(metadata, 8, "LOCAL").await;
    let gone = put_deleted(metadata, ready("gone"), at(1)).await;
    metadata
        .claim_purges(
            lease("run", at(1), at(9)),
            &ProviderCode::local(),
            DueFiles::marked_before(at(1)),
            9,
        )
        .await
        .unwrap();
    assert_eq!(metadata.finish_purges("run", &[Purged::of(gone.file_id)], at(2)).await.unwrap(), 1);

    let one = |id: &str, files, bytes, provider: Option<&str>| {
        (id.to_owned(), files, bytes, provider.map(str::to_owned))
    };
    let all = [
        one("10", 1, 1, None),
        one("7", 3, 50_320, Some("s3")),
        one("8", 0, 0, Some("LOCAL")),
        one("B", 1, 4000, None),
        one("acme", 1, 1, None),
    ];
    for limit in [1, 2, 5, 9] {
        assert_eq!(listed(metadata, &Scope::All, limit).await, all, "by {limit}");
    }

    let of = |ids: &[&str]| Scope::Organizations(ids.iter().map(|id| organization(id)).collect());
    for limit in [1, 9] {
        let some =
            listed(metadata, &of(&["acme", "8", "nobody", "7", "acme", "gone"]), limit).await;
        assert_eq!(some, [all[1].clone(), all[2].clone(), all[4].clone()], "by {limit}");
        assert_eq!(listed(metadata, &of(&[]), limit).await, []);
    }
    assert_eq!(metadata.total().await.unwrap().total(), stored(6, 54_322));
}

pub(crate) async fn sub_systems_are_listed_with_what_is_temporary_and_deleted(
    metadata: &dyn Metadata,
) {
    put(metadata, sized(part(ready("7"), "b"), 100)).await;
    put(metadata, sized(part(in_cloud(ready("7"), "s3"), "b"), 10)).await;
    put(metadata, sized(part(temp("7"), "b"), 5)).await;
    put_deleted(metadata, sized(part(ready("7"), "b"), 1000), at(1)).await;
    put(metadata, sized(part(ready("7"), "B"), 7)).await;
    put(metadata, sized(part(temp("7"), "c"), 9)).await;
    put(metadata, part(ready("8"), "a")).await;

    let seven = organization("7");
    let part = |name: &str, total, temp, deleted| SubSystemUsage {
        sub_system: name.parse().unwrap(),
        total,
        temp,
        deleted,
    };
    let none = stored(0, 0);
    let all = [
        part("B", stored(1, 7), none, none),
        part("b", stored(4, 1115), stored(1, 5), stored(1, 1000)),
        part("c", stored(1, 9), stored(1, 9), none),
    ];
    assert_eq!(metadata.list_sub_systems(&seven, None, 9).await.unwrap(), all);
    assert_eq!(metadata.list_sub_systems(&seven, None, 2).await.unwrap(), all[..2]);
    let after = "b".parse().unwrap();
    assert_eq!(metadata.list_sub_systems(&seven, Some(&after), 9).await.unwrap(), all[2..]);
    assert_eq!(metadata.list_sub_systems(&organization("nobody"), None, 9).await.unwrap(), []);

    let usage = metadata.usage(&seven).await.unwrap();
    assert_eq!((usage.temp, usage.deleted), (stored(2, 14), stored(1, 1000)));
    assert_eq!(usage.total(), stored(6, 1131));
    assert_eq!(metadata.stored_bytes(&seven).await.unwrap(), 1131);
}

pub(crate) async fn the_totals_of_a_sub_system_follow_every_change(metadata: &dyn Metadata) {
    let seven = organization("7");
    let shown = async || {
        let all = metadata.list_sub_systems(&seven, None, 9).await.unwrap();
        let drifted = metadata.inspection().drifted_totals(Some("7")).await.unwrap();
        assert_eq!(drifted, [], "the totals are what the files add up to");
        all.first().map(|one| (one.total.bytes, one.temp.bytes, one.deleted.bytes))
    };

    let record = put(metadata, sized(temp("7"), 10)).await;
    assert_eq!(shown().await, Some((10, 10, 0)));
    let promoted = FileRecord {
        state: record.state.make_ready().unwrap(),
        expires_at: None,
        updated_at: at(1),
        ..record.clone()
    };
    metadata.update_file(change(&record, promoted.clone())).await.unwrap();
    assert_eq!(shown().await, Some((10, 0, 0)));
    let larger = replaced(&promoted, 30, at(2));
    metadata.update_file(change(&promoted, larger.clone())).await.unwrap();
    assert_eq!(shown().await, Some((30, 0, 0)));
    let gone = deleted(&larger, at(3));
    metadata.update_file(change(&larger, gone.clone())).await.unwrap();
    assert_eq!(shown().await, Some((30, 0, 30)));
    let back = restored(&gone);
    metadata.update_file(change(&gone, back.clone())).await.unwrap();
    assert_eq!(shown().await, Some((30, 0, 0)));

    metadata.update_file(change(&back, deleted(&back, at(4)))).await.unwrap();
    let claims = metadata
        .claim_purges(
            lease("run", at(4), at(9)),
            &ProviderCode::local(),
            DueFiles::marked_before(at(4)),
            9,
        )
        .await
        .unwrap();
    assert_eq!(claims.len(), 1);
    metadata.finish_purges("run", &[Purged::of(record.file_id)], at(5)).await.unwrap();
    assert_eq!(shown().await, None, "a sub-system without files is not listed");
}
