//! A provider that misbehaves: nothing acknowledged is lost, nothing unacknowledged is left, and the
//! organizations beside it ([`Neighbour`]) notice nothing.

use filestore_core::admin::{FindingKind, FsckDepth, FsckMode, NoProgress};
use filestore_workspace::fixtures::noise;
use filestore_workspace::s3::{Fault, Operation};
use filestore_workspace::{Neighbour, Remote, S3Server, TestServer, eventually, sha256_hex};
use reqwest::Method;

use crate::suite::fsck::fsck;
use crate::suite::{read, serve_with, sync_all};

/// A server whose provider is given up on quickly, and a neighbour whose provider is sound.
async fn impatient(
    s3: &S3Server,
    adjust: impl FnOnce(&mut filestore_server::Config),
) -> (TestServer, Remote, Neighbour) {
    let remote = Remote::at(s3).given_up_on_soon();

    let neighbour = Neighbour::start().await;
    let server = serve_with(&[&remote], |config| {
        config.store.providers.push(neighbour.provider());
        adjust(config);
    })
    .await;
    neighbour.move_in(&server).await;
    (server, remote, neighbour)
}

/// Every object there is one that some record refers to.
async fn nothing_is_orphaned(server: &TestServer, remote: &Remote, ids: &[String]) {
    let mut known = Vec::new();
    for id in ids {
        let record = server.record(id).await;
        if record.storage_location == "CLOUD" {
            known.push(record.file_path);
        }
    }

    known.sort();
    eventually("the sweep leaves what records refer to", async || {
        // While the provider's breaker is open, removals fail and are tried again.
        server.store().admin().purge(&NoProgress).await.unwrap();
        (remote.objects().await == known).then_some(())
    })
    .await;
}

