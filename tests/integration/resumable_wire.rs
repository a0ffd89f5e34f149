//! Resumable uploads byte for byte: what iOS sends, the examples of the draft, and connections that end in the
//! ways of tusd's own tests.

use std::time::Duration;

use filestore_workspace::wire::{Wire, WireReply};
use filestore_workspace::{TestServer, eventually, fixtures, sha256_hex};

const CREATE: &str = "/api/v1/uploads?organization_id=acme&sub_system=docs";
const UPLOADS: &str = "/api/v1/uploads?organization_id=acme";

/// A release of iOS, and the headers of its uploads.
struct Ios {
    version: &'static str,
    /// The header of a body with the last byte of the file.
    last: &'static str,
    /// The media type of an append.
    media_type: &'static str,
    /// True if the requests name the length of the file.
    has_length: bool,
    agent: &'static str,
}

/// iOS 17, 18.0, 18.1 and 26.
const RELEASES: [Ios; 4] = [
    Ios {
        version: "3",
        last: "Upload-Incomplete: ?0",
        media_type: "application/octet-stream",
        has_length: false,
        agent: "Demo/1 CFNetwork/1490.0.4 Darwin/23.2.0",
    },
    Ios {
        version: "5",
        last: "Upload-Complete: ?1",
        media_type: "application/octet-stream",
        has_length: false,
        agent: "Demo/1 CFNetwork/1568.100.1 Darwin/24.0.0",
    },
    Ios {
        version: "6",
        last: "Upload-Complete: ?1",
        media_type: "application/partial-upload",
        has_length: true,
        agent: "Demo/1 CFNetwork/1568.200.51 Darwin/24.1.0",
    },
    Ios {
        version: "8",
        last: "Upload-Complete: ?1",
        media_type: "application/partial-upload",
        has_length: true,
        agent: "Demo/1 CFNetwork/3860.300.31 Darwin/25.2.0",
    },
];

impl Ios {
    /// Writes the head of a request as the URL loading system does.
    fn head(&self, server: &TestServer, line: &str, own: &str, length: usize) -> String {
        format!(
            "{line} HTTP/1.1\r\nHost: {}\r\n{own}Accept: */*\r\n\
             Upload-Draft-Interop-Version: {}\r\nAccept-Language: en-GB,en;q=0.9\r\n\
             Accept-Encoding: gzip, deflate\r\nUser-Agent: {}\r\nContent-Length: {length}\r\n\
             Connection: keep-alive\r\n\r\n",
            server.addr(),
            self.version,
            self.agent
        )
    }

    /// Writes the head of the request that begins with the whole file of 5 bytes.
    fn whole(&self, server: &TestServer, more: &str) -> String {
        let length = if self.has_length { "Upload-Length: 5\r\n" } else { "" };
        let own = format!("Content-Type: text/plain\r\n{}\r\n{length}{more}", self.last);
        self.head(server, &format!("POST {CREATE}"), &own, 5)
    }
}

/// Waits until the newest upload has kept a number of bytes. Ends no transfer.
async fn wait_for(server: &TestServer, offset: usize) {
    let kept = async || {
        let list = server.get(UPLOADS).send().await.json();
        let newest = list["items"].as_array()?.last()?;
        (newest["offset"] == offset).then_some(())
    };
    eventually("kept bytes", kept).await;
}

async fn uploads(server: &TestServer) -> usize {
    server.get(UPLOADS).send().await.json()["items"].as_array().unwrap().len()
}

#[track_caller]
fn header<'r>(reply: &'r WireReply, name: &str) -> &'r str {
    reply.header(name).unwrap_or_else(|| panic!("no {name} in {reply:?}"))
}

#[tokio::test]
async fn ios_uploads_a_whole_file_in_one_request() {
    let server = TestServer::start().await;
    for ios in RELEASES {
        let mut wire = server.wire().await;
        wire.send(ios.whole(&server, "")).await;
        wire.send("Hello").await;
        assert_eq!(wire.status_line().await, "HTTP/1.1 201 Created", "no interim reply");

        // The connection serves the next request.
        let reply = exchange(&server, &ios.whole(&server, ""), "Hello").await;
        let (name, value) = ios.last.split_once(": ").unwrap();
        assert_eq!((reply.status, header(&reply, name)), (201, value), "{}", ios.version);
        let record = reply.json();
        assert_eq!(
            (&record["file_size"], &record["sha256"]),
            (&5.into(), &sha256_hex(b"Hello").into())
        );
        assert!(header(&reply, "location").ends_with(record["file_id"].as_str().unwrap()));
    }
    assert_eq!(uploads(&server).await, 0);
}

