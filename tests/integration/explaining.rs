//! Explanations of files over HTTP and through the typed client.

use filestore_client::api::{CreateBinding, ExplainedStep, Explanation};
use filestore_client::{ErrorKind, OrganizationNumber};
use filestore_core::config::ProviderConfig;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::{OrganizationId, Scope};
use filestore_workspace::{Reply, TestServer, eventually};
use serde_json::{Value, json};

const ORGANIZATION: OrganizationNumber = OrganizationNumber::unchecked(42);

/// Creates a key for one organization, or for all. Returns its text.
async fn key(server: &TestServer, organization: Option<&str>, scope: KeyScope) -> String {
    let organizations = match organization {
        Some(one) => Scope::Organizations(vec![one.parse::<OrganizationId>().unwrap()]),
        None => Scope::All,
    };
    let new = NewKey::new("a key", organizations, [scope]);
    server.store().keys().create(new).await.unwrap().1.expose().to_owned()
}

async fn ask(server: &TestServer, id: &str, secret: &str) -> Reply {
    let call = server.get(&format!("/api/v1/files/{id}/explain"));
    call.header("authorization", &format!("Bearer {secret}")).send().await
}

async fn explained(server: &TestServer, id: &str) -> Explanation {
    server.client().explain(id).await.unwrap()
}

/// Waits until the first step of the file has this code.
async fn step(server: &TestServer, id: &str, code: &str) -> ExplainedStep {
    eventually(code, async || {
        let first = explained(server, id).await.next.swap_remove(0);
        Some(first).filter(|step| step.code == code)
    })
    .await
}

fn codes<'f>(
    facts: impl IntoIterator<Item = &'f filestore_client::api::ExplainedFact>,
) -> Vec<String> {
    facts.into_iter().map(|fact| fact.code.clone()).collect()
}

#[tokio::test]
async fn a_local_file_stays_where_it_is_and_replaced_content_goes_after_its_grace_period() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("one").ok().await.file_id;
    step(&server, &id, "nothing").await;
    let files = server.store().scoped(&Scope::All);
    files.replace(id.parse().unwrap(), &b"two"[..]).await.unwrap();

    step(&server, &id, "nothing").await;
    let explained = explained(&server, &id).await;
    assert_eq!(codes(&explained.place), ["data_directory", "replaced"]);
    assert_eq!(codes(&explained.why), ["no_binding"]);
    assert_eq!(explained.record.as_ref().unwrap().version, 2);
    let removal = &explained.next[1];
    assert_eq!(removal.code, "remove_replaced");
    assert!(removal.not_before > Some(explained.explained_at.clone()), "{removal:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_deleted_file_says_when_its_bytes_go_and_a_purged_one_that_they_are_gone() {
    let server = TestServer::start().await;
    let id = server.upload("bytes").ok().await.file_id;
    server.delete(&id).await.expect(200);

    let purged = step(&server, &id, "forget_receipt").await;
    let explained = explained(&server, &id).await;
    assert!(explained.record.is_none() && explained.purged_at < purged.not_before);
    assert_eq!(codes(&explained.place), ["removed"]);
    assert_eq!(codes(&explained.why), ["deleted", "purged"]);
    server.stop().await;

    let server = TestServer::start_without_purge().await;
    let id = server.upload("bytes").ok().await.file_id;
    server.delete(&id).await.expect(200);
    let step = step(&server, &id, "purge").await;
    let due = server.record(&id).await.purge_due_at;
    assert_eq!((step.not_before, step.undo.as_deref()), (due, Some("restore")));
    server.stop().await;
}

/// The types of a file's events, as its history tells them.
async fn told(server: &TestServer, id: &str) -> Vec<String> {
    let history = explained(server, id).await.history;
    history.events.into_iter().map(|event| event.kind.to_string()).collect()
}

#[tokio::test]
async fn the_history_tells_the_events_of_the_file_and_of_no_other() {
    let server = TestServer::start_without_purge().await;
    let id = server.upload("one").ok().await.file_id;
    let other = server.upload("other").ok().await.file_id;
    let files = server.store().scoped(&Scope::All);
    files.replace(id.parse().unwrap(), &b"two"[..]).await.unwrap();
    server.delete(&id).await.expect(200);

    assert_eq!(told(&server, &id).await, ["file.uploaded", "file.replaced", "file.deleted"]);
    assert_eq!(told(&server, &other).await, ["file.uploaded"]);
    let history = explained(&server, &id).await.history;
    assert!(history.enabled && history.whole && history.looked_at == 4, "{history:?}");
    assert_eq!(history.events[1].data.version, Some(2));
    server.stop().await;
}

