//! Webhooks over the API (reference §4.18): administration, deliveries and refusals.

use filestore_client::api::{
    CreateWebhook, EditWebhook, EnableWebhook, RedeliverWebhook, RotateWebhook,
    WebhookFailuresQuery,
};
use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::TestServer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Starts an endpoint that accepts everything. Returns its URL, and the requests that it gets.
async fn endpoint() -> (String, mpsc::UnboundedReceiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(accept(stream, sender.clone()));
        }
    });
    (url, receiver)
}

async fn accept(mut stream: TcpStream, sender: mpsc::UnboundedSender<(String, Value)>) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            let _ = sender.send((head.to_lowercase(), body));
            let reply = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(reply).await;
            return;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

async fn server() -> TestServer {
    TestServer::start_with(|config| {
        config.store.webhooks.allow_http = true;
        config.store.webhooks.allow = vec!["127.0.0.0/8".to_owned()];
    })
    .await
}

#[tokio::test]
async fn an_upload_is_told_to_the_endpoint_and_can_be_sent_again() {
    let server = server().await;
    let (url, mut requests) = endpoint().await;
    let client = server.client();
    let webhooks = client.webhooks();
    let new = CreateWebhook::new(&url).types(["file.uploaded"]).name("search");
    let made = webhooks.create(&new).await.unwrap();
    assert!(made.secret.starts_with("whsec_"));
    assert_eq!((made.about.state.as_str(), made.about.types.len()), ("ok", 1));

    let ping = webhooks.ping(&made.about.id).await.unwrap();
    assert_eq!((ping.delivered, ping.status, ping.error), (true, Some(204), None));
    let (_, body) = requests.recv().await.unwrap();
    assert_eq!(body["type"], "webhook.ping");

    let record = server.upload("bytes").ok().await;
    let (head, first) = requests.recv().await.unwrap();
    assert_eq!(
        (&first["type"], &first["data"]["file_id"]),
        (&json!("file.uploaded"), &json!(record.file_id))
    );
    let id = first["id"].as_str().unwrap();
    assert!(head.contains(&format!("webhook-id: {}", id.to_lowercase())), "{head}");
    assert!(head.contains("webhook-signature: v1,") && head.contains("webhook-timestamp: "));

    let again = webhooks.redeliver(&made.about.id, &RedeliverWebhook::event(id)).await.unwrap();
    assert_eq!(again.queued, 1);
    assert_eq!(requests.recv().await.unwrap().1, first);
    let events = server.get("/api/v1/events?types=file.uploaded").send().await.expect(200).json();
    assert_eq!(events["events"][0], first, "the body is the object of a page");
}

#[tokio::test]
async fn a_webhook_is_listed_changed_rotated_disabled_and_deleted() {
    let server = server().await;
    let (url, _requests) = endpoint().await;
    let client = server.client();
    let webhooks = client.webhooks();
    let made = webhooks.create(&CreateWebhook::new(&url)).await.unwrap();
    let id = &made.about.id;
    assert_eq!(webhooks.list().await.unwrap(), std::slice::from_ref(&made.about));

    let mut edit = EditWebhook::default();
    edit.name = Some("shop".to_owned());
    assert_eq!(webhooks.edit(id, &edit).await.unwrap().name, "shop");
    let rotated = webhooks.rotate(id, &RotateWebhook::default()).await.unwrap();
    assert!(rotated.secret != made.secret && rotated.about.former_secret_until.is_some());

    let disabled = webhooks.disable(id).await.unwrap();
    assert_eq!(disabled.disabled_reason.as_deref(), Some("requested"));
    assert_eq!(webhooks.enable(id, &EnableWebhook::default()).await.unwrap().state, "ok");
    let told = server.get("/api/v1/events?types=webhook.disabled,webhook.enabled").send().await;
    let told = told.expect(200).json();
    assert_eq!(told["events"][0]["data"], json!({"webhook_id": id, "reason": "requested"}));
    assert_eq!(told["events"][1]["type"], "webhook.enabled");

    let failures = webhooks.failures(id, &WebhookFailuresQuery::default()).await.unwrap();
    assert!(failures.failures.is_empty() && failures.next.is_none());
    let shown = webhooks.get(id).await.unwrap();
    assert_eq!(shown.name, "shop");
    assert_eq!(webhooks.delete(id).await.unwrap().id, *id);
    assert_eq!(webhooks.get(id).await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn urls_that_reach_this_machine_are_refused_unless_the_configuration_allows_them() {
    let server = TestServer::start().await;
    for (url, code) in [
        ("http://example.org/", "url_refused"),
        ("https://127.0.0.1/", "url_refused"),
        ("https://2130706433/", "url_refused"),
        ("https://[::ffff:169.254.169.254]/", "url_refused"),
        ("ftp://example.org/", "invalid_field"),
        ("https://user@example.org/", "invalid_field"),
    ] {
        let reply = server.post("/api/v1/webhooks").json(&json!({ "url": url })).send().await;
        let status = if code == "url_refused" { 422 } else { 400 };
        let problem = reply.expect(status).json();
        assert_eq!((&problem["code"], &problem["field"]), (&json!(code), &json!("url")));
    }
}

#[tokio::test]
async fn only_an_administrator_of_the_service_has_webhooks() {
    let server = server().await;
    let only = Scope::Organizations(vec!["acme".parse().unwrap()]);
    let new = NewKey::new("tenant", only, [KeyScope::Admin]);
    let (_, secret) = server.store().keys().create(new).await.unwrap();
    let bearer = format!("Bearer {}", secret.expose());
    for path in ["/api/v1/webhooks", "/api/v1/webhooks/01M80BT3GVR6Z0Q2X4F7C9J1KD"] {
        server.get(path).header("authorization", &bearer).send().await.expect(403);
    }
    server.get("/api/v1/webhooks").send().await.expect(401);
}
