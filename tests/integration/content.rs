//! GET /api/v1/files/{fileId} (reference §4.5): ranges, conditionals, disposition, safe serving.

use filestore_workspace::{Reply, TestServer, eventually, fixtures};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use sha2::{Digest, Sha256};

const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

async fn alphabet() -> (TestServer, String) {
    let server = TestServer::start().await;
    let id = server.upload(ALPHABET).name("alphabet.txt").ok().await.file_id;
    dated(&server, &id).await;
    (server, id)
}

/// The content's date, which is shown once its second is over.
pub(crate) async fn dated(server: &TestServer, id: &str) -> String {
    eventually("the end of the second", async || {
        server.content(id).send().await.header("last-modified").map(str::to_owned)
    })
    .await
}

async fn with(server: &TestServer, id: &str, headers: &[(&str, &str)]) -> Reply {
    let mut call = server.content(id);
    for (name, value) in headers {
        call = call.header(name, value);
    }
    call.send().await
}

#[tokio::test]
async fn a_local_file_is_200_with_its_bytes_and_all_its_headers() {
    let (server, id) = alphabet().await;
    let reply = server.content(&id).send().await.expect(200);
    assert_eq!(reply.body, ALPHABET);
    assert_eq!(reply.only("content-length"), "26");
    assert_eq!(reply.only("accept-ranges"), "bytes");
    assert_eq!(reply.only("cache-control"), "private, no-cache");
    assert_eq!(reply.only("x-content-type-options"), "nosniff");
    assert!(reply.only("content-type").starts_with("text/plain"));
    assert!(reply.only("etag").starts_with('"'), "a strong tag: {}", reply.only("etag"));
    assert!(reply.only("last-modified").ends_with(" GMT"));
    assert!(reply.header("x-request-id").is_some());

    // RFC 9530: sha-256=:<base64 of the digest>:
    assert_eq!(
        reply.only("repr-digest"),
        format!("sha-256=:{}:", base64(&Sha256::digest(ALPHABET)))
    );
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0u32, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }

    text
}

#[tokio::test]
async fn head_answers_as_get_does_without_the_body() {
    let (server, id) = alphabet().await;
    let get = server.content(&id).send().await.expect(200);
    let head = server.head(&format!("/api/v1/files/{id}")).send().await.expect(200);
    assert!(head.body.is_empty());

    for name in [
        "content-length",
        "content-type",
        "etag",
        "last-modified",
        "content-disposition",
        "cache-control",
    ] {
        assert_eq!(head.only(name), get.only(name), "{name}");
    }

    server.head(&format!("/api/v1/files/{id}/info")).send().await.expect(200);
    server.head("/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV").send().await.expect(404);
}

#[tokio::test]
async fn a_range_is_for_get_alone() {
    let (server, id) = alphabet().await;
    let head = server
        .head(&format!("/api/v1/files/{id}"))
        .header("range", "bytes=0-0")
        .send()
        .await
        .expect(200);
    assert_eq!((head.only("content-length"), head.header("content-range")), ("26", None));
}

#[tokio::test]
async fn a_single_range_is_206_with_exactly_its_bytes() {
    let (server, id) = alphabet().await;
    for (range, body, content_range) in [
        ("bytes=0-0", "a", "bytes 0-0/26"),
        ("bytes=0-1", "ab", "bytes 0-1/26"),
        ("bytes=3-7", "defgh", "bytes 3-7/26"),
        ("bytes=24-", "yz", "bytes 24-25/26"),
        ("bytes=-3", "xyz", "bytes 23-25/26"),
        ("bytes=20-999", "uvwxyz", "bytes 20-25/26"),
        ("bytes=0-", "abcdefghijklmnopqrstuvwxyz", "bytes 0-25/26"),
        ("bytes=-999", "abcdefghijklmnopqrstuvwxyz", "bytes 0-25/26"),
        ("bytes=25-18446744073709551615", "z", "bytes 25-25/26"),
        ("BYTES=0-0", "a", "bytes 0-0/26"),
    ] {
        let reply = with(&server, &id, &[("range", range)]).await.expect(206);
        assert_eq!(reply.text(), body, "{range}");
        assert_eq!(reply.only("content-range"), content_range, "{range}");
        assert_eq!(reply.only("content-length"), body.len().to_string(), "{range}");
    }
}

