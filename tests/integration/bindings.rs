//! Providers and bindings (reference §2.2, §2.3 and §4.8 to §4.10).

use filestore_workspace::{Reply, TestServer};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

const CREATE: &str = "/api/v1/organization-storage-bindings/create";
const UPDATE: &str = "/api/v1/organization-storage-bindings/update";

fn local_binding(organization: i64) -> Value {
    json!({
        "organizationId": organization,
        "organizationName": "Acme",
        "storageProvider": "LOCAL",
        "syncEnabled": true,
    })
}

async fn create(server: &TestServer, body: &Value) -> Reply {
    server.post(CREATE).json(body).send().await
}

async fn update(server: &TestServer, body: Value) -> Reply {
    server.put(UPDATE).json(&body).send().await
}

async fn list(server: &TestServer, organization: i64) -> Value {
    let path = format!("/api/v1/organization-storage-bindings?organizationId={organization}");
    server.get(&path).send().await.expect(200).json()
}

#[tokio::test]
async fn the_built_in_provider_is_listed_with_code_and_name_alone() {
    let server = TestServer::start().await;
    let providers = server.get("/api/v1/storage-providers").send().await.expect(200).json();
    let providers = providers.as_array().unwrap();
    assert_eq!(providers.len(), 1);
    let keys: Vec<&String> = providers[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["providerCode", "providerName"]);
    assert_eq!(providers[0]["providerCode"], "LOCAL");
    assert!(!providers[0]["providerName"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn creating_a_binding_answers_201_with_the_whole_binding() {
    let server = TestServer::start().await;
    let reply = create(&server, &local_binding(7)).await.expect(201);
    assert_json_snapshot!(reply.json(), { ".id" => "[id]", ".effectiveFrom" => "[instant]" }, @r#"
    {
      "effectiveFrom": "[instant]",
      "effectiveTo": null,
      "id": "[id]",
      "isActive": true,
      "organizationId": 7,
      "organizationName": "Acme",
      "storageProvider": "LOCAL",
      "syncEnabled": true
    }
    "#);
    assert!(reply.json()["id"].is_i64());
}

#[tokio::test]
async fn all_four_fields_of_a_new_binding_are_required() {
    let server = TestServer::start().await;
    for field in ["organizationId", "organizationName", "storageProvider", "syncEnabled"] {
        let mut body = local_binding(7);
        body.as_object_mut().unwrap().remove(field);
        let problem = create(&server, &body).await.problem(400, "missing_field");
        assert_eq!(problem.field.as_deref(), Some(field));
    }
    assert_eq!(list(&server, 7).await, json!([]));
}

#[tokio::test]
async fn a_second_active_binding_of_an_organization_is_409() {
    let server = TestServer::start().await;
    create(&server, &local_binding(7)).await.expect(201);
    create(&server, &local_binding(7)).await.problem(409, "binding_already_active");
    create(&server, &local_binding(8)).await.expect(201);
    assert_eq!(list(&server, 7).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn of_many_concurrent_creations_exactly_one_wins() {
    let server = TestServer::start().await;
    let body = local_binding(7);
    let replies = futures_util::future::join_all((0..8).map(|_| create(&server, &body))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(list(&server, 7).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_unknown_provider_is_422_and_the_valid_codes_are_listed() {
    let server = TestServer::start().await;
    let mut body = local_binding(7);
    for unknown in ["NOWHERE", "local", "", "a b"] {
        body["storageProvider"] = json!(unknown);
        let problem = create(&server, &body).await.problem(422, "unknown_provider");
        assert_eq!(problem.allowed, ["LOCAL"], "{unknown:?}");
    }

    create(&server, &local_binding(7)).await.expect(201);
    for unknown in ["NOWHERE", "a b"] {
        let changed =
            update(&server, json!({"organizationId": 7, "storageProvider": unknown})).await;
        assert_eq!(changed.problem(422, "unknown_provider").allowed, ["LOCAL"], "{unknown:?}");
    }
}

#[tokio::test]
async fn a_value_of_the_wrong_type_or_range_is_400_and_named() {
    let server = TestServer::start().await;
    for (field, values) in [
        (
            "organizationId",
            vec![json!("7"), json!(0), json!(-1), json!(1.5), json!(null), json!(1_i64 << 53)],
        ),
        (
            "organizationName",
            vec![json!(7), json!(""), json!("x".repeat(256)), json!("a\0"), json!(null)],
        ),
        ("storageProvider", vec![json!(7), json!(null), json!(["LOCAL"])]),
        ("syncEnabled", vec![json!("true"), json!(1), json!(null)]),
    ] {
        for value in values {
            let mut body = local_binding(7);
            body[field] = value.clone();
            let problem = create(&server, &body).await.any_problem(400);
            assert_eq!(problem.field.as_deref(), Some(field), "{value}");
        }
    }

    create(&server, &local_binding((1 << 53) - 1)).await.expect(201);
    let mut longest = local_binding(1);
    longest["organizationName"] = json!("é".repeat(255));
    create(&server, &longest).await.expect(201);
}

#[tokio::test]
async fn an_unknown_or_repeated_key_is_400_and_named() {
    let server = TestServer::start().await;
    let mut body = local_binding(7);
    body["syncEnable"] = json!(true);
    let problem = create(&server, &body).await.problem(400, "unknown_field");
    assert_eq!(problem.field.as_deref(), Some("syncEnable"));

    let text = r#"{"organizationId":7,"organizationName":"a","storageProvider":"LOCAL","syncEnabled":true,"syncEnabled":false}"#;
    let problem = server
        .post(CREATE)
        .body("application/json", text)
        .send()
        .await
        .problem(400, "repeated_field");
    assert_eq!(problem.field.as_deref(), Some("syncEnabled"));

    create(&server, &local_binding(7)).await.expect(201);
    let problem = update(&server, json!({"organizationId": 7, "active": false})).await;
    assert_eq!(problem.problem(400, "unknown_field").field.as_deref(), Some("active"));
}

#[tokio::test]
async fn a_binding_can_be_sent_back_as_it_was_read() {
    let server = TestServer::start().await;
    let mut read = create(&server, &local_binding(7)).await.expect(201).json();
    update(&server, read.clone()).await.expect(200);
    assert_eq!(list(&server, 7).await, json!([read]), "nothing has changed");
    read["organizationId"] = json!(8);
    let copy = create(&server, &read).await.expect(201).json();
    assert_ne!(copy["id"], read["id"], "the read-only fields are ignored");
}

#[tokio::test]
async fn an_update_answers_five_fields_and_leaves_what_is_absent() {
    let server = TestServer::start().await;
    create(&server, &local_binding(7)).await.expect(201);
    let reply =
        update(&server, json!({"organizationId": 7, "syncEnabled": false})).await.expect(200);
    assert_json_snapshot!(reply.json(), { ".id" => "[id]" }, @r#"
    {
      "id": "[id]",
      "isActive": true,
      "organizationId": 7,
      "storageProvider": "LOCAL",
      "syncEnabled": false
    }
    "#);

    update(&server, json!({"organizationId": 7, "organizationName": "New"})).await.expect(200);
    let binding = list(&server, 7).await[0].clone();
    assert_eq!(
        (&binding["organizationName"], &binding["syncEnabled"]),
        (&json!("New"), &json!(false))
    );
}

#[tokio::test]
async fn an_update_needs_the_organization() {
    let server = TestServer::start().await;
    let problem =
        update(&server, json!({"syncEnabled": false})).await.problem(400, "missing_field");
    assert_eq!(problem.field.as_deref(), Some("organizationId"));
}

#[tokio::test]
async fn terminating_sets_effective_to_and_resuming_keeps_id_and_effective_from() {
    let server = TestServer::start().await;
    let created = create(&server, &local_binding(7)).await.expect(201).json();
    let ended =
        update(&server, json!({"organizationId": 7, "isActive": false})).await.expect(200).json();
    assert_eq!((&ended["id"], &ended["isActive"]), (&created["id"], &json!(false)));

    let terminated = list(&server, 7).await[0].clone();
    let to = terminated["effectiveTo"].as_str().expect("an end");
    assert!(to >= created["effectiveFrom"].as_str().unwrap(), "{to}");

    let resume = json!({"organizationId": 7, "isActive": true, "syncEnabled": false});
    let resumed = update(&server, resume).await.expect(200).json();
    assert_eq!((&resumed["id"], &resumed["isActive"]), (&created["id"], &json!(true)));

    let binding = list(&server, 7).await[0].clone();
    assert_eq!(binding["effectiveFrom"], created["effectiveFrom"]);
    assert_eq!(binding["effectiveTo"], json!(null));
    assert_eq!(binding["syncEnabled"], json!(false));
}

#[tokio::test]
async fn without_an_active_binding_an_update_is_404_unless_it_resumes() {
    let server = TestServer::start().await;
    update(&server, json!({"organizationId": 7, "isActive": true}))
        .await
        .problem(404, "no_active_binding");
    create(&server, &local_binding(7)).await.expect(201);
    update(&server, json!({"organizationId": 7, "isActive": false})).await.expect(200);
    update(&server, json!({"organizationId": 7, "isActive": false}))
        .await
        .problem(404, "no_active_binding");
    update(&server, json!({"organizationId": 7, "syncEnabled": true}))
        .await
        .problem(404, "no_active_binding");

    update(&server, json!({"organizationId": 7, "isActive": true})).await.expect(200);
}

#[tokio::test]
async fn the_newest_terminated_binding_is_the_one_resumed() {
    let server = TestServer::start().await;
    let first = create(&server, &local_binding(7)).await.expect(201).json();
    update(&server, json!({"organizationId": 7, "isActive": false})).await.expect(200);
    let second = create(&server, &local_binding(7)).await.expect(201).json();
    update(&server, json!({"organizationId": 7, "isActive": false})).await.expect(200);
    assert_ne!(first["id"], second["id"]);
    let resumed =
        update(&server, json!({"organizationId": 7, "isActive": true})).await.expect(200).json();
    assert_eq!(resumed["id"], second["id"]);
}

#[tokio::test]
async fn bindings_are_listed_newest_first() {
    let server = TestServer::start().await;
    let first = create(&server, &local_binding(7)).await.expect(201).json();
    update(&server, json!({"organizationId": 7, "isActive": false})).await.expect(200);
    let second = create(&server, &local_binding(7)).await.expect(201).json();

    create(&server, &local_binding(8)).await.expect(201);
    let ids: Vec<Value> =
        list(&server, 7).await.as_array().unwrap().iter().map(|b| b["id"].clone()).collect();
    assert_eq!(ids, [second["id"].clone(), first["id"].clone()]);

    for bad in ["x", "0", "-1", "1.5", "9007199254740992"] {
        let path = format!("/api/v1/organization-storage-bindings?organizationId={bad}");
        let problem = server.get(&path).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("organizationId"));
    }
}

#[tokio::test]
async fn require_binding_refuses_uploads_of_organizations_without_one() {
    let server = TestServer::start_with(|config| config.store.require_binding = true).await;
    server.upload("x").org("7").send().await.problem(409, "binding_required");
    create(&server, &local_binding(7)).await.expect(201);
    server.upload("x").org("7").ok().await;
    server.upload("x").org("8").send().await.problem(409, "binding_required");
    server.upload("x").org("acme").send().await.problem(409, "binding_required");
    server.batch().item("x").send().await.problem(409, "binding_required");
    update(&server, json!({"organizationId": 7, "isActive": false})).await.expect(200);
    server.upload("x").org("7").send().await.problem(409, "binding_required");
}

#[tokio::test]
async fn files_of_an_organization_bound_to_local_stay_local() {
    let server = TestServer::start().await;
    create(&server, &local_binding(7)).await.expect(201);
    let record = server.upload("x").org("7").ok().await;
    assert_eq!((record.storage_location.as_str(), &*record.storage_provider), ("LOCAL", "LOCAL"));
    assert_eq!(record.sync_status, "PENDING");
}

#[tokio::test]
async fn bindings_survive_a_restart() {
    let server = TestServer::start().await;
    let created = create(&server, &local_binding(7)).await.expect(201).json();
    let server = server.restart().await;
    assert_eq!(list(&server, 7).await, json!([created]));
    create(&server, &local_binding(7)).await.problem(409, "binding_already_active");
}
