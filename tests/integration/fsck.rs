//! Checks of the whole store over HTTP (reference §4.12).

use filestore_workspace::{TestServer, eventually};
use serde_json::{Value, json};

/// Returns the path of a file's blob, once the blob has its name.
async fn blob(server: &TestServer, id: &str) -> std::path::PathBuf {
    let path = server.data_dir().join("blobs").join(server.record(id).await.file_path);
    eventually("the blob to have its name", async || path.exists().then_some(())).await;
    path
}

async fn check(server: &TestServer, request: Value) -> Value {
    server.post("/api/v1/admin/fsck/run").json(&request).send().await.expect(200).json()
}

#[tokio::test]
async fn a_check_finds_what_is_wrong_and_changes_it_only_if_asked_to() {
    let server = TestServer::start().await;
    let sound = server.post("/api/v1/admin/fsck/run").send().await.expect(200).json();
    assert_eq!((&sound["clean"], &sound["found"]), (&json!(true), &json!(0)));

    let id = server.upload("12345").ok().await.file_id;
    let path = blob(&server, &id).await;
    std::fs::write(&path, "12x45").unwrap();
    assert_eq!(check(&server, json!({})).await["clean"], true, "its size is right");

    let deep = check(&server, json!({"deep": true, "bytes_per_second": 1 << 30})).await;
    assert_eq!((&deep["clean"], &deep["checked_bytes"]), (&json!(false), &json!(5)));
    assert_eq!(deep["found_by_kind"], json!({"wrong_digest": 1}));
    let finding = &deep["findings"][0];
    assert_eq!((&finding["file_id"], &finding["outcome"]), (&json!(id), &json!("shown")));
    assert!(path.exists());

    let repaired = check(&server, json!({"deep": true, "repair": true})).await;
    assert_eq!(repaired["repaired_by_kind"], json!({"wrong_digest": 1}));
    let action = repaired["findings"][0]["action"].as_str().unwrap();
    let place = server.data_dir().join(action.strip_prefix("moved to ").unwrap());
    assert_eq!(std::fs::read(place).unwrap(), b"12x45");
    assert!(!path.exists());

    let status = server.get("/api/v1/admin/fsck/status").send().await.expect(200).json();
    assert_eq!((&status["running"], &status["last"]["found"]), (&Value::Null, &json!(1)));
    let all = server.get("/api/v1/admin/status").send().await.expect(200).json();
    assert_eq!(all["checks"]["last"]["repaired"], 1);
    server.post("/api/v1/admin/fsck/stop").send().await.expect(200);
}

#[tokio::test]
async fn what_a_check_cannot_be_asked_for_is_refused() {
    let server = TestServer::start().await;
    let run = |body: Value| server.post("/api/v1/admin/fsck/run").json(&body).send();
    assert_eq!(
        run(json!({"deeep": true})).await.problem(400, "unknown_field").field.unwrap(),
        "deeep"
    );
    let unknown = run(json!({"provider_code": "nowhere"})).await.problem(422, "unknown_provider");
    assert_eq!(unknown.field.as_deref(), Some("provider_code"));
    let rate = run(json!({"bytes_per_second": 0})).await.any_problem(400);
    assert_eq!(rate.field.as_deref(), Some("bytes_per_second"));
}

#[tokio::test]
async fn one_check_runs_at_a_time_and_can_be_stopped_and_resumed() {
    let server = TestServer::start().await;
    let mut ids = Vec::new();
    for number in 0..40 {
        ids.push(server.upload(format!("file number {number}")).ok().await.file_id);
    }

    let slow = async {
        let request = json!({"deep": true, "bytes_per_second": 60});
        check(&server, request).await
    };
    let stop = async {
        eventually("the check to have begun", async || {
            let status = server.get("/api/v1/admin/fsck/status").send().await.json();
            (status["running"]["checked_files"].as_u64() > Some(0)).then_some(())
        })
        .await;
        server.post("/api/v1/admin/fsck/run").send().await.problem(409, "conflict");
        server.post("/api/v1/admin/fsck/stop").send().await.expect(200);
    };
    let (stopped, ()) = tokio::join!(slow, stop);
    assert_eq!(stopped["ended_at"], Value::Null, "{stopped}");
    assert_eq!(stopped["clean"], false);

    let whole = check(&server, json!({"deep": true})).await;
    assert_eq!((&whole["resumed"], &whole["clean"]), (&json!(true), &json!(true)), "{whole}");
    assert_eq!(
        (&whole["checked_files"], &whole["started_at"]),
        (&json!(40), &stopped["started_at"])
    );
}

#[tokio::test]
async fn the_last_scrub_is_in_readiness_and_metrics() {
    let server = TestServer::start_with(|config| {
        config.store.scrub.period = std::time::Duration::from_millis(1);
    })
    .await;
    // The background looks once a minute whether a scrub is due.
    server.store().admin().scrub_if_due(&|| false).await.unwrap();
    let ready = server.get("/api/v1/health-checks/ready").send().await.expect(200).json();
    assert_eq!((&ready["scrub"]["found"], &ready["scrub"]["deep"]), (&json!(0), &json!(true)));
    assert!(ready["scrub"]["ended_at"].is_string(), "{ready}");
    let metrics = server.get("/metrics").send().await.expect(200).text();
    assert!(metrics.contains("filestore_scrub_findings 0"), "{metrics}");
}

#[tokio::test]
async fn an_organization_is_erased_only_if_the_body_names_it_too() {
    let server = TestServer::start().await;
    let id = server.upload("12345").org("7").ok().await.file_id;
    let kept = server.upload("12345").org("8").ok().await.file_id;
    let erase = |organization: &str, body: Value| {
        let path = format!("/api/v1/admin/organizations/{organization}/erase");
        server.post(&path).json(&body).send()
    };
    assert_eq!(
        erase("7", json!({"confirm": "8"})).await.any_problem(400).field.unwrap(),
        "confirm"
    );
    assert_eq!(erase("7", json!({})).await.any_problem(400).field.unwrap(), "confirm");
    server.info(&id).await.expect(200);

    let receipt = erase("7", json!({"confirm": "7"})).await.expect(200).json();
    assert_eq!((&receipt["complete"], &receipt["files"]), (&json!(true), &json!(1)), "{receipt}");
    server.info(&id).await.expect(404);
    server.content(&kept).send().await.expect(200);
}
