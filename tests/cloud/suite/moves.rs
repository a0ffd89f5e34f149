//! Moving files while they are served, and removing them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use filestore_core::ProviderCode;
use filestore_core::admin::{MigrateOptions, MigrateReport, NoProgress};
use filestore_workspace::fixtures::noise;
use filestore_workspace::{Remote, TestServer, sha256_hex};

use super::{read, serve, sweep_all, sync_all};

pub(super) async fn migrate(server: &TestServer, to: &str) -> MigrateReport {
    let to: ProviderCode = to.parse().unwrap();
    let options = MigrateOptions::default();
    server
        .store()
        .admin()
        .migrate(7.try_into().unwrap(), &to, options, &|| false, Arc::new(NoProgress))
        .await
        .unwrap()
}

async fn upload(server: &TestServer, count: u64) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(server.upload(noise(number, 3000)).org("7").ok().await.file_id);
    }
    ids
}

pub(crate) async fn files_move_out_between_and_home_while_they_are_read(
    one: &Remote,
    two: &Remote,
) {
    let server = serve(&[one, two]).await;
    let ids = upload(&server, 12).await;

    // Files that are replaced all the time, with bytes that say which version they are.
    let busy: Vec<String> = upload(&server, 3).await;
    let over = AtomicBool::new(false);
    let readers = async {
        let mut reads = 0;
        while !over.load(Ordering::SeqCst) {
            for (number, id) in (0..).zip(&ids) {
                let bytes = read(&server, id).await;
                assert_eq!(sha256_hex(&bytes), sha256_hex(&noise(number, 3000)));
                reads += 1;
            }
        }
        reads
    };

    let writers = async {
        let mut round = 100;
        while !over.load(Ordering::SeqCst) {
            for id in &busy {
                round += 1;
                let bytes = noise(round, 2000);
                let replaced = server.change(id).file(&bytes).send().await;
                assert!([200, 409].contains(&replaced.status), "{}", replaced.text());
                if replaced.status == 200 {
                    assert_eq!(sha256_hex(&read(&server, id).await), sha256_hex(&bytes));
                }
            }
        }
    };

    let mover = async {
        for code in [one.code(), two.code(), "LOCAL"] {
            server.bind(7, code, true).await;
            let report = migrate(&server, code).await;
            assert_eq!(report.failures, []);
            // What was replaced under it follows by sync.
            sync_all(&server).await;
            for id in &ids {
                assert_eq!(server.record(id).await.storage_provider, code);
            }
        }
        over.store(true, Ordering::SeqCst);
    };

    let (reads, (), ()) = tokio::join!(readers, writers, mover);
    assert!(reads > 0);

    sweep_all(&server, &[one, two]).await;
}

pub(crate) async fn a_plan_says_what_would_move_and_a_status_where_it_is(one: &Remote, _: &Remote) {
    let server = serve(&[one]).await;
    upload(&server, 3).await;
    server.upload("temp").org("7").temp().ok().await;

    // Or the sync worker would take them along.
    sync_all(&server).await;
    let code: ProviderCode = one.code().parse().unwrap();
    let store = server.store();
    let unbound = store.admin().migrate_plan(7.try_into().unwrap(), &code).await.unwrap_err();
    assert_eq!(unbound.kind().code(), "no_active_binding");

    server.bind(7, "LOCAL", true).await;
    let elsewhere = store.admin().migrate_plan(7.try_into().unwrap(), &code).await.unwrap_err();
    assert_eq!(elsewhere.details().allowed, ["LOCAL"]);

    server.bind(7, one.code(), true).await;
    let plan = store.admin().migrate_plan(7.try_into().unwrap(), &code).await.unwrap();
    assert_eq!(
        (plan.move_files, plan.move_bytes, plan.stay_files, plan.there_files),
        (3, 9000, 1, 0)
    );
    assert_eq!(one.objects().await, [""; 0], "a plan moves nothing");

    let report = migrate(&server, one.code()).await;
    assert_eq!((report.moved_files, report.moved_bytes, report.left_files), (3, 9000, 0));

    let status = store.admin().migrate_status(7.try_into().unwrap()).await.unwrap();
    assert_eq!((status.bound_to.as_ref(), status.running), (Some(&code), None));

    let at = |provider: &str, status_is: &str| {
        let mut found = status.holdings.iter();
        found
            .find(|held| held.provider.as_str() == provider && held.status.as_str() == status_is)
            .map(|held| held.files)
    };
    assert_eq!(
        (at(one.code(), "READY"), at("LOCAL", "TEMP"), at("LOCAL", "READY")),
        (Some(3), Some(1), None)
    );
    assert_eq!(migrate(&server, one.code()).await.moved_files, 0, "once more finds nothing to do");
}

pub(crate) async fn verify_reads_every_byte(one: &Remote, _: &Remote) {
    let server = serve(&[one]).await;
    server.bind(7, one.code(), true).await;
    upload(&server, 4).await;
    sync_all(&server).await;
    let code: ProviderCode = one.code().parse().unwrap();
    let report = server
        .store()
        .admin()
        .migrate_verify(7.try_into().unwrap(), &code, Arc::new(NoProgress))
        .await
        .unwrap();
    assert_eq!((report.checked_files, report.checked_bytes, report.failures.len()), (4, 12_000, 0));
}

pub(crate) async fn the_purge_removes_bytes_where_they_are_and_were(one: &Remote, two: &Remote) {
    let server = serve(&[one, two]).await;
    server.bind(7, one.code(), false).await;
    let ids = upload(&server, 3).await;

    // Or the sync worker would take them along.
    sync_all(&server).await;
    server.bind(7, two.code(), false).await;
    assert_eq!(migrate(&server, two.code()).await.moved_files, 3);

    for id in &ids {
        server.delete(id).await.expect(200);
    }
    let removed = sweep_all(&server, &[one, two]).await.removed_at;

    // The server's own worker may have been faster with some of them.
    assert!(
        removed.keys().all(|code| [one.code(), two.code()].contains(&code.as_str())),
        "{removed:?}"
    );

    for id in &ids {
        filestore_workspace::eventually("the record is gone", async || {
            (server.info(id).await.status == 404).then_some(())
        })
        .await;
    }
}

pub(crate) async fn files_from_before_a_binding_move_when_they_are_queued(
    one: &Remote,
    _: &Remote,
) {
    let server = serve(&[one]).await;
    let ids = upload(&server, 3).await;
    sync_all(&server).await;
    server.bind(7, one.code(), true).await;
    sync_all(&server).await;
    assert_eq!(server.record(&ids[0]).await.storage_location, "LOCAL");
    assert_eq!(server.store().admin().sync_enqueue(7.try_into().unwrap()).await.unwrap(), 3);

    sync_all(&server).await;
    for id in &ids {
        let record = server.record(id).await;
        assert_eq!(
            (record.storage_location.as_str(), record.sync_status.as_str()),
            ("CLOUD", "SYNCED")
        );
    }

    assert_eq!(server.store().admin().sync_enqueue(7.try_into().unwrap()).await.unwrap(), 0);
}
