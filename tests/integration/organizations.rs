//! GET /api/v1/organizations and /api/v1/organizations/{organizationId}/sub-systems (reference §4.11).

use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::{Call, TestServer};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};

const ORGANIZATIONS: &str = "/api/v1/organizations";

async fn get(server: &TestServer, path: &str) -> Value {
    server.get(path).send().await.expect(200).json()
}

fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|one| one["organization_id"].as_str().unwrap()).collect()
}

/// A way to show a key.
type Shown = Box<dyn Fn(Call) -> Call>;

/// Makes a key and returns how to show it.
async fn key_for(server: &TestServer, organizations: Scope, scope: KeyScope) -> Shown {
    let new = NewKey::new("k", organizations, [scope]);
    let (_, secret) = server.store().keys().create(new).await.unwrap();
    Box::new(move |call| call.header("authorization", &format!("Bearer {}", secret.expose())))
}

fn one(organization: &str) -> Scope {
    Scope::Organizations(vec![organization.parse().unwrap()])
}

#[tokio::test]
async fn organizations_are_listed_with_what_they_store_and_their_binding() {
    let server = TestServer::start_with(|config| {
        config.store.quota_files = Some(10);
        config.store.quota_bytes = Some(1000);
    })
    .await;
    server.upload("12345").org("42").ok().await;
    server.upload("1234567890").org("42").temp().ok().await;
    server.upload("x").org("acme").ok().await;
    let binding = json!({
        "organizationId": 7, "organizationName": "Seven", "storageProvider": "LOCAL", "syncEnabled": true,
    });
    let create = "/api/v1/organization-storage-bindings/create";
    server.post(create).json(&binding).send().await.expect(201);

    let item = |id: &str, files: u64, bytes: u64, binding: Value| {
        json!({
            "organization_id": id, "files": files, "bytes": bytes,
            "quota_files": 10, "quota_bytes": 1000, "binding": binding,
        })
    };
    let seven =
        json!({ "organization_name": "Seven", "storage_provider": "LOCAL", "sync_enabled": true });
    let expected = json!({
        "items": [
            item("42", 2, 15, Value::Null),
            item("7", 0, 0, seven),
            item("acme", 1, 1, Value::Null),
        ],
        "next_cursor": null,
    });
    assert_eq!(get(&server, ORGANIZATIONS).await, expected);

    let client = server.client();
    let all: Vec<_> = client.all_organizations().try_collect().await.unwrap();
    let all: Vec<_> = all.iter().map(|one| &*one.organization_id).collect();
    assert_eq!(all, ["42", "7", "acme"]);
}

#[tokio::test]
async fn pages_of_organizations_go_on_by_a_cursor_that_fits_no_other_list() {
    let server = TestServer::start().await;
    for organization in ["a", "b", "c", "d", "e"] {
        server.upload("x").org(organization).ok().await;
    }
    let first = get(&server, &format!("{ORGANIZATIONS}?limit=2")).await;
    assert_eq!(ids(&first), ["a", "b"]);
    let cursor = first["next_cursor"].as_str().unwrap();

    // One that comes before the cursor shifts no page.
    server.upload("x").org("aa").ok().await;
    let second = get(&server, &format!("{ORGANIZATIONS}?limit=2&cursor={cursor}")).await;
    assert_eq!(ids(&second), ["c", "d"]);
    let cursor = second["next_cursor"].as_str().unwrap();
    let last = get(&server, &format!("{ORGANIZATIONS}?limit=2&cursor={cursor}")).await;
    assert_eq!((ids(&last), &last["next_cursor"]), (vec!["e"], &Value::Null));

    let parts = format!("{ORGANIZATIONS}/a/sub-systems");
    for (path, field) in [
        (format!("{ORGANIZATIONS}?limit=0"), "limit"),
        (format!("{ORGANIZATIONS}?limit=1001"), "limit"),
        (format!("{ORGANIZATIONS}?limit=x"), "limit"),
        (format!("{ORGANIZATIONS}?cursor=x"), "cursor"),
        (format!("{parts}?limit=0"), "limit"),
        (format!("{parts}?cursor={cursor}"), "cursor"),
        (format!("/api/v1/files?cursor={cursor}"), "cursor"),
        (format!("{ORGANIZATIONS}/a.b/sub-systems"), "organization_id"),
    ] {
        let problem = server.get(&path).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some(field), "{path}");
    }
}

