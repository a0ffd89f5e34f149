//! One provider of the core, against the S3 server: objects are stored, read, signed and removed, also
//! while the server misbehaves.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use filestore_core::admin::BreakerState;
use filestore_core::config::ProviderConfig;
use filestore_core::internals::storage::{
    BlobInfo, BlobStore, ByteStream, CheckOutcome, Cloud, PresignMethod, PresignRequest, Priority,
    ProviderCheck, ProviderRegistry,
};
use filestore_core::{BlobId, BlobKey, Error, ErrorKind, ManualClock, Sha256, Timestamp};
use filestore_workspace::s3::{Fault, Operation};
use filestore_workspace::{HANG, S3Server, eventually};
use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Method, StatusCode};

use crate::clock::HeldClock;

const MIB: usize = 1 << 20;
const UNICODE: &str =
    "attachment; filename=\"na_ve & + %.txt\"; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt";

fn config(server: &S3Server) -> ProviderConfig {
    let options = [
        ("endpoint", server.endpoint()),
        ("region", server.region().to_owned()),
        ("bucket", server.bucket().to_owned()),
        ("access_key_id", server.access_key().to_owned()),
        ("secret_access_key", server.secret_key().to_owned()),
    ];
    let config =
        ProviderConfig::new("s3".parse().unwrap(), "s3").with_option("disable_config_load", "true");
    options.into_iter().fold(config, |config, (name, value)| config.with_option(name, value))
}

fn with_retries(retries: usize, server: &S3Server) -> ProviderConfig {
    let mut config = config(server);
    config.retries = retries;
    config
}

fn open(config: ProviderConfig) -> Cloud {
    let code = config.code.clone();
    ProviderRegistry::open(&[config]).unwrap().cloud(&code).unwrap().clone()
}

async fn started() -> (S3Server, Cloud) {
    let server = S3Server::start().await;
    let cloud = open(config(&server));
    (server, cloud)
}

fn fresh_key() -> BlobKey {
    let now = Timestamp::now();
    BlobKey::new(&"42".parse().unwrap(), &"docs".parse().unwrap(), now, BlobId::generate(now))
}

fn content(length: usize) -> Vec<u8> {
    (0u32..).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).take(length).collect()
}

fn info(bytes: &[u8]) -> BlobInfo {
    let hex = filestore_workspace::sha256_hex(bytes);
    BlobInfo {
        size_bytes: bytes.len() as u64,
        sha256: hex.parse::<Sha256>().unwrap(),
        content_type: "text/plain; charset=utf-8".to_owned(),
        content_disposition: Some("inline".to_owned()),
    }
}

fn source(bytes: &[u8]) -> ByteStream {
    let pieces: Vec<_> =
        bytes.chunks(300_001).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

async fn put(cloud: &Cloud, key: &BlobKey, bytes: &[u8]) -> Result<(), Error> {
    cloud.put(key, &info(bytes), source(bytes), Priority::Request).await
}

async fn get(cloud: &Cloud, key: &BlobKey, size: usize) -> Result<Vec<u8>, Error> {
    let size = size as u64;
    get_range(cloud, key, size, 0..size).await
}

async fn get_range(
    cloud: &Cloud,
    key: &BlobKey,
    size: u64,
    range: Range<u64>,
) -> Result<Vec<u8>, Error> {
    let read = cloud.read(key, size, range.clone()).await?;
    let read = read.ok_or_else(|| Error::new(ErrorKind::NotFound, "the object is absent"))?;
    let pieces: Vec<Bytes> = read.into_stream(range).try_collect().await?;
    Ok(pieces.concat())
}

async fn remove(cloud: &Cloud, key: &BlobKey) -> Result<(), Error> {
    cloud.remove(vec![key.clone()]).await.pop().unwrap()
}

fn wanted(method: PresignMethod) -> PresignRequest<'static> {
    PresignRequest {
        method,
        expires_in: Duration::from_mins(5),
        content_type: "image/png",
        disposition: Some(UNICODE),
    }
}

