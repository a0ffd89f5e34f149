//! GET /api/v1/me (reference §4) and GET /.

use std::time::Duration;

use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::TestServer;
use filestore_workspace::wire::Wire;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use tokio::net::UnixStream;

#[tokio::test]
async fn an_open_server_shows_its_limits_and_no_key() {
    let server = TestServer::start_with(|config| {
        config.store.temp_ttl = Duration::from_mins(1);
        config.store.purge_grace = Duration::from_mins(2);
        config.store.limits.max_file_size = 5000;
        config.store.quota_bytes = Some(7000);
    })
    .await;
    let me = server.get("/api/v1/me").send().await.expect(200).json();
    assert_json_snapshot!(me, { ".store.id" => "[id]", ".store.version" => "[version]" }, @r#"
    {
      "features": {
        "animated": false,
        "converted_types": [],
        "resumable": true
      },
      "key": null,
      "limits": {
        "max_batch_items": 100,
        "max_batch_size": 2147483648,
        "max_file_size": 5000,
        "max_ids": 1000,
        "max_resumable_size": 17179869184,
        "purge_grace_secs": 120,
        "quota_bytes": 7000,
        "quota_files": null,
        "temp_ttl_secs": 60
      },
      "mode": "open",
      "store": {
        "id": "[id]",
        "version": "[version]"
      }
    }
    "#);
    assert_eq!(me["store"]["id"], server.store().id().to_string());
    assert_eq!(server.client().me().await.unwrap().limits.max_file_size, 5000);
}

#[tokio::test]
async fn every_key_is_shown_its_scopes_and_organizations_and_no_other_caller_is() {
    let server = TestServer::start().await;
    let seven = Scope::Organizations(vec!["7".parse().unwrap(), "acme".parse().unwrap()]);
    for scope in KeyScope::ALL {
        let mut new = NewKey::new("the shop", seven.clone(), [*scope]);
        new.expires_in = Some(Duration::from_hours(1));
        let (key, secret) = server.store().keys().create(new).await.unwrap();
        let bearer = format!("Bearer {}", secret.expose());
        let shown = server.get("/api/v1/me").header("authorization", &bearer).send().await;
        let me = shown.expect(200).json();
        let expected = json!({
            "id": key.id.to_string(), "name": "the shop", "organizations": ["7", "acme"],
            "scopes": [scope.as_str()], "expires_at": key.expires_at.unwrap().to_string(),
        });
        assert_eq!((&me["mode"], &me["key"]), (&json!("keys"), &expected));

        server.store().keys().revoke(key.id).await.unwrap();
        let revoked = server.get("/api/v1/me").header("authorization", &bearer).send().await;
        revoked.problem(401, "unauthorized");
    }
    server.get("/api/v1/me").send().await.problem(401, "unauthorized");

    let all = NewKey::new("all", Scope::All, [KeyScope::Read]);
    let (_, secret) = server.store().keys().create(all).await.unwrap();
    let bearer = format!("Bearer {}", secret.expose());
    let me = server.get("/api/v1/me").header("authorization", &bearer).send().await.json();
    assert_eq!(
        (&me["key"]["organizations"], &me["key"]["expires_at"]),
        (&json!(["*"]), &Value::Null)
    );

    let socket = UnixStream::connect(server.data_dir().join("admin.sock")).await.unwrap();
    let mut wire = Wire::over(socket);
    wire.send("GET /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let reply = wire.reply().await;
    assert_eq!(reply.status, 200, "the socket needs no key");
}

#[tokio::test]
async fn a_browser_is_led_to_the_page_and_a_program_gets_one_line() {
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (public_url, prefix) in
        [(None, ""), (Some("https://files.example.org/storage"), "/storage")]
    {
        let server = TestServer::start_with(|config| {
            config.public_url = public_url.map(str::to_owned);
            config.insecure_no_auth = true;
        })
        .await;
        let mut paths = vec!["/".to_owned(), format!("{prefix}/")];
        paths.extend(["/api/v1", "/api/v1/"].map(|path| format!("{prefix}{path}")));
        paths.extend(public_url.map(|_| prefix.to_owned()));
        for path in paths {
            let led = server.get(&path).header("accept", browser).send().await.expect(302);
            let page = match (path.contains("/api/v1"), prefix) {
                (true, _) => format!("{prefix}/api/v1/docs"),
                (false, "") => "console/".to_owned(),
                (false, _) => format!("{prefix}/console/"),
            };
            assert_eq!(led.only("location"), page, "{path}");
            assert_eq!(led.only("vary"), "Accept");

            let told = server.get(&path).header("accept", "*/*").send().await.expect(200);
            let base = public_url.unwrap_or_default();
            assert_eq!(
                told.json(),
                json!({
                    "service": "filestore", "api": format!("{base}/api/v1"),
                    "docs": format!("{base}/api/v1/docs"),
                    "openapi": format!("{base}/api/v1/openapi.json"),
                    "console": format!("{base}/console/"),
                })
            );
            assert_eq!(told.text().trim_end().lines().count(), 1);
            assert!(told.only("content-type").starts_with("application/json"));
        }
        for path in ["/", "/api/v1"] {
            server.head(path).send().await.expect(200);
            assert_eq!(
                server.post(path).send().await.problem(405, "method_not_allowed").allowed,
                ["GET", "HEAD"]
            );
        }
        server.get("/api").send().await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_closed_server_leads_to_its_page_without_a_key() {
    let server = TestServer::start().await;
    let new = NewKey::new("k", Scope::All, [KeyScope::Admin]);
    server.store().keys().create(new).await.unwrap();
    server.get("/").header("accept", "text/html").send().await.expect(302);
    server.get("/").send().await.expect(200);
}