#[tokio::test]
async fn an_unsatisfiable_range_is_416_with_the_length() {
    let (server, id) = alphabet().await;
    for range in ["bytes=26-", "bytes=26-30", "bytes=-0", "bytes=99999999999999999999-"] {
        let reply = with(&server, &id, &[("range", range)]).await;
        assert_eq!(reply.status, 416, "{range}");
        assert_eq!(reply.only("content-range"), "bytes */26", "{range}");
    }
    let empty = server.upload("").part_name("empty").ok().await.file_id;
    let reply = with(&server, &empty, &[("range", "bytes=0-0")]).await.expect(416);
    assert_eq!(reply.only("content-range"), "bytes */0");
}

#[tokio::test]
async fn several_unknown_or_malformed_ranges_give_the_whole_file() {
    let (server, id) = alphabet().await;
    for range in [
        "bytes=0-1,3-4",
        "items=0-1",
        "bytes=5-2",
        "bytes=a-b",
        "bytes=",
        "bytes",
        "bytes=1",
        "bytes=--1",
    ] {
        let reply = with(&server, &id, &[("range", range)]).await;
        assert_eq!((reply.status, &reply.body[..]), (200, ALPHABET), "{range}");
    }
}

#[tokio::test]
async fn any_range_is_the_slice_it_names() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(5, 700_001);
    let id = server.upload(&bytes).ok().await.file_id;
    let length = bytes.len();
    let mut runner = TestRunner::deterministic();

    let ranges = (0..length, 0..length * 2);
    for _ in 0..40 {
        let (first, extent) = ranges.new_tree(&mut runner).unwrap().current();
        let last = first + extent;
        let reply =
            with(&server, &id, &[("range", &format!("bytes={first}-{last}"))]).await.expect(206);
        assert!(reply.body == bytes[first..=last.min(length - 1)], "{first}-{last}");
    }
}

#[tokio::test]
async fn if_none_match_answers_304_with_the_validators() {
    let (server, id) = alphabet().await;
    let etag = server.content(&id).send().await.only("etag").to_owned();
    let weak = format!("W/{etag}");

    let list = format!("\"a\", {etag}");
    for matching in [&etag, &weak, &list, "*"] {
        let reply = with(&server, &id, &[("if-none-match", matching)]).await.expect(304);
        assert_eq!(reply.only("etag"), etag, "{matching}");
        assert_eq!(reply.only("cache-control"), "private, no-cache");
        assert!(reply.body.is_empty());
    }

    with(&server, &id, &[("if-none-match", "\"other\"")]).await.expect(200);
}

#[tokio::test]
async fn if_match_that_fails_is_412() {
    let (server, id) = alphabet().await;
    let etag = server.content(&id).send().await.only("etag").to_owned();
    with(&server, &id, &[("if-match", &etag)]).await.expect(200);
    with(&server, &id, &[("if-match", "*")]).await.expect(200);
    with(&server, &id, &[("if-match", "\"other\"")]).await.problem(412, "precondition_failed");
    let weak = format!("W/{etag}");
    with(&server, &id, &[("if-match", &weak)]).await.problem(412, "precondition_failed");
}

#[tokio::test]
async fn dates_are_compared_where_no_tag_is_given() {
    let (server, id) = alphabet().await;
    let modified = server.content(&id).send().await.only("last-modified").to_owned();
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    with(&server, &id, &[("if-modified-since", &modified)]).await.expect(304);
    with(&server, &id, &[("if-modified-since", past)]).await.expect(200);
    with(&server, &id, &[("if-modified-since", "yesterday")]).await.expect(200);
    with(&server, &id, &[("if-unmodified-since", &modified)]).await.expect(200);
    with(&server, &id, &[("if-unmodified-since", past)]).await.problem(412, "precondition_failed");
}