fn header<'a>(reply: &'a reqwest::Response, name: &str) -> &'a str {
    reply.headers()[name].to_str().unwrap()
}

#[tokio::test]
async fn what_is_put_is_read_back_in_ranges_and_removed() {
    let (server, cloud) = started().await;
    for length in [0, 1, 64 << 10, 5 * MIB, 5 * MIB + 1, 11 * MIB] {
        let (key, bytes) = (fresh_key(), content(length));
        put(&cloud, &key, &bytes).await.unwrap();
        assert!(server.object(key.as_str()).unwrap() == bytes, "{length} bytes");
        assert!(get(&cloud, &key, length).await.unwrap() == bytes, "{length} bytes");
        if length > 100 {
            let part = get_range(&cloud, &key, length as u64, 7..99).await.unwrap();
            assert_eq!(part, bytes[7..99]);
        }
        assert_eq!(
            get(&cloud, &key, length + 1).await.unwrap_err().kind(),
            ErrorKind::ProviderUnavailable
        );
        for _ in 0..2 {
            remove(&cloud, &key).await.unwrap();
        }
        assert_eq!(get(&cloud, &key, length).await.unwrap_err().kind(), ErrorKind::NotFound);
    }

    assert_eq!((server.objects(), server.unfinished_uploads()), (vec![], 0));
}

#[tokio::test]
async fn nothing_is_read_back_where_the_store_checks_what_it_takes() {
    let (server, cloud) = started().await;
    put(&cloud, &fresh_key(), b"probe").await.unwrap();
    let can = cloud.capabilities();
    assert_eq!((can.checks_checksums, can.puts_if_absent), (Some(true), Some(true)));
    let reads = server.requests(Operation::GetObject);
    put(&cloud, &fresh_key(), &content(64 << 10)).await.unwrap();
    put(&cloud, &fresh_key(), &content(11 * MIB)).await.unwrap();
    assert_eq!(server.requests(Operation::GetObject), reads);
}

#[tokio::test]
async fn everything_is_read_back_where_it_does_not() {
    let (server, cloud) = started().await;
    server.faults().ignore_checksums();
    put(&cloud, &fresh_key(), b"x").await.unwrap();
    assert_eq!(cloud.capabilities().checks_checksums, Some(false));

    let reads = server.requests(Operation::GetObject);
    put(&cloud, &fresh_key(), &content(64 << 10)).await.unwrap();
    assert_eq!(server.requests(Operation::GetObject), reads + 1);

    for (length, on) in [(1000, Operation::PutObject), (6 * MIB, Operation::UploadPart)] {
        server.faults().next(1, on, Fault::CorruptBody);
        let error = put(&cloud, &fresh_key(), &content(length)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProviderUnavailable, "{length}");
    }
}

#[tokio::test]
async fn bytes_that_change_on_the_way_never_count() {
    let (server, cloud) = started().await;
    put(&cloud, &fresh_key(), b"x").await.unwrap();
    let faults = [
        (1000, Operation::PutObject, Fault::CorruptBody),
        (1000, Operation::PutObject, Fault::StoreHalf),
        (6 * MIB, Operation::UploadPart, Fault::CorruptBody),
        (6 * MIB, Operation::UploadPart, Fault::StoreHalf),
    ];

    for (length, on, fault) in faults {
        let tally = server.faults().next(1, on, fault);
        let error = put(&cloud, &fresh_key(), &content(length)).await.unwrap_err();
        assert_eq!(
            (error.kind(), tally.count()),
            (ErrorKind::ProviderUnavailable, 1),
            "{on:?} {fault:?}"
        );
    }

    assert_eq!(server.unfinished_uploads(), 0);
}

