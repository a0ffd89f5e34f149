//! The file record, field by field (reference §2.1).

use filestore_workspace::{Form, TestServer, files_under, fixtures, sha256_hex};
use insta::assert_json_snapshot;

#[tokio::test]
async fn an_upload_returns_every_field_of_a_record() {
    let server = TestServer::start().await;
    let reply = server
        .upload(fixtures::png(320, 200))
        .name("Garden.PNG")
        .org("42")
        .send()
        .await
        .expect(201);
    assert_json_snapshot!(reply.json(), {
        ".file_id" => "[file id]",
        ".file_path" => "[file path]",
        ".created_at" => "[instant]",
        ".updated_at" => "[instant]",
        ".sha256" => "[sha256]",
        ".file_size" => "[bytes]",
    }, @r#"
    {
      "awaits_copy": false,
      "created_at": "[instant]",
      "deleted_at": null,
      "expires_at": null,
      "ext": "png",
      "file_id": "[file id]",
      "file_path": "[file path]",
      "file_size": "[bytes]",
      "height": 200,
      "metadata": {},
      "mime_type": "image/png",
      "organization_id": "42",
      "original_name": "Garden.PNG",
      "purge_due_at": null,
      "purge_status": null,
      "sha256": "[sha256]",
      "status": "READY",
      "storage_location": "LOCAL",
      "storage_provider": "LOCAL",
      "sub_system": "gallery",
      "sync_attempts": 0,
      "sync_error": null,
      "sync_status": "PENDING",
      "thumbhash": null,
      "updated_at": "[instant]",
      "version": 1,
      "width": 320
    }
    "#);
}

#[tokio::test]
async fn a_file_id_is_an_upper_case_ulid_with_fresh_random_bits() {
    let server = TestServer::start().await;
    let records = server.batch().item("a").item("b").item("c").item("d").ok().await;
    let mut random: Vec<&str> = Vec::new();
    for record in &records {
        assert!(is_ulid(&record.file_id), "{}", record.file_id);
        random.push(&record.file_id[10..13]);
    }
    random.dedup();
    assert!(random.len() > 1, "ids of one instant must not count up: {random:?}");
}

#[tokio::test]
async fn a_path_id_that_is_no_upper_case_ulid_is_400_and_an_unknown_one_404() {
    let server = TestServer::start().await;
    let record = server.upload("x").ok().await;

    let lower = record.file_id.to_lowercase();
    for bad in
        [&lower, "1", "%20", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01ARZ3NDEKTSV4RRFFQ69G5FAVX", "a%2Fb"]
    {
        for path in [bad.to_owned(), format!("{bad}/info"), format!("{bad}/200/200")] {
            let reply = server.get(&format!("/api/v1/files/{path}")).send().await;
            reply.problem(400, "invalid_field");
        }
        server.delete(bad).await.problem(400, "invalid_field");
        server.restore(bad).await.problem(400, "invalid_field");
        server.change(bad).make_ready().send().await.problem(400, "invalid_field");
    }

    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    server.content(unknown).send().await.problem(404, "not_found");
    server.info(unknown).await.problem(404, "not_found");
    server.variant(unknown, 200).send().await.problem(404, "not_found");
    server.delete(unknown).await.problem(404, "not_found");
    server.restore(unknown).await.problem(404, "not_found");

    server.change(unknown).make_ready().send().await.problem(404, "not_found");
}

#[tokio::test]
async fn the_given_name_wins_then_the_part_s_last_component_then_the_id() {
    let server = TestServer::start().await;
    let given = server.upload("x").name("given.txt").part_name("part.txt").ok().await;
    assert_eq!(given.original_name, "given.txt");

    for (part, name) in [
        ("part.txt", "part.txt"),
        ("C:\\fakepath\\part.txt", "part.txt"),
        ("photos/2026/part.txt", "part.txt"),
        ("../../etc/passwd", "passwd"),
        ("Ünïcödé 🎉.txt", "Ünïcödé 🎉.txt"),
    ] {
        let record = server.upload("x").part_name(part).ok().await;
        assert_eq!(record.original_name, name, "{part}");
    }

    let blank = server.upload("x").part_name("part.txt").name("").mime("").ok().await;
    assert_eq!(
        (&*blank.original_name, &*blank.mime_type),
        ("part.txt", "text/plain"),
        "left blank in a form"
    );

    let nameless = server.upload("x").ok().await;
    assert_eq!(nameless.original_name, nameless.file_id);
}

#[tokio::test]
async fn a_browser_s_percent_encoded_quotes_in_a_file_name_are_decoded() {
    let server = TestServer::start().await;
    let quoted = server.upload("x").part_name("the \"best\" 100%.txt").ok().await;
    assert_eq!(quoted.original_name, "the \"best\" 100%.txt");
    let other_escapes = server.upload("x").part_name("a%41b%2Fc.txt").ok().await;
    assert_eq!(other_escapes.original_name, "a%41b%2Fc.txt", "browsers escape nothing else");
}

#[tokio::test]
async fn a_given_name_is_at_most_255_characters_without_control_characters() {
    let server = TestServer::start().await;
    let longest = "é".repeat(255);
    assert_eq!(server.upload("x").name(&longest).ok().await.original_name, longest);
    for bad in ["x".repeat(256), "a\nb".into(), "a\0b".into(), "a\u{7f}b".into(), "a\u{85}b".into()]
    {
        let problem = server.upload("x").name(&bad).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("original_name"), "{bad:?}");
    }
    assert_eq!(server.listed().await.len(), 1);
}

#[tokio::test]
async fn a_name_is_data_and_never_part_of_a_path() {
    let server = TestServer::start().await;
    for name in ["../../../escape", "/etc/passwd", "..", "nul", "a/b\\c", "%2e%2e%2f"] {
        let record = server.upload("bytes").name(name).ok().await;
        assert_eq!(record.original_name, name);
        assert_eq!(server.content(&record.file_id).send().await.expect(200).body, "bytes");
    }

    let outside = server.data_dir().parent().unwrap();
    for file in files_under(outside) {
        assert!(file.starts_with(server.data_dir()), "{}", file.display());
        assert!(!file.to_string_lossy().contains("escape"), "{}", file.display());
    }
}

#[tokio::test]
async fn the_type_is_given_else_sniffed_else_the_part_s_else_by_extension() {
    let server = TestServer::start().await;
    let png = fixtures::png(4, 4);
    let upload = |bytes: &[u8]| server.upload(bytes).part_type("application/octet-stream");
    let given = upload(&png).mime("application/x-mine").part_type("text/css").ok().await;
    assert_eq!(given.mime_type, "application/x-mine");

    let sniffed = upload(&png).name("x.gif").part_type("text/css").ok().await;
    assert_eq!(sniffed.mime_type, "image/png");

    let part = upload(fixtures::UNKNOWN).name("x.gif").part_type("application/x-part").ok().await;
    assert_eq!(part.mime_type, "application/x-part");

    let extension = upload(fixtures::UNKNOWN).name("x.gif").ok().await;
    assert_eq!(extension.mime_type, "image/gif");

    let nothing = upload(fixtures::UNKNOWN).ok().await;
    assert_eq!(nothing.mime_type, "application/octet-stream");
}

#[tokio::test]
async fn a_given_type_that_is_no_media_type_is_400() {
    let server = TestServer::start().await;
    for bad in [
        "png",
        "image/",
        "/png",
        "image/p ng",
        "a/b\r\nX-Evil: 1",
        "ä/b",
        &format!("a/{}", "b".repeat(300)),
    ] {
        let problem = server.upload("x").mime(bad).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("mime_type"), "{bad:?}");
    }
}

