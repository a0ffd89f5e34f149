//! Listings and `info` (reference §4.11).

use filestore_workspace::{TestServer, fixtures};
use serde_json::Value;

async fn page(server: &TestServer, query: &str) -> Value {
    server.get(&format!("/api/v1/files?{query}")).send().await.expect(200).json()
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("items");
    items.iter().map(|item| item["file_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_empty_listing_has_no_items_and_no_cursor() {
    let server = TestServer::start().await;
    assert_eq!(
        page(&server, "organization_id=acme").await,
        serde_json::json!({"items": [], "next_cursor": null})
    );
}

#[tokio::test]
async fn files_are_listed_newest_first_page_by_page_each_once() {
    let server = TestServer::start().await;
    let mut uploaded = Vec::new();
    for number in 0..7 {
        uploaded.push(server.upload(format!("{number}")).ok().await);
    }
    let mut listed = Vec::new();
    let mut query = "organization_id=acme&limit=3".to_owned();

    let mut sizes = Vec::new();
    loop {
        let page = page(&server, &query).await;
        sizes.push(ids(&page).len());
        listed.extend(ids(&page));
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("organization_id=acme&limit=3&cursor={cursor}"),
            None => break,
        }
    }

    assert_eq!(sizes, [3, 3, 1]);

    let mut expected: Vec<String> = uploaded.iter().map(|record| record.file_id.clone()).collect();
    expected.sort_unstable();
    expected.reverse();
    assert_eq!(listed, expected, "ids begin with their time");
}

#[tokio::test]
async fn a_file_that_comes_in_between_shifts_no_page() {
    let server = TestServer::start().await;
    for number in 0..4 {
        server.upload(format!("{number}")).ok().await;
    }
    let first = page(&server, "organization_id=acme&limit=2").await;

    server.upload("newer").ok().await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = page(&server, &format!("organization_id=acme&limit=2&cursor={cursor}")).await;

    let mut all = [ids(&first), ids(&second)].concat();
    all.dedup();
    assert_eq!(all.len(), 4);
    assert_eq!(second["next_cursor"], Value::Null);
}

#[tokio::test]
async fn the_default_page_has_100_files_and_the_largest_1000() {
    let server = TestServer::start_with(|config| config.store.limits.max_batch_items = 200).await;
    let mut batch = server.batch();
    for number in 0..101 {
        batch = batch.item(format!("{number}"));
    }
    batch.ok().await;
    assert_eq!(ids(&page(&server, "organization_id=acme").await).len(), 100);
    assert_eq!(ids(&page(&server, "organization_id=acme&limit=1000").await).len(), 101);
    assert_eq!(ids(&page(&server, "organization_id=acme&limit=1").await).len(), 1);
}

#[tokio::test]
async fn filters_narrow_the_listing() {
    let server = TestServer::start().await;
    let acme = server.upload("a").org("acme").sub_system("one").ok().await.file_id;
    let temp = server.upload("b").org("acme").sub_system("two").temp().ok().await.file_id;
    let other = server.upload("c").org("other").sub_system("one").ok().await.file_id;
    assert_eq!(ids(&page(&server, "organization_id=other").await), std::slice::from_ref(&other));
    assert_eq!(
        ids(&page(&server, "organization_id=acme&sub_system=one").await),
        std::slice::from_ref(&acme)
    );
    assert_eq!(
        ids(&page(&server, "organization_id=acme&status=TEMP").await),
        std::slice::from_ref(&temp)
    );
    assert_eq!(ids(&page(&server, "organization_id=acme&status=THUMBNAIL").await), [""; 0]);

    let mut one = ids(&page(&server, "sub_system=one").await);
    one.sort_unstable();

    let mut expected = [acme, other];
    expected.sort_unstable();
    assert_eq!(one, expected);
    assert_eq!(ids(&page(&server, "").await).len(), 3);
}

#[tokio::test]
async fn a_known_parameter_with_a_bad_value_is_400_and_an_unknown_one_is_ignored() {
    let server = TestServer::start().await;
    for (field, bad) in [
        ("limit", "0"),
        ("limit", "1001"),
        ("limit", "-1"),
        ("limit", "ten"),
        ("limit", ""),
        ("status", "ready"),
        ("status", "GONE"),
        ("purge_status", "none"),
        ("organization_id", "a%20b"),
        ("organization_id", "007"),
        ("sub_system", "..%2F.."),
        ("cursor", "nonsense"),
    ] {
        let reply = server.get(&format!("/api/v1/files?{field}={bad}")).send().await;
        assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some(field), "{bad}");
    }

    page(&server, "organization_id=acme&colour=red").await;
}

#[tokio::test]
async fn a_foreign_cursor_is_400() {
    let server = TestServer::start().await;
    for number in 0..3 {
        server.upload(format!("{number}")).ok().await;
    }
    let first = page(&server, "organization_id=acme&limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let reply = server
        .get(&format!("/api/v1/files?organization_id=other&limit=1&cursor={cursor}"))
        .send()
        .await;
    assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some("cursor"));

    page(&server, &format!("organization_id=acme&limit=2&cursor={cursor}")).await;
}

#[tokio::test]
async fn info_is_the_record_with_the_content_s_etag() {
    let server = TestServer::start().await;
    let uploaded = server.upload(fixtures::png(4, 4)).send().await.expect(201);
    let info = server.info(&uploaded.file_id()).await.expect(200);
    assert_eq!(info.json(), uploaded.json());
    assert_eq!(info.only("etag"), uploaded.only("etag"));
    assert!(info.only("content-type").starts_with("application/json"));
}