#[tokio::test]
async fn faults_that_pass_are_not_noticed() {
    let (server, cloud) = started().await;
    put(&cloud, &fresh_key(), b"x").await.unwrap();
    for fault in
        [Fault::Close, Fault::InternalError, Fault::SlowDown, Fault::LoseReply, Fault::CutReply]
    {
        let operations = [
            (Operation::PutObject, 1000),
            (Operation::HeadObject, 1000),
            (Operation::GetObject, 1000),
            (Operation::DeleteObject, 1000),
            (Operation::CreateMultipartUpload, 6 * MIB),
            (Operation::UploadPart, 6 * MIB),
            (Operation::CompleteMultipartUpload, 6 * MIB),
        ];
        for (on, length) in operations {
            let (key, bytes) = (fresh_key(), content(length));
            let tally = server.faults().next(1, on, fault);
            put(&cloud, &key, &bytes).await.unwrap_or_else(|e| panic!("{on:?} {fault:?}: {e:?}"));
            assert!(get(&cloud, &key, length).await.unwrap() == bytes, "{on:?} {fault:?}");
            remove(&cloud, &key).await.unwrap();
            assert_eq!(tally.count(), 1, "{on:?} {fault:?}");
        }
    }
    assert_eq!(server.objects().len(), 1);
}

