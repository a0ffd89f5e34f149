//! `?animated=true` (reference §4.6): all frames of an animation, where the operator wants them made.

use std::io::Cursor;
use std::time::Duration;

use filestore_core::api::{Fit, SignRequest};
use filestore_workspace::{Call, Reply, TestServer, fixtures};
use image::codecs::gif::{GifEncoder, Repeat};
use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder as _, Delay, Frame, Rgba, RgbaImage};

/// A GIF of red, green and blue, each for 80 ms.
fn gif(side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    encoder.set_repeat(Repeat::Infinite).unwrap();
    for color in [[220, 30, 30, 255], [30, 190, 30, 255], [30, 30, 220, 255]] {
        let picture = RgbaImage::from_pixel(side, side, Rgba(color));
        let delay = Delay::from_saturating_duration(Duration::from_millis(80));
        encoder.encode_frame(Frame::from_parts(picture, 0, 0, delay)).unwrap();
    }
    drop(encoder);
    bytes
}

async fn moving_server() -> TestServer {
    TestServer::start_with(|config| config.store.variants.animated = true).await
}

fn variant(server: &TestServer, id: &str, query: &str) -> Call {
    server.get(&format!("/api/v1/files/{id}/200/200{query}"))
}

/// The colours of a variant's frames, each as the strongest channel.
fn colors(reply: &Reply) -> Vec<usize> {
    assert_eq!(reply.only("content-type"), "image/webp");
    let decoder = WebPDecoder::new(Cursor::new(&reply.body[..])).expect("a WebP");
    let frames = decoder.into_frames().map(|frame| {
        let frame = frame.expect("a frame");
        assert_eq!(Duration::from(frame.delay()), Duration::from_millis(80));
        let Rgba(pixel) = *frame.buffer().get_pixel(100, 100);
        (0..3).max_by_key(|channel| pixel[*channel]).expect("a channel")
    });
    frames.collect()
}

#[tokio::test]
async fn all_frames_come_with_a_tag_of_their_own_and_no_other_request_gets_them() {
    let server = moving_server().await;
    let id = server.upload(gif(300)).ok().await.file_id;
    let still = variant(&server, &id, "").send().await.expect(200);
    let moving = variant(&server, &id, "?animated=true").send().await.expect(200);
    assert_eq!(colors(&moving), [0, 1, 2]);
    assert_ne!(moving.body, still.body);
    assert!(moving.only("content-security-policy").starts_with("default-src 'none'; sandbox"));

    let (tag, still_tag) = (moving.only("etag"), still.only("etag"));
    assert_ne!(tag, still_tag);
    variant(&server, &id, "?animated=1").header("if-none-match", tag).send().await.expect(304);
    variant(&server, &id, "?animated=true")
        .header("if-none-match", still_tag)
        .send()
        .await
        .expect(200);
    for query in ["", "?animated=false", "?animated=0", "?animated=FALSE"] {
        assert_eq!(
            variant(&server, &id, query).send().await.expect(200).body,
            still.body,
            "{query}"
        );
    }
    let again = variant(&server, &id, "?fit=cover&animated=TRUE").send().await.expect(200);
    assert_eq!(again.body, moving.body);
}

#[tokio::test]
async fn a_still_picture_gives_its_still_variant() {
    let server = moving_server().await;
    for (picture, same_tag) in [(fixtures::jpeg(600, 400), true), (fixtures::png(600, 400), false)]
    {
        let id = server.upload(picture).ok().await.file_id;
        let still = variant(&server, &id, "").send().await.expect(200);
        let moving = variant(&server, &id, "?animated=true").send().await.expect(200);
        assert_eq!(moving.body, still.body);
        assert_eq!(moving.only("etag") == still.only("etag"), same_tag);
    }
    let id = server.upload(gif(150)).ok().await.file_id;
    let passed = variant(&server, &id, "?animated=true").send().await.expect(200);
    assert_eq!((passed.only("content-type"), &passed.body[..]), ("image/gif", &gif(150)[..]));
}