#[tokio::test]
async fn preconditions_are_taken_in_the_rfc_s_order() {
    let (server, id) = alphabet().await;
    let full = server.content(&id).send().await;
    let (etag, modified) = (full.only("etag").to_owned(), full.only("last-modified").to_owned());

    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    let order = [
        // If-Match true: If-Unmodified-Since is not looked at.
        (vec![("if-match", &*etag), ("if-unmodified-since", past)], 200),
        // If-Match false comes before If-None-Match.
        (vec![("if-match", "\"other\""), ("if-none-match", &*etag)], 412),
        // If-None-Match false: If-Modified-Since is not looked at.
        (vec![("if-none-match", "\"other\""), ("if-modified-since", &*modified)], 200),
        // If-None-Match true comes before Range.
        (vec![("if-none-match", &*etag), ("range", "bytes=0-0")], 304),
        (vec![("if-match", &*etag), ("range", "bytes=0-0")], 206),
    ];

    for (headers, status) in order {
        assert_eq!(with(&server, &id, &headers).await.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn if_range_gives_the_part_only_of_the_same_content() {
    let (server, id) = alphabet().await;
    let full = server.content(&id).send().await;
    let (etag, modified) = (full.only("etag").to_owned(), full.only("last-modified").to_owned());

    let weak = format!("W/{etag}");
    for (if_range, status) in [
        (&*etag, 206),
        (&*weak, 200),
        ("\"other\"", 200),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ("nonsense", 200),
    ] {
        let reply = with(&server, &id, &[("range", "bytes=0-1"), ("if-range", if_range)]).await;
        assert_eq!(reply.status, status, "{if_range}");
    }

    let by_date = with(&server, &id, &[("range", "bytes=0-1"), ("if-range", &modified)]).await;
    assert_eq!(by_date.status, 206);
}

#[tokio::test]
async fn no_date_names_two_contents_even_if_both_are_of_one_second() {
    let server = TestServer::start().await;
    let id = server.upload("first").ok().await.file_id;
    loop {
        server.change(&id).file("other").send().await.expect(200);
        let stored = server.store().now();

        let date = httpdate::fmt_http_date(stored.to_system_time());
        let unchanged = with(&server, &id, &[("if-modified-since", &date)]).await;
        let part = with(&server, &id, &[("range", "bytes=0-1"), ("if-range", &date)]).await;
        if server.store().now().as_secs() != stored.as_secs() {
            continue;
        }
        assert_eq!((unchanged.status, part.status), (200, 200));
        assert!(unchanged.header("last-modified").is_none());
        break;
    }

    let date = dated(&server, &id).await;
    with(&server, &id, &[("if-modified-since", &date)]).await.expect(304);
}

#[tokio::test]
async fn last_modified_is_the_blob_s_time_and_not_the_record_s() {
    let server = TestServer::start().await;
    let temp = server.upload("x").temp().ok().await;
    dated(&server, &temp.file_id).await;
    let before = server.content(&temp.file_id).send().await;
    server.change(&temp.file_id).make_ready().send().await.expect(200);
    let after = server.content(&temp.file_id).send().await;
    assert_eq!(after.only("last-modified"), before.only("last-modified"));
    assert_eq!(after.only("etag"), before.only("etag"));
}

#[tokio::test]
async fn equal_bytes_have_equal_tags_and_other_bytes_others() {
    let server = TestServer::start().await;
    let etag = async |bytes: &str| {
        let id = server.upload(bytes).ok().await.file_id;
        server.content(&id).send().await.only("etag").to_owned()
    };
    assert_eq!(etag("one").await, etag("one").await);
    assert_ne!(etag("one").await, etag("two").await);
}

#[tokio::test]
async fn the_current_digest_as_v_makes_the_reply_immutable() {
    let server = TestServer::start().await;
    let record = server.upload("one").ok().await;
    let at = |v: &str| server.get(&format!("/api/v1/files/{}?v={v}", record.file_id)).send();
    let fresh = at(&record.sha256).await.expect(200);
    assert_eq!(fresh.only("cache-control"), "private, max-age=31536000, immutable");

    for other in [&"0".repeat(64), "", "abc"] {
        let reply = at(other).await.expect(200);
        assert_eq!(reply.only("cache-control"), "private, no-cache", "{other:?} is ignored");
    }

    server.change(&record.file_id).file("two").send().await.expect(200);
    assert_eq!(at(&record.sha256).await.expect(200).only("cache-control"), "private, no-cache");
}

#[tokio::test]
async fn only_harmless_types_whose_bytes_agree_are_shown_inline() {
    let server = TestServer::start().await;
    let strict = "default-src 'none'; sandbox; form-action 'none'; base-uri 'none'";
    let media = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; \
                 form-action 'none'; base-uri 'none'";
    let inline: Vec<(Vec<u8>, &str, &str)> = vec![
        (fixtures::png(4, 4), "image/png", strict),
        (fixtures::jpeg(8, 8), "image/jpeg", strict),
        (fixtures::gif(4, 4), "image/gif", strict),
        (fixtures::webp(4, 4), "image/webp", strict),
        (fixtures::AVIF.into(), "image/avif", strict),
        (b"plain words".into(), "text/plain", strict),
        (fixtures::MP4.into(), "video/mp4", media),
        (fixtures::webm(), "video/webm", media),
        (fixtures::MP3.into(), "audio/mpeg", media),
        (fixtures::OGG.into(), "audio/ogg", media),
        (fixtures::WAV.into(), "audio/wav", media),
        (fixtures::PDF.into(), "application/pdf", "default-src 'none'"),
    ];

    for (bytes, mime, policy) in inline {
        let record = server.upload(&bytes).ok().await;
        assert_eq!(record.mime_type, mime);
        let reply = server.content(&record.file_id).send().await.expect(200);
        assert!(reply.only("content-disposition").starts_with("inline"), "{mime}");
        assert!(reply.only("content-type").starts_with(mime), "{mime}");
        assert_eq!(reply.only("x-content-type-options"), "nosniff", "{mime}");
        let sent = reply.only("content-security-policy");
        if mime == "application/pdf" {
            assert!(
                !sent.contains("sandbox") && sent.starts_with(policy),
                "the viewer needs it: {sent}"
            );
        } else {
            assert_eq!(sent, policy, "{mime}");
        }
    }
}

#[tokio::test]
async fn what_a_browser_could_run_is_an_attachment_however_it_is_asked_for() {
    let server = TestServer::start().await;
    let png = fixtures::png(4, 4);
    for (bytes, claimed) in [
        (fixtures::HTML, None),
        (fixtures::SVG, None),
        (fixtures::XML, None),
        (fixtures::JS, Some("text/javascript")),
        (fixtures::UNKNOWN, None),
        (fixtures::HTML, Some("image/png")),
        (fixtures::HTML, Some("text/plain")),
        (fixtures::SVG, Some("image/svg+xml")),
        (&png[..], Some("text/html")),
        (&png, Some("image/svg+xml")),
        (&png, Some("application/xhtml+xml")),
    ] {
        let mut upload = server.upload(bytes);
        if let Some(claimed) = claimed {
            upload = upload.mime(claimed);
        }
        let id = upload.ok().await.file_id;
        for query in ["", "?disposition=inline"] {
            let reply = server.get(&format!("/api/v1/files/{id}{query}")).send().await.expect(200);
            let disposition = reply.only("content-disposition");
            assert!(disposition.starts_with("attachment"), "{claimed:?} {query}: {disposition}");
            let policy = reply.only("content-security-policy");
            assert!(policy.starts_with("default-src 'none'; sandbox"), "{policy}");
            assert_eq!(reply.only("x-content-type-options"), "nosniff");
        }
    }
}

#[tokio::test]
async fn disposition_asks_for_attachment_or_inline_and_nothing_else() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::png(4, 4)).name("a.png").ok().await.file_id;
    let at = async |query: &str| server.get(&format!("/api/v1/files/{id}?{query}")).send().await;
    assert!(
        at("disposition=attachment")
            .await
            .expect(200)
            .only("content-disposition")
            .starts_with("attachment")
    );
    assert!(
        at("disposition=inline")
            .await
            .expect(200)
            .only("content-disposition")
            .starts_with("inline")
    );

    for bad in [
        "disposition=",
        "disposition=Attachment",
        "disposition=download",
        "disposition=inline%0D%0AX:1",
    ] {
        let problem = at(bad).await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("disposition"));
    }

    at("colour=red").await.expect(200);
}

