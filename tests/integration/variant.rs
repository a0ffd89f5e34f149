//! GET /api/v1/files/{fileId}/{width}/{height} (reference §4.6): square gallery variants.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use filestore_core::Fit;
use filestore_core::api::VARIANT_SIZES;
use filestore_workspace::scene::{Light, photograph, stored_sideways};
use filestore_workspace::{Reply, TestServer, eventually, files_under, fixtures};
use futures_util::future::join_all;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, Rgba};
use serde_json::json;

pub(crate) fn decoded(reply: &Reply) -> DynamicImage {
    assert_eq!(reply.only("content-type"), "image/webp");
    image::load_from_memory_with_format(&reply.body, ImageFormat::WebP).expect("a WebP")
}

/// The colour's name, with room for what lossy compression does to it.
pub(crate) fn colour(image: &DynamicImage, x: u32, y: u32) -> &'static str {
    let Rgba([red, green, blue, alpha]) = image.to_rgba8()[(x, y)];
    let high = |channel| channel > 150;
    match (high(red), high(green), high(blue)) {
        _ if alpha < 64 => "clear",
        (true, false, false) => "red",
        (false, true, false) => "green",
        (false, false, true) => "blue",
        (true, true, true) => "white",
        _ => "other",
    }
}

/// The colours a little inside the four corners: top left, top right, bottom left, bottom right.
pub(crate) fn corners(image: &DynamicImage) -> [&'static str; 4] {
    let (right, bottom) = (image.width() - 1, image.height() - 1);
    let (x, y) = (right / 8, bottom / 8);
    [(x, y), (right - x, y), (x, bottom - y), (right - x, bottom - y)]
        .map(|(x, y)| colour(image, x, y))
}

#[tokio::test]
async fn a_variant_is_a_centre_cropped_square_webp() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(1200, 800)).ok().await.file_id;
    for size in VARIANT_SIZES.into_iter().filter(|size| *size <= 700) {
        let image = decoded(&server.variant(&id, size).send().await.expect(200));
        assert_eq!((image.width(), image.height()), (size, size));
        assert_eq!(corners(&image), ["red", "green", "blue", "white"], "the middle of the picture");
    }
}

#[tokio::test]
async fn only_the_seven_sizes_in_plain_digits_are_allowed() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png(10, 10)).ok().await.file_id;
    for size in VARIANT_SIZES {
        server.variant(&id, size).send().await.expect(200);
    }

    for path in [
        "200/250",
        "0/0",
        "199/199",
        "201/201",
        "1001/1001",
        "0200/0200",
        "+200/+200",
        "2e2/2e2",
        "200.0/200.0",
        "-200/-200",
        "0x c8/0xc8",
        "200%20/200",
        "%32%30%30/201",
        "200/",
        "abc/abc",
        "99999999999999999999/200",
        "２００/２００",
    ] {
        let reply = server.get(&format!("/api/v1/files/{id}/{path}")).send().await;
        let expected = if path == "200/" { 404 } else { 400 };
        assert_eq!(reply.status, expected, "{path}");
    }
}

#[tokio::test]
async fn a_bad_size_is_400_before_anything_is_looked_up() {
    let server = TestServer::start().await;
    let reply = server.get("/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV/201/201").send().await;
    let problem = reply.any_problem(400);
    assert!(problem.allowed.is_empty() || problem.allowed.len() == 7, "{problem:?}");
    server.variant("01ARZ3NDEKTSV4RRFFQ69G5FAV", 200).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn a_small_original_passes_through_untouched() {
    let server = TestServer::start().await;
    let png = fixtures::png(200, 150);

    let id = server.upload(&png).ok().await.file_id;
    for size in [200, 1000] {
        let reply = server.variant(&id, size).send().await.expect(200);
        assert_eq!(reply.only("content-type"), "image/png");
        assert_eq!(reply.body, png);
    }

    let turned = fixtures::jpeg_with_exif(300, 180, 6);
    let id = server.upload(&turned).ok().await.file_id;
    assert_eq!(server.variant(&id, 300).send().await.expect(200).body, turned);
}

#[tokio::test]
async fn a_passed_through_original_has_the_sniffed_type_never_the_claimed_one() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png(50, 50)).mime("text/html").ok().await.file_id;
    let reply = server.variant(&id, 200).send().await.expect(200);
    assert_eq!(reply.only("content-type"), "image/png");
    assert_eq!(reply.only("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn nothing_is_ever_enlarged() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png(600, 120)).ok().await.file_id;
    let image = decoded(&server.variant(&id, 400).send().await.expect(200));
    assert_eq!((image.width(), image.height()), (120, 120), "min(size, shortest edge)");
    let reply =
        server.get(&format!("/api/v1/files/{id}/400/400?fit=inside")).send().await.expect(200);
    let image = decoded(&reply);
    assert_eq!((image.width(), image.height()), (400, 80));
}

#[tokio::test]
async fn fit_inside_keeps_the_whole_picture_and_cover_is_the_default() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(800, 400)).ok().await.file_id;
    let at =
        async |query: &str| server.get(&format!("/api/v1/files/{id}/200/200{query}")).send().await;
    let inside = at("?fit=inside").await.expect(200);
    assert_eq!((decoded(&inside).width(), decoded(&inside).height()), (200, 100));

    let cover = at("?fit=cover").await.expect(200);
    assert_eq!(cover.body, at("").await.expect(200).body);
    assert_ne!(cover.only("etag"), inside.only("etag"));

    for bad in ["?fit=", "?fit=fill", "?fit=Inside"] {
        assert_eq!(at(bad).await.problem(400, "invalid_field").field.as_deref(), Some("fit"));
    }
}

