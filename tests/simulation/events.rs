//! The log of events beside the records: whoever has read it all knows every file, and nothing else.

use std::collections::BTreeMap;

use filestore_core::events::{After, Event, EventFilter, EventKind};
use filestore_core::{FileId, FileRecord, FileStore, OrganizationId, Scope, Status};

/// A file, as the log tells it.
#[derive(Debug)]
struct Told {
    organization: OrganizationId,
    status: Status,
    version: u64,
    is_deleted: bool,
}

/// Checks that the log, read from its start, tells exactly the files that are there: none is lost, none is
/// invented, and each has its last status and version. Files of organizations that were erased can be missing.
pub(crate) async fn the_log_tells_every_file(
    store: &FileStore,
    records: &[FileRecord],
    is_erased: impl Fn(&OrganizationId) -> bool,
) {
    let mut told = BTreeMap::new();
    for event in all(store).await {
        take(&mut told, &event, &is_erased);
    }

    for record in records {
        let id = record.file_id;
        let known = told.remove(&id).unwrap_or_else(|| panic!("no event tells of {record:?}"));
        let is_same = known.status == record.state.status()
            && known.version == record.version
            && known.is_deleted == record.state.is_deleted();
        assert!(is_same, "the log tells {known:?} of {record:?}");
    }
    told.retain(|_, known| !is_erased(&known.organization));
    for (id, known) in told {
        let record = store.scoped(&Scope::All).info(id).await;
        let is_deleted = record.is_ok_and(|record| record.state.is_deleted());
        assert!(
            known.is_deleted && is_deleted,
            "the log tells of {id}, which is not there: {known:?}"
        );
    }
}

pub(crate) async fn all(store: &FileStore) -> Vec<Event> {
    let (mut events, mut after) = (Vec::new(), After::Start);
    loop {
        let page = store.events(&Scope::All).page(&EventFilter::new(), after, 1000).await.unwrap();
        events.extend(page.events);
        after = page.next;
        if !page.has_more {
            return events;
        }
    }
}

/// Applies an event. The events of a file must fit each other in their order.
fn take(
    told: &mut BTreeMap<FileId, Told>,
    event: &Event,
    is_erased: &impl Fn(&OrganizationId) -> bool,
) {
    let (Some(id), Some(organization)) = (event.file_id, event.organization_id.clone()) else {
        return;
    };
    if event.kind == EventKind::FileUploaded {
        let status = event.details.status.unwrap();
        let new = Told { organization, status, version: 1, is_deleted: false };
        assert_eq!(event.version, Some(1), "{event:?}");
        assert!(told.insert(id, new).is_none(), "uploaded twice: {event:?}");
        return;
    }

    // Of an erased file, the events before are blank.
    let Some(known) = told.get_mut(&id) else {
        assert!(is_erased(&organization), "before its upload: {event:?}");
        return;
    };
    match event.kind {
        EventKind::FileReplaced => {
            assert_eq!(event.version, Some(known.version + 1), "{event:?} after {known:?}");
            known.version += 1;
        }
        EventKind::FileReady => known.status = Status::Ready,
        EventKind::FileThumbnail => known.status = Status::Thumbnail,
        EventKind::FileDeleted | EventKind::FileExpired => {
            assert!(!known.is_deleted, "{event:?} after {known:?}");
            known.is_deleted = true;
        }
        EventKind::FileRestored => {
            assert!(known.is_deleted, "{event:?} after {known:?}");
            known.is_deleted = false;
        }
        EventKind::FilePurged => {
            assert!(known.is_deleted || is_erased(&organization), "{event:?} after {known:?}");
            told.remove(&id);
        }
        _ => assert_eq!(event.version, Some(known.version), "{event:?} after {known:?}"),
    }
}
