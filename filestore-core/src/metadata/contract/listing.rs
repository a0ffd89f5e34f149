//! Listings, against a model that filters a vector.

use super::*;
use crate::domain::id::SubSystem;
use crate::domain::listing::ListFilter;
use crate::domain::status::{PurgeStatus, Status};

const ORGANIZATIONS: [&str; 3] = ["1", "2", "acme"];
const SUB_SYSTEMS: [&str; 2] = ["a", "b"];

/// Files of every organization, part, status and purge status, several in each millisecond.
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

/// Every page of a listing, one after the other.
async fn pages(
    metadata: &dyn Metadata,
    filter: &ListFilter,
    scope: &Scope,
    limit: usize,
) -> Vec<FileRecord> {
    let mut all: Vec<FileRecord> = Vec::new();
    loop {
        let before = all.last().map(|record| record.file_id);
        let page = metadata.list_files(filter, scope, before, limit).await.unwrap();
        let last = page.len() < limit;
        all.extend(page);
        if last {
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
                    filters.push(ListFilter { organization_id, sub_system, status, purge_status });
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
    assert!(none.is_empty());
}

pub(crate) async fn paging_goes_on_past_ties_and_deletions(metadata: &dyn Metadata) {
    let mut ids = Vec::new();
    for _ in 0..9 {
        ids.push(put(metadata, ready("acme")).await.file_id);
    }
    ids.sort_by_key(|id| std::cmp::Reverse(*id));
    let filter = ListFilter::default();
    let page = metadata.list_files(&filter, &Scope::All, None, 3).await.unwrap();

    assert_eq!(page.iter().map(|record| record.file_id).collect::<Vec<_>>(), ids[..3]);

    // The cursor's own file and the one after it go away between two pages; a newer one comes.
    for id in [ids[2], ids[3]] {
        let record = get(metadata, id).await.unwrap();
        let next = deleted(&record, at(1));
        assert_eq!(metadata.update_file(change(&record, next)).await.unwrap(), Updated::Done);
    }

    put(metadata, uploaded("acme", at(50))).await;
    let page = metadata.list_files(&filter, &Scope::All, Some(ids[2]), 3).await.unwrap();
    assert_eq!(page.iter().map(|record| record.file_id).collect::<Vec<_>>(), ids[4..7]);
}

pub(crate) async fn a_filter_outside_the_scope_shows_nothing(metadata: &dyn Metadata) {
    put(metadata, ready("acme")).await;
    let filter =
        ListFilter { organization_id: Some(organization("acme")), ..ListFilter::default() };
    let foreign = Scope::Organizations(vec![organization("other")]);
    assert!(metadata.list_files(&filter, &foreign, None, 10).await.unwrap().is_empty());
    assert_eq!(metadata.list_files(&filter, &Scope::All, None, 10).await.unwrap().len(), 1);
}