#[tokio::test]
async fn every_exif_orientation_is_applied() {
    let server = TestServer::start().await;
    // What stands in the corners once the orientation is applied (Exif 2.32, tag 0x0112).
    for (orientation, expected) in [
        (1, ["red", "green", "blue", "white"]),
        (2, ["green", "red", "white", "blue"]),
        (3, ["white", "blue", "green", "red"]),
        (4, ["blue", "white", "red", "green"]),
        (5, ["red", "blue", "green", "white"]),
        (6, ["blue", "red", "white", "green"]),
        (7, ["white", "green", "blue", "red"]),
        (8, ["green", "white", "red", "blue"]),
    ] {
        let id = server.upload(fixtures::jpeg_with_exif(480, 320, orientation)).ok().await.file_id;
        let image = decoded(&server.variant(&id, 200).send().await.expect(200));
        assert_eq!(corners(&image), expected, "orientation {orientation}");
    }
}

#[tokio::test]
async fn a_photograph_stored_on_its_side_comes_out_with_the_sky_above() {
    let server = TestServer::start().await;
    let upright = photograph(360, 480, Light::Day, 2);
    let id = server.upload(stored_sideways(&upright)).ok().await.file_id;

    for size in [200, 300, 400] {
        let image = decoded(&server.variant(&id, size).send().await.expect(200));

        // The means of eight strips, from the sky down to the meadow.
        let strips = image.resize_exact(1, 8, FilterType::Triangle).to_rgb8();
        let ([red, _, blue], [_, grass, shade]) = (strips[(0, 0)].0, strips[(0, 7)].0);
        assert!(blue > red && grass > shade, "{size}: {strips:?}");
    }
}

#[tokio::test]
async fn a_generated_variant_holds_no_metadata() {
    let server = TestServer::start().await;
    let original = fixtures::jpeg_with_exif(480, 320, 6);
    let holds = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    assert!(holds(&original, fixtures::EXIF_SECRET));
    let id = server.upload(&original).ok().await.file_id;
    let reply = server.variant(&id, 200).send().await.expect(200);
    for secret in [fixtures::EXIF_SECRET, b"Exif", b"EXIF", b"ICCP", b"XMP "] {
        assert!(!holds(&reply.body, secret), "{}", String::from_utf8_lossy(secret));
    }
}

#[tokio::test]
async fn alpha_is_kept_and_animations_show_their_first_frame() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png_with_alpha(400)).ok().await.file_id;
    let image = decoded(&server.variant(&id, 200).send().await.expect(200));
    assert_eq!((colour(&image, 100, 100), colour(&image, 5, 5)), ("red", "clear"));
    let id = server.upload(fixtures::gif(320, 320)).ok().await.file_id;
    let image = decoded(&server.variant(&id, 200).send().await.expect(200));
    assert_eq!(colour(&image, 100, 100), "red", "the second frame is blue");
}

#[tokio::test]
async fn every_input_format_makes_a_variant() {
    let server = TestServer::start().await;
    let sources = [
        fixtures::jpeg,
        fixtures::png,
        fixtures::gif,
        fixtures::webp,
        fixtures::bmp,
        fixtures::tiff,
    ];

    for (number, source) in sources.into_iter().enumerate() {
        let id = server.upload(source(260, 300)).ok().await.file_id;
        let image = decoded(&server.variant(&id, 200).send().await.expect(200));
        assert_eq!((image.width(), image.height()), (200, 200), "format {number}");
    }
}

