//! Uploads by binding.

use filestore_workspace::fixtures::noise;
use filestore_workspace::{Remote, sha256_hex};

use super::{read, serve, sweep_all, sync_all};

pub(crate) async fn each_binding_sends_uploads_its_way(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    let none = server.upload("no binding").org("6").ok().await;
    assert_eq!((none.storage_location.as_str(), &*none.storage_provider), ("LOCAL", "LOCAL"));

    server.bind(7, remote.code(), true).await;
    let synced = server.upload("synced").org("7").name("a.txt").ok().await;
    assert_eq!(
        (synced.storage_location.as_str(), synced.sync_status.as_str()),
        ("LOCAL", "PENDING")
    );

    sync_all(&server).await;
    let now = server.record(&synced.file_id).await;
    assert_eq!((now.storage_location.as_str(), now.sync_status.as_str()), ("CLOUD", "SYNCED"));
    assert_eq!((&*now.storage_provider, now.version), (remote.code(), 1));
    assert_ne!(now.file_path, synced.file_path, "every blob has a key of its own");
    assert_eq!(remote.object(&now.file_path).await, b"synced");

    server.bind(8, remote.code(), false).await;
    let through = server.upload("written through").org("8").ok().await;
    assert_eq!(
        (through.storage_location.as_str(), through.sync_status.as_str()),
        ("CLOUD", "PENDING")
    );
    assert_eq!(remote.object(&through.file_path).await, b"written through");

    sync_all(&server).await;
    assert_eq!(server.record(&through.file_id).await.sync_status, "NONE", "it is there already");

    for (id, bytes) in [
        (&none.file_id, "no binding"),
        (&synced.file_id, "synced"),
        (&through.file_id, "written through"),
    ] {
        assert_eq!(read(&server, id).await, bytes.as_bytes());
    }

    assert_eq!(remote.objects().await.len(), 2);
}

pub(crate) async fn temp_and_thumbnail_stay_and_follow_once_ready(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    for (organization, sync) in [("7", true), ("8", false)] {
        server.bind(organization.parse().unwrap(), remote.code(), sync).await;
        let temp = server.upload("temp").org(organization).temp().ok().await;
        let thumbnail = server.upload("thumbnail").org(organization).temp().ok().await;
        server.change(&thumbnail.file_id).make_thumbnail().send().await.expect(200);
        server.change(&thumbnail.file_id).file("another").send().await.expect(200);
        sync_all(&server).await;
        for id in [&temp.file_id, &thumbnail.file_id] {
            let record = server.record(id).await;
            assert_eq!(
                (record.storage_location.as_str(), record.sync_status.as_str()),
                ("LOCAL", "NONE")
            );
        }
        server.change(&temp.file_id).make_ready().send().await.expect(200);
        sync_all(&server).await;
        let ready = server.record(&temp.file_id).await;
        assert_eq!(
            (ready.storage_location.as_str(), ready.sync_status.as_str()),
            ("CLOUD", "SYNCED"),
            "whatever syncEnabled says"
        );
        assert_eq!(read(&server, &temp.file_id).await, b"temp");
    }
}

pub(crate) async fn a_batch_is_written_through_whole(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    server.bind(7, remote.code(), false).await;

    let mut batch = server.batch_of("7");
    for number in 0..9_u64 {
        batch = batch.item(noise(number, 5000));
    }
    let records = batch.ok().await;
    assert_eq!(records.len(), 9);

    for (number, record) in (0..9_u64).zip(&records) {
        assert_eq!(record.storage_location, "CLOUD");
        assert_eq!(remote.object(&record.file_path).await, noise(number, 5000));
    }

    assert_eq!(remote.objects().await.len(), 9);
}

pub(crate) async fn a_large_file_arrives_in_parts(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    let bytes = noise(1, (12 << 20) + 345);
    server.bind(7, remote.code(), true).await;
    server.bind(8, remote.code(), false).await;
    for organization in ["7", "8"] {
        let record = server.upload(&bytes).org(organization).ok().await;
        sync_all(&server).await;
        assert_eq!(server.record(&record.file_id).await.storage_location, "CLOUD");
        assert_eq!(sha256_hex(&read(&server, &record.file_id).await), sha256_hex(&bytes));
    }
}

pub(crate) async fn an_empty_file_is_a_file(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    server.bind(7, remote.code(), false).await;
    let record = server.upload("").part_name("empty.txt").org("7").ok().await;
    assert_eq!((record.storage_location.as_str(), record.file_size), ("CLOUD", 0));
    assert_eq!(read(&server, &record.file_id).await, b"");
}

pub(crate) async fn a_replace_goes_where_an_upload_would(remote: &Remote, _: &Remote) {
    let server = serve(&[remote]).await;
    server.bind(7, remote.code(), false).await;

    let first = server.upload("first").org("7").ok().await;
    server.change(&first.file_id).file("second").send().await.expect(200);
    let second = server.record(&first.file_id).await;
    assert_eq!((second.storage_location.as_str(), second.version), ("CLOUD", 2));
    assert_eq!(read(&server, &first.file_id).await, b"second");

    server.bind(7, remote.code(), true).await;
    server.change(&first.file_id).file("third").send().await.expect(200);
    assert_eq!(read(&server, &first.file_id).await, b"third");

    sync_all(&server).await;
    let third = server.record(&first.file_id).await;
    assert_eq!((third.storage_location.as_str(), third.version), ("CLOUD", 3));

    server.bind(7, "LOCAL", false).await;
    server.change(&first.file_id).file("fourth").send().await.expect(200);
    let fourth = server.record(&first.file_id).await;
    assert_eq!((fourth.storage_location.as_str(), fourth.version), ("LOCAL", 4));
    assert_eq!(read(&server, &first.file_id).await, b"fourth");

    sweep_all(&server, &[remote]).await;
}
