//! Races: a reader gets one whole version, a change is made by one of its rivals, and a deleted file
//! goes, whatever happens at the same time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use filestore_core::admin::NoProgress;
use filestore_workspace::{Reply, TestServer, eventually, files_under, fixtures};
use futures_util::future::join_all;

/// A body that shows whether it was mixed or cut.
fn all(letter: u8) -> Vec<u8> {
    vec![letter; 300_000]
}

#[track_caller]
fn assert_one_version(reply: &Reply) {
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body.len(), 300_000);
    let first = reply.body[0];
    assert!(reply.body.iter().all(|byte| *byte == first), "two versions in one reply");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_replaced_file_see_one_version_or_the_other() {
    let server = TestServer::start().await;
    let id = server.upload(all(b'A')).ok().await.file_id;
    let done = AtomicBool::new(false);
    let writer = async {
        for round in 0..20 {
            let letter = if round % 2 == 0 { b'B' } else { b'A' };
            server.change(&id).file(all(letter)).send().await.expect(200);
        }
        done.store(true, Ordering::Release);
    };

    let reader = async || {
        let mut seen = HashSet::new();
        let mut tags = HashSet::new();
        while !done.load(Ordering::Acquire) {
            let reply = server.content(&id).send().await;
            assert_one_version(&reply);
            seen.insert(reply.body[0]);
            tags.insert((reply.body[0], reply.only("etag").to_owned()));
        }
        (seen, tags)
    };

    let ((), (one, mut tags), (two, more)) = tokio::join!(writer, reader(), reader());
    tags.extend(more);
    assert!(one.len() + two.len() > 2, "the readers saw only one version");
    assert_eq!(tags.len(), 2, "a tag names one content: {tags:?}");
}

#[tokio::test]
async fn a_range_taken_up_with_if_range_never_mixes_versions() {
    let server = TestServer::start().await;
    let id = server.upload(all(b'A')).ok().await.file_id;
    let first = server.content(&id).header("range", "bytes=0-149999").send().await.expect(206);

    server.change(&id).file(all(b'B')).send().await.expect(200);
    let rest = server
        .content(&id)
        .header("range", "bytes=150000-")
        .header("if-range", first.only("etag"))
        .send()
        .await
        .expect(200);
    assert_eq!(rest.body, all(b'B'), "the whole new file, not the rest of another");
}

/// A request of a file's last moments.
#[derive(Debug, Clone, Copy)]
enum Step {
    Read,
    Replace,
    Delete,
    Purge,
}

/// The orders in which the four requests are begun.
const ORDERS: [[Step; 4]; 3] = [
    [Step::Read, Step::Replace, Step::Delete, Step::Purge],
    [Step::Delete, Step::Read, Step::Purge, Step::Replace],
    [Step::Replace, Step::Delete, Step::Read, Step::Purge],
];

async fn take(step: Step, server: &TestServer, id: &str) -> Reply {
    match step {
        Step::Read => server.content(id).send().await,
        Step::Replace => server.change(id).file(all(b'B')).send().await,
        Step::Delete => server.delete(id).await,
        Step::Purge => server.post("/api/v1/admin/purge/run").send().await,
    }
}

#[track_caller]
fn assert_allowed(step: Step, reply: Reply) {
    match step {
        Step::Read if reply.status == 200 => assert_one_version(&reply),
        Step::Read => drop(reply.problem(404, "not_found")),
        Step::Replace => assert!([200, 404, 409].contains(&reply.status), "{}", reply.text()),
        Step::Delete | Step::Purge => drop(reply.expect(200)),
    }
}

#[tokio::test]
async fn delete_read_replace_and_purge_together_leave_nothing_behind() {
    let server = TestServer::start().await;
    let empty = files_under(server.data_dir()).len();

    let one_life = async |order: [Step; 4]| {
        let id = server.upload(all(b'A')).ok().await.file_id;
        let replies = join_all(order.map(|step| take(step, &server, &id))).await;
        for (step, reply) in order.into_iter().zip(replies) {
            assert_allowed(step, reply);
        }
        id
    };

    let ids = join_all(ORDERS.into_iter().cycle().take(12).map(one_life)).await;
    for id in ids {
        eventually("the file to be gone", async || {
            Some(server.info(&id).await).filter(|reply| reply.status == 404)
        })
        .await;
        server.content(&id).send().await.problem(404, "not_found");
    }

    eventually("no bytes left behind", async || {
        (files_under(server.data_dir()).len() <= empty).then_some(())
    })
    .await;
}

#[tokio::test]
async fn two_concurrent_promotions_promote_once() {
    let server = TestServer::start().await;
    for _ in 0..10 {
        let id = server.upload("x").temp().ok().await.file_id;
        let (one, two) = tokio::join!(
            server.change(&id).make_ready().send(),
            server.change(&id).make_ready().send()
        );

        for reply in [&one, &two] {
            assert!([200, 409].contains(&reply.status), "{}", reply.text());
        }
        assert!(one.status == 200 || two.status == 200);
        let record = server.record(&id).await;
        assert_eq!((record.status.as_str(), record.version), ("READY", 1));
    }
}

