//! Access without keys (reference §5): which hosts the server answers to, what a page of another site may
//! do, and who may administrate.

use filestore_workspace::wire::Wire;
use filestore_workspace::{Call, Form, TestServer};
use reqwest::Method;
use tokio::net::UnixStream;

const HEALTH: &str = "/api/v1/health-checks";
const PRUNE: &str = "/api/v1/admin/variants/prune";

fn get(target: &str, host: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[tokio::test]
async fn a_host_that_is_not_the_servers_own_is_421() {
    let server = TestServer::start_with(|config| {
        config.allowed_hosts = vec!["files.internal".into()];
    })
    .await;
    server.upload("secret").ok().await;

    for (target, host) in [
        ("/api/v1/files", "evil.example:8080"),
        ("/api/v1/files", "127.0.0.1.evil.example"),
        ("/api/v1/files", "10.0.0.1"),
        ("/nowhere", "evil.example"),
        ("http://evil.example/api/v1/files", "localhost"),
    ] {
        let reply = server.exchange(&get(target, host)).await;
        let problem = reply.json();
        assert_eq!(
            (reply.status, &problem["code"]),
            (421, &"misdirected_request".into()),
            "{host}"
        );
        assert_eq!(problem["field"], "Host");
        assert!(reply.header("x-request-id").is_some());
    }

    for host in ["localhost", "127.0.0.1:1", "[::1]:8080", "127.8.8.8", "Files.Internal:443"] {
        assert_eq!(server.exchange(&get(HEALTH, host)).await.status, 200, "{host}");
    }
    let absolute = get("http://localhost/api/v1/health-checks", "evil.example");
    assert_eq!(server.exchange(&absolute).await.status, 200, "the target beats the header");
}

#[tokio::test]
async fn the_socket_answers_whatever_host_is_named() {
    let server = TestServer::start().await;
    let socket = UnixStream::connect(server.data_dir().join("admin.sock")).await.unwrap();
    let mut wire = Wire::over(socket);
    wire.send(get("/api/v1/admin/sync/status", "filestore")).await;
    assert_eq!(wire.reply().await.status, 200);
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let server = TestServer::start().await;
    let id = server.upload("kept").ok().await.file_id;
    let form = || {
        let form = Form::new().text("organization_id", "acme").text("sub_system", "gallery");
        form.bytes("file", b"x")
    };
    let requests = [
        (Method::POST, "/api/v1/files/upload".to_owned()),
        (Method::POST, "/api/v1/files/batch".to_owned()),
        (Method::POST, PRUNE.to_owned()),
        (Method::POST, "/api/v1/admin/purge/run".to_owned()),
        (Method::POST, "/api/v1/organization-storage-bindings/create".to_owned()),
        (Method::POST, format!("/api/v1/files/{id}/restore")),
        (Method::DELETE, format!("/api/v1/files/{id}")),
        (Method::PATCH, format!("/api/v1/files/{id}")),
        (Method::PUT, "/api/v1/files/upload".to_owned()),
    ];
    let site = |name: &'static str, value: &'static str| {
        move |call: Call| call.header(name, value).form(form())
    };

    for (method, path) in &requests {
        for foreign in [
            site("sec-fetch-site", "cross-site"),
            site("sec-fetch-site", "same-site"),
            site("origin", "https://evil.example"),
            site("origin", "null"),
        ] {
            let reply = foreign(server.call(method.clone(), path)).send().await;
            assert_eq!(reply.problem(403, "forbidden").status, 403, "{method} {path}");
        }
    }
    assert_eq!(server.listed().await, [id], "nothing came, nothing went");
}

#[tokio::test]
async fn pages_of_the_server_itself_and_programs_may_change_things() {
    let server = TestServer::start().await;
    let own = format!("http://{}", server.addr());
    for (name, value) in
        [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none"), ("origin", own.as_str())]
    {
        server.post(PRUNE).header(name, value).send().await.expect(200);
    }
    server.post(PRUNE).send().await.expect(200);

    // Reading is for the browser to allow or not.
    server.get(HEALTH).header("sec-fetch-site", "cross-site").send().await.expect(200);
}

#[tokio::test]
async fn administration_is_for_this_machine() {
    let trusted = |config: &mut filestore_server::Config| {
        config.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    };
    let (plain, behind) = (TestServer::start().await, TestServer::start_with(trusted).await);
    let status = "/api/v1/admin/status";

    plain.get(status).send().await.expect(200);
    let others = [
        "forwarded",
        "via",
        "x-real-ip",
        "x-forwarded-host",
        "x-forwarded-proto",
        "cf-connecting-ip",
        "true-client-ip",
    ];
    for sign in others.into_iter().chain(["x-forwarded-for"]) {
        let passed_on = plain.get(status).header(sign, "127.0.0.1").send().await;
        assert_eq!(passed_on.problem(403, "forbidden").status, 403, "{sign}");
    }

    for sign in others {
        let untold = behind.get(status).header(sign, "9.9.9.9").send().await;
        assert_eq!(untold.problem(403, "forbidden").status, 403, "{sign} names no client");
    }

    behind.get(status).header("x-forwarded-for", "127.0.0.5").send().await.expect(200);
    let told = behind.get(status).header("x-forwarded-for", "127.0.0.5");
    told.header("x-forwarded-proto", "https").send().await.expect(200);
    let elsewhere = behind.get(status).header("x-forwarded-for", "9.9.9.9").send().await;
    elsewhere.problem(403, "forbidden");
    behind.get(HEALTH).header("x-forwarded-for", "9.9.9.9").send().await.expect(200);
}

#[tokio::test]
async fn a_client_that_its_proxy_does_not_name_is_not_on_this_machine() {
    let server = TestServer::start_with(|config| {
        config.trusted_proxies = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
    })
    .await;
    let status = "/api/v1/admin/status";

    for told in [
        "unknown",
        "",
        "8.8.8.8, _hidden",
        "8.8.8.8,",
        "127.0.0.1, unknown",
        "[2001:db8::1]",
        "[2001:db8::1]:443",
        "8.8.8.8:5678",
        "localhost",
    ] {
        let reply = server.get(status).header("x-forwarded-for", told).send().await;
        assert_eq!(reply.problem(403, "forbidden").status, 403, "{told}");
        server.get(HEALTH).header("x-forwarded-for", told).send().await.expect(200);
    }
    for told in ["127.0.0.1", "[::1]", "[::1]:5678", "127.0.0.1:5678"] {
        server.get(status).header("x-forwarded-for", told).send().await.expect(200);
    }
    // A proxy that tells by `Forwarded` may pass on what its client wrote here.
    let both = server.get(status).header("x-forwarded-for", "127.0.0.1");
    both.header("forwarded", "for=8.8.8.8").send().await.problem(403, "forbidden");
}

#[tokio::test]
async fn administration_does_not_answer_by_the_public_url() {
    let server = TestServer::start_with(|config| {
        config.public_url = Some("https://files.example.org/storage".into());
        config.insecure_no_auth = true;
    })
    .await;

    let public = get("/storage/api/v1/admin/status", "files.example.org");
    assert_eq!(server.exchange(&public).await.status, 403);
    assert_eq!(server.exchange(&get(HEALTH, "files.example.org")).await.status, 200);
    for host in ["files.example.org.", "localhost", "127.0.0.1"] {
        let reply = server.exchange(&get("/api/v1/admin/status", host)).await;
        assert_eq!(reply.status, 403, "{host}: a proxy may name any of these");
    }
}

#[tokio::test]
async fn a_request_that_names_no_host_is_guarded_like_others() {
    let server = TestServer::start().await;
    let ask = |method: &str, path: &str, more: &str| {
        format!("{method} {path} HTTP/1.0\r\nContent-Length: 0\r\n{more}\r\n")
    };

    for (request, status) in [
        (ask("GET", HEALTH, ""), 200),
        (ask("POST", PRUNE, "Sec-Fetch-Site: cross-site\r\n"), 403),
        (ask("GET", "/api/v1/admin/status", "X-Real-IP: 9.9.9.9\r\n"), 403),
        (ask("GET", "/metrics/", "Via: 1.1 x\r\n"), 403),
    ] {
        assert_eq!(server.exchange(&request).await.status, status, "{request}");
    }
}
