//! GET /api/v1/sheets (reference §4.11): the variants of many files in one picture, and its map.

use filestore_core::{KeyScope, NewKey, Scope};
use filestore_workspace::{Call, Reply, TestServer, fixtures};
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
        [(0, shown(0, 33, 200, 133)), (1, shown(270, 80, 60, 40)), (4, shown(200, 233, 200, 133))]
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
