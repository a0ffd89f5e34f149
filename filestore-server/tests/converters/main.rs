//! Converters: commands that make pictures of what is no picture, in the sandbox that the binary itself
//! is the launcher of. The commands are small scripts that the tests write.

#![cfg(target_os = "linux")]

mod attacks;
mod bench;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use filestore_core::api::{Problem, VariantCacheReport};

use crate::bench::{
    BINARY, Bench, LONG, NO_TYPE, has, is_out_of_reach, launched, none_is_left, picture, said,
    size_of,
};

#[tokio::test]
async fn a_file_of_another_kind_has_variants_through_its_converter() {
    if is_out_of_reach() {
        return;
    }

    let scripts = [
        ("large", "cp \"$own/picture.png\" \"$2\""),
        ("small", "cp \"$own/small.png\" \"$2\""),
        ("once", "cp \"$own/picture.png\" \"$2\"; test -s \"$1\" || exit 1"),
    ];
    let bench = Bench::start(&scripts, "");

    let id = bench.upload("large", NO_TYPE).await;
    let reply = bench.variant(&id, 200).await;
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["content-type"]),
        (200, &"image/webp".parse().unwrap())
    );
    let tag = reply.headers()["etag"].clone();
    assert_eq!(size_of(&reply.bytes().await.unwrap()), (200, 200));
    let url = format!("{}/api/v1/files/{id}/200/200", bench.url);
    let again = bench.client.get(url).header("if-none-match", tag).send().await.unwrap();
    assert_eq!(again.status(), 304);

    // The file itself is no picture: nothing passes through.
    for name in ["small", "once"] {
        let id = bench.upload(name, NO_TYPE).await;
        let reply = bench.variant(&id, 700).await;
        assert_eq!(reply.headers()["content-type"], "image/webp", "{name}");
        let expected = if name == "small" { (40, 30) } else { (300, 200) };
        assert_eq!(size_of(&reply.bytes().await.unwrap()), expected);
    }

    // In advance, without a request.
    let url = format!("{}/api/v1/admin/variants/status", bench.url);
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let report = bench.client.get(&url).send().await.unwrap();
        let report: VariantCacheReport = report.json().await.unwrap();
        if report.eager_made >= 3 {
            break;
        }
        assert!(Instant::now() < until, "{report:?}");
        tokio::task::yield_now().await;
    }
    let left = fs::read_dir(bench.directory.path().join("filestore-data/converters"));
    assert_eq!(left.unwrap().count(), 0, "directories of runs go with them");
}

#[tokio::test]
async fn whatever_goes_wrong_in_a_converter_is_one_refusal_and_no_neighbours_trouble() {
    if is_out_of_reach() {
        return;
    }

    let sleeps =
        format!("sleep {LONG} & (setsid sleep {LONG} &) ; setsid sleep {LONG} ; sleep {LONG}");
    let scripts = [
        ("absent", ""),
        ("fails", "exit 3"),
        ("crashes", "sh -c 'kill -SEGV $$'; exit $?"),
        ("silent", "true"),
        ("flood", "head -c 2147483648 /dev/zero > \"$2\""),
        ("floods", "n=0; while :; do n=$((n+1)); head -c 500000 /dev/zero > \"file$n\"; done"),
        ("loops", "while :; do :; done"),
        ("sleeps", sleeps.as_str()),
        ("link", "ln -s \"$own/picture.png\" \"$2\""),
        ("pipe", "mkfifo \"$2\""),
        ("lies", "echo no picture > \"$2\""),
        ("good", "cp \"$own/picture.png\" \"$2\""),
    ];
    let limits =
        "timeout_secs = 3\ncpu_secs = 1\nmax_output_bytes = 1000000\nmax_input_bytes = 1000";
    let bench = Bench::start(&scripts, limits);
    let neighbour = bench.upload("neighbour", &picture(400, 300)).await;

    for (name, detail) in [
        ("absent", "not installed"),
        ("fails", "could not read"),
        ("crashes", "could not read"),
        ("silent", "no picture"),
        ("flood", ""),
        ("floods", "too"),
        ("loops", "too"),
        ("sleeps", "too long"),
        ("link", "no picture"),
        ("pipe", "no picture"),
    ] {
        let problem = bench.refusal(name).await;
        assert_eq!(problem.code.as_str(), "conversion_failed", "{name}");
        let said = problem.detail.clone();
        assert!(said.contains(detail), "{name}: {said}");
        none_is_left(LONG, name);
        assert_eq!(bench.variant(&neighbour, 250).await.status(), 200, "beside {name}");
    }
    assert_eq!(bench.refusal("lies").await.code.as_str(), "not_an_image");

    let large = bench.upload("good", &[1; 1001]).await;
    let problem: Problem = bench.variant(&large, 200).await.json().await.unwrap();
    assert_eq!(problem.limit, Some(1000), "{problem:?}");
    let id = bench.upload("good", NO_TYPE).await;
    assert_eq!(bench.variant(&id, 200).await.status(), 200);
}

#[test]
fn a_converter_cannot_leave_its_sandbox_with_or_without_each_of_its_walls() {
    if is_out_of_reach() {
        return;
    }

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    let outside = Command::new("/bin/bash").args(["-c", &reach]).output().unwrap();
    assert_eq!(said(&outside), "reached", "the network is there for others");

    let (namespaces, landlock) = (has("namespaces"), has("Landlock"));
    for without in [&[][..], &["namespaces"], &["landlock"]] {
        let has_namespaces = namespaces && !without.contains(&"namespaces");
        if !landlock || without.contains(&"landlock") {
            let bare = launched(without, "echo ran");
            assert_eq!((bare.status.code(), said(&bare).contains("ran")), (Some(125), false));
            continue;
        }

        assert!(!said(&launched(without, &reach)).contains("reached"), "{without:?}");
        let own_session = launched(without, "(setsid true) && echo left");
        assert!(!said(&own_session).contains("left"), "{without:?}: {}", said(&own_session));
        assert_eq!(said(&launched(without, "ulimit -n; ulimit -t; ulimit -c")), "32\n5\n0");
        let pid = said(&launched(without, "echo $$"));
        assert_eq!(pid == "1", has_namespaces, "{without:?}: {pid}");
        let read = said(&launched(without, "read -r line < /etc/passwd && echo \"$line\""));
        assert!(read.contains("denied"), "{without:?}: {read}");
        assert_eq!(said(&launched(without, "echo x > own && cat own")), "x");
    }
}

#[test]
fn the_launcher_ends_as_its_program_does() {
    if is_out_of_reach() {
        return;
    }

    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("head -c 2000000 /dev/zero > f; exit $?", 153)]
    {
        let ended = launched(&[], script);
        let code_of_shell = ended.status.code();
        assert_eq!(code_of_shell, Some(code), "{script}: {}", said(&ended));
    }
    let missing = Command::new(BINARY)
        .args(["sandbox-exec", "--work", "/tmp", "--", "no-such-program-anywhere"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(127), "{}", said(&missing));
}