#[tokio::test]
async fn any_name_travels_in_the_disposition_without_splitting_the_header() {
    let server = TestServer::start().await;
    for name in [
        "plain.txt",
        "Grüße aus Köln.txt",
        "日本語の写真 🎉.png",
        "quote\"backslash\\semi;colon.txt",
        "100% %41.txt",
        "  spaces  .txt",
        "a'b*c.txt",
        "\u{202e}gpj.exe",
    ] {
        let id = server.upload("x").name(name).ok().await.file_id;
        let reply = server.content(&id).send().await.expect(200);
        let header = reply.only("content-disposition");
        assert!(header.bytes().all(|b| (0x20..0x7F).contains(&b)), "{header}");
        assert_eq!(received_name(header), name, "{header}");
    }
}

/// The name a user agent would use: `filename*` before `filename` (RFC 6266 §4.3, RFC 8187).
fn received_name(disposition: &str) -> String {
    if let Some((_, extended)) = disposition.split_once("filename*=UTF-8''") {
        let encoded = extended.split(';').next().unwrap();
        return percent_decoded(encoded);
    }

    let (_, quoted) = disposition.split_once("filename=\"").expect("a name");
    let mut name = String::new();

    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => name.extend(chars.next()),
            '"' => return name,
            other => name.push(other),
        }
    }

    panic!("no closing quote in {disposition}");
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let hex = std::str::from_utf8(&tail[..2]).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &tail[2..];
        } else {
            assert!(
                first.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(first),
                "attr-char: {text}"
            );
            bytes.push(*first);
            rest = tail;
        }
    }

    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_stored_type_never_splits_a_header() {
    let server = TestServer::start().await;
    let record = server.upload("x").mime("text/plain; charset=\"utf-8\"").ok().await;
    let reply = server.content(&record.file_id).send().await.expect(200);
    assert!(reply.only("content-type").starts_with("text/plain"));
}

