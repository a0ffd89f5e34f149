//! Listings, compared with a model that filters a vector.

use super::*;
use crate::domain::file::listing::{ListFilter, ListOrder, ListPosition};
use crate::domain::file::status::{PurgeStatus, Status, SyncStatus};
use crate::domain::id::SubSystem;

const ORGANIZATIONS: [&str; 3] = ["1", "2", "acme"];
const SUB_SYSTEMS: [&str; 2] = ["a", "b"];

/// Stores files of every organization, sub-system, status and purge status, several in each millisecond.
async fn fill(metadata: &dyn Metadata) -> Vec<FileRecord> {
    let mut all = Vec::new();
    for round in 0..3 {
        for organization in ORGANIZATIONS {
            for sub_system in SUB_SYSTEMS {
                for status in Status::ALL {
                    for purge in [None, Some(PurgeStatus::SystemPurge)] {
                        let file = file(organization, sub_system, *status, at(round));
                        all.push(match purge {
                            None => put(metadata, file).await,
                            Some(_) => put_deleted(metadata, file, at(round)).await,
                        });
                    }
                }
            }
        }
    }

    all.sort_by_key(|record| std::cmp::Reverse(record.file_id));
    all
}

fn file(organization: &str, sub_system: &str, status: Status, now: Timestamp) -> FileRecord {
    let record = match status {
        Status::Ready => ready(organization),
        Status::Temp => temp(organization),
        Status::Thumbnail => FileRecord {
            state: FileState::uploaded_temp().make_thumbnail().unwrap(),
            ..ready(organization)
        },
    };

    FileRecord { file_id: FileId::generate(now), sub_system: sub_system.parse().unwrap(), ..record }
}

fn shows(filter: &ListFilter, scope: &Scope, record: &FileRecord) -> bool {
    let state = record.state;
    filter.organization_id.as_ref().is_none_or(|id| *id == record.organization_id)
        && filter.sub_system.as_ref().is_none_or(|sub_system| *sub_system == record.sub_system)
        && filter.status.is_none_or(|status| status == state.status())
        && filter.purge_status == state.purge()
        && scope.covers(&record.organization_id)
}