/// Sends a head and a body on a connection of its own.
async fn exchange(server: &TestServer, head: &str, body: &str) -> WireReply {
    let mut wire = server.wire().await;
    wire.send([head.as_bytes(), body.as_bytes()].concat()).await;
    wire.reply().await
}

#[tokio::test]
async fn ios_that_is_cut_before_it_knows_the_address_leaves_nothing_and_begins_again() {
    let server = TestServer::start().await;
    for ios in RELEASES {
        let mut wire = server.wire().await;
        wire.send(ios.whole(&server, "")).await;
        wire.send("He").await;
        drop(wire);
        server.wait_for_empty_staging().await;
        assert_eq!((uploads(&server).await, server.listed_of("acme").await.len()), (0, 0));
        let again = exchange(&server, &ios.whole(&server, ""), "Hello").await;
        assert_eq!(again.status, 201);
        let file_id = again.json()["file_id"].as_str().unwrap().to_owned();
        assert_eq!(server.listed_of("acme").await, [&*file_id]);
        server.delete(&file_id).await.expect(200);
    }
}

#[tokio::test]
async fn ios_that_is_cut_asks_for_the_offset_and_sends_the_rest() {
    for ios in RELEASES {
        let server = TestServer::start().await;
        // Without interim replies, the key is the way to the address.
        let whole = ios.whole(&server, "Idempotency-Key: holiday\r\n");
        let mut wire = server.wire().await;
        wire.send(&whole).await;
        wire.send("He").await;
        wait_for(&server, 0).await;
        drop(wire);
        wait_for(&server, 2).await;

        let found = exchange(&server, &whole, "Hello").await;
        assert_eq!((found.status, header(&found, "upload-offset")), (201, "2"), "{}", ios.version);
        let path = header(&found, "location").to_owned();

        let mut wire = server.wire().await;
        wire.send(ios.head(&server, &format!("HEAD {path}"), "", 0)).await;
        let head = wire.reply_to_head().await;
        assert_eq!((head.status, header(&head, "upload-offset")), (204, "2"));

        let length = if ios.has_length { "Upload-Length: 5\r\n" } else { "" };
        let own = format!(
            "Content-Type: {}\r\n{}\r\nUpload-Offset: 2\r\n{length}",
            ios.media_type, ios.last
        );
        let rest = ios.head(&server, &format!("PATCH {path}"), &own, 3);
        wire.send([rest.as_bytes(), b"llo"].concat()).await;
        let done = wire.reply().await;
        assert_eq!(done.status, 201, "{done:?}");
        let record = done.json();
        assert_eq!(record["sha256"], sha256_hex(b"Hello"));
        assert_eq!(server.listed_of("acme").await, [record["file_id"].as_str().unwrap()]);

        wire.send(ios.head(&server, &format!("DELETE {path}"), "", 0)).await;
        assert_eq!(wire.reply().await.status, 204);
        assert_eq!(server.listed_of("acme").await.len(), 1, "the file stays");
    }
}

/// A server with the name of the draft's examples.
async fn example_com() -> TestServer {
    TestServer::start_with(|config| config.allowed_hosts = vec!["example.com".into()]).await
}

/// The requests of the draft's examples, whose lengths have seven digits less. The paths are those of this server.
#[tokio::test]
async fn the_examples_of_the_draft_with_the_whole_file_in_its_creation() {
    let server = example_com().await;
    let content = "x".repeat(1234);
    let request = format!(
        "POST {CREATE} HTTP/1.1\r\nHost: example.com\r\n\
         Content-Disposition: inline; filename=\"file name.jpg\"; filename*=UTF-8''file%20name.jpg\r\n\
         Content-Length: 1234\r\nUpload-Length: 1234\r\nUpload-Complete: ?1\r\n\r\n{content}"
    );
    let reply = server.exchange(&request).await;
    assert_eq!((reply.status, header(&reply, "upload-complete")), (201, "?1"));
    let record = reply.json();
    assert_eq!(
        (&record["original_name"], &record["file_size"]),
        (&"file name.jpg".into(), &1234.into())
    );
    assert_eq!(uploads(&server).await, 0);
}