#[tokio::test]
async fn what_is_no_image_is_422_and_so_is_a_corrupt_or_too_large_one() {
    let server = TestServer::start().await;
    let variant = async |bytes: &[u8]| {
        let id = server.upload(bytes).part_name("image.png").mime("image/png").ok().await.file_id;
        server.variant(&id, 200).send().await
    };
    for bytes in
        [b"text".as_slice(), b"", fixtures::HTML, fixtures::SVG, fixtures::PDF, fixtures::MP4]
    {
        variant(bytes).await.problem(422, "not_an_image");
    }
    variant(&fixtures::broken_png(400, 400)).await.problem(422, "corrupt_image");

    let cut = fixtures::jpeg(800, 800);
    variant(&cut[..300]).await.problem(422, "corrupt_image");
    variant(&fixtures::png_bomb(20_000, 20_000)).await.problem(422, "image_too_large");
    variant(&fixtures::png_bomb(16_385, 10)).await.problem(422, "image_too_large");
}

#[tokio::test]
async fn the_pixel_limits_are_configurable() {
    let server = TestServer::start_with(|config| config.store.variants.max_pixels = 100_000).await;
    let id = server.upload(fixtures::png(500, 300)).ok().await.file_id;
    server.variant(&id, 200).send().await.problem(422, "image_too_large");
    let id = server.upload(fixtures::png(300, 300)).ok().await.file_id;
    server.variant(&id, 200).send().await.expect(200);
}

#[tokio::test]
async fn the_tag_is_weak_and_revalidates_without_another_body() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(600, 400)).ok().await.file_id;
    let first = server.variant(&id, 200).send().await.expect(200);
    let etag = first.only("etag").to_owned();
    assert!(etag.starts_with("W/\""), "{etag}");
    assert_eq!(first.only("cache-control"), "private, no-cache");

    let again = server.variant(&id, 200).header("if-none-match", &etag).send().await.expect(304);
    assert!(again.body.is_empty());
    assert_eq!(again.only("etag"), etag);

    let other_size =
        server.variant(&id, 250).header("if-none-match", &etag).send().await.expect(200);
    assert_ne!(other_size.only("etag"), etag);
}

#[tokio::test]
async fn a_range_is_ignored_and_head_has_no_body() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(600, 400)).ok().await.file_id;
    let whole = server.variant(&id, 200).send().await.expect(200);
    let ranged = server.variant(&id, 200).header("range", "bytes=0-9").send().await.expect(200);
    assert_eq!(ranged.body, whole.body);
    let head = server.head(&format!("/api/v1/files/{id}/200/200")).send().await.expect(200);
    assert!(head.body.is_empty());
    assert_eq!(head.only("etag"), whole.only("etag"));
    assert_eq!(head.only("content-type"), "image/webp");
}

#[tokio::test]
async fn the_current_digest_as_v_makes_a_variant_immutable() {
    let server = TestServer::start().await;
    let record = server.upload(fixtures::jpeg(600, 400)).ok().await;
    let path = format!("/api/v1/files/{}/200/200?v={}", record.file_id, record.sha256);
    let reply = server.get(&path).send().await.expect(200);
    assert_eq!(reply.only("cache-control"), "private, max-age=31536000, immutable");
}

#[tokio::test]
async fn a_replaced_image_has_new_variants_at_once() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(400, 400)).ok().await.file_id;
    let old = server.variant(&id, 200).send().await.expect(200);
    server.change(&id).file(fixtures::gif(400, 400)).send().await.expect(200);
    let new = server.variant(&id, 200).send().await.expect(200);
    assert_ne!(new.only("etag"), old.only("etag"));
    assert_eq!(corners(&decoded(&new)), ["red"; 4]);
    server.change(&id).file("no image any more").send().await.expect(200);
    server.variant(&id, 200).send().await.problem(422, "not_an_image");
}