#[tokio::test]
async fn a_key_sees_its_own_organizations_only() {
    let server = TestServer::start().await;
    for organization in ["7", "8", "9"] {
        server.upload("x").org(organization).ok().await;
    }
    let seven = key_for(&server, one("7"), KeyScope::Read).await;
    let all = key_for(&server, Scope::All, KeyScope::Read).await;
    let some = Scope::Organizations(["9", "8", "empty"].map(|id| id.parse().unwrap()).to_vec());
    let some = key_for(&server, some, KeyScope::Read).await;
    let writer = key_for(&server, Scope::All, KeyScope::Write).await;

    let list = async |shown: &Shown, query: &str| {
        let path = format!("{ORGANIZATIONS}{query}");
        shown(server.get(&path)).send().await.expect(200).json()
    };
    assert_eq!(ids(&list(&seven, "").await), ["7"]);
    assert_eq!(ids(&list(&all, "").await), ["7", "8", "9"]);
    let page = list(&some, "?limit=1").await;
    assert_eq!(ids(&page), ["8"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(ids(&list(&some, &format!("?cursor={cursor}")).await), ["9"]);

    let others = format!("{ORGANIZATIONS}?cursor={cursor}");
    all(server.get(&others)).send().await.problem(400, "invalid_field");
    writer(server.get(ORGANIZATIONS)).send().await.problem(403, "forbidden");
    let foreign = format!("{ORGANIZATIONS}/8/sub-systems");
    seven(server.get(&foreign)).send().await.problem(403, "forbidden");
    server.get(ORGANIZATIONS).send().await.problem(401, "unauthorized");
}

#[tokio::test]
async fn sub_systems_are_listed_with_what_is_temporary_and_deleted() {
    let server = TestServer::start_without_purge().await;
    server.upload("12345").org("42").sub_system("b").ok().await;
    server.upload("123").org("42").sub_system("b").temp().ok().await;
    let deleted = server.upload("x").org("42").sub_system("b").ok().await.file_id;
    server.delete(&deleted).await.expect(200);
    server.upload("12").org("42").sub_system("a").ok().await;

    let counts = |files: u64, bytes: u64| json!({ "files": files, "bytes": bytes });
    let expected = json!({
        "items": [
            { "sub_system": "a", "files": 1, "bytes": 2, "temp": counts(0, 0), "deleted": counts(0, 0) },
            { "sub_system": "b", "files": 3, "bytes": 9, "temp": counts(1, 3), "deleted": counts(1, 1) },
        ],
        "next_cursor": null,
    });
    let path = format!("{ORGANIZATIONS}/42/sub-systems");
    assert_eq!(get(&server, &path).await, expected);

    let first = get(&server, &format!("{path}?limit=1")).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = get(&server, &format!("{path}?limit=1&cursor={cursor}")).await;
    assert_eq!(
        (&second["items"][0]["sub_system"], &second["next_cursor"]),
        (&json!("b"), &Value::Null)
    );
    assert_eq!(
        get(&server, &format!("{ORGANIZATIONS}/none/sub-systems")).await["items"],
        json!([])
    );

    let client = server.client();
    let parts = client.sub_systems("42", &filestore_client::PageQuery::new()).await.unwrap();
    assert_eq!(parts.items.len(), 2);
    let status = get(&server, "/api/v1/admin/status").await;
    assert_eq!((&status["files"], &status["bytes"]), (&json!(4), &json!(11)));
}
