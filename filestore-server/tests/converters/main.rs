//! Converters: commands that make pictures of what is no picture, in the sandbox that the binary itself
//! is the launcher of. The commands are small scripts that the tests write.

#![cfg(target_os = "linux")]

mod attacks;
mod bench;
#[path = "../support/hang.rs"]
mod hang;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::time::Instant;

use filestore_core::api::{Problem, VariantCacheReport};
use reqwest::StatusCode;
use tokio::task::JoinHandle;

use crate::bench::{
    Bench, LONG, NO_TYPE, is_out_of_reach, none_is_left, picture, size_of, until_started,
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
    let until = Instant::now() + hang::HANG;
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
    let bench = Bench::start_with(&scripts, |name| {
        // Only those that a time ends have little of it.
        let (timeout_secs, cpu_secs) = match name {
            "sleeps" => (2, 600),
            "loops" => (600, 1),
            _ => (600, 600),
        };
        format!(
            "timeout_secs = {timeout_secs}\ncpu_secs = {cpu_secs}\nmax_output_bytes = 1000000\n\
             max_input_bytes = 1000"
        )
    });
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

/// Uploads a file of the type `application/x-slow`, and asks for its preview.
async fn ask(bench: &Bench, organization: &str, text: &str) -> JoinHandle<StatusCode> {
    let bytes = [b"\x01\x02\x00 ", text.as_bytes()].concat();
    let id = bench.upload_of(organization, "slow", &bytes).await;
    let url = format!("{}/api/v1/files/{id}/200/200", bench.url);
    let request = bench.client.get(url);
    tokio::spawn(async move { request.send().await.unwrap().status() })
}

/// Waits until so many requests have ended.
async fn until_ended(requests: &[JoinHandle<StatusCode>], number: usize) {
    let until = Instant::now() + hang::HANG;
    while requests.iter().filter(|request| request.is_finished()).count() < number {
        assert!(Instant::now() < until, "fewer than {number} have ended");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn previews_of_one_organization_leave_turns_and_places_to_those_of_others() {
    const WORD: &str = "65402";

    if is_out_of_reach() {
        return;
    }

    let slow = format!(
        "for gate in first second; do
             if grep -q $gate \"$1\"; then
                 sh -c 'while [ ! -e \"$1\" ]; do sleep 0.1; done' {WORD} \"$own/$gate\"
             fi
         done
         cp \"$own/picture.png\" \"$2\""
    );
    let bench = Bench::start(&[("slow", slow.as_str())], "timeout_secs = 600\ncpu_secs = 600");
    let open = |gate: &str| fs::write(bench.directory.path().join("pictures").join(gate), "");

    // Both turns, all 32 places, and one more.
    let mut first = Vec::new();
    for number in 0..2 {
        first.push(ask(&bench, "7", &format!("first {number}")).await);
    }
    until_started(WORD, 2).await;
    let mut greedy = Vec::new();
    for number in 0..33 {
        greedy.push(ask(&bench, "7", &format!("second {number}")).await);
    }
    until_ended(&greedy, 1).await;

    // Others find a place at once, and are next.
    let others = [ask(&bench, "8", "others").await, ask(&bench, "9", "others").await];
    until_ended(&greedy, 3).await;
    open("first").unwrap();
    for theirs in others.into_iter().chain(first) {
        assert_eq!(theirs.await.unwrap(), 200);
    }
    open("second").unwrap();
    let mut refused = 0;
    for own in greedy {
        let status = own.await.unwrap();
        assert!(matches!(status.as_u16(), 200 | 503), "{status}");
        refused += usize::from(status == 503);
    }
    assert_eq!(refused, 3, "one found no place, and two lost theirs");
}