#[tokio::test]
async fn the_examples_of_the_draft_with_a_series_of_parts() {
    let server = example_com().await;
    let creation = format!(
        "POST {CREATE} HTTP/1.1\r\nHost: example.com\r\nUpload-Complete: ?0\r\n\
         Content-Length: 23\r\nUpload-Length: 123\r\n\r\n{}",
        "a".repeat(23)
    );
    let created = server.exchange(&creation).await;
    assert_eq!((created.status, header(&created, "upload-complete")), (201, "?0"));
    assert!(header(&created, "upload-limit").starts_with("max-size="));
    let path = header(&created, "location").to_owned();

    let head = offset(&server, &path).await;
    assert_eq!(shown(&head), ("?0", "23", Some("123")));
    assert_eq!(header(&head, "cache-control"), "no-store");
    assert!(header(&head, "upload-limit").contains("max-age="));

    let append = |complete: &str, offset: usize, bytes: &str| {
        format!(
            "PATCH {path} HTTP/1.1\r\nHost: example.com\r\nUpload-Complete: {complete}\r\n\
             Upload-Offset: {offset}\r\nContent-Length: {}\r\n\
             Content-Type: application/partial-upload\r\n\r\n{bytes}",
            bytes.len()
        )
    };
    let more = server.exchange(&append("?0", 23, &"b".repeat(50))).await;
    assert_eq!((more.status, header(&more, "upload-complete")), (204, "?0"));
    let wrong = server.exchange(&append("?0", 20, "x")).await;
    assert_eq!((wrong.status, header(&wrong, "upload-offset")), (409, "73"));

    let last = server.exchange(&append("?1", 73, &"c".repeat(50))).await;
    assert_eq!((last.status, header(&last, "upload-complete")), (201, "?1"));
    let record = last.json();
    let whole = ["a".repeat(23), "b".repeat(50), "c".repeat(50)].concat();
    assert_eq!(record["sha256"], sha256_hex(whole.as_bytes()));
    assert_eq!(shown(&offset(&server, &path).await), ("?1", "123", Some("123")));
}

