//! The rows of RFC 9110 §13.2.2 (precedence of conditions) and §14 (ranges) that `content` does not show.
//! Those of requests that change a file are in `preconditions`.

use filestore_workspace::{Reply, TestServer};
use reqwest::Method;

use crate::content::dated;

const LONG_AGO: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

/// Ten digits in a file, and a way to ask for them.
struct Digits {
    server: TestServer,
    path: String,
    etag: String,
}

impl Digits {
    async fn stored() -> Self {
        let server = TestServer::start().await;
        let record = server.upload("0123456789").ok().await;
        dated(&server, &record.file_id).await;
        let path = format!("/api/v1/files/{}", record.file_id);
        Self { server, path, etag: format!("\"{}\"", record.sha256) }
    }

    /// Asks with headers of which `OWN` and `WEAK` stand for the file's own tag.
    async fn ask(&self, method: Method, headers: &[(&str, &str)]) -> Reply {
        let weak = format!("W/{}", self.etag);
        let mut call = self.server.call(method, &self.path);
        for (name, value) in headers {
            let value = match *value {
                "OWN" => &self.etag,
                "WEAK" => &weak,
                other => other,
            };
            call = call.header(name, value);
        }
        call.send().await
    }
}

#[tokio::test]
async fn the_conditions_of_get_and_head_have_the_precedence_of_section_13_2_2() {
    let digits = Digits::stored().await;
    let (im, ius) = ("if-match", "if-unmodified-since");
    let (inm, ims) = ("if-none-match", "if-modified-since");

    for (headers, get, head) in [
        // Step 1: If-Match false ends it; true goes on to step 3 and leaves step 2 out.
        (vec![(im, "\"other\""), (ius, LATER), (inm, "\"other\"")], 412, 412),
        (vec![(im, "OWN"), (ius, LONG_AGO), (inm, "OWN")], 304, 304),
        (vec![(im, "WEAK")], 412, 412),
        // Step 2: If-Unmodified-Since false ends it; true goes on to step 3.
        (vec![(ius, LONG_AGO), (inm, "OWN")], 412, 412),
        (vec![(ius, LATER), (inm, "OWN")], 304, 304),
        (vec![(ius, LATER), (inm, "\"other\"")], 200, 200),
        // Step 3: If-None-Match false is 304; true leaves step 4 out.
        (vec![(inm, "*")], 304, 304),
        (vec![(inm, "WEAK")], 304, 304),
        (vec![(inm, "\"other\""), (ims, LATER)], 200, 200),
        (vec![(inm, "OWN"), (ims, LONG_AGO)], 304, 304),
        // Step 4: If-Modified-Since false is 304; true goes on.
        (vec![(ims, LATER)], 304, 304),
        (vec![(ims, LONG_AGO)], 200, 200),
        // Step 5: Range and If-Range, of GET alone.
        (vec![(ims, LONG_AGO), ("range", "bytes=0-0")], 206, 200),
        (vec![("range", "bytes=0-0"), ("if-range", "OWN")], 206, 200),
        (vec![("range", "bytes=0-0"), ("if-range", "\"other\"")], 200, 200),
        (vec![("if-range", "OWN")], 200, 200),
        // A range that cannot be satisfied is looked at last.
        (vec![("range", "bytes=99-")], 416, 200),
        (vec![("range", "bytes=99-"), (inm, "OWN")], 304, 304),
        (vec![("range", "bytes=99-"), (im, "\"other\"")], 412, 412),
        (vec![("range", "bytes=99-"), ("if-range", "\"other\"")], 200, 200),
    ] {
        assert_eq!(digits.ask(Method::GET, &headers).await.status, get, "GET {headers:?}");
        assert_eq!(digits.ask(Method::HEAD, &headers).await.status, head, "HEAD {headers:?}");
    }
}

#[tokio::test]
async fn conditions_count_only_where_the_answer_would_be_a_success() {
    let digits = Digits::stored().await;
    let server = &digits.server;
    for condition in [("if-none-match", "*"), ("if-match", "\"other\"")] {
        let unknown = server.content("01ARZ3NDEKTSV4RRFFQ69G5FAV").header(condition.0, condition.1);
        unknown.send().await.problem(404, "not_found");
        let bad = server.get(&format!("{}?disposition=x", digits.path));
        bad.header(condition.0, condition.1).send().await.problem(400, "invalid_field");
        // §13.2.1: methods that neither select nor change a representation have no conditions.
        let options = digits.ask(Method::OPTIONS, &[condition]).await;
        options.problem(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn a_206_has_the_headers_of_the_200_and_its_own_range() {
    let digits = Digits::stored().await;
    let whole = digits.ask(Method::GET, &[]).await.expect(200);
    let part = digits.ask(Method::GET, &[("range", "bytes=2-4")]).await.expect(206);

    // §15.3.7: what a cache needs to join the part with others.
    for name in ["etag", "last-modified", "cache-control", "content-type", "content-disposition"] {
        assert_eq!(part.only(name), whole.only(name), "{name}");
    }
    // §14.3: the 200 and the 206 say that ranges are served. RFC 9530: of the whole.
    for reply in [&whole, &part] {
        assert_eq!(reply.only("accept-ranges"), "bytes");
        assert_eq!(reply.only("repr-digest"), whole.only("repr-digest"));
    }
    assert_eq!((part.only("content-range"), &part.body[..]), ("bytes 2-4/10", &b"234"[..]));
    assert_eq!(whole.header("content-range"), None);
}

#[tokio::test]
async fn ranges_of_odd_but_legal_spelling_are_read() {
    let digits = Digits::stored().await;
    for (range, body) in [
        // §14.1: units are case-insensitive; §5.6.1: a list may have empty elements.
        ("Bytes=0-0", "0"),
        ("bytes=0-0,", "0"),
        ("bytes= ,, 3-4", "34"),
        ("bytes=007-008", "78"),
        ("bytes=-1", "9"),
        ("bytes=-11", "0123456789"),
        ("bytes=9-9", "9"),
    ] {
        let reply = digits.ask(Method::GET, &[("range", range)]).await.expect(206);
        assert_eq!(reply.text(), body, "{range}");
    }
}

#[tokio::test]
async fn a_416_says_how_long_the_file_is_and_is_a_problem() {
    let digits = Digits::stored().await;
    let reply = digits.ask(Method::GET, &[("range", "bytes=10-")]).await;
    assert_eq!(reply.only("content-range"), "bytes */10");
    reply.problem(416, "range_not_satisfiable");
}

#[tokio::test]
async fn a_part_cannot_be_put() {
    let server = TestServer::start().await;
    let id = server.upload("0123456789").ok().await.file_id;
    // §14.5: a server without partial PUT must not take a part for the whole.
    let put = server.change(&id).file("01").call().header("content-range", "bytes 0-1/10");
    let problem = put.send().await.problem(400, "invalid_field");
    assert_eq!(problem.field.as_deref(), Some("Content-Range"));
    assert_eq!(server.content(&id).send().await.body, "0123456789");
}