#[tokio::test]
async fn a_variant_that_is_asked_for_often_stays_the_same_until_its_image_is_replaced() {
    let server = TestServer::start().await;
    let [old, new] =
        [3, 4].map(|seed| fixtures::photo_jpeg(&photograph(1200, 1200, Light::Day, seed)));
    let id = server.upload(old).ok().await.file_id;
    let first = server.variant(&id, 1000).send().await.expect(200);
    assert!(first.body.len() > 20_000, "it is large enough for the kernel to send it");
    for _ in 0..12 {
        let again = server.variant(&id, 1000).send().await.expect(200);
        assert_eq!(again.only("content-length"), first.only("content-length"));
        assert_eq!(again.only("content-type"), "image/webp");
        assert!(again.body == first.body, "other bytes under the same tag");
    }
    let head = server.head(&format!("/api/v1/files/{id}/1000/1000"));
    assert!(head.send().await.expect(200).body.is_empty());

    server.change(&id).file(new).send().await.expect(200);
    let replaced = server.variant(&id, 1000).send().await.expect(200);
    assert!(replaced.body != first.body, "the picture of before");
    server.delete(&id).await.expect(200);
    server.variant(&id, 1000).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn a_purge_removes_the_variants_from_the_disk() {
    let server = TestServer::start().await;
    let plain = files_under(server.data_dir()).len();

    let id = server.upload(fixtures::jpeg(600, 400)).ok().await.file_id;
    for size in [200, 400] {
        server.variant(&id, size).send().await.expect(200);
    }
    server.delete(&id).await.expect(200);
    server.variant(&id, 200).send().await.problem(404, "not_found");

    filestore_workspace::eventually("the removal of file and variants", async || {
        let gone = server.info(&id).await.status == 404;
        (gone && files_under(server.data_dir()).len() <= plain).then_some(())
    })
    .await;
}

#[tokio::test]
async fn concurrent_requests_for_one_variant_agree() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(1500, 1500)).ok().await.file_id;
    let replies = join_all((0..12).map(|_| server.variant(&id, 400).send())).await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.body), (200, &replies[0].body));
    }
}

/// Tells whether this process, which is the server as well, has the file open.
fn is_open(path: &Path) -> bool {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    open.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|opened| opened == path))
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_the_work_to_the_other_that_waits_for_it() {
    let server = TestServer::start_with(|config| {
        config.store.variants.deadline = Duration::from_mins(10);
        // Or another size could be made without the file.
        config.store.variants.intermediate_cache_bytes = 0;
    });

    let server = server.await.patient(Duration::from_mins(20));
    let picture = fixtures::jpeg(3000, 3000);
    let id = server.upload(&picture).ok().await.file_id;

    // It gets its final name beside the reply.
    let blobs = server.data_dir().join("blobs").canonicalize().unwrap();
    let blob = eventually("the blob under its final name", async || {
        let is_it =
            |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes == picture) && !is_open(path);
        files_under(&blobs).into_iter().find(is_it)
    });

    let blob = blob.await;

    let mut first = server.wire().await;
    first.send(format!("GET /api/v1/files/{id}/400/400 HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
    eventually("the beginning of the work", async || is_open(&blob).then_some(())).await;

    // Who has it open reads it to its end, and nobody opens it again: it is decoded once or never.
    fs::remove_file(&blob).unwrap();
    let second = tokio::spawn(server.variant(&id, 400).send());
    server.info(&id).await;
    drop(first);
    let image = decoded(&second.await.unwrap().expect(200));
    assert_eq!((image.width(), image.height()), (400, 400));
    assert_eq!(corners(&image), ["red", "green", "blue", "white"]);

    server.variant(&id, 700).send().await.problem(500, "internal");
}

#[tokio::test]
async fn organizations_never_share_a_variant() {
    let server = TestServer::start().await;
    let bytes = fixtures::jpeg(600, 400);
    let acme = server.upload(&bytes).org("acme").ok().await.file_id;
    let other = server.upload(&bytes).org("other").ok().await.file_id;
    let acme = server.variant(&acme, 200).send().await.expect(200);
    let other = server.variant(&other, 200).send().await.expect(200);
    assert_ne!(acme.only("etag"), other.only("etag"));
    assert_eq!(acme.body, other.body);
}

#[tokio::test]
async fn variants_are_served_from_the_cache_after_a_restart() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(600, 400)).ok().await.file_id;
    let before = server.variant(&id, 200).send().await.expect(200);
    let server = server.restart().await;
    let after = server.variant(&id, 200).send().await.expect(200);
    assert_eq!((after.only("etag"), &after.body), (before.only("etag"), &before.body));
}

