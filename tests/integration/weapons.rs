//! Variants (reference §4.6) under attack: pictures made to do harm, beside requests that must not
//! notice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use filestore_workspace::{Reply, TestServer, fixtures};

#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../filestore-core/pictures/tests/weapons/arsenal.rs"]
mod arsenal;
#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../filestore-core/pictures/src/fixtures/pictures.rs"]
mod pictures;
#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../filestore-core/pictures/src/fixtures/tiffs.rs"]
mod tiffs;

use arsenal::{Answer, arsenal};

/// The deadline for a picture. Time is not tested here: a debug build on a busy machine takes many
/// times as long as a server does.
const DECODING_DEADLINE: Duration = Duration::from_mins(10);

/// A server whose answers, and a client whose patience, do not depend on how busy the machine is.
async fn patient_server() -> TestServer {
    let server =
        TestServer::start_with(|config| config.store.variants.deadline = DECODING_DEADLINE).await;
    server.patient(2 * DECODING_DEADLINE)
}

/// The variant of `bytes`, which are uploaded as what they are not.
async fn variant_of(server: &TestServer, bytes: &[u8], mime: &str) -> Reply {
    let id = server.upload(bytes).part_name("holiday.png").mime(mime).ok().await.file_id;
    server.variant(&id, 200).send().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_weapon_is_answered_and_nobody_else_notices() {
    let server = patient_server().await;
    let id = server.upload(fixtures::jpeg(300, 300)).ok().await.file_id;
    let (content, picture) = (
        server.content(&id).send().await.expect(200),
        server.variant(&id, 200).send().await.expect(200),
    );

    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let attack = async {
        for weapon in arsenal() {
            let reply = variant_of(&server, &weapon.bytes, "image/png").await;
            match weapon.answer {
                Answer::Variant => {
                    assert_eq!(reply.status, 200, "{}: {}", weapon.name, reply.text());
                }
                Answer::TooLarge => drop(reply.problem(422, "image_too_large")),
                Answer::Corrupt => drop(reply.problem(422, "corrupt_image")),
                Answer::NotAnImage => drop(reply.problem(422, "not_an_image")),
            }
        }
        over.store(true, Ordering::SeqCst);
    };

    let neighbours = async {
        while !over.load(Ordering::SeqCst) {
            assert_eq!(server.content(&id).send().await.expect(200).body, content.body);
            assert_eq!(server.variant(&id, 200).send().await.expect(200).body, picture.body);
            // One that has to be made, too.
            let new = server.upload(fixtures::png(220, 220)).ok().await.file_id;
            assert_eq!(
                server.variant(&new, 200).send().await.expect(200).only("content-type"),
                "image/webp"
            );
            asked.fetch_add(1, Ordering::SeqCst);
        }
    };

    tokio::join!(attack, neighbours);
    assert!(asked.load(Ordering::SeqCst) > 0, "somebody asked meanwhile");
}

#[tokio::test]
async fn markup_never_passes_through_whatever_it_claims_to_be() {
    let server = TestServer::start().await;
    let markup = arsenal().into_iter().filter(|weapon| weapon.answer == Answer::NotAnImage);
    for weapon in markup {
        for mime in ["image/png", "image/svg+xml", "text/html", "image/webp"] {
            variant_of(&server, &weapon.bytes, mime).await.problem(422, "not_an_image");
        }
    }
}

#[tokio::test]
async fn avif_and_heic_are_refused_by_their_names() {
    let server = TestServer::start().await;
    for (bytes, name) in [
        (&b"\0\0\0\x18ftypavif\0\0\0\0mif1avif"[..], "AVIF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
    ] {
        let problem = variant_of(&server, bytes, "image/avif").await.problem(422, "not_an_image");
        assert!(problem.detail.contains(name), "{problem:?}");
    }
}

#[tokio::test]
async fn damaged_pictures_are_200_or_422() {
    let server = patient_server().await;
    let mut random = fastrand::Rng::with_seed(5);
    let sources = [
        fixtures::jpeg,
        fixtures::png,
        fixtures::gif,
        fixtures::webp,
        fixtures::bmp,
        fixtures::tiff,
    ];

    for (format, source) in sources.into_iter().enumerate() {
        let good = source(220, 12);
        for round in 0..12 {
            let cut = good.len() * round / 12;
            let mut turned = good.clone();
            for _ in 0..=round {
                turned[random.usize(..good.len().min(300))] ^= 1 << random.u8(..8);
            }
            for bytes in [&good[..cut], &turned[..]] {
                let reply = variant_of(&server, bytes, "image/png").await;
                assert!(
                    matches!(reply.status, 200 | 422),
                    "format {format}, round {round}: {}",
                    reply.text()
                );
            }
        }
    }
}