#[tokio::test]
async fn a_provider_that_is_down_is_unavailable_and_no_secret_is_said() {
    let server = S3Server::start().await;
    let cloud = open(with_retries(1, &server));

    let key = fresh_key();
    put(&cloud, &key, b"x").await.unwrap();
    server.down().await;
    let errors = [
        put(&cloud, &fresh_key(), b"y").await.unwrap_err(),
        get(&cloud, &key, 1).await.unwrap_err(),
        remove(&cloud, &key).await.unwrap_err(),
    ];

    for error in errors {
        assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
        let shown = format!("{error} {error:?} {error:#?} {cloud:?} {:?}", config(&server));
        for secret in [server.secret_key(), server.access_key(), "Signature", "?"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }

    server.up().await;
    assert_eq!(get(&cloud, &key, 1).await.unwrap(), b"x");
}

#[tokio::test]
async fn a_provider_that_hangs_is_given_up() {
    let server = S3Server::start().await;
    let brief = Duration::from_millis(200);
    let mut config = with_retries(0, &server);
    config.timeout = brief;
    config.io_timeout = brief;
    let cloud = open(config);
    server.faults().every(Operation::PutObject, Fault::Hang);
    let error = put(&cloud, &fresh_key(), b"y").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
}

#[tokio::test]
async fn uploads_that_come_to_nothing_are_aborted() {
    let (server, cloud) = started().await;
    let bytes = content(12 * MIB);
    let lie = BlobInfo { sha256: "0".repeat(64).parse().unwrap(), ..info(&bytes) };
    let error = cloud.put(&fresh_key(), &lie, source(&bytes), Priority::Request).await.unwrap_err();
    assert_eq!((error.kind(), server.unfinished_uploads()), (ErrorKind::DigestMismatch, 0));

    server.faults().every(Operation::UploadPart, Fault::CorruptBody);
    put(&cloud, &fresh_key(), &bytes).await.unwrap_err();
    assert_eq!(server.unfinished_uploads(), 0);

    server.faults().clear();

    // The caller goes away while parts are on their way.
    let endless = source(&bytes).take(38).chain(stream::pending()).boxed();
    let honest = info(&bytes);
    let (one, key) = (cloud.clone(), fresh_key());
    let putting =
        tokio::spawn(async move { one.put(&key, &honest, endless, Priority::Request).await });

    eventually("an upload has begun", async || (server.unfinished_uploads() == 1).then_some(()))
        .await;
    putting.abort();
    eventually("it is aborted", async || (server.unfinished_uploads() == 0).then_some(())).await;
    assert_eq!(server.objects(), Vec::<String>::new());
}

#[tokio::test]
async fn a_presigned_url_reads_one_object_as_it_was_asked_for() {
    let (_server, cloud) = started().await;
    let (key, other) = (fresh_key(), fresh_key());
    put(&cloud, &key, b"the bytes").await.unwrap();
    put(&cloud, &other, b"others").await.unwrap();
    let bare = filestore_workspace::http_client().build().unwrap();
    let url = cloud.presign(&key, &wanted(PresignMethod::Get)).await.unwrap().unwrap().url;

    let reply = bare.get(&url).send().await.unwrap();
    assert_eq!(reply.status(), StatusCode::OK);
    assert_eq!(
        (header(&reply, "content-type"), header(&reply, "content-disposition")),
        ("image/png", UNICODE)
    );
    assert_eq!(reply.bytes().await.unwrap(), "the bytes");

    let part = bare.get(&url).header("range", "bytes=4-8").send().await.unwrap();
    assert_eq!(
        (part.status(), part.bytes().await.unwrap()),
        (StatusCode::PARTIAL_CONTENT, "bytes".into())
    );

    let head = cloud.presign(&key, &wanted(PresignMethod::Head)).await.unwrap().unwrap().url;
    let reply = bare.head(&head).send().await.unwrap();
    assert_eq!((reply.status(), header(&reply, "content-length")), (StatusCode::OK, "9"));
    assert_eq!(
        (header(&reply, "content-type"), header(&reply, "content-disposition")),
        ("image/png", UNICODE)
    );

    for (method, url) in [
        (Method::PUT, url.clone()),
        (Method::DELETE, url.clone()),
        (Method::GET, url.replace(key.as_str(), other.as_str())),
        (Method::GET, url.replace("image%2Fpng", "text%2Fhtml").replace("image/png", "text/html")),
    ] {
        let reply = bare.request(method.clone(), &url).body("mine").send().await.unwrap();
        assert_eq!(reply.status(), StatusCode::FORBIDDEN, "{method}");
    }

    assert_eq!(get(&cloud, &key, 9).await.unwrap(), b"the bytes");
}

#[tokio::test]
async fn what_needs_headers_or_is_not_signed_at_all_is_not_presigned() {
    let server = S3Server::start().await;
    for (option, value) in [
        ("skip_signature", "true"),
        ("enable_request_payer", "true"),
        ("server_side_encryption_customer_algorithm", "AES256"),
    ] {
        let cloud = open(config(&server).with_option(option, value));
        assert_eq!(
            cloud.presign(&fresh_key(), &wanted(PresignMethod::Get)).await.unwrap(),
            None,
            "{option}"
        );
    }
}

fn outcome(check: &ProviderCheck, name: &str) -> (CheckOutcome, String) {
    let step = check.steps.iter().find(|step| step.name == name);
    let step = step.unwrap_or_else(|| panic!("no step {name} in {check:?}"));
    (step.outcome, step.detail.clone())
}

#[tokio::test]
async fn a_check_finds_a_sound_provider_sound_and_leaves_nothing() {
    let (server, cloud) = started().await;
    let check = cloud.check().await;
    assert!(check.can_serve, "{check:#?}");
    assert!(check.steps.iter().all(|step| step.outcome == CheckOutcome::Ok), "{check:#?}");
    assert_eq!(outcome(&check, "grants").1, "reading that object, nothing else");
    assert_eq!(server.objects(), Vec::<String>::new());
    assert!(!format!("{check:?}").contains(server.secret_key()));
}

#[tokio::test]
async fn a_check_says_what_a_provider_cannot_and_what_is_wrong_with_it() {
    let (server, cloud) = started().await;
    server.faults().ignore_checksums();
    server.faults().clock_off_by(-500);
    let check = cloud.check().await;
    assert!(check.can_serve, "{check:#?}");
    assert_eq!(outcome(&check, "checksum").0, CheckOutcome::Cannot);

    let (clock, detail) = outcome(&check, "clock");
    assert!(clock == CheckOutcome::Failed && detail.contains("behind"), "{detail}");

    server.faults().clear();
    server.faults().every(Operation::DeleteObject, Fault::InternalError);
    let check = open(with_retries(0, &server)).check().await;
    assert!(!check.can_serve);
    assert_eq!(outcome(&check, "delete").0, CheckOutcome::Failed);

    server.down().await;
    let check = open(with_retries(0, &server)).check().await;
    assert!(!check.can_serve);
    assert_eq!(outcome(&check, "write").0, CheckOutcome::Failed);
    assert_eq!(outcome(&check, "read").0, CheckOutcome::Skipped);
}

#[tokio::test]
async fn a_provider_without_urls_can_serve() {
    let check = open(ProviderConfig::new("mem".parse().unwrap(), "memory")).check().await;
    assert!(check.can_serve, "{check:#?}");
    assert_eq!(outcome(&check, "presign").0, CheckOutcome::Cannot);
    assert_eq!(outcome(&check, "grants").0, CheckOutcome::Skipped);
}

#[tokio::test]
async fn a_provider_that_does_not_answer_is_asked_again_only_by_a_trial() {
    let server = S3Server::start().await;
    let clock = ManualClock::at(Timestamp::now());
    let registry = ProviderRegistry::open_with(&[with_retries(0, &server)], &clock.clock());
    let registry = registry.unwrap();
    let code = "s3".parse().unwrap();
    let cloud = registry.cloud(&code).unwrap();

    let kept = fresh_key();
    put(cloud, &kept, b"kept").await.unwrap();
    let down = server.faults().every(Operation::PutObject, Fault::Close);
    for _ in 0..3 {
        put(cloud, &fresh_key(), b"lost").await.unwrap_err();
    }

    let asked = down.count();
    let refused = put(cloud, &fresh_key(), b"lost").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ProviderUnavailable);
    assert!(refused.details().retry_after_secs.is_some(), "{refused:?}");
    assert_eq!(down.count(), asked, "nothing was sent");
    assert!(!registry.may_try(&code));
    let health = registry.health_of(&code).unwrap();
    assert_eq!(health.writes.state, BreakerState::Open);
    assert!(!format!("{health:?}").contains(server.secret_key()), "{health:?}");

    // Reads are judged apart.
    assert_eq!(get(cloud, &kept, 4).await.unwrap(), b"kept");

    clock.advance(Duration::from_secs(1));
    assert!(registry.may_try(&code));
    put(cloud, &fresh_key(), b"lost").await.unwrap_err();
    assert_eq!(down.count(), asked + 1, "one trial");
    assert!(!registry.may_try(&code));

    server.faults().clear();
    clock.advance(Duration::from_secs(2));
    put(cloud, &fresh_key(), b"kept").await.unwrap();
    assert!(registry.health_of(&code).unwrap().is_good());
    put(cloud, &fresh_key(), b"kept").await.unwrap();
}

