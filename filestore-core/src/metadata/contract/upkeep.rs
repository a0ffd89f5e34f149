//! The engine as a whole: it answers, serves many concurrent tasks, and closes cleanly.

use std::collections::BTreeMap;

use super::*;
use crate::domain::error::ErrorKind;
use crate::domain::file::listing::ListFilter;
use crate::domain::id::StoreId;
use futures_util::future::{self, FutureExt};

pub(crate) async fn it_answers(metadata: &dyn Metadata) {
    metadata.ping().await.unwrap();
    assert_eq!(metadata.poisoned().now_or_never(), None);
}

pub(crate) async fn settings_are_kept_by_name(metadata: &dyn Metadata) {
    let settings = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    assert_eq!(metadata.settings().await.unwrap(), BTreeMap::new());

    metadata.put_settings(settings(&[("a", "1"), ("b", "2")])).await.unwrap();
    metadata.put_settings(settings(&[("b", "3"), ("c", "")])).await.unwrap();
    let kept = settings(&[("a", "1"), ("b", "3"), ("c", "")]);
    assert_eq!(metadata.settings().await.unwrap(), kept);
}

pub(crate) async fn the_id_of_a_store_cannot_be_set(metadata: &dyn Metadata) {
    let id = metadata.store_id();
    let another = StoreId::generate(at(1)).to_string();
    let values = [("a".to_owned(), "1".to_owned()), ("store_id".to_owned(), another)];

    assert!(metadata.put_settings(values.into()).await.is_err());
    assert_eq!(metadata.store_id(), id);
    assert_eq!(metadata.settings().await.unwrap(), BTreeMap::new(), "all or none");
}

pub(crate) async fn calls_of_many_tasks_all_succeed(metadata: &dyn Metadata) {
    let each = (0..64).map(async |number: u64| {
        let record = put(metadata, sized(ready("acme"), number)).await;
        let next = replaced(&record, number + 1, at(1));
        assert_eq!(
            metadata.update_file(change(&record, next.clone())).await.unwrap(),
            Updated::Done
        );
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&next));
    });
    future::join_all(each).await;
    let stored = metadata.usage(&organization("acme")).await.unwrap().total().bytes;

    assert_eq!(stored, (1..=64).sum::<u64>());
}

pub(crate) async fn a_call_that_nobody_waits_for_is_done_all_the_same(metadata: &dyn Metadata) {
    let record = ready("acme");
    let mut call = metadata.insert_files(insert([record.clone()]));
    assert!(
        future::poll_immediate(&mut call).await.is_none_or(|done| done.unwrap() == Inserted::Done)
    );

    drop(call);
    let found = loop {
        // Another write takes as long as this one, at least.
        put(metadata, ready("acme")).await;
        if let Some(found) = get(metadata, record.file_id).await {
            break found;
        }
    };
    assert_eq!(*found, record);
}

pub(crate) async fn after_closing_every_call_fails(metadata: &dyn Metadata) {
    let record = put(metadata, ready("acme")).await;
    assert!(get(metadata, record.file_id).await.is_some());

    metadata.close().await;
    let unusable = |kind: Option<ErrorKind>| assert_eq!(kind, Some(ErrorKind::Unusable));
    unusable(metadata.ping().await.err().map(|error| error.kind()));
    unusable(metadata.file(record.file_id, &Scope::All).await.err().map(|error| error.kind()));
    unusable(metadata.insert_files(insert([ready("acme")])).await.err().map(|error| error.kind()));

    let listing = metadata.list_files(&ListFilter::default(), &Scope::All, None, 9).await;
    unusable(listing.err().map(|error| error.kind()));
    assert_eq!(metadata.cached_file(record.file_id, &Scope::All), None);

    metadata.close().await;
}