#[tokio::test]
async fn a_reader_that_began_before_a_replace_gets_the_old_bytes_to_the_end() {
    let server = TestServer::start().await;
    let old = fixtures::noise(1, 6_000_000);
    let record = server.upload(&old).ok().await;
    let mut response = server.content(&record.file_id).open().await;
    let mut received = response.chunk().await.unwrap().unwrap().to_vec();
    server.change(&record.file_id).file(fixtures::noise(2, 6_000_000)).send().await.expect(200);
    while let Some(chunk) = response.chunk().await.unwrap() {
        received.extend_from_slice(&chunk);
    }
    assert!(received == old);
}

#[tokio::test]
async fn a_reader_that_began_before_a_purge_gets_the_bytes_to_the_end() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(1, 6_000_000);
    let record = server.upload(&bytes).ok().await;
    let mut response = server.content(&record.file_id).open().await;
    let mut received = response.chunk().await.unwrap().unwrap().to_vec();

    server.delete(&record.file_id).await.expect(200);
    filestore_workspace::eventually("the purge", async || {
        Some(server.info(&record.file_id).await).filter(|reply| reply.status == 404)
    })
    .await;
    while let Some(chunk) = response.chunk().await.unwrap() {
        received.extend_from_slice(&chunk);
    }
    assert!(received == bytes);
}

#[tokio::test]
async fn a_file_and_its_variants_depend_on_the_key_for_a_cache() {
    let server = TestServer::start().await;
    let id = server.upload(fixtures::jpeg(300, 300)).ok().await.file_id;
    for call in [server.content(&id), server.variant(&id, 200)] {
        let reply = call.send().await.expect(200);
        assert_eq!(reply.only("vary"), "Authorization");
        let tag = reply.only("etag").to_owned();
        let path = format!("/api/v1/files/{id}");
        let again = server.get(&path).header("if-none-match", &tag).send().await;
        assert_eq!(again.only("vary"), "Authorization", "{}", again.status);
    }
    assert_eq!(server.info(&id).await.header("vary"), None);
}

#[tokio::test]
async fn the_parameter_redirect_is_a_boolean() {
    let (server, id) = alphabet().await;
    for value in ["false", "true", "0", "1"] {
        let reply = server.get(&format!("/api/v1/files/{id}?redirect={value}")).send().await;
        assert_eq!(reply.expect(200).body, ALPHABET);
    }
    let reply = server.get(&format!("/api/v1/files/{id}?redirect=no")).send().await;
    assert_eq!(reply.problem(400, "invalid_field").field.as_deref(), Some("redirect"));
}