const EVERY: [Fault; 7] = [
    Fault::Close,
    Fault::InternalError,
    Fault::SlowDown,
    Fault::Hang,
    Fault::LoseReply,
    Fault::CorruptBody,
    Fault::StoreHalf,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_through_that_fails_is_502_and_leaves_nothing() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) = impatient(&s3, |_| ()).await;
    server.bind(7, remote.code(), false).await;

    // The first write finds out what the provider can do.
    let kept = server.upload("kept").org("7").ok().await.file_id;
    for fault in EVERY {
        s3.faults().every(Operation::PutObject, fault);
        let refused = server.upload("refused").org("7").send().await;
        refused.problem(502, "provider_unavailable");
        let batch = server.batch_of("7").item("one").item("two").send().await;
        batch.problem(502, "provider_unavailable");
        let replaced = server.change(&kept).file("other").send().await;
        replaced.problem(502, "provider_unavailable");
        neighbour.takes_a_turn(&server).await;
        s3.faults().clear();
        assert_eq!(read(&server, &kept).await, b"kept", "{fault:?}");
    }

    assert_eq!(
        server.listed_of("7").await,
        std::slice::from_ref(&kept),
        "no record of what was refused"
    );
    server.wait_for_empty_staging().await;

    nothing_is_orphaned(&server, &remote, &[kept]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_that_passes_is_not_noticed() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) = impatient(&s3, |_| ()).await;
    server.bind(7, remote.code(), false).await;

    let mut ids = vec![server.upload("first").org("7").ok().await.file_id];
    for fault in [Fault::Close, Fault::InternalError, Fault::SlowDown, Fault::LoseReply] {
        let met = s3.faults().next(1, Operation::PutObject, fault);
        let record = server.upload(format!("{fault:?}")).org("7").ok().await;
        assert_eq!(met.count(), 1);
        neighbour.takes_a_turn(&server).await;
        assert_eq!(read(&server, &record.file_id).await, format!("{fault:?}").as_bytes());
        ids.push(record.file_id);
    }

    nothing_is_orphaned(&server, &remote, &ids).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn synced_uploads_wait_for_a_provider_that_is_down() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) = impatient(&s3, |_| ()).await;
    server.bind(7, remote.code(), true).await;
    s3.down().await;
    let record = server.upload("waits").org("7").ok().await;
    let report = server.store().admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap();
    assert_eq!(report.synced, 0);
    assert_eq!(read(&server, &record.file_id).await, b"waits");
    neighbour.takes_a_turn(&server).await;

    server.bind(8, remote.code(), false).await;
    server.upload("refused").org("8").send().await.problem(502, "provider_unavailable");
    s3.up().await;
    sync_all(&server).await;
    assert_eq!(server.record(&record.file_id).await.sync_status, "SYNCED");

    nothing_is_orphaned(&server, &remote, &[record.file_id]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_to_a_backend_that_is_down_are_refused_and_nobody_elses() {
    let (s3, other) = (S3Server::start().await, S3Server::start().await);
    let backend = Remote::at(&s3).config.as_local_backend();
    let (server, remote, _) =
        impatient(&other, |config| config.store.providers.push(backend)).await;
    let kept = server.upload("kept").org("acme").ok().await;
    server.bind(8, remote.code(), false).await;

    s3.down().await;
    server.upload("refused").org("acme").send().await.problem(502, "provider_unavailable");
    server.content(&kept.file_id).send().await.problem(502, "provider_unavailable");
    let through = server.upload("through").org("8").ok().await;
    assert_eq!(read(&server, &through.file_id).await, b"through");
    server.wait_for_empty_staging().await;

    s3.up().await;
    eventually("the backend takes files again", async || {
        (server.upload("again").org("acme").send().await.status == 201).then_some(())
    })
    .await;
    assert_eq!(read(&server, &kept.file_id).await, b"kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_files_converge_whatever_goes_wrong_and_no_orphan_is_left() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) =
        impatient(&s3, |config| config.store.sync.max_attempts = 1000).await;
    server.bind(7, remote.code(), true).await;

    for (seed, fault) in (0..).zip(EVERY) {
        s3.faults().sometimes(seed, 0.08, Method::PUT, fault);
        s3.faults().sometimes(seed + 100, 0.04, Method::GET, fault);
        s3.faults().sometimes(seed + 200, 0.04, Method::HEAD, fault);
    }

    let mut ids = Vec::new();
    let mut sums = Vec::new();
    for number in 0..40 {
        let bytes = noise(number, if number == 7 { 11 << 20 } else { 4000 });
        let record = server.upload(&bytes).org("7").ok().await;
        sums.push(sha256_hex(&bytes));
        ids.push(record.file_id);
    }

    let converging = eventually("every file is at its provider", async || {
        let run = server.store().admin().sync(std::sync::Arc::new(NoProgress));
        (run.await.unwrap().waiting == 0).then_some(())
    });
    neighbour.beside(&server, converging).await;
    s3.faults().clear();

    for (id, sum) in ids.iter().zip(&sums) {
        let record = server.record(id).await;
        assert_eq!(
            (record.sync_status.as_str(), record.storage_location.as_str()),
            ("SYNCED", "CLOUD")
        );
        assert_eq!(sha256_hex(&remote.object(&record.file_path).await), *sum);
        assert_eq!(sha256_hex(&read(&server, id).await), *sum);
    }

    nothing_is_orphaned(&server, &remote, &ids).await;
    assert_eq!(s3.unfinished_uploads(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_local_byte_goes_before_a_verified_copy_exists() {
    let s3 = S3Server::start().await;
    // A store that looks at no checksum and keeps what arrives: only reading back finds it out.
    s3.faults().ignore_checksums();

    let (server, remote, neighbour) =
        impatient(&s3, |config| config.store.sync.max_attempts = 1000).await;
    server.bind(7, remote.code(), true).await;
    let met = s3.faults().every(Operation::PutObject, Fault::CorruptBody);
    let record = server.upload(noise(1, 5000)).org("7").ok().await;

    eventually("several tries", async || {
        server.store().admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap();
        (met.count() > 4).then_some(())
    })
    .await;
    neighbour.takes_a_turn(&server).await;
    let waiting = server.record(&record.file_id).await;
    assert_eq!(waiting.storage_location, "LOCAL");
    assert_eq!(read(&server, &record.file_id).await, noise(1, 5000));

    s3.faults().clear();
    s3.faults().ignore_checksums();
    sync_all(&server).await;
    assert_eq!(read(&server, &record.file_id).await, noise(1, 5000));

    nothing_is_orphaned(&server, &remote, &[record.file_id]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_last_try_a_file_is_failed_served_and_can_be_tried_again() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) =
        impatient(&s3, |config| config.store.sync.max_attempts = 3).await;
    server.bind(7, remote.code(), true).await;
    // The first write finds out what the provider can do.
    server.bind(8, remote.code(), false).await;
    server.upload("first").org("8").ok().await;
    // An answer, and no outage: the bytes that arrive are not those that were sent.
    s3.faults().every(Operation::PutObject, Fault::CorruptBody);

    let record = server.upload("bytes").org("7").ok().await;
    eventually("the file is FAILED", async || {
        server.store().admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap();
        (server.record(&record.file_id).await.sync_status == "FAILED").then_some(())
    })
    .await;
    assert_eq!(read(&server, &record.file_id).await, b"bytes");
    neighbour.takes_a_turn(&server).await;
    assert_eq!(record.awaits_copy, Some(true), "its organization is bound to the provider");
    let failed = server.get("/api/v1/files?sync_status=FAILED").send().await.expect(200).json();
    let failed = &failed["items"][0];
    assert_eq!(failed["file_id"], record.file_id.as_str());
    assert_eq!((&failed["sync_attempts"], &failed["awaits_copy"]), (&3.into(), &false.into()));
    assert!(!failed["sync_error"].as_str().unwrap().is_empty(), "{failed}");

    s3.faults().clear();
    assert_eq!(server.store().admin().sync_retry(Some(7.try_into().unwrap())).await.unwrap(), 1);

    eventually("the file is at its provider", async || {
        server.store().admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap();
        server.store().admin().sync_retry(Some(7.try_into().unwrap())).await.unwrap();
        (server.record(&record.file_id).await.sync_status == "SYNCED").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_gone_from_the_configuration_is_502_and_the_server_starts() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) = impatient(&s3, |_| ()).await;
    server.bind(7, remote.code(), false).await;
    let record = server.upload("bytes").org("7").ok().await;

    let server = server.restart_with(|config| drop(config.store.providers.remove(0))).await;
    server.content(&record.file_id).send().await.problem(502, "provider_unavailable");
    server.upload("more").org("7").send().await.problem(502, "provider_unavailable");
    assert_eq!(server.info(&record.file_id).await.status, 200);
    neighbour.takes_a_turn(&server).await;

    let config = remote.config.clone();
    let server = server.restart_with(|all| all.store.providers.push(config)).await;
    assert_eq!(read(&server, &record.file_id).await, b"bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inactive_provider_takes_no_new_files_and_serves_those_it_has() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) = impatient(&s3, |_| ()).await;
    server.bind(7, remote.code(), false).await;
    server.bind(8, remote.code(), true).await;
    let record = server.upload("bytes").org("7").ok().await;

    let server = server.restart_with(|config| config.store.providers[0].is_active = false).await;
    server.upload("more").org("7").send().await.problem(409, "provider_inactive");
    neighbour.takes_a_turn(&server).await;
    let waiting = server.upload("waits").org("8").ok().await;

    server.store().admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap();
    assert_eq!(server.record(&waiting.file_id).await.sync_status, "PENDING");
    assert_eq!(read(&server, &record.file_id).await, b"bytes");

    server.bind(7, "LOCAL", false).await;
    let report = server
        .store()
        .admin()
        .migrate(
            7.try_into().unwrap(),
            &"LOCAL".parse().unwrap(),
            filestore_core::admin::MigrateOptions::default(),
            &|| false,
            std::sync::Arc::new(NoProgress),
        )
        .await
        .unwrap();
    assert_eq!(report.moved_files, 1);
    assert_eq!(read(&server, &record.file_id).await, b"bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_goes_on_where_the_provider_cut_it() {
    let s3 = S3Server::start().await;
    let (server, remote, neighbour) = impatient(&s3, |_| ()).await;
    server.bind(7, remote.code(), false).await;
    let bytes = noise(5, 3 << 20);
    let record = server.upload(&bytes).org("7").ok().await;
    let met = s3.faults().next(2, Operation::GetObject, Fault::CutReply);
    let downloading = async { server.client().download(&record.file_id).bytes().await.unwrap() };
    let (got, _) = neighbour.beside(&server, downloading).await;
    assert_eq!(sha256_hex(&got), sha256_hex(&bytes));
    assert_eq!(met.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_at_the_start_leaves_nothing_and_delays_nothing() {
    let s3 = S3Server::start().await;
    let hung = s3.faults().next(1, Operation::PutObject, Fault::Hang);
    let (server, remote, neighbour) = impatient(&s3, |config| config.check_providers = true).await;
    assert_eq!(server.upload("served meanwhile").ok().await.storage_location, "LOCAL");
    neighbour.takes_a_turn(&server).await;

    eventually("the provider has been tried out", async || {
        (hung.count() == 1
            && s3.requests(Operation::DeleteObject) > 0
            && remote.objects().await.is_empty())
        .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_finds_every_damage_at_a_provider_and_loses_nothing_to_its_silence() {
    let s3 = S3Server::start().await;
    let (server, remote, _neighbour) = impatient(&s3, |_| ()).await;
    server.bind(7, remote.code(), false).await;
    let mut keys = Vec::new();
    for number in 0..6 {
        let id = server.upload(noise(number, 2000)).org("7").ok().await.file_id;
        keys.push(server.record(&id).await.file_path);
    }
    let stored = s3.objects().into_iter().find(|name| name.ends_with(&keys[2]));
    s3.corrupt(&stored.unwrap());

    let report = fsck(&server, FsckDepth::Deep, FsckMode::DryRun).await;
    assert_eq!(report.found, 1, "{report:#?}");
    let finding = &report.findings[0];
    assert_eq!((finding.kind, finding.name.as_str()), (FindingKind::WrongDigest, keys[2].as_str()));
    assert!(report.not_looked_at.is_empty(), "uploads in parts are looked at too: {report:#?}");
    let code = remote.config.code.clone();

    s3.down().await;
    let report = fsck(&server, FsckDepth::Deep, FsckMode::Repair).await;
    assert_eq!(report.found, 0, "{report:#?}");
    assert!(report.postponed.contains_key(&code) && !report.is_clean());
    s3.up().await;
}
