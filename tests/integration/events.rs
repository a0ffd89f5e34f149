//! GET /api/v1/events in pages (reference §4.17): what is told, to whom, and in which order.

use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::{OrganizationId, Scope};
use filestore_workspace::{Reply, TestServer};
use serde_json::{Value, json};

/// An id that no event has.
const FORGED: &str = "AAAAAAAAAAAAAAAAAAAAAA";

async fn page(server: &TestServer, query: &str) -> Reply {
    server.get(&format!("/api/v1/events?{query}")).send().await
}

/// Reads a page, and returns its events and the place behind it.
async fn read(server: &TestServer, query: &str) -> (Vec<Value>, String) {
    let page = page(server, query).await.expect(200).json();
    let next = page["next"].as_str().expect("a place").to_owned();
    (page["events"].as_array().expect("events").clone(), next)
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

fn files(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["data"]["file_id"].as_str().expect("a file")).collect()
}

async fn key(server: &TestServer, scope: KeyScope, organizations: Scope) -> String {
    let new = NewKey::new("reader", organizations, [scope]);
    let (_, secret) = server.store().keys().create(new).await.expect("a key");
    secret.expose().to_owned()
}

fn only(organization: &str) -> Scope {
    Scope::Organizations(vec![organization.parse::<OrganizationId>().expect("an id")])
}

#[tokio::test]
async fn the_life_of_a_file_is_told_in_order_and_without_its_contents() {
    let server = TestServer::start_without_purge().await;
    let record = server.upload("top secret").name("salary.txt").temp().ok().await;
    let id = &record.file_id;
    server.change(id).make_ready().send().await.expect(200);
    server.change(id).file("other bytes").send().await.expect(200);
    server.edit(id, &json!({"original_name": "b.txt"})).send().await.expect(200);
    server.delete(id).await.expect(200);
    server.restore(id).await.expect(200);

    let reply = page(&server, "").await.expect(200);
    assert_eq!(reply.only("content-type"), "application/json");
    assert_eq!(reply.only("cache-control"), "no-store");
    let told = reply.text();
    for hidden in ["salary", "b.txt", &record.sha256, "secret"] {
        assert!(!told.contains(hidden), "{hidden} in {told}");
    }

    let (events, next) = read(&server, "").await;
    assert_eq!(
        types(&events),
        [
            "file.uploaded",
            "file.ready",
            "file.replaced",
            "file.edited",
            "file.deleted",
            "file.restored"
        ]
    );
    assert!(files(&events).iter().all(|file| file == id));
    let first = &events[0];
    assert_eq!(first["data"]["organization_id"], "acme");
    assert_eq!(first["data"]["sub_system"], record.sub_system);
    assert_eq!(first["data"]["status"], "TEMP");
    assert_eq!(first["timestamp"], record.created_at);
    assert_eq!((&first["data"]["version"], &events[2]["data"]["version"]), (&json!(1), &json!(2)));
    assert_eq!(events[3]["data"]["changed"], json!(["name"]));
    assert_eq!(next, events[5]["id"].as_str().unwrap());
}

#[tokio::test]
async fn a_reader_that_goes_on_at_next_sees_each_event_once() {
    let server = TestServer::start().await;
    let mut uploaded = Vec::new();
    for number in 0..5 {
        uploaded.push(server.upload(format!("{number}")).ok().await.file_id);
    }

    let (mut after, mut seen) = ("start".to_owned(), Vec::new());
    for expected in [2, 2, 1, 0] {
        let reply = page(&server, &format!("limit=2&after={after}")).await.expect(200).json();
        let events = reply["events"].as_array().unwrap().clone();
        assert_eq!(events.len(), expected);
        assert_eq!(reply["more"], seen.len() + expected < 5, "{reply}");
        seen.extend(files(&events).into_iter().map(str::to_owned));
        reply["next"].as_str().unwrap().clone_into(&mut after);
    }
    assert_eq!(seen, uploaded);

    let (none, end) = read(&server, "after=end").await;
    assert!(none.is_empty());
    assert_eq!(end, after, "the end is behind the last event");
    let later = server.upload("later").ok().await.file_id;
    assert_eq!(files(&read(&server, &format!("after={end}")).await.0), [later]);
}

#[tokio::test]
async fn pages_go_backwards_from_the_newest() {
    let server = TestServer::start().await;
    let mut uploaded = Vec::new();
    for number in 0..3 {
        uploaded.push(server.upload(format!("{number}")).ok().await.file_id);
    }
    let (newest, before) = read(&server, "order=desc&limit=2").await;
    assert_eq!(files(&newest), [&*uploaded[2], &*uploaded[1]]);
    let (rest, _) = read(&server, &format!("order=desc&before={before}")).await;
    assert_eq!(files(&rest), [&*uploaded[0]]);
}

#[tokio::test]
async fn types_and_organizations_are_chosen() {
    let server = TestServer::start_without_purge().await;
    let own = server.upload("1").org("7").ok().await.file_id;
    let other = server.upload("2").org("8").ok().await.file_id;
    server.delete(&own).await.expect(200);

    let (events, next) = read(&server, "organization_id=7&types=file.deleted,file.ready").await;
    assert_eq!((types(&events), files(&events)), (vec!["file.deleted"], vec![&*own]));
    let (events, same) = read(&server, "organization_id=8&types=file.*").await;
    assert_eq!(files(&events), [other]);
    assert_eq!(next, same, "both readers have looked at all events");

    let refused = page(&server, "types=file.read").await.problem(400, "invalid_field");
    assert_eq!(refused.field.as_deref(), Some("types"));
    assert!(refused.allowed.iter().any(|kind| kind == "file.ready"), "{refused:?}");
}