#[tokio::test]
async fn a_promotion_and_a_thumbnail_at_once_end_in_one_of_the_two() {
    let server = TestServer::start().await;
    for _ in 0..10 {
        let id = server.upload("x").temp().ok().await.file_id;
        let (ready, thumbnail) = tokio::join!(
            server.change(&id).make_ready().send(),
            server.change(&id).make_thumbnail().send()
        );
        let status = server.record(&id).await.status;
        match (ready.status, thumbnail.status) {
            (200, 200 | 409) => assert_eq!(status, "READY"),
            (409, 200) => assert_eq!(status, "THUMBNAIL"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn of_many_replaces_with_one_tag_exactly_one_is_made() {
    let server = TestServer::start().await;
    let id = server.upload("original").ok().await.file_id;
    let etag = server.content(&id).send().await.only("etag").to_owned();
    let bodies: Vec<String> = (0..6).map(|number| format!("rival {number}")).collect();
    let rivals = bodies.iter().map(|body| server.change(&id).if_match(&etag).file(body).send());

    let replies = join_all(rivals).await;
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert!(statuses.iter().all(|status| [200, 409, 412].contains(status)), "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");

    let winner = statuses.iter().position(|status| *status == 200).expect("one is made");
    assert_eq!(server.content(&id).send().await.text(), bodies[winner]);
    assert_eq!(server.record(&id).await.version, 2);
}

#[tokio::test]
async fn every_replace_that_was_answered_200_is_a_version() {
    let server = TestServer::start().await;
    let id = server.upload("original").ok().await.file_id;
    let bodies: Vec<String> = (0..6).map(|number| format!("rival {number}")).collect();

    let replies = join_all(bodies.iter().map(|body| server.change(&id).file(body).send())).await;
    let made: Vec<&String> = bodies
        .iter()
        .zip(&replies)
        .filter(|(_, reply)| reply.status == 200)
        .map(|(body, _)| body)
        .collect();
    assert!(!made.is_empty());
    assert!(replies.iter().all(|reply| [200, 409].contains(&reply.status)));
    assert_eq!(server.record(&id).await.version, 1 + made.len() as u64);

    let content = server.content(&id).send().await.expect(200).text();
    assert!(made.contains(&&content), "{content} was refused");
}

#[tokio::test]
async fn a_change_never_loses_to_the_sync_worker() {
    let server = TestServer::start().await;
    let done = AtomicBool::new(false);
    let worker = async {
        while !done.load(Ordering::Acquire) {
            server.store().admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap();
            tokio::task::yield_now().await;
        }
    };

    let client = async {
        for number in 0..15 {
            let id = server.upload("x").temp().ok().await.file_id;
            server.change(&id).make_ready().send().await.expect(200);
            server.change(&id).file(format!("new {number}")).send().await.expect(200);
            server.change(&id).make_ready().file("newer").send().await.expect(200);
            assert_eq!(server.record(&id).await.version, 3);
        }
        done.store(true, Ordering::Release);
    };

    tokio::join!(worker, client);
}

#[tokio::test]
async fn a_delete_and_a_restore_at_once_end_in_one_of_the_two() {
    let server = TestServer::start_without_purge().await;
    for _ in 0..10 {
        let id = server.upload("x").ok().await.file_id;
        server.delete(&id).await.expect(200);
        let (deleted, restored) = tokio::join!(server.delete(&id), server.restore(&id));

        deleted.expect(200);
        assert!([200, 409].contains(&restored.status), "{}", restored.text());
        let info = server.record(&id).await;
        let content = server.content(&id).send().await.status;
        assert_eq!(content, if info.purge_status.is_some() { 404 } else { 200 });
    }
}

#[tokio::test]
async fn a_restore_and_the_purge_at_once_leave_the_file_whole_or_gone() {
    let server = TestServer::start().await;
    for _ in 0..10 {
        let id = server.upload(all(b'A')).ok().await.file_id;
        let (_, restored) = tokio::join!(server.delete(&id), server.restore(&id));
        // A restore that came before the delete finds a live file, which may be purged by now.
        let found = server.info(&id).await;
        let is_live = found.status == 200 && found.json()["purge_status"].is_null();
        if restored.status == 200 && is_live {
            assert_one_version(&server.content(&id).send().await);
        } else {
            assert!([200, 404, 409].contains(&restored.status), "{}", restored.text());
            eventually("the file to be gone", async || {
                Some(server.info(&id).await).filter(|reply| reply.status == 404)
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_variant_of_a_replaced_image_is_never_the_old_one_for_long() {
    let server = TestServer::start().await;
    let (red, quarters) = (fixtures::gif(300, 300), fixtures::jpeg(300, 300));

    let id = server.upload(&quarters).ok().await.file_id;
    for round in 0..6 {
        let next = if round % 2 == 0 { &red } else { &quarters };
        let variants = async { server.variant(&id, 200).send().await };
        let replace = async { server.change(&id).file(next).send().await.expect(200) };
        let (during, _) = tokio::join!(variants, replace);
        during.expect(200);

        let after = server.variant(&id, 200).send().await.expect(200);
        let fresh = server.upload(next).ok().await.file_id;
        let expected = server.variant(&fresh, 200).send().await.expect(200);
        assert_eq!(after.body, expected.body, "round {round}");
    }
}

#[tokio::test]
async fn many_uploads_at_once_are_all_there() {
    let server = TestServer::start().await;
    let bodies: Vec<Vec<u8>> = (0..60).map(|seed| fixtures::noise(seed, 3000)).collect();
    let records = join_all(bodies.iter().map(|body| server.upload(body).ok())).await;
    let ids: HashSet<&String> = records.iter().map(|record| &record.file_id).collect();
    let paths: HashSet<&String> = records.iter().map(|record| &record.file_path).collect();
    assert_eq!((ids.len(), paths.len()), (60, 60));
    for (record, body) in records.iter().zip(&bodies) {
        assert!(server.content(&record.file_id).send().await.expect(200).body == body);
    }
    assert_eq!(server.listed().await.len(), 60);
}