/// Returns all pages of a listing.
async fn pages(
    metadata: &dyn Metadata,
    filter: &ListFilter,
    scope: &Scope,
    limit: usize,
) -> Vec<FileRecord> {
    let (mut all, mut after): (Vec<FileRecord>, _) = (Vec::new(), None);
    loop {
        let page = metadata.list_files(filter, scope, after.as_ref(), limit).await.unwrap();
        all.extend(page.records);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

fn filters() -> Vec<ListFilter> {
    let organizations = [None, Some(organization("1")), Some(organization("nobody"))];
    let sub_systems: [Option<SubSystem>; 2] = [None, Some("b".parse().unwrap())];
    let statuses = std::iter::once(None).chain(Status::ALL.iter().copied().map(Some));
    let mut filters = Vec::new();

    for status in statuses {
        for purge_status in [None, Some(PurgeStatus::SystemPurge)] {
            for organization_id in organizations.clone() {
                for sub_system in sub_systems.clone() {
                    let organization_id = organization_id.clone();
                    filters.push(ListFilter {
                        organization_id,
                        sub_system,
                        status,
                        purge_status,
                        ..ListFilter::default()
                    });
                }
            }
        }
    }

    filters
}

pub(crate) async fn every_filter_and_scope_shows_exactly_its_files(metadata: &dyn Metadata) {
    let all = fill(metadata).await;
    let of = |ids: &[&str]| Scope::Organizations(ids.iter().map(|id| organization(id)).collect());
    let scopes = [Scope::All, of(&["1"]), of(&["acme", "1", "acme", "nobody"]), of(&[])];

    for filter in filters() {
        for scope in &scopes {
            let expected: Vec<_> =
                all.iter().filter(|record| shows(&filter, scope, record)).cloned().collect();
            for limit in [5, 1000] {
                let shown = pages(metadata, &filter, scope, limit).await;
                assert_eq!(shown, expected, "{filter:?} {scope:?} by {limit}");
            }
        }
    }

    let none = metadata.list_files(&ListFilter::default(), &Scope::All, None, 0).await.unwrap();
    assert!(none.records.is_empty());
}

/// Lists filters beyond organization, sub-system and states.
fn wishes() -> Vec<ListFilter> {
    let metadata = |members: &[(&str, &str)]| {
        members.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let mut wishes = Vec::new();
    for name_prefix in [None, Some("b"), Some("b-1"), Some("é")] {
        for mime_type in [None, Some("text/plain")] {
            for members in [&[][..], &[("k", "1")], &[("k", "1"), ("t", "true")]] {
                for (after, before) in
                    [(None, None), (Some(1), None), (None, Some(1)), (Some(1), Some(2))]
                {
                    wishes.push(ListFilter {
                        name_prefix: name_prefix.map(str::to_owned),
                        mime_type: mime_type.map(str::to_owned),
                        metadata: metadata(members),
                        created_after: after.map(at),
                        created_before: before.map(at),
                        ..ListFilter::default()
                    });
                }
            }
        }
    }
    wishes
}

/// Stores files of every kind that these filters distinguish, several with each name.
async fn fill_for_wishes(metadata: &dyn Metadata) -> Vec<FileRecord> {
    let names = ["a", "b", "b-1", "b-10", "b-2", "B-1", "é", "e\u{301}"];
    let types = ["text/plain", "TEXT/Plain; charset=utf-8", "image/png"];
    let objects = ["{}", r#"{"k":1}"#, r#"{"k":"1","t":true}"#, r#"{"k":[1],"t":"true"}"#];

    let mut all = Vec::new();
    for number in 0..96 {
        let status = Status::ALL[number % Status::ALL.len()];
        let now = at(i64::try_from(number % 3).unwrap());
        let file = FileRecord {
            original_name: names[number / 2 % names.len()].to_owned(),
            mime_type: types[number / 5 % types.len()].to_owned(),
            metadata: objects[number / 7 % objects.len()].parse().unwrap(),
            ..file(ORGANIZATIONS[number % 2], SUB_SYSTEMS[number / 3 % 2], status, now)
        };
        all.push(match number % 4 {
            0 => put_deleted(metadata, file, at(9)).await,
            _ => put(metadata, file).await,
        });
    }
    all
}

/// The model of [`ListFilter`] beyond organization, sub-system and states.
fn grants(wish: &ListFilter, record: &FileRecord) -> bool {
    let essence = record.mime_type.split(';').next().unwrap().to_lowercase();
    let object: serde_json::Value = serde_json::from_str(record.metadata.as_json()).unwrap();
    let value_of = |key: &str| match &object[key] {
        serde_json::Value::String(text) => Some(text.clone()),
        scalar @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_)) => {
            Some(scalar.to_string())
        }
        _ => None,
    };
    let made_at = record.file_id.made_at();

    wish.name_prefix.as_ref().is_none_or(|prefix| record.original_name.starts_with(prefix))
        && wish.mime_type.as_ref().is_none_or(|mime| *mime == essence)
        && wish.metadata.iter().all(|(key, value)| value_of(key).as_ref() == Some(value))
        && wish.created_after.is_none_or(|after| made_at >= after)
        && wish.created_before.is_none_or(|before| made_at < before)
}

pub(crate) async fn names_types_times_and_metadata_narrow_a_listing(metadata: &dyn Metadata) {
    let mut all = fill_for_wishes(metadata).await;
    let one = organization("1");
    let known = Scope::Organizations(vec![one.clone(), organization("2")]);

    for wish in wishes() {
        for purge_status in [None, Some(PurgeStatus::SystemPurge)] {
            for (organization_id, scope) in
                [(None, &Scope::All), (Some(one.clone()), &Scope::All), (None, &known)]
            {
                let is_known = organization_id.is_some() || *scope != Scope::All;
                let filter = ListFilter { organization_id, purge_status, ..wish.clone() };
                all.sort_by_key(|record| std::cmp::Reverse(record.file_id));
                if is_known && filter.name_prefix.is_some() {
                    all.sort_by(|a, b| a.original_name.cmp(&b.original_name));
                }

                let expected: Vec<_> = all
                    .iter()
                    .filter(|record| shows(&filter, scope, record) && grants(&filter, record))
                    .map(|record| record.file_id)
                    .collect();
                for limit in [2, 1000] {
                    let shown = pages(metadata, &filter, scope, limit).await;
                    let shown: Vec<_> = shown.iter().map(|record| record.file_id).collect();
                    assert_eq!(shown, expected, "{filter:?} {scope:?} by {limit}");
                }
            }
        }
    }
}

pub(crate) async fn an_edited_file_is_found_by_what_it_is_now(metadata: &dyn Metadata) {
    let old =
        put(metadata, FileRecord { metadata: r#"{"k":1}"#.parse().unwrap(), ..ready("1") }).await;
    let next = FileRecord {
        original_name: "new".into(),
        mime_type: "image/png".into(),
        metadata: r#"{"k":2,"l":3}"#.parse().unwrap(),
        edited_at: Some(at(1)),
        ..old.clone()
    };
    assert_eq!(metadata.update_file(change(&old, next.clone())).await.unwrap(), Updated::Done);

    let of_one =
        || ListFilter { organization_id: Some(organization("1")), ..ListFilter::default() };
    let by = |key: &str, value: &str| ListFilter {
        metadata: vec![(key.into(), value.into())],
        ..of_one()
    };
    for (filter, found) in [
        (by("k", "2"), 1),
        (by("l", "3"), 1),
        (by("k", "1"), 0),
        (ListFilter { name_prefix: Some("ne".into()), ..of_one() }, 1),
        (ListFilter { name_prefix: Some("gr".into()), ..of_one() }, 0),
        (ListFilter { mime_type: Some("image/png".into()), ..of_one() }, 1),
        (ListFilter { mime_type: Some("text/plain".into()), ..of_one() }, 0),
    ] {
        let shown = pages(metadata, &filter, &Scope::All, 9).await;
        assert_eq!(shown.len(), found, "{filter:?}");
    }

    let cleared = FileRecord {
        metadata: crate::domain::file::custom_metadata::CustomMetadata::default(),
        edited_at: Some(at(2)),
        ..next.clone()
    };
    assert_eq!(metadata.update_file(change(&next, cleared)).await.unwrap(), Updated::Done);
    assert!(pages(metadata, &by("k", "2"), &Scope::All, 9).await.is_empty());
}

pub(crate) async fn a_filter_that_few_files_pass_costs_a_page_and_says_where_to_go_on(
    metadata: &dyn Metadata,
) {
    let rare = put(
        metadata,
        FileRecord { original_name: "rare".into(), ..file("1", "a", Status::Ready, at(0)) },
    )
    .await;
    let common = (0..6000).map(|_| file("1", "a", Status::Ready, at(1))).collect::<Vec<_>>();
    assert_eq!(metadata.insert_files(insert(common)).await.unwrap(), Inserted::Done);

    // Across all organizations no index has the names.
    let filter = ListFilter { name_prefix: Some("rare".into()), ..ListFilter::default() };
    let first = metadata.list_files(&filter, &Scope::All, None, 10).await.unwrap();
    assert!(first.records.is_empty() && first.next.is_some(), "a page does not look at them all");

    let second = metadata.list_files(&filter, &Scope::All, first.next.as_ref(), 10).await.unwrap();
    assert_eq!((second.records, second.next), (vec![rare.clone()], None));

    let known = ListFilter { organization_id: Some(organization("1")), ..filter };
    let only = metadata.list_files(&known, &Scope::All, None, 10).await.unwrap();
    assert_eq!((only.records, only.next), (vec![rare], None));
}

pub(crate) async fn paging_goes_on_past_ties_and_deletions(metadata: &dyn Metadata) {
    let mut ids = Vec::new();
    for _ in 0..9 {
        ids.push(put(metadata, ready("acme")).await.file_id);
    }
    ids.sort_by_key(|id| std::cmp::Reverse(*id));
    let filter = ListFilter::default();
    let page = metadata.list_files(&filter, &Scope::All, None, 3).await.unwrap();

    assert_eq!(page.records.iter().map(|record| record.file_id).collect::<Vec<_>>(), ids[..3]);
    assert_eq!(page.next, Some(ListPosition { name: None, file_id: ids[2], marked_at: None }));

    // The cursor's own file and the one after it go away between two pages; a newer one comes.
    for id in [ids[2], ids[3]] {
        let record = get(metadata, id).await.unwrap();
        let next = deleted(&record, at(1));
        assert_eq!(metadata.update_file(change(&record, next)).await.unwrap(), Updated::Done);
    }

    put(metadata, uploaded("acme", at(50))).await;
    let page = metadata.list_files(&filter, &Scope::All, page.next.as_ref(), 3).await.unwrap();
    assert_eq!(page.records.iter().map(|record| record.file_id).collect::<Vec<_>>(), ids[4..7]);
}

pub(crate) async fn a_filter_outside_the_scope_shows_nothing(metadata: &dyn Metadata) {
    put(metadata, ready("acme")).await;
    let filter =
        ListFilter { organization_id: Some(organization("acme")), ..ListFilter::default() };
    let foreign = Scope::Organizations(vec![organization("other")]);
    let seen = async |scope: &Scope| metadata.list_files(&filter, scope, None, 10).await.unwrap();
    assert!(seen(&foreign).await.records.is_empty());
    assert_eq!(seen(&Scope::All).await.records.len(), 1);
}

pub(crate) async fn files_of_a_sync_status_are_listed_whatever_the_others_are(
    metadata: &dyn Metadata,
) {
    let mut all = Vec::new();
    for organization in ["1", "2"] {
        for (sync, location) in [
            (SyncStatus::None, Location::Local),
            (SyncStatus::Pending, Location::Local),
            (SyncStatus::Syncing, Location::Local),
            (SyncStatus::Synced, Location::Cloud),
            (SyncStatus::Failed, Location::Local),
        ] {
            for sub_system in ["a", "b", "a"] {
                let ready = ready(organization);
                let file = if location == Location::Cloud { in_cloud(ready, "s3") } else { ready };
                let state = FileState::from_row(Status::Ready, sync, None, location).unwrap();
                let sub_system = sub_system.parse().unwrap();
                all.push(put(metadata, FileRecord { sub_system, state, ..file }).await);
            }
        }
        all.push(put(metadata, temp(organization)).await);
        all.push(put_deleted(metadata, ready(organization), at(1)).await);
    }
    all.sort_by_key(|record| std::cmp::Reverse(record.file_id));

    let scopes = [Scope::All, Scope::Organizations(vec![organization("2")])];
    for sync in SyncStatus::ALL {
        for (organization_id, sub_system) in
            [(None, None), (Some("1"), None), (Some("1"), Some("b"))]
        {
            for (purge_status, status) in [
                (None, None),
                (None, Some(Status::Ready)),
                (None, Some(Status::Temp)),
                (Some(PurgeStatus::SystemPurge), None),
            ] {
                let filter = ListFilter {
                    organization_id: organization_id.map(organization),
                    sub_system: sub_system.map(|name: &str| name.parse().unwrap()),
                    sync_status: Some(*sync),
                    purge_status,
                    status,
                    ..ListFilter::default()
                };
                for scope in &scopes {
                    let expected: Vec<_> = all
                        .iter()
                        .filter(|record| shows(&filter, scope, record))
                        .filter(|record| record.state.sync() == *sync)
                        .cloned()
                        .collect();
                    for limit in [2, 1000] {
                        let shown = pages(metadata, &filter, scope, limit).await;
                        assert_eq!(shown, expected, "{filter:?} {scope:?} by {limit}");
                    }
                }
            }
        }
    }
}

/// Sorts as a listing in this order does.
fn sort(all: &mut [FileRecord], order: ListOrder) {
    all.sort_by(|one, other| {
        let newest = other.file_id.cmp(&one.file_id);
        let marked_at = |record: &FileRecord| record.deletion.map(|deletion| deletion.marked_at);
        match order {
            ListOrder::Newest => newest,
            ListOrder::Oldest => newest.reverse(),
            ListOrder::Deleted => marked_at(other).cmp(&marked_at(one)).then(newest),
        }
    });
}

pub(crate) async fn every_order_shows_all_files_in_pages(metadata: &dyn Metadata) {
    let mut all = fill_for_wishes(metadata).await;
    // Later deletions of older files, and several at one instant.
    for number in 0..6 {
        let file = file("1", "a", Status::Ready, at(3));
        all.push(put_deleted(metadata, file, at(20 - number / 2)).await);
    }
    let known = Scope::Organizations(vec![organization("1"), organization("2")]);
    for order in [ListOrder::Newest, ListOrder::Oldest, ListOrder::Deleted] {
        sort(&mut all, order);
        for wish in wishes().into_iter().filter(|wish| wish.name_prefix.is_none()) {
            for purge_status in [None, Some(PurgeStatus::SystemPurge)] {
                if order == ListOrder::Deleted && purge_status.is_none() {
                    continue;
                }
                for (organization_id, scope) in
                    [(None, &Scope::All), (Some(organization("1")), &Scope::All), (None, &known)]
                {
                    let filter =
                        ListFilter { organization_id, purge_status, order, ..wish.clone() };
                    let expected: Vec<_> = all
                        .iter()
                        .filter(|record| shows(&filter, scope, record) && grants(&filter, record))
                        .map(|record| record.file_id)
                        .collect();
                    for limit in [2, 1000] {
                        let shown = pages(metadata, &filter, scope, limit).await;
                        let shown: Vec<_> = shown.iter().map(|record| record.file_id).collect();
                        assert_eq!(shown, expected, "{filter:?} {scope:?} by {limit}");
                    }
                }
            }
        }
    }
}

pub(crate) async fn a_part_of_a_name_is_found_in_upper_and_lower_case(metadata: &dyn Metadata) {
    for name in ["Invoice-7.pdf", "INVOICE.PDF", "Überweisung", "b"] {
        put(metadata, FileRecord { original_name: name.into(), ..ready("1") }).await;
    }
    put(metadata, FileRecord { original_name: "invoice".into(), ..ready("2") }).await;
    for (part, found) in [("voice", 2), ("-7.PDF", 1), ("über", 1), ("B", 2), ("x", 0)] {
        let filter = ListFilter {
            organization_id: Some(organization("1")),
            name_contains: Some(part.into()),
            ..ListFilter::default()
        };
        for limit in [1, 9] {
            let shown = pages(metadata, &filter, &Scope::All, limit).await;
            assert_eq!(shown.len(), found, "{part}");
        }
    }
}