#[tokio::test]
async fn bad_parameters_are_named_and_a_foreign_id_is_gone() {
    let server = TestServer::start().await;
    server.upload("1").ok().await;
    for (query, field) in [
        ("after=1", "after"),
        ("limit=0", "limit"),
        ("wait=31", "wait"),
        ("order=up", "order"),
        ("before=end", "before"),
    ] {
        let problem = page(&server, query).await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some(field), "{query}");
    }
    let gone = page(&server, &format!("after={FORGED}")).await.problem(410, "events_gone");
    assert!(gone.detail.contains("end"), "it says what to do: {}", gone.detail);
}

#[tokio::test]
async fn a_made_up_id_that_names_an_impossible_position_is_gone() {
    let server = TestServer::start().await;
    server.upload("1").ok().await;
    // Each names another position, half of them beyond what a database can store.
    for digit in 'A'..='Z' {
        let id = FORGED.replacen('A', &digit.to_string(), 1);
        page(&server, &format!("after={id}")).await.problem(410, "events_gone");
    }
}

#[tokio::test]
async fn a_key_sees_the_files_of_its_organizations_and_an_administrator_all() {
    let server = TestServer::start().await;
    let own = server.upload("1").org("7").ok().await.file_id;
    let other = server.upload("2").org("8").ok().await.file_id;
    let reader = key(&server, KeyScope::Read, only("7")).await;
    let reader_of_all = key(&server, KeyScope::Read, Scope::All).await;
    let writer = key(&server, KeyScope::Write, only("7")).await;
    let admin = key(&server, KeyScope::Admin, Scope::All).await;

    page(&server, "").await.problem(401, "unauthorized");
    let server = server.with_key(&writer);
    page(&server, "").await.problem(403, "forbidden");

    let server = server.with_key(&reader);
    assert_eq!(files(&read(&server, "").await.0), [&*own]);
    page(&server, "organization_id=8").await.problem(403, "forbidden");
    let refused = page(&server, "types=file.ready,key.created").await.problem(403, "forbidden");
    assert_eq!(refused.allowed, ["admin"]);

    let server = server.with_key(&reader_of_all);
    assert_eq!(files(&read(&server, "").await.0), [&*own, &*other]);

    let server = server.with_key(&admin);
    let (events, _) = read(&server, "").await;
    assert_eq!(types(&events)[..2], ["file.uploaded"; 2]);
    assert_eq!(types(&events)[2..], ["key.created"; 4]);
    assert!(events[2]["data"]["key_id"].is_string() && events[2]["data"]["file_id"].is_null());
}

#[tokio::test]
async fn a_store_without_events_says_so_and_later_tells_of_the_gap() {
    let server = TestServer::start_with(|config| config.store.events.enabled = false).await;
    server.upload("untold").ok().await;
    page(&server, "").await.problem(409, "events_off");
    let call = server.get("/api/v1/events").header("accept", "text/event-stream");
    call.send().await.problem(409, "events_off");

    let server = server.restart_with(|config| config.store.events.enabled = true).await;
    let told = server.upload("told").ok().await.file_id;
    let (events, _) = read(&server, "").await;
    assert_eq!(types(&events), ["log.gap", "file.uploaded"]);
    assert!(events[0]["data"]["off_since"].is_string());
    assert_eq!(events[1]["data"]["file_id"], told);
}

#[tokio::test]
async fn a_reader_of_one_organization_learns_of_a_time_without_events() {
    let server = TestServer::start().await;
    server.upload("told").org("7").ok().await;
    let query = "organization_id=7&types=file.*";
    let (_, end) = read(&server, query).await;
    let server = server.restart_with(|config| config.store.events.enabled = false).await;
    server.upload("untold").org("7").ok().await;
    let server = server.restart_with(|config| config.store.events.enabled = true).await;

    page(&server, &format!("{query}&after={end}")).await.problem(410, "events_gone");
    let (events, _) = read(&server, query).await;
    assert_eq!(types(&events), ["log.gap"]);
}

#[tokio::test]
async fn a_page_without_events_waits_for_the_first() {
    let server = TestServer::start().await;
    server.upload("before").ok().await;
    let (_, end) = read(&server, "after=end").await;
    let waiting = tokio::spawn(server.get(&format!("/api/v1/events?after={end}&wait=30")).send());
    let later = server.upload("later").ok().await.file_id;
    let reply = waiting.await.unwrap().expect(200).json();
    assert_eq!(files(reply["events"].as_array().unwrap()), [later]);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_waiting_page() {
    let server =
        TestServer::start_with(|config| config.http.grace = filestore_workspace::HANG).await;
    let waiting = tokio::spawn(server.get("/api/v1/events?after=end&wait=30").send());
    let running = async || {
        let metrics = server.get("/metrics").send().await.expect(200).text();
        metrics.contains("filestore_http_requests_running 2").then_some(())
    };
    filestore_workspace::eventually("two requests are running", running).await;
    server.stop().await;
    let reply = waiting.await.unwrap().expect(200).json();
    assert_eq!(reply["events"], json!([]));
}
