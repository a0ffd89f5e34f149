//! The holders of files.

use super::*;
use crate::domain::file::status::Status;

/// Stores files of organization 7 at several providers, and also deleted files and files of other
/// organizations. Returns the READY files that `s3` does not hold.
async fn scattered(metadata: &dyn Metadata) -> Vec<FileId> {
    let here = put(metadata, sized(ready("7"), 3)).await;
    let other = put(metadata, sized(in_cloud(ready("7"), "other"), 4)).await;
    put(metadata, sized(in_cloud(ready("7"), "s3"), 5)).await;
    put(metadata, sized(temp("7"), 6)).await;
    put(metadata, ready("8")).await;
    put_deleted(metadata, ready("7"), at(1)).await;
    sorted(vec![here.file_id, other.file_id])
}

pub(crate) async fn files_elsewhere_come_oldest_first_and_page_by_page(metadata: &dyn Metadata) {
    let expected = scattered(metadata).await;
    let elsewhere = async |target: &str, after, limit| {
        let found = metadata
            .files_elsewhere(&organization("7"), &provider(target), after, limit)
            .await
            .unwrap();
        found.into_iter().map(|record| record.file_id).collect::<Vec<_>>()
    };

    assert_eq!(elsewhere("s3", None, 9).await, expected);
    assert_eq!(elsewhere("s3", None, 1).await, expected[..1]);
    assert_eq!(elsewhere("s3", Some(expected[0]), 9).await, expected[1..]);
    assert_eq!(elsewhere("LOCAL", None, 9).await.len(), 2);
}

pub(crate) async fn holdings_are_counted_by_provider_and_status(metadata: &dyn Metadata) {
    scattered(metadata).await;

    let mut holdings: Vec<_> = metadata
        .holdings(&organization("7"))
        .await
        .unwrap()
        .into_iter()
        .map(|holding| (holding.provider.to_string(), holding.status, holding.files, holding.bytes))
        .collect();
    holdings.sort_by(|a, b| (&a.0, a.2, a.3).cmp(&(&b.0, b.2, b.3)));

    assert_eq!(
        holdings,
        [
            ("LOCAL".to_owned(), Status::Ready, 1, 3),
            ("LOCAL".to_owned(), Status::Temp, 1, 6),
            ("other".to_owned(), Status::Ready, 1, 4),
            ("s3".to_owned(), Status::Ready, 1, 5),
        ]
    );
}
