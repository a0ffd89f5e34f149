//! The replies of the console, with files of the tests' own.

use http::header::{ACCEPT_ENCODING, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http_body_util::BodyExt as _;

use super::*;
use crate::routes::console::dist::File;

/// A page with one asset, which has both compressed forms, and a file with a changing content.
static SMALL: &[File] = &[
    File { name: "assets/app.5d41.js", plain: b"plain", gzip: Some(b"gzip"), brotli: Some(b"br") },
    File { name: "assets/font.woff2", plain: b"font", gzip: None, brotli: None },
    File { name: "index.html", plain: b"<{{base}}assets/app.5d41.js>", gzip: None, brotli: None },
    File { name: "licences.txt", plain: b"MIT", gzip: None, brotli: None },
];

/// Asks for a path below `/console/`. Returns the status, the headers and the body.
async fn ask(path: &str, sent: &[(HeaderName, &str)]) -> (u16, HeaderMap, String) {
    let headers = sent.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
    let place = Place::Inside(path.to_owned());
    let response = match answer(&Dist::of(SMALL), &place, &headers) {
        Ok(response) => response,
        Err(failure) => failure.into_response(&crate::reply::RequestId::fresh()),
    };
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn the_page_names_its_assets_relative_to_each_path() {
    for (path, base) in [
        ("", "./"),
        ("sign-in", "./"),
        ("org/", "../"),
        ("org/42/files", "../../"),
        ("org/a%2Fb/files/", "../../../"),
        ("/", "../"),
        ("index.html", "./"),
        ("app.js", "./"),
    ] {
        let (status, headers, body) = ask(path, &[]).await;
        assert_eq!((status, body), (200, format!("<{base}assets/app.5d41.js>")), "{path}");
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
        assert_eq!(headers[CACHE_CONTROL], "no-cache", "{path}");
    }
}

#[test]
fn the_path_without_a_slash_leads_to_the_one_with_it() {
    let response = answer(&Dist::of(SMALL), &Place::Door, &HeaderMap::new()).unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()[LOCATION]),
        (308, &"console/".parse().unwrap())
    );
}

#[tokio::test]
async fn an_asset_is_sent_in_the_coding_that_the_client_prefers() {
    for (accepted, body, coding) in [
        (None, "plain", None),
        (Some("gzip, deflate, br, zstd"), "br", Some("br")),
        (Some("gzip"), "gzip", Some("gzip")),
        (Some("br;q=0, gzip;q=0.1"), "gzip", Some("gzip")),
        (Some("identity"), "plain", None),
    ] {
        let sent: Vec<_> = accepted.into_iter().map(|value| (ACCEPT_ENCODING, value)).collect();
        let (status, headers, sent) = ask("assets/app.5d41.js", &sent).await;
        assert_eq!((status, sent.as_str()), (200, body), "{accepted:?}");
        assert_eq!(headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap()), coding);
        assert_eq!(headers[VARY], "Accept-Encoding");
        assert_eq!(headers[CACHE_CONTROL], "public, max-age=31536000, immutable");
        assert_eq!(headers[CONTENT_TYPE], "text/javascript; charset=utf-8");
    }
    let (_, headers, body) = ask("assets/font.woff2", &[(ACCEPT_ENCODING, "br")]).await;
    assert_eq!((body.as_str(), headers.get(CONTENT_ENCODING)), ("font", None));
}

#[tokio::test]
async fn each_coding_has_a_strong_tag_of_its_own_and_a_client_with_it_gets_304() {
    let mut tags = Vec::new();
    for coding in ["identity", "gzip", "br"] {
        let (_, headers, _) = ask("assets/app.5d41.js", &[(ACCEPT_ENCODING, coding)]).await;
        let tag = headers[ETAG].to_str().unwrap().to_owned();
        assert!(tag.starts_with('"'), "{tag}");
        assert!(!tags.contains(&tag), "{tag}");

        let conditions = [(ACCEPT_ENCODING, coding), (IF_NONE_MATCH, tag.as_str())];
        let (status, again, body) = ask("assets/app.5d41.js", &conditions).await;
        assert_eq!((status, body.as_str(), &again[ETAG]), (304, "", &headers[ETAG]));
        assert_eq!(again[CACHE_CONTROL], headers[CACHE_CONTROL]);
        tags.push(tag);
    }
    let (_, page, _) = ask("", &[]).await;
    let tag = page[ETAG].to_str().unwrap();
    assert_eq!(ask("org", &[(IF_NONE_MATCH, tag)]).await.0, 304);
    assert_eq!(ask("org/1", &[(IF_NONE_MATCH, tag)]).await.0, 200, "other bytes have another tag");
    assert_eq!(ask("", &[(IF_MATCH, "\"x\"")]).await.0, 412);
}

#[tokio::test]
async fn an_unknown_asset_is_no_page_and_other_files_are_checked_each_time() {
    for path in ["assets/", "assets/app.js", "assets/app.5d41.js.gz", "assets/app.5d41.js/x"] {
        assert_eq!(ask(path, &[]).await.0, 404, "{path}");
    }
    let (status, headers, body) = ask("licences.txt", &[]).await;
    assert_eq!(
        (status, body.as_str(), &headers[CACHE_CONTROL]),
        (200, "MIT", &"no-cache".parse().unwrap())
    );
}

#[tokio::test]
async fn every_reply_has_the_policy() {
    for path in ["", "signed-out", "assets/app.5d41.js", "licences.txt"] {
        let (_, headers, _) = ask(path, &[]).await;
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", POLICY),
            ("permissions-policy", PERMISSIONS),
        ] {
            assert_eq!(headers[name], value, "{path}");
        }
    }
    assert!(!POLICY.contains("unsafe") && !POLICY.contains("  "));
}

#[tokio::test]
async fn a_sign_out_clears_the_cache_every_time_but_for_no_other_site() {
    let own = [(IF_NONE_MATCH, "*"), (SEC_FETCH_SITE, "same-origin")];
    let (status, headers, body) = ask(SIGNED_OUT, &own).await;
    assert_eq!((status, body.as_str()), (200, "<./assets/app.5d41.js>"));
    assert_eq!(headers["clear-site-data"], "\"cache\"");
    assert_eq!(headers[CACHE_CONTROL], "no-store");

    for site in ["cross-site", "same-site", "none"] {
        let (_, headers, _) = ask(SIGNED_OUT, &[(SEC_FETCH_SITE, site)]).await;
        assert!(!headers.contains_key("clear-site-data"), "{site}");
    }
    assert!(!ask(SIGNED_OUT, &[]).await.1.contains_key("clear-site-data"));
    assert!(!ask("", &own).await.1.contains_key("clear-site-data"));
}

#[tokio::test]
async fn the_page_is_not_endlessly_deep() {
    assert_eq!(ask(&"a/".repeat(DEEPEST), &[]).await.0, 200);
    assert_eq!(ask(&"a/".repeat(DEEPEST + 1), &[]).await.0, 404);
}

/// Without the feature, the table of files is empty.
#[test]
fn a_program_without_the_console_has_no_page() {
    let none = Dist::of(&[]);
    assert!(!none.is_there());
    for path in ["", "org/1", "assets/x.js"] {
        let place = Place::Inside(path.to_owned());
        assert!(matches!(answer(&none, &place, &HeaderMap::new()), Err(Failure::UnknownPath)));
    }
    assert_eq!(CONSOLE.is_there(), cfg!(feature = "console"));
}