/// A provider that is given up on after this time, and not asked twice.
fn given_up_on_after(timeout: Duration, code: &str, server: &S3Server) -> ProviderConfig {
    let mut config = with_retries(0, server);
    config.code = code.parse().unwrap();
    (config.timeout, config.io_timeout) = (timeout, timeout);
    config
}

/// A provider that is never given up on, and not asked twice.
fn patient(code: &str, server: &S3Server) -> ProviderConfig {
    given_up_on_after(HANG, code, server)
}

#[tokio::test]
async fn all_who_wait_for_a_probe_share_its_outcome() {
    let server = S3Server::start().await;
    let clock = ManualClock::at(Timestamp::now());
    let config = given_up_on_after(Duration::from_secs(2), "s3", &server);
    let registry = ProviderRegistry::open_with(&[config], &clock.clock()).unwrap();
    let cloud = registry.cloud(&"s3".parse().unwrap()).unwrap();
    let mut timeouts = HeldClock::hold();
    let hung = server.faults().every(Operation::PutObject, Fault::Hang);

    let puts: Vec<_> = (0..10)
        .map(|_| {
            let cloud = cloud.clone();
            tokio::spawn(async move { put(&cloud, &fresh_key(), b"bytes").await })
        })
        .collect();
    while hung.count() == 0 {
        tokio::task::yield_now().await;
    }
    for put in timeouts.passes_until(join_all(puts)).await {
        assert_eq!(put.unwrap().unwrap_err().kind(), ErrorKind::ProviderUnavailable);
    }
    assert_eq!(hung.count(), 1, "one probe for all");
    assert_eq!(server.requests(Operation::DeleteObject), 0, "nothing can have been made");

    server.faults().clear();
    put(cloud, &fresh_key(), b"bytes").await.unwrap_err();
    assert_eq!(server.requests(Operation::PutObject), 1, "the failure is remembered");

    clock.advance(Duration::from_secs(3));
    let key = fresh_key();
    put(cloud, &key, b"bytes").await.unwrap();
    assert_eq!(server.objects(), [key.as_str()], "no probe is left");
}