#[tokio::test]
async fn an_unknown_or_repeated_value_is_400_and_named() {
    let server = moving_server().await;
    let id = server.upload(gif(300)).ok().await.file_id;
    for query in [
        "?animated=",
        "?animated=yes",
        "?animated=2",
        "?animated=true&animated=true",
        "?animated=%FF",
    ] {
        let problem = variant(&server, &id, query).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("animated"), "{query}");
    }
}

#[tokio::test]
async fn switched_off_it_is_400_and_names_the_setting() {
    let server = TestServer::start().await;
    let id = server.upload(gif(300)).ok().await.file_id;
    let problem =
        variant(&server, &id, "?animated=true").send().await.problem(400, "invalid_field");
    assert_eq!(problem.field.as_deref(), Some("animated"));
    assert!(problem.detail.contains("variants.animated"), "{problem:?}");
    variant(&server, &id, "?animated=false").send().await.expect(200);

    let sign = server.client().sign(&id, &SignRequest::variant(200, Fit::Cover).animated()).await;
    assert_eq!(sign.unwrap_err().status(), Some(400));
}

#[tokio::test]
async fn a_limit_is_422_and_named_while_the_still_variant_is_there() {
    let server = TestServer::start_with(|config| {
        config.store.variants.animated = true;
        config.store.variants.animation.max_frames = 2;
    })
    .await;
    let id = server.upload(gif(300)).ok().await.file_id;
    let refused = variant(&server, &id, "?animated=true").send().await;
    let problem = refused.problem(422, "image_too_large");
    assert!(problem.detail.contains("more than 2 frames"), "{problem:?}");
    assert_eq!(refused.json()["limit"], 2);
    variant(&server, &id, "").send().await.expect(200);
}

#[tokio::test]
async fn a_replaced_file_shows_its_new_frames_and_a_deleted_one_none() {
    let server = moving_server().await;
    let id = server.upload(fixtures::png(600, 400)).ok().await.file_id;
    let before = variant(&server, &id, "?animated=true").send().await.expect(200);
    server.change(&id).file(gif(300)).send().await.expect(200);
    let after = variant(&server, &id, "?animated=true").send().await.expect(200);
    assert_eq!(colors(&after), [0, 1, 2]);
    assert_ne!(before.only("etag"), after.only("etag"));

    server.call(http::Method::DELETE, &format!("/api/v1/files/{id}")).send().await.expect(200);
    variant(&server, &id, "?animated=true").send().await.problem(404, "not_found");
}

#[tokio::test]
async fn a_signature_covers_the_frames_that_it_was_made_for() {
    let server = moving_server().await;
    let id = server.upload(gif(300)).ok().await.file_id;
    let signed = async |request: SignRequest| {
        let url = server.client().sign(&id, &request).await.unwrap().url;
        url[url.find("/api/").unwrap()..].to_owned()
    };
    let still = signed(SignRequest::variant(200, Fit::Inside)).await;
    let moving = signed(SignRequest::variant(200, Fit::Inside).animated()).await;
    assert!(moving.contains("fit=inside&animated=true&"), "{moving}");
    assert_eq!(colors(&server.get(&moving).send().await.expect(200)), [0, 1, 2]);
    server.get(&still).send().await.expect(200);

    for forged in [
        moving.replace("&animated=true", ""),
        moving.replace("animated=true", "animated=false"),
        moving.replace("animated=true", "animated=1"),
        still.replace("fit=inside", "fit=inside&animated=true"),
        format!("{still}&animated=true"),
    ] {
        server.get(&forged).send().await.problem(403, "signature_invalid");
    }
}

#[tokio::test]
async fn the_client_asks_for_all_frames() {
    let server = moving_server().await;
    let id = server.upload(gif(300)).ok().await.file_id;
    let moving = server.client().variant(&id, 200).animated().await.unwrap();
    let raw = variant(&server, &id, "?animated=true").send().await.expect(200);
    assert_eq!(moving.bytes, raw.body);
    let tag = moving.etag.unwrap();
    let request = server.client().variant(&id, 200).animated();
    assert!(request.if_changed(&tag).await.unwrap().is_none());
}
