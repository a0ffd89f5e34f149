//! GET /api/v1/sheets (reference §4.11): the variants of many files in one picture, and its map.

use std::time::Duration;

use filestore_core::Scope;
use filestore_core::keys::{KeyScope, NewKey};
use filestore_workspace::{Call, Reply, TestServer, eventually, fixtures};
use futures_util::future::join;
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};

fn sheet(server: &TestServer, ids: &[&str], rest: &str) -> Call {
    server.get(&format!("/api/v1/sheets?ids={}{rest}", ids.join(",")))
}

fn picture(reply: &Reply) -> DynamicImage {
    assert_eq!(reply.only("content-type"), "image/webp");
    image::load_from_memory_with_format(&reply.body, ImageFormat::WebP).expect("a WebP")
}

async fn map(call: Call) -> Value {
    let reply = call.header("accept", "application/json").send().await.expect(200);
    assert_eq!(reply.only("vary").to_ascii_lowercase(), "accept");
    reply.json()
}

#[tokio::test]
async fn a_sheet_shows_each_variant_in_its_cell_and_its_map_says_where() {
    let server = TestServer::start().await;
    let large = server.upload(fixtures::jpeg(1200, 800)).ok().await.file_id;
    let small = server.upload(fixtures::png(60, 40)).ok().await.file_id;
    let text = server.upload("no picture").ok().await.file_id;
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let ids = [large.as_str(), small.as_str(), &text, unknown, &large];

    let map = map(sheet(&server, &ids, "&fit=inside")).await;
    let shown = |x: u32, y: u32, width: u32, height: u32| json!({"x": x, "y": y, "width": width, "height": height});
    assert_eq!([&map["width"], &map["height"], &map["size"]], [600, 400, 200]);
    assert_eq!([&map["columns"], &map["rows"]], [3, 2]);
    for (index, expected) in
        [(0, shown(0, 32, 200, 133)), (1, shown(270, 80, 60, 40)), (4, shown(200, 232, 200, 133))]
    {
        let cell = &map["cells"][index];
        assert_eq!((&cell["file_id"], &cell["error"]), (&json!(ids[index]), &json!(null)));
        for side in ["x", "y", "width", "height"] {
            assert_eq!(cell[side], expected[side], "{side} of {cell}");
        }
    }
    assert_eq!(map["cells"][2]["error"]["code"], "not_an_image");
    assert_eq!(map["cells"][3]["error"]["code"], "not_found");
    assert_eq!(map["cells"][3]["x"], json!(null));

    let picture = picture(&sheet(&server, &ids, "&fit=inside").send().await.expect(200));
    let picture = picture.to_rgba8();
    assert_eq!(picture.dimensions(), (600, 400));
    let [top_left, cell_3] = [(20, 50), (500, 100)].map(|(x, y)| picture.get_pixel(x, y).0);
    assert!(top_left[0] > 150 && top_left[1] < 100, "red, as the picture's corner: {top_left:?}");
    assert_eq!(cell_3[3], 0, "an empty cell is transparent");
}

#[tokio::test]
async fn a_sheet_follows_its_files() {
    let server = TestServer::start().await;
    let one = server.upload(fixtures::jpeg(400, 400)).ok().await.file_id;
    let other = server.upload(fixtures::png(300, 300)).ok().await.file_id;
    let ids = [one.as_str(), &other];
    let first = sheet(&server, &ids, "").send().await.expect(200);
    let tag = first.only("etag").to_owned();

    let again = sheet(&server, &ids, "").send().await.expect(200);
    assert_eq!((again.only("etag"), &again.body), (tag.as_str(), &first.body));
    let conditional = sheet(&server, &ids, "").header("if-none-match", &tag);
    assert_eq!(conditional.send().await.status, 304);
    let of_map = sheet(&server, &ids, "").header("accept", "application/json");
    assert_ne!(of_map.header("if-none-match", &tag).send().await.status, 304);

    server.change(&one).file(fixtures::png(500, 250)).send().await.expect(200);
    let replaced = sheet(&server, &ids, "").header("if-none-match", &tag).send().await.expect(200);
    assert_ne!(replaced.body, first.body);

    server.delete(&other).await.expect(200);
    let map = map(sheet(&server, &ids, "")).await;
    assert_eq!(map["cells"][1]["error"]["code"], "not_found");
    assert_eq!(map["cells"][0]["error"], json!(null));
}

#[tokio::test]
async fn a_key_sees_only_the_cells_of_its_organizations() {
    let server = TestServer::start().await;
    let own = server.upload(fixtures::jpeg(400, 300)).org("7").ok().await.file_id;
    let foreign = server.upload(fixtures::jpeg(300, 400)).org("8").ok().await.file_id;
    let ids = [own.as_str(), &foreign];
    sheet(&server, &ids, "").send().await.expect(200);

    let scope = Scope::Organizations(vec!["7".parse().unwrap()]);
    let key = NewKey::new("reader", scope, [KeyScope::Read]);
    let (_, secret) = server.store().keys().create(key).await.unwrap();
    let bearer = format!("Bearer {}", secret.expose());
    let map = map(sheet(&server, &ids, "").header("authorization", &bearer)).await;
    assert_eq!(map["cells"][0]["error"], json!(null));
    assert_eq!(map["cells"][1]["error"]["code"], "not_found");

    let reply = sheet(&server, &ids, "").header("authorization", &bearer).send().await.expect(200);
    let cell = picture(&reply).to_rgba8();
    assert_eq!(cell.get_pixel(300, 100).0[3], 0, "cached for others, and not shown");
}

