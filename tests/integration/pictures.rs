//! Unusual pictures on their way through the store: record, variants, placeholder (reference §4.6).

use filestore_workspace::{TestServer, eventually, fixtures};

use super::variant::{corners, decoded};

/// Waits for the placeholder that the first variant leaves in the record.
async fn placeholder(server: &TestServer, id: &str) -> String {
    server.variant(id, 200).send().await.expect(200);
    eventually("a placeholder", async || {
        let info = server.info(id).await.expect(200).json();
        info["thumbhash"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn a_big_tiff_has_the_placeholder_of_the_same_pixels_in_other_formats() {
    let server = TestServer::start().await;
    let mut placeholders = Vec::new();
    for source in [fixtures::png, fixtures::tiff, fixtures::big_tiff] {
        let record = server.upload(source(300, 210)).ok().await;
        assert_eq!((record.width, record.height), (Some(300), Some(210)));
        placeholders.push(placeholder(&server, &record.file_id).await);
    }
    placeholders.dedup();
    assert_eq!(placeholders.len(), 1, "{placeholders:?}");
}

#[tokio::test]
async fn a_turned_webp_is_upright_in_record_and_variants_and_passes_through_unchanged() {
    let server = TestServer::start().await;
    let turned = fixtures::webp_with_exif(480, 320, 6);
    let record = server.upload(&turned).ok().await;
    assert_eq!(&*record.mime_type, "image/webp");
    assert_eq!((record.width, record.height), (Some(320), Some(480)), "as displayed");

    let image = decoded(&server.variant(&record.file_id, 200).send().await.expect(200));
    assert_eq!(corners(&image), ["blue", "red", "white", "green"]);
    let inside = format!("/api/v1/files/{}/200/200?fit=inside", record.file_id);
    let image = decoded(&server.get(&inside).send().await.expect(200));
    assert_eq!((image.width(), image.height()), (133, 200));

    // Browsers do not turn a WebP, so a small one looks as it is stored.
    let small = server.variant(&record.file_id, 500).send().await.expect(200);
    assert_eq!((small.only("content-type"), &small.body[..]), ("image/webp", &turned[..]));
}