#[tokio::test]
async fn a_history_says_that_events_are_off_and_later_that_some_are_missing() {
    let server = TestServer::start().await;
    let id = server.upload("one").ok().await.file_id;
    let server = server.restart_with(|config| config.store.events.enabled = false).await;
    let history = explained(&server, &id).await.history;
    assert!(!history.enabled && history.events.is_empty(), "{history:?}");

    server.store().scoped(&Scope::All).delete(id.parse().unwrap()).await.unwrap();
    let server = server.restart_with(|config| config.store.events.enabled = true).await;
    assert_eq!(told(&server, &id).await[..2], ["file.uploaded", "log.gap"]);
    assert!(!explained(&server, &id).await.history.whole);
    server.stop().await;
}

#[tokio::test]
async fn a_temporary_file_says_when_it_expires() {
    let server = TestServer::start().await;
    let record = server.upload("bytes").temp().ok().await;
    let step = step(&server, &record.file_id, "expire").await;
    assert_eq!((step.not_before, step.undo.as_deref()), (record.expires_at, Some("ready")));
    server.stop().await;
}

#[tokio::test]
async fn a_foreign_file_looks_like_an_unknown_one_also_once_it_is_purged() {
    let server = TestServer::start().await;
    let id = server.upload("bytes").ok().await.file_id;
    let own = key(&server, Some("acme"), KeyScope::Read).await;
    let other = key(&server, Some("other"), KeyScope::Read).await;
    let writer = key(&server, Some("acme"), KeyScope::Write).await;
    ask(&server, &id, &own).await.expect(200);
    ask(&server, &id, &writer).await.problem(403, "forbidden");

    let unknown =
        ask(&server, "01ARZ3NDEKTSV4RRFFQ69G5FAV", &other).await.problem(404, "not_found");
    let foreign = ask(&server, &id, &other).await.problem(404, "not_found");
    assert_eq!((&foreign.title, &foreign.detail), (&unknown.title, &unknown.detail));

    server.store().scoped(&Scope::All).delete(id.parse().unwrap()).await.unwrap();
    eventually("the purge", async || {
        let reply = ask(&server, &id, &own).await.expect(200).json();
        (reply["record"] == Value::Null).then_some(())
    })
    .await;
    let foreign = ask(&server, &id, &other).await.problem(404, "not_found");
    assert_eq!((foreign.title, foreign.detail), (unknown.title, unknown.detail));
    server.stop().await;
}

#[tokio::test]
async fn a_copy_that_waits_for_its_provider_says_so_and_only_an_operator_sees_the_error() {
    let server = TestServer::start_with(|config| {
        let nowhere = ProviderConfig::new("away".parse().unwrap(), "s3")
            .with_option("bucket", "files")
            .with_option("region", "nowhere")
            .with_option("endpoint", "http://127.0.0.1:1")
            .with_option("access_key_id", "id")
            .with_option("secret_access_key", "secret");
        config.store.providers.push(nowhere);
    })
    .await;
    let mut binding = CreateBinding::new(ORGANIZATION, "Acme", "away");
    binding.sync_enabled = true;
    server.client().bindings().create(&binding).await.unwrap();
    let id = server.upload("bytes").org("42").ok().await.file_id;

    let reader = key(&server, Some("42"), KeyScope::Read).await;
    let operator = key(&server, None, KeyScope::Admin).await;
    let waiting = async |secret: &str| {
        eventually("the outage", async || {
            let reply = ask(&server, &id, secret).await.expect(200).json();
            let waits = reply["next"][0]["waits_for"][0].clone();
            (waits["code"] == "provider_down").then_some((reply, waits))
        })
        .await
    };
    let (reply, waits) = waiting(&operator).await;
    assert!(waits["error"].is_string(), "{waits}");
    assert_eq!(reply["next"][0]["code"], "copy");
    assert_eq!(reply["next"][0]["max_attempts"], 12);
    assert_eq!(reply["where"][0]["code"], "data_directory");
    assert_eq!(reply["why"][0]["code"], "bound_with_sync");

    let (_, waits) = waiting(&reader).await;
    assert_eq!(waits["error"], Value::Null, "{waits}");
    assert_eq!(waits["provider"], json!("away"));
    server.stop().await;
}

#[tokio::test]
async fn an_id_that_is_none_is_refused() {
    let server = TestServer::start().await;
    let error = server.client().explain("12").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    server.get("/api/v1/files/12/explain").send().await.problem(400, "invalid_field");
    server.stop().await;
}