#[tokio::test]
async fn what_makes_no_sheet_is_400_and_named() {
    let server = TestServer::start().await;
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let many = |count: usize| vec![id; count].join(",");
    for (query, code, field) in [
        (String::new(), "missing_field", "ids"),
        ("?ids=".to_owned(), "missing_field", "ids"),
        ("?ids=nonsense".to_owned(), "invalid_field", "ids"),
        (format!("?ids={id},"), "invalid_field", "ids"),
        (format!("?ids={}", many(101)), "invalid_field", "ids"),
        (format!("?ids={id}&size=201"), "invalid_field", "size"),
        (format!("?ids={id}&fit=round"), "invalid_field", "fit"),
        (format!("?ids={}&size=1000", many(17)), "invalid_field", "size"),
    ] {
        let reply = server.get(&format!("/api/v1/sheets{query}")).send().await;
        assert_eq!(reply.problem(400, code).field.as_deref(), Some(field), "{query}");
    }

    let largest = server.get(&format!("/api/v1/sheets?ids={}&size=400", many(100))).send().await;
    let picture = picture(&largest.expect(200));
    assert_eq!((picture.width(), picture.height()), (4000, 4000));
}

#[tokio::test]
async fn the_accept_header_of_axios_gets_the_map_and_that_of_a_picture_element_gets_the_sheet() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(400, 300)).ok().await.file_id;
    let path = format!("/api/v1/sheets?ids={id}");
    for (client, accept, kind) in [
        ("axios", "application/json, text/plain, */*", "application/json"),
        ("axios, asked for the picture", "image/webp", "image/webp"),
        ("fetch", "*/*", "image/webp"),
        ("Chromium", "image/avif,image/webp,image/apng,image/*,*/*;q=0.8", "image/webp"),
        ("a page", "text/html,application/xhtml+xml,*/*;q=0.8", "image/webp"),
    ] {
        let reply = server.get(&path).header("accept", accept).send().await.expect(200);
        assert_eq!(reply.only("content-type"), kind, "{client}");
    }
}

#[tokio::test]
async fn a_head_of_either_representation_has_the_headers_of_its_get_and_no_body() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(400, 300)).ok().await.file_id;
    let path = format!("/api/v1/sheets?ids={id}");

    for accepted in ["image/webp", "application/json"] {
        // HEAD first, so that it is no answer from memory.
        let head = server.head(&path).header("accept", accepted).send().await.expect(200);
        assert_eq!(head.body.len(), 0);
        let get = server.get(&path).header("accept", accepted).send().await.expect(200);
        for name in ["content-type", "content-length", "etag", "cache-control", "vary"] {
            assert_eq!(head.only(name), get.only(name), "{name} of {accepted}");
        }
        assert_eq!(get.only("content-length"), get.body.len().to_string());

        let tag = get.only("etag");
        let current = server.head(&path).header("accept", accepted).header("if-none-match", tag);
        assert_eq!(current.send().await.status, 304);
    }
}

#[tokio::test]
async fn a_sheet_honors_its_conditions() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(400, 300)).ok().await.file_id;
    let of_kind = |accepted: &str| sheet(&server, &[&id], "").header("accept", accepted);
    let asked = |name: &str, value: &str| of_kind("image/webp").header(name, value).send();

    let first = of_kind("image/webp").send().await.expect(200);
    let tag = first.only("etag").to_owned();
    let opaque = tag.strip_prefix("W/").expect("a weak tag").to_owned();
    let map_tag = of_kind("application/json").send().await.expect(200).only("etag").to_owned();
    assert_ne!(map_tag, tag);

    for value in [tag.as_str(), &opaque, "*", &format!("\"other\", {tag}")] {
        let reply = asked("if-none-match", value).await.expect(304);
        assert_eq!((reply.only("etag"), reply.body.len()), (tag.as_str(), 0), "{value}");
        assert_eq!(reply.only("cache-control"), "private, no-cache");
        assert_eq!(reply.only("vary").to_ascii_lowercase(), "accept");
    }
    for value in ["\"other\"", map_tag.as_str()] {
        assert_eq!(asked("if-none-match", value).await.expect(200).body, first.body, "{value}");
    }

    assert_eq!(asked("if-match", "*").await.expect(200).body, first.body);
    // Compared strongly: a weak tag never matches (RFC 9110 section 13.1.1).
    for value in [tag.as_str(), &opaque, "\"other\""] {
        asked("if-match", value).await.problem(412, "precondition_failed");
    }
    let both = of_kind("image/webp").header("if-match", "*").header("if-none-match", &tag);
    assert_eq!(both.send().await.status, 304);
}

