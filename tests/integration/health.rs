//! Health checks (reference §4.1).

use filestore_workspace::TestServer;

#[tokio::test]
async fn the_liveness_check_answers_200_with_a_message_and_nothing_else() {
    let server = TestServer::start().await;
    let reply = server.get("/api/v1/health-checks").send().await.expect(200);
    assert!(reply.only("content-type").starts_with("application/json"));
    let body = reply.json();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["message"]);
    assert!(!body["message"].as_str().unwrap().is_empty());
    server.head("/api/v1/health-checks").send().await.expect(200);
}

#[tokio::test]
async fn the_readiness_check_says_how_database_and_storage_are() {
    let server = TestServer::start().await;
    let body = server.get("/api/v1/health-checks/ready").send().await.expect(200).json();
    assert_eq!((&body["database"], &body["storage"]), (&"ok".into(), &"ok".into()));
}