#[tokio::test]
async fn the_extension_is_lower_case_from_the_name_else_from_the_bytes_else_empty() {
    let server = TestServer::start().await;
    let png = fixtures::png(4, 4);
    for (bytes, name, ext) in [
        (&png[..], "Photo.JPEG", "jpeg"),
        (&png, "archive.tar.gz", "gz"),
        (&png, "noext", "png"),
        (&png, "evil.p/hp", "png"),
        (&png, "x.muchtoolongext", "png"),
        (fixtures::UNKNOWN, "x.ö", ""),
        (fixtures::UNKNOWN, "noext", ""),
    ] {
        assert_eq!(server.upload(bytes).name(name).ok().await.ext, ext, "{name}");
    }
}

#[tokio::test]
async fn size_and_digest_are_those_of_the_bytes() {
    let server = TestServer::start().await;
    for length in [0, 1, 63, 8192, 65_537, 1_000_003] {
        let bytes = fixtures::noise(length as u64, length);
        let record = server.upload(&bytes).part_name("noise").ok().await;
        assert_eq!(record.file_size, length as u64);
        assert_eq!(record.sha256, sha256_hex(&bytes));
        assert_eq!(server.content(&record.file_id).send().await.expect(200).body, bytes);
    }
}

#[tokio::test]
async fn a_file_path_names_organization_sub_system_utc_date_and_a_generated_part() {
    let server = TestServer::start().await;
    let record =
        server.upload("x").org("acme_EU-1").sub_system("v1.2").name("secret name.txt").ok().await;
    let parts: Vec<&str> = record.file_path.split('/').collect();
    let [organization, sub_system, year, month, day, generated] = parts[..] else {
        panic!("{}", record.file_path);
    };
    assert_eq!((organization, sub_system), ("acme_EU-1", "v1.2"));
    assert_eq!(format!("{year}-{month}-{day}"), record.created_at[..10]);
    assert!(
        generated.len() >= 16 && generated.bytes().all(|b| b.is_ascii_alphanumeric()),
        "{generated}"
    );
    assert!(!record.file_path.contains("secret"));
}

#[tokio::test]
async fn every_blob_has_a_new_path_under_the_date_of_the_first_upload() {
    let server = TestServer::start().await;
    let first = server.upload("one").ok().await;
    server.change(&first.file_id).file("two").send().await.expect(200);
    let second = server.record(&first.file_id).await;
    let split = |path: &str| {
        path.rsplit_once('/').map(|(dir, name)| (dir.to_owned(), name.to_owned())).unwrap()
    };
    let ((dir, name), (next_dir, next_name)) = (split(&first.file_path), split(&second.file_path));
    assert_eq!(dir, next_dir);
    assert_ne!(name, next_name);

    let same_bytes = server.upload("two").ok().await;
    assert_ne!(same_bytes.file_path, second.file_path, "equal bytes share no blob");
}