#[tokio::test]
async fn a_client_that_has_the_sheet_makes_no_server_put_it_together() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(400, 300)).ok().await.file_id;
    let tag = sheet(&server, &[&id], "").send().await.expect(200).only("etag").to_owned();
    let prune = async || {
        let reply = server.post("/api/v1/admin/variants/prune").send().await.expect(200);
        reply.json()["removed"].as_u64().expect("a number")
    };
    let with_sheet = prune().await;

    let conditional = sheet(&server, &[&id], "").header("if-none-match", &tag);
    assert_eq!(conditional.send().await.status, 304);
    assert_eq!(prune().await, with_sheet - 1, "the variant was made, and no sheet");
}

#[tokio::test]
async fn a_tag_outlives_a_restart_and_goes_with_the_quality() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(400, 300)).ok().await.file_id;
    let tag = sheet(&server, &[&id], "").send().await.expect(200).only("etag").to_owned();

    let server = server.restart().await;
    let conditional = sheet(&server, &[&id], "").header("if-none-match", &tag);
    assert_eq!(conditional.send().await.status, 304);

    let server = server.restart_with(|config| config.store.variants.quality = 40.0).await;
    let conditional = sheet(&server, &[&id], "").header("if-none-match", &tag);
    assert_ne!(conditional.send().await.expect(200).only("etag"), tag);
}

#[tokio::test]
async fn a_sheet_of_unknown_files_costs_next_to_nothing() {
    let server = TestServer::start().await;
    let ids = vec!["01ARZ3NDEKTSV4RRFFQ69G5FAV"; 100];
    let reply = sheet(&server, &ids, "&size=400").send().await.expect(200);
    assert!(reply.body.len() < 64, "{} bytes", reply.body.len());
    let picture = picture(&reply).to_rgba8();
    assert_eq!(picture.dimensions(), (4000, 4000));
    assert_eq!(picture.get_pixel(1234, 2345).0[3], 0);
}

#[tokio::test]
async fn a_file_that_goes_while_its_sheet_is_put_together_is_on_none_that_is_asked_for_later() {
    let server = TestServer::start_with(|config| config.store.purge_grace = Duration::ZERO).await;
    for round in 0..6 {
        let kept = server.upload(fixtures::jpeg(900, 700)).ok().await.file_id;
        let goes = server.upload(fixtures::jpeg(900, 640 + round)).ok().await.file_id;
        let ids = [kept.as_str(), &goes];
        let gone = async {
            server.delete(&goes).await.expect(200);
            // The bytes as well, on odd rounds.
            if round % 2 == 1 {
                server.post("/api/v1/admin/purge/run").json(&json!({})).send().await.expect(200);
            }
        };

        let (meanwhile, ()) = join(sheet(&server, &ids, "").send(), gone).await;
        picture(&meanwhile.expect(200));

        let map = map(sheet(&server, &ids, "")).await;
        assert_eq!(map["cells"][0]["error"], json!(null));
        assert_eq!(map["cells"][1]["error"]["code"], "not_found");
        let later = picture(&sheet(&server, &ids, "").send().await.expect(200)).to_rgba8();
        assert!(later.get_pixel(100, 100).0[3] == 255 && later.get_pixel(300, 100).0[3] == 0);
    }
}

#[tokio::test]
async fn a_sheet_that_need_not_wait_names_the_cells_without_a_picture() {
    let server = TestServer::start().await;
    let one = server.upload(fixtures::jpeg(300, 300)).ok().await.file_id;
    let text = server.upload("no picture").ok().await.file_id;
    let new = server.upload(fixtures::jpeg(400, 400)).ok().await.file_id;
    server.variant(&one, 200).send().await.expect(200);
    let ids = [text.as_str(), &one, &new];

    // The picture may be ready at once. In the end it is.
    let first = sheet(&server, &ids, "&wait_ms=0").send().await.expect(200);
    assert!(first.header("sheet-pending").is_none_or(|list| list.ends_with('2')), "{first:?}");
    let whole = eventually("the whole sheet", async || {
        let reply = sheet(&server, &ids, "&wait_ms=50").send().await.expect(200);
        reply.header("sheet-pending").is_none().then_some(reply)
    })
    .await;
    assert_eq!(whole.only("sheet-failed"), "0");
    let plain = sheet(&server, &ids, "").send().await.expect(200);
    assert_eq!((plain.only("etag"), plain.only("sheet-failed")), (whole.only("etag"), "0"));
    let tag = plain.only("etag");
    let again = sheet(&server, &ids, "&wait_ms=50").header("if-none-match", tag).send().await;
    again.expect(304);

    for bad in ["", "-1", "1.5", "10001", "x"] {
        let reply = sheet(&server, &ids, &format!("&wait_ms={bad}")).send().await;
        assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some("wait_ms"), "{bad}");
    }
}