#[tokio::test]
async fn a_variant_is_served_as_safely_as_a_file() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(600, 400)).name("Größe.jpg").ok().await.file_id;
    let reply = server.variant(&id, 200).send().await.expect(200);
    assert_eq!(reply.only("x-content-type-options"), "nosniff");
    assert!(reply.only("content-security-policy").starts_with("default-src 'none'; sandbox"));
    if let Some(disposition) = reply.header("content-disposition") {
        assert!(disposition.starts_with("inline"), "{disposition}");
    }
}

/// A server that makes one variant of each picture in advance.
async fn eager_server() -> TestServer {
    TestServer::start_with(|config| {
        config.store.variants.eager = vec![(200.try_into().unwrap(), Fit::Cover)];
    })
    .await
}

/// Waits until `count` variants were made in advance; what the cache says then.
async fn made_in_advance(server: &TestServer, count: u64) -> serde_json::Value {
    eventually("the variants made in advance", async || {
        let status = server.get("/api/v1/admin/variants/status").send().await.expect(200).json();
        (status["eager_made"] == count).then_some(status)
    })
    .await
}

#[tokio::test]
async fn configured_variants_are_made_when_a_picture_arrives_or_changes() {
    let server = eager_server().await;
    let id = server.upload(fixtures::jpeg(400, 300)).ok().await.file_id;
    let status = made_in_advance(&server, 1).await;
    assert_eq!((&status["disk_entries"], &status["eager_dropped"]), (&json!(1), &json!(0)));
    // Neither bytes that are no picture nor a second look make anything.
    server.upload("12345").ok().await;
    server.variant(&id, 200).send().await.expect(200);
    server.change(&id).file(fixtures::jpeg(500, 300)).send().await.expect(200);
    made_in_advance(&server, 2).await;
}

#[tokio::test]
async fn configured_variants_of_a_temp_file_are_made_when_it_becomes_ready() {
    let server = eager_server().await;
    let temp = server.upload(fixtures::jpeg(400, 300)).temp().ok().await.file_id;
    // Files are worked off in their order: this one's variant would come after that one's.
    server.upload(fixtures::jpeg(500, 300)).ok().await;
    let status = made_in_advance(&server, 1).await;
    assert_eq!((&status["disk_entries"], &status["eager_waiting"]), (&json!(1), &json!(0)));
    server.change(&temp).make_ready().send().await.expect(200);
    let status = made_in_advance(&server, 2).await;
    assert_eq!((&status["disk_entries"], &status["eager_dropped"]), (&json!(2), &json!(0)));
    server.variant(&temp, 200).send().await.expect(200);
}

#[tokio::test]
async fn configured_variants_are_made_of_every_picture_of_a_batch() {
    let server = eager_server().await;
    let pictures = [fixtures::jpeg(400, 300), fixtures::png(300, 400), fixtures::gif(320, 320)];
    let batch = pictures
        .iter()
        .fold(server.batch().item("no picture"), filestore_workspace::upload::BatchCall::item);
    let records = batch.ok().await;
    let status = made_in_advance(&server, 3).await;
    assert_eq!((&status["disk_entries"], &status["eager_dropped"]), (&json!(3), &json!(0)));

    for record in &records[1..] {
        server.variant(&record.file_id, 200).send().await.expect(200);
    }
}

#[tokio::test]
async fn the_record_of_a_picture_gets_a_placeholder_with_its_first_variant_and_loses_it_with_its_bytes()
 {
    let server = TestServer::start().await;
    let record = server.upload(fixtures::jpeg(600, 400)).ok().await;
    assert_eq!(record.thumbhash, None, "nobody has looked yet");
    let id = record.file_id;
    let placeholder = async |until: &str| {
        eventually(until, async || {
            let info = server.info(&id).await.expect(200).json();
            info["thumbhash"].as_str().map(str::to_owned)
        })
        .await
    };

    server.variant(&id, 200).send().await.expect(200);
    let first = placeholder("a placeholder").await;
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, &first).unwrap();
    assert!((5..=25).contains(&bytes.len()), "{} bytes", bytes.len());
    let listed = server.get("/api/v1/files").send().await.expect(200).json();
    assert_eq!(listed["items"][0]["thumbhash"], json!(first));

    server.change(&id).file(fixtures::png(640, 480)).send().await.expect(200);
    assert_eq!(server.info(&id).await.json()["thumbhash"], json!(null), "of other bytes");
    server.variant(&id, 200).send().await.expect(200);
    assert_ne!(placeholder("a new placeholder").await, first);
}