#[tokio::test]
async fn the_example_of_the_draft_that_cancels() {
    let server = example_com().await;
    let creation = format!(
        "POST {CREATE} HTTP/1.1\r\nHost: example.com\r\nUpload-Complete: ?0\r\nContent-Length: 0\r\n\r\n"
    );
    let created = server.exchange(&creation).await;
    let path = header(&created, "location").to_owned();
    assert_eq!(shown(&offset(&server, &path).await), ("?0", "0", None));
    let cancel = format!("DELETE {path} HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert_eq!(server.exchange(&cancel).await.status, 204);
    assert_eq!(server.exchange(&cancel).await.status, 404);
    assert_eq!(uploads(&server).await, 0);
}

/// The example that asks for the offset.
async fn offset(server: &TestServer, path: &str) -> WireReply {
    let mut wire = server.wire().await;
    wire.send(format!("HEAD {path} HTTP/1.1\r\nHost: example.com\r\n\r\n")).await;
    wire.reply_to_head().await
}

#[track_caller]
fn shown(head: &WireReply) -> (&str, &str, Option<&str>) {
    (header(head, "upload-complete"), header(head, "upload-offset"), head.header("upload-length"))
}

#[tokio::test]
async fn a_part_in_an_unknown_version_is_refused_and_a_whole_file_is_an_upload() {
    let server = TestServer::start().await;
    let request = |complete: &str| {
        format!(
            "POST {CREATE} HTTP/1.1\r\nHost: {}\r\nUpload-Draft-Interop-Version: 42\r\n\
             Upload-Complete: {complete}\r\nUpload-Length: 5\r\nContent-Length: 5\r\n\r\nHello",
            server.addr()
        )
    };
    let part = server.exchange(&request("?0")).await;
    assert_eq!((part.status, &part.json()["code"]), (412, &"unsupported_version".into()));
    assert_eq!(server.listed_of("acme").await, [""; 0], "a part is no file");
    let whole = server.exchange(&request("?1")).await;
    assert_eq!((whole.status, &whole.json()["file_size"]), (201, &5.into()));
    assert_eq!(whole.header("upload-complete"), None);
}

/// Creates an upload by tus, and begins a PATCH with the first bytes of `bytes`.
async fn begun(server: &TestServer, bytes: &[u8], sent: usize) -> (String, Wire) {
    let create = server.post(CREATE).header("tus-resumable", "1.0.0");
    let create = create.header("upload-length", &bytes.len().to_string()).send().await.expect(201);
    let path = create.only("location").to_owned();
    let mut wire = server.wire().await;
    wire.send(patch(server, &path, 0, bytes.len())).await;
    wire.send(&bytes[..sent]).await;
    (path, wire)
}

fn patch(server: &TestServer, path: &str, offset: usize, length: usize) -> String {
    format!(
        "PATCH {path} HTTP/1.1\r\nHost: {}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {offset}\r\n\
         Content-Type: application/offset+octet-stream\r\nContent-Length: {length}\r\n\r\n",
        server.addr()
    )
}

/// Asks for the offset, sends the rest, and compares the file. Returns the offset.
async fn finish(server: &TestServer, path: &str, bytes: &[u8]) -> usize {
    let head = server.head(path).header("tus-resumable", "1.0.0").send().await.expect(200);
    let kept: usize = head.only("upload-offset").parse().unwrap();
    let mut wire = server.wire().await;
    wire.send(patch(server, path, kept, bytes.len() - kept)).await;
    wire.send(&bytes[kept..]).await;
    let done = wire.reply().await;
    assert_eq!(done.status, 204, "{done:?}");
    assert_eq!(server.record(header(&done, "file-id")).await.sha256, sha256_hex(bytes));
    kept
}

#[tokio::test]
async fn stalled_reader_keeps_10_of_50_kib() {
    let brief = Duration::from_millis(300);
    let server = TestServer::start_with(|config| config.body.idle = brief).await;
    let bytes = fixtures::noise(5, 50 << 10);
    let (path, mut wire) = begun(&server, &bytes, 10 << 10).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, &reply.json()["code"]), (503, &"upload_stalled".into()));
    assert!(reply.header("retry-after").is_some());
    assert_eq!(finish(&server, &path, &bytes).await, 10 << 10);
}

#[tokio::test]
async fn reset_after_5_of_10_kib() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(6, 10 << 10);
    let (path, wire) = begun(&server, &bytes, 5 << 10).await;
    let receives = async || {
        let status = server.get("/api/v1/admin/status").send().await.expect(200).json();
        (status["resumable"]["transfers"] == 1).then_some(())
    };
    eventually("the request has the upload", receives).await;
    wire.reset();
    // A reset drops bytes that the server has not read yet.
    assert!(finish(&server, &path, &bytes).await <= 5 << 10);
}

/// Counts the bytes in the server's staging.
fn staged_bytes(server: &TestServer) -> u64 {
    let staging = std::fs::read_dir(server.data_dir().join("staging")).unwrap();
    staging.filter_map(|entry| entry.ok()?.metadata().ok()).map(|file| file.len()).sum()
}

#[tokio::test]
async fn sigterm_answers_503_and_keeps_bytes() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(7, 9 << 20);
    let (path, mut wire) = begun(&server, &bytes, 8 << 20).await;
    let written = async || (staged_bytes(&server) >= 1 << 20).then_some(());
    eventually("bytes are written", written).await;

    // The signal stops the process in the same way.
    let (server, reply) = Box::pin(async { tokio::join!(server.restart(), wire.reply()) }).await;
    assert_eq!((reply.status, &reply.json()["code"]), (503, &"busy".into()));
    assert!(reply.header("retry-after").is_some());
    let kept = finish(&server, &path, &bytes).await;
    assert!(kept >= 1 << 20, "{kept}");
    assert_eq!(server.listed_of("acme").await.len(), 1);
}

#[tokio::test]
async fn one_go_and_every_cut_is_the_same_file() {
    let server = TestServer::start().await;
    let bytes = fixtures::noise(8, 40 << 10);
    for cut in [0, 1, 10 << 10, (40 << 10) - 1] {
        let (path, wire) = begun(&server, &bytes, cut).await;
        drop(wire);
        wait_for(&server, cut).await;
        assert_eq!(finish(&server, &path, &bytes).await, cut);
        server.wait_for_empty_staging().await;
    }
}