#[tokio::test]
async fn instants_are_iso_8601_utc_with_milliseconds() {
    let server = TestServer::start().await;
    let record = server.upload("x").temp().ok().await;
    for instant in [&record.created_at, &record.updated_at, record.expires_at.as_ref().unwrap()] {
        let shape: String =
            instant.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{instant}");
    }
}

#[tokio::test]
async fn width_and_height_are_those_displayed_and_null_for_other_files() {
    let server = TestServer::start().await;
    let size = async |bytes: &[u8]| {
        let record = server.upload(bytes).part_name("file").ok().await;
        (record.width, record.height)
    };
    assert_eq!(size(&fixtures::jpeg(64, 32)).await, (Some(64), Some(32)));
    assert_eq!(
        size(&fixtures::jpeg_with_exif(64, 32, 6)).await,
        (Some(32), Some(64)),
        "turned by 90°"
    );
    assert_eq!(
        size(&fixtures::jpeg_with_exif(64, 32, 3)).await,
        (Some(64), Some(32)),
        "turned by 180°"
    );
    assert_eq!(size(&fixtures::gif(20, 30)).await, (Some(20), Some(30)));
    assert_eq!(size(&fixtures::webp(20, 30)).await, (Some(20), Some(30)));

    for other in [fixtures::PDF, fixtures::SVG, fixtures::HTML, fixtures::UNKNOWN, b"text", b""] {
        assert_eq!(size(other).await, (None, None), "{}", String::from_utf8_lossy(other));
    }
}

#[tokio::test]
async fn a_big_tiff_is_a_picture_in_its_record_and_in_its_variants() {
    let server = TestServer::start().await;
    let record = server.upload(fixtures::big_tiff(300, 210)).name("scan").ok().await;
    assert_eq!((&*record.mime_type, &*record.ext), ("image/tiff", "tif"));
    assert_eq!((record.width, record.height), (Some(300), Some(210)));
    let variant = server.variant(&record.file_id, 200).send().await.expect(200);
    assert_eq!(&variant.body[8..12], b"WEBP");
}

#[tokio::test]
async fn the_version_is_1_and_grows_by_1_per_replace_only() {
    let server = TestServer::start().await;
    let record = server.upload("one").temp().ok().await;
    assert_eq!(record.version, 1);
    server.change(&record.file_id).make_ready().send().await.expect(200);
    assert_eq!(server.record(&record.file_id).await.version, 1);
    server.change(&record.file_id).file("two").send().await.expect(200);
    assert_eq!(server.record(&record.file_id).await.version, 2);
}

#[tokio::test]
async fn organization_ids_follow_their_pattern() {
    let server = TestServer::start().await;
    for good in ["a", "0", "7", "9007199254740991", "acme_EU-1", "00a", &"x".repeat(64)] {
        assert_eq!(server.upload("x").org(good).ok().await.organization_id, good);
    }
    for bad in ["", "007", "00", "a b", "a/b", "..", "a.b", "ä", &"x".repeat(65)] {
        let problem = server.upload("x").org(bad).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("organization_id"), "{bad:?}");
    }
}

#[tokio::test]
async fn sub_systems_are_one_safe_path_segment() {
    let server = TestServer::start().await;
    for good in ["a", "0", "v1.2", "a_b-c", &"x".repeat(64)] {
        assert_eq!(server.upload("x").sub_system(good).ok().await.sub_system, good);
    }
    for bad in ["", ".", "..", ".a", "-a", "a..b", "a/b", "a\\b", "ä", &"x".repeat(65)] {
        let problem = server.upload("x").sub_system(bad).send().await.problem(400, "invalid_field");
        assert_eq!(problem.field.as_deref(), Some("sub_system"), "{bad:?}");
    }
}

#[tokio::test]
async fn a_record_reads_the_same_in_the_upload_the_info_and_the_listing() {
    let server = TestServer::start().await;
    let form = Form::new()
        .text("organization_id", "acme")
        .text("sub_system", "gallery")
        .text("upload_temp", "1")
        .file("file", "a.png", "image/png", &fixtures::png(8, 8));

    let uploaded = server.post("/api/v1/files/upload").form(form).send().await.expect(201).json();
    let id = uploaded["file_id"].as_str().unwrap();
    assert_eq!(server.info(id).await.expect(200).json(), uploaded);

    let page = server.get("/api/v1/files?organization_id=acme").send().await.expect(200).json();
    assert_eq!(page["items"][0], uploaded);
}

fn is_ulid(text: &str) -> bool {
    let crockford = |b: u8| b.is_ascii_digit() || (b.is_ascii_uppercase() && !b"ILOU".contains(&b));
    text.len() == 26 && text.as_bytes()[0] <= b'7' && text.bytes().all(crockford)
}
