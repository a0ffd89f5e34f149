//! Attacks by a converter that a file has taken over: it reaches for what is not its own, takes more than
//! its share, and stays. (The `sleep`s in its scripts are processes that have to be killed.)
//!
//! Perl makes the system calls: it is part of every Debian.

use std::fs;
use std::process::Command;

use crate::bench::{Bench, NO_TYPE, is_out_of_reach, none_is_left, picture, said, until_started};

/// Lists the descriptors beyond the first three that a program starts with.
const LIST_DESCRIPTORS: &str =
    r#"my @found = grep { open(my $copy, "<&", $_) } 3 .. 999; print "@found.";"#;

/// Lists the descriptors that the tests were started with themselves, which they pass on.
fn inherited() -> String {
    let perl = Command::new("/usr/bin/perl").args(["-e", LIST_DESCRIPTORS]).output().unwrap();
    said(&perl)
}

#[tokio::test]
async fn a_run_ends_with_a_server_that_is_killed() {
    if is_out_of_reach() {
        return;
    }

    let script = "exec perl -e 'syscall(157, 1, 0, 0, 0); exec \"sleep\", \"65401\"'";
    let mut bench = Bench::start(&[("stays", script)], "");
    let id = bench.upload("stays", NO_TYPE).await;
    let url = format!("{}/api/v1/files/{id}/200/200", bench.url);
    let asked = tokio::spawn(bench.client.get(url).send());
    until_started("65401", 1).await;
    bench.server.kill().unwrap();
    bench.server.wait().unwrap();
    assert!(asked.await.unwrap().is_err());
    none_is_left("65401", "a killed server");
}

/// Says that nothing of a run is left.
fn is_clean(bench: &Bench) -> bool {
    let runs = fs::read_dir(bench.directory.path().join("filestore-data/converters"));
    runs.map_or(true, |runs| runs.count() == 0)
}

#[tokio::test]
async fn a_converter_that_takes_more_than_its_share_is_killed_and_nothing_of_it_is_left() {
    const WORD: &str = "54301";

    if is_out_of_reach() {
        return;
    }

    let deep = r#"perl -e 'for (1 .. 20000) { mkdir "d"; chdir "d" } open(my $f, ">", "f")'"#;
    let nested = "mkdir -p 1/2/3/4/5/6/7/8/9/10/11/12; cd 1/2/3/4/5/6/7/8/9/10/11/12
        n=0; while :; do n=$((n+1)); head -c 500000 /dev/zero > f$n; done";
    let nameless = r#"perl -e 'for (1 .. 30) { open($f[$_], ">", "f"); unlink "f"; syswrite($f[$_], "x" x 500000) } sleep 98'"#;
    let many = r#"perl -e 'for (1 .. 12000) { open(my $f, ">", "f$_") } sleep 98'"#;
    let forks = format!("n=0; while [ $n -lt 300 ]; do sleep {WORD} & n=$((n+1)); done; wait");
    let orphans =
        format!("n=0; while [ $n -lt 300 ]; do (sleep {WORD} &); n=$((n+1)); done; sleep {WORD}");
    let fat = r#"perl -e 'for (1 .. 9) { next if fork; my $x = "x" x 40000000; sleep 98; exit } sleep 98'"#;
    let stubborn = format!("trap '' TERM INT HUP QUIT; while :; do sleep {WORD}; done");
    let stops = format!("kill -STOP 0; sleep {WORD}");
    let scripts = [
        ("deep", deep),
        ("nested", nested),
        ("nameless", nameless),
        ("many", many),
        ("forks", &forks),
        ("orphans", &orphans),
        ("fat", fat),
        ("stubborn", &stubborn),
        ("stops", &stops),
        ("kills", "kill -KILL $PPID; kill -KILL 0; exit 4"),
        ("directory", "mkdir \"$2\""),
        ("linked", "cp \"$own/picture.png\" \"$1\"; ln \"$1\" \"$2\""),
    ];
    let bench = Bench::start_with(&scripts, |name| {
        // Only those that a time ends, or may end, have little of it.
        let timeout_secs = match name {
            "stubborn" | "stops" => 2,
            "many" | "forks" | "orphans" => 10,
            _ => 600,
        };
        format!(
            "timeout_secs = {timeout_secs}\ncpu_secs = 600\nmemory_bytes = 100000000\n\
             max_output_bytes = 1000000\nmax_input_bytes = 1000"
        )
    });
    let neighbour = bench.upload("neighbour", &picture(400, 300)).await;

    for (name, detail) in [
        ("deep", ""),
        ("nested", "too"),
        ("nameless", "writes too much"),
        // A slow disk makes so many files no faster than the time that a run may take.
        ("many", "too"),
        // Users other than root have a limit of the kernel's, which makes a shell wait.
        ("forks", "too"),
        ("orphans", "too"),
        ("fat", "too much memory"),
        ("stubborn", "too long"),
        ("stops", "too long"),
        ("kills", ""),
        ("directory", "no picture"),
        ("linked", "no picture"),
    ] {
        let problem = bench.refusal(name).await;
        assert_eq!(problem.code.as_str(), "conversion_failed", "{name}");
        assert!(problem.detail.contains(detail), "{name}: {}", problem.detail);
        none_is_left(WORD, name);
        assert!(is_clean(&bench), "{name}");
        assert_eq!(bench.variant(&neighbour, 250).await.status(), 200, "beside {name}");
    }
}

#[tokio::test]
async fn a_converter_sees_nothing_of_its_server_and_changes_nothing_of_its_file() {
    if is_out_of_reach() {
        return;
    }

    let works = "cp \"$own/picture.png\" \"$2\"";
    let scripts = [
        ("environment", format!("env | grep -q SECRET && exit 3; {works}")),
        (
            "beside",
            format!(
                "there=$(dirname \"$0\"); cat \"$there/secret\" \"$there/../filestore.toml\" && exit 3; \
                 ls \"$there/..\" && exit 3; cat \"$there/../filestore-data/\"* && exit 3; {works}"
            ),
        ),
        (
            "descriptors",
            format!(
                "found=$(perl -e '{LIST_DESCRIPTORS}'); [ \"$found\" = '{}' ] || exit 3; {works}",
                inherited()
            ),
        ),
        ("input", format!("echo changed > \"$1\" || exit 3; {works}")),
    ];
    let scripts: Vec<_> = scripts.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let bench = Bench::start(&scripts, "");
    for (name, _) in &scripts {
        let id = bench.upload(name, NO_TYPE).await;
        assert_eq!(bench.variant(&id, 200).await.status(), 200, "{name}");
        let content = bench.client.get(format!("{}/api/v1/files/{id}", bench.url)).send().await;
        assert_eq!(content.unwrap().bytes().await.unwrap(), NO_TYPE, "{name}");
    }
}

#[tokio::test]
async fn what_a_killed_server_left_is_removed_at_the_next_start_however_deep() {
    if is_out_of_reach() {
        return;
    }

    let mut bench = Bench::start(&[], "");
    let left = bench.directory.path().join("filestore-data/converters");
    let (mut inner, mut outer) =
        (bench.directory.path().join("a"), bench.directory.path().join("b"));
    fs::create_dir_all(&inner).unwrap();
    for _ in 0..20_000 {
        fs::create_dir(&outer).unwrap();
        fs::rename(&inner, outer.join("d")).unwrap();
        std::mem::swap(&mut inner, &mut outer);
    }
    fs::create_dir_all(&left).unwrap();
    fs::rename(&inner, left.join("run")).unwrap();

    bench.restart();
    bench.upload("any", NO_TYPE).await;
    assert!(is_clean(&bench));
}
