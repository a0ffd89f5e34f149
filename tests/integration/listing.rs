//! Listings and `info` (reference §4.11).

use filestore_core::Scope;
use filestore_core::api::ListQuery;
use filestore_core::keys::{KeyScope, NewKey};
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
        ("created_after", "yesterday"),
        ("created_before", "2026-02-30"),
        ("created_before", "1795248930"),
        ("mime_type", "png"),
        ("mime_type", "text/plain;charset=utf-8"),
        ("name_prefix", &*"x".repeat(256)),
    ] {
        let reply = server.get(&format!("/api/v1/files?{field}={bad}")).send().await;
        assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some(field), "{bad}");
    }

    page(&server, "organization_id=acme&colour=red").await;
}

/// The names of a listing, page by page.
async fn names(server: &TestServer, query: &str) -> Vec<String> {
    let (mut names, mut next) = (Vec::new(), String::new());
    loop {
        let page = page(server, &format!("{query}{next}")).await;
        let items = page["items"].as_array().expect("items").iter();
        names.extend(items.map(|item| item["original_name"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return names,
        }
    }
}

#[tokio::test]
async fn a_name_prefix_lists_by_name_and_newest_first_within_one() {
    let server = TestServer::start().await;
    let mut ids = Vec::new();
    for name in ["b-2", "b-1", "a", "b-10", "b-1", "B-1", "b", "c", "é", "100%"] {
        ids.push(server.upload("x").name(name).ok().await.file_id);
    }

    for limit in ["", "&limit=1", "&limit=2"] {
        let query = format!("organization_id=acme&name_prefix=b-{limit}");
        assert_eq!(names(&server, &query).await, ["b-1", "b-1", "b-10", "b-2"], "{limit}");
    }
    let first = page(&server, "organization_id=acme&name_prefix=b-1").await;
    assert_eq!(first["items"][0]["file_id"], *ids[4], "the newer one of two");

    for (prefix, expected) in [
        ("b", &["b", "b-1", "b-1", "b-10", "b-2"][..]),
        ("%C3%A9", &["é"]),
        ("100%25", &["100%"]),
        ("nothing", &[]),
    ] {
        let query = format!("organization_id=acme&name_prefix={prefix}");
        assert_eq!(names(&server, &query).await, expected, "{prefix}");
    }
    assert_eq!(names(&server, "organization_id=acme&name_prefix=").await.len(), 10, "any name");
    assert_eq!(names(&server, "name_prefix=b-2").await, ["b-2"], "without an organization too");
}

#[tokio::test]
async fn types_times_and_metadata_narrow_the_listing() {
    let server = TestServer::start().await;
    let upload =
        |name, mime, object| server.upload("x").name(name).mime(mime).field("metadata", object);
    upload("one", "text/plain", r#"{"customer":"7","paid":true}"#).ok().await;
    upload("two", "TEXT/plain; charset=utf-8", r#"{"customer":7}"#).ok().await;
    let last =
        upload("three", "image/png", r#"{"customer":"8","paid":false,"a b":"é"}"#).ok().await;

    let (after, before) =
        ("created_after=2020-01-01", "created_before=2999-01-01T00:00:00%2B01:00");
    for (query, expected) in [
        ("mime_type=text/plain", &["two", "one"][..]),
        ("mime_type=Text/Plain", &["two", "one"]),
        ("mime_type=image/png&metadata.customer=8", &["three"]),
        ("metadata.customer=7", &["two", "one"]),
        ("metadata.customer=7&metadata.paid=true", &["one"]),
        ("metadata.a%20b=%C3%A9", &["three"]),
        ("metadata.customer=", &[]),
        ("metadata.unknown=1", &[]),
        ("metadata.customer=7&name_prefix=o", &["one"]),
        (after, &["three", "two", "one"]),
        (before, &["three", "two", "one"]),
        ("created_before=2020-01-01", &[]),
        ("created_after=2999-01-01", &[]),
    ] {
        for organization in ["organization_id=acme&", ""] {
            let query = format!("{organization}{query}");
            assert_eq!(names(&server, &query).await, expected, "{query}");
        }
    }

    let made = &last.created_at;
    let from = format!("organization_id=acme&created_after={made}");
    assert!(names(&server, &from).await.contains(&"three".to_owned()), "from that instant on");
    let until = format!("organization_id=acme&created_before={made}");
    assert!(!names(&server, &until).await.contains(&"three".to_owned()), "up to that instant");
}

#[tokio::test]
async fn deleted_files_are_found_by_name_and_metadata_when_asked_for() {
    let server = TestServer::start_without_purge().await;
    let upload = |name| server.upload("x").name(name).field("metadata", r#"{"k":"v"}"#);
    upload("kept").ok().await;
    let gone = upload("gone").ok().await.file_id;
    server.delete(&gone).await.expect(200);

    let of = |query: &str| format!("organization_id=acme&{query}");
    assert_eq!(names(&server, &of("metadata.k=v")).await, ["kept"]);
    assert_eq!(names(&server, &of("metadata.k=v&purge_status=SYSTEM_PURGE")).await, ["gone"]);
    assert_eq!(names(&server, &of("name_prefix=g&purge_status=SYSTEM_PURGE")).await, ["gone"]);
    server.restore(&gone).await.expect(200);
    assert_eq!(names(&server, &of("metadata.k=v")).await, ["gone", "kept"]);
}

#[tokio::test]
async fn the_client_lists_by_name_type_time_and_metadata() {
    use filestore_client::ListQuery;
    use futures_util::TryStreamExt;

    let server = TestServer::start().await;
    for number in 0..3 {
        let object = format!(r#"{{"k & k":"{number}"}}"#);
        server.upload("x").name(&format!("n{number}")).field("metadata", &object).ok().await;
    }
    let client = server.client();
    let names = async |query: ListQuery| {
        let all: Vec<_> = client.list_all(query.limit(1)).try_collect().await.unwrap();
        all.into_iter().map(|record| record.original_name).collect::<Vec<_>>()
    };

    let of = || ListQuery::new().organization_id("acme");
    assert_eq!(names(of().name_prefix("n")).await, ["n0", "n1", "n2"]);
    assert_eq!(names(of().metadata("k & k", "1")).await, ["n1"]);
    let all = of().mime_type("text/plain").created_after("2020-01-01").created_before("2999-01-01");
    assert_eq!(names(all).await, ["n2", "n1", "n0"]);
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

#[tokio::test]
async fn records_of_known_ids_come_together_deleted_or_not() {
    let server = TestServer::start_without_purge().await;
    let one = server.upload("one").ok().await.file_id;
    let two = server.upload("two").ok().await.file_id;
    let other = server.upload("other").org("other").ok().await.file_id;
    server.delete(&two).await.expect(200);
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    let found = page(&server, &format!("ids={two},{unknown},{one},{other},{two}")).await;
    assert_eq!(ids(&found), [two.clone(), one.clone(), other.clone()], "in this order, each once");
    assert_eq!(found["items"][0]["purge_status"], "SYSTEM_PURGE");
    assert_eq!(found["next_cursor"], Value::Null);
    let typed = server.client().list(&ListQuery::new().ids([&one, &two])).await.unwrap();
    assert_eq!(typed.items.iter().map(|file| &file.file_id).collect::<Vec<_>>(), [&one, &two]);

    let reader =
        NewKey::new("k", Scope::Organizations(vec!["acme".parse().unwrap()]), [KeyScope::Read]);
    let (_, secret) = server.store().keys().create(reader).await.unwrap();
    let server = server.with_key(secret.expose());
    let own = page(&server, &format!("ids={other},{one}")).await;
    assert_eq!(ids(&own), std::slice::from_ref(&one), "a foreign file is like an unknown one");

    let many = vec![one.as_str(); 101].join(",");
    for bad in ["ids=", "ids=x", &format!("ids={many}"), &format!("ids={one}&limit=5")] {
        let reply = server.get(&format!("/api/v1/files?{bad}")).send().await;
        let problem = reply.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("ids"), "{bad}");
    }
}

#[tokio::test]
async fn a_listing_begins_with_the_oldest_file_or_the_latest_deletion() {
    let server = TestServer::start_without_purge().await;
    let mut uploaded = Vec::new();
    for number in 0..5 {
        uploaded.push(server.upload(format!("{number}")).ok().await.file_id);
    }
    let all = async |query: &str| {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = page(&server, &format!("{query}&limit=2{cursor}")).await;
            all.extend(ids(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
        }
    };
    uploaded.sort_unstable();
    assert_eq!(all("organization_id=acme&order=oldest").await, uploaded);
    assert_eq!(all("order=oldest").await, uploaded);
    uploaded.reverse();
    assert_eq!(all("organization_id=acme&order=newest").await, uploaded);

    // The latest deletion is of a file in the middle.
    for number in [4, 0, 2] {
        server.delete(&uploaded[number]).await.expect(200);
    }
    let trash = "organization_id=acme&purge_status=SYSTEM_PURGE&order=deleted";
    let listed = all(trash).await;
    let mut by_time = Vec::new();
    for id in &listed {
        by_time.push(server.record(id).await.deleted_at.unwrap());
    }
    assert_eq!(listed.len(), 3);
    assert!(by_time.is_sorted_by(|one, other| one >= other), "{by_time:?}");

    for bad in ["order=deleted", "order=oldest&name_prefix=a", "order=name"] {
        let reply = server.get(&format!("/api/v1/files?{bad}")).send().await;
        assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some("order"), "{bad}");
    }
    let first = page(&server, "order=oldest&limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let reply = server.get(&format!("/api/v1/files?order=newest&cursor={cursor}")).send().await;
    assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some("cursor"));
}

#[tokio::test]
async fn a_part_of_a_name_finds_files_in_upper_and_lower_case() {
    let server = TestServer::start().await;
    for name in ["Invoice-7.pdf", "invoice-8.PDF", "Über.txt"] {
        server.upload("x").name(name).ok().await;
    }
    assert_eq!(names(&server, "organization_id=acme&name_contains=VOICE-").await.len(), 2);
    assert_eq!(names(&server, "organization_id=acme&name_contains=%C3%BCber").await, ["Über.txt"]);
    assert_eq!(names(&server, "organization_id=acme&name_contains=").await.len(), 3, "any name");
    let narrowed = "organization_id=acme&name_contains=.pdf&name_prefix=Inv";
    assert_eq!(names(&server, narrowed).await, ["Invoice-7.pdf"]);
}

#[tokio::test]
async fn a_large_page_is_gzip_for_a_client_that_takes_it() {
    let server = TestServer::start().await;
    let path = "/api/v1/files?organization_id=acme";
    let none = server.get(path).header("accept-encoding", "gzip").send().await.expect(200);
    assert_eq!(none.header("content-encoding"), None, "it is small");
    for number in 0..5 {
        server.upload(format!("{number}")).ok().await;
    }
    let plain = server.get(path).send().await.expect(200);
    assert_eq!((plain.header("content-encoding"), plain.only("vary")), (None, "Accept-Encoding"));
    let packed = server.get(path).header("accept-encoding", "br, gzip").send().await.expect(200);
    assert_eq!(packed.only("content-encoding"), "gzip");
    assert!(packed.body.starts_with(&[0x1F, 0x8B]) && packed.body.len() < plain.body.len() / 2);
}
