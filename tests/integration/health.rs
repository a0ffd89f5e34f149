//! Health checks (reference §4.1).

use filestore_workspace::TestServer;

#[tokio::test]
async fn the_liveness_check_says_that_the_service_is_running_and_nothing_else() {
    let server = TestServer::start().await;
    let reply = server.get("/api/v1/health-checks").send().await.expect(200);
    assert!(reply.only("content-type").starts_with("application/json"));
    assert_eq!(reply.text(), r#"{"message":"filestore is running"}"#);
    assert_eq!(server.client().health().await.unwrap().message, "filestore is running");
    server.head("/api/v1/health-checks").send().await.expect(200);
}

#[tokio::test]
async fn the_readiness_check_says_how_database_and_storage_are() {
    let server = TestServer::start().await;
    let body = server.get("/api/v1/health-checks/ready").send().await.expect(200).json();
    assert_eq!((&body["database"], &body["storage"]), (&"ok".into(), &"ok".into()));
}