#[tokio::test]
async fn what_a_probe_stored_goes_in_the_end_and_what_a_killed_process_left_too() {
    let server = S3Server::start().await;
    let old = Timestamp::now().minus(Duration::from_hours(2));
    let (left, others) = (BlobId::generate(old), BlobId::generate(Timestamp::now()));
    let [left, others] = [left, others].map(|id| format!(".filestore-check/{id}"));
    server.place(&left, b"probe");
    server.place(&others, b"probe");

    let failed = server.faults().every(Operation::DeleteObject, Fault::InternalError);
    let registry = ProviderRegistry::open(&[patient("s3", &server)]).unwrap();
    let cloud = registry.cloud(&"s3".parse().unwrap()).unwrap();
    let key = fresh_key();
    put(cloud, &key, b"bytes").await.unwrap();
    assert!(failed.count() > 0);

    server.faults().clear();
    let stays = [others, key.as_str().to_owned()];
    eventually("the probes and what is older are gone", async || {
        (server.objects() == stays).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_hangs_keeps_no_other_waiting_and_a_put_nobody_wants_is_cancelled() {
    let (hangs, healthy) = (S3Server::start().await, S3Server::start().await);
    let both = [patient("slow", &hangs), patient("fast", &healthy)];
    let registry = ProviderRegistry::open(&both).unwrap();
    let [slow, fast] =
        ["slow", "fast"].map(|code| registry.cloud(&code.parse().unwrap()).unwrap().clone());

    let bytes = content(6 * MIB);
    let hung = hangs.faults().every(Operation::UploadPart, Fault::Hang);
    let puts: Vec<_> = (0..12)
        .map(|_| {
            let (cloud, bytes) = (slow.clone(), bytes.clone());
            tokio::spawn(async move { put(&cloud, &fresh_key(), &bytes).await })
        })
        .collect();
    eventually("the provider hangs", async || (hung.count() > 1).then_some(())).await;

    for _ in 0..3 {
        put(&fast, &fresh_key(), &bytes).await.unwrap();
    }
    assert!(puts.iter().all(|put| !put.is_finished()));
    assert!(hangs.unfinished_uploads() > 0);

    // Those who asked for them go away.
    puts.iter().for_each(tokio::task::JoinHandle::abort);
    eventually("what was begun is aborted", async || {
        (hangs.unfinished_uploads() == 0).then_some(())
    })
    .await;
    hangs.faults().clear();
    put(&slow, &fresh_key(), &bytes).await.expect("the memory is free again");
}

#[tokio::test]
async fn a_slow_line_is_no_fault_as_long_as_bytes_move() {
    let server = S3Server::start().await;
    let cloud = open(given_up_on_after(Duration::from_secs(2), "slow", &server));
    put(&cloud, &fresh_key(), b"first").await.unwrap();

    let bytes = content(6 * MIB);
    let trickled = server.faults().every(Operation::UploadPart, Fault::Trickle);
    put(&cloud, &fresh_key(), &bytes).await.unwrap();
    assert_eq!(trickled.count(), 2, "each part was sent once");

    server.faults().clear();
    server.faults().every(Operation::UploadPart, Fault::Hang);
    let silent = put(&cloud, &fresh_key(), &bytes).await.unwrap_err();
    assert!(silent.chain().contains("silence"), "{silent:?}");
}
