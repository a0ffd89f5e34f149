//! Runs through the public API: results, limits, errors.

use std::error::Error as _;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use filestore_sandbox::{ErrorKind, Killer, Limits, Result, Sandbox, Scratch};

use crate::bench::{none_is_left, sandbox, until_started};

/// The limits of runs that go beyond them. A run that no time is to end has more of it than any machine takes.
fn small(time_secs: u64, cpu_secs: u64) -> Limits {
    let mut limits = Limits::default();
    limits.time = Duration::from_secs(time_secs);
    limits.cpu = Duration::from_secs(cpu_secs);
    limits.memory_bytes = 100_000_000;
    limits.file_bytes = 1_000_000;
    limits.scratch_bytes = 2_000_000;
    limits
}

fn run(sandbox: &Sandbox, scratch: &Scratch, script: &str) -> Result<()> {
    sandbox.run(scratch, ["/bin/bash", "-c", script])
}

pub(crate) fn a_command_turns_its_input_into_an_output_and_leaves_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let beside = parent.path().join("beside");
    fs::write(&beside, "readable").unwrap();
    let sandbox = sandbox().with_readable([&beside]);

    let scratch = Scratch::new_in(parent.path().join("runs")).unwrap();
    scratch.copy_in("input", &mut &b"hello"[..]).unwrap();
    let script = format!("tr a-z A-Z <input >output; cat '{}' >second", beside.display());
    run(&sandbox, &scratch, &script).unwrap();
    // A second run in the same directory.
    run(&sandbox, &scratch, "cat second >>output; echo $HOME >&2").unwrap();
    assert_eq!(scratch.stderr(), scratch.path().display().to_string());

    let output = scratch.open_output("output", 100).unwrap();
    assert_eq!(io::read_to_string(output).unwrap(), "HELLOreadable");
    scratch.close().unwrap();
    assert_eq!(fs::read_dir(parent.path().join("runs")).unwrap().count(), 0);
}

pub(crate) fn a_command_that_fails_says_how_and_why() {
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::new_in(parent.path()).unwrap();

    let error = run(&sandbox(), &scratch, "echo 'no such page' >&2; exit 7").unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Failed, Some(7)));
    assert_eq!(scratch.stderr(), "no such page");
    let error =
        run(&sandbox(), &scratch, "(kill -SEGV $BASHPID) 2>/dev/null; exit $?").unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Failed, Some(128 + 11)));

    for command in [&["no-such-program-anywhere"][..], &[]] {
        let error = sandbox().run(&scratch, command).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{command:?}");
    }
}

pub(crate) fn a_command_that_takes_more_than_its_share_is_killed_with_all_its_processes() {
    const WORD: &str = "54311";
    let parent = tempfile::tempdir().unwrap();

    let sleeps = format!("(sleep {WORD} & (sleep {WORD} &)); sleep {WORD}");
    let files = "n=0; while :; do n=$((n+1)); head -c 500000 /dev/zero > f$n; sleep 0.1; done";
    let fat = r#"perl -e 'for (1 .. 9) { next if fork; my $x = "x" x 40000000; sleep 98; exit } sleep 98'"#;
    let forks = format!("n=0; while [ $n -lt 300 ]; do sleep {WORD} & n=$((n+1)); done; wait");
    for (script, limits, kinds) in [
        (&*sleeps, small(1, 600), &[ErrorKind::TooSlow][..]),
        (files, small(600, 600), &[ErrorKind::TooMuchOutput]),
        ("head -c 2000000 /dev/zero >f; exit $?", small(600, 600), &[ErrorKind::OverLimit]),
        ("while :; do :; done", small(600, 1), &[ErrorKind::OverLimit]),
        (fat, small(600, 600), &[ErrorKind::TooMuchMemory]),
        // Users other than root have a limit of the kernel's, which makes a shell wait.
        (
            &forks,
            small(10, 600),
            &[ErrorKind::TooManyProcesses, ErrorKind::TooMuchMemory, ErrorKind::TooSlow],
        ),
    ] {
        let scratch = Scratch::new_in(parent.path()).unwrap();
        let error = run(&sandbox().with_limits(limits), &scratch, script).unwrap_err();
        assert!(kinds.contains(&error.kind()), "{script}: {error:?} {}", scratch.stderr());
        none_is_left(WORD, script);
        scratch.close().unwrap();
    }
}

pub(crate) fn a_killed_run_ends_with_all_its_processes() {
    const WORD: &str = "54312";
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::new_in(parent.path()).unwrap();
    let killer = Killer::new();

    let error = thread::scope(|scope| {
        scope.spawn(|| {
            until_started(WORD, 2);
            killer.kill();
        });
        let script = format!("sleep {WORD} & sleep {WORD}");
        sandbox().run_with_killer(&scratch, ["/bin/bash", "-c", &script], &killer).unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Killed);
    none_is_left(WORD, "a killed run");
}

pub(crate) fn a_launcher_that_is_no_launcher_is_found_out() {
    let parent = tempfile::tempdir().unwrap();
    let missing = Sandbox::new(parent.path().join("missing"));
    let error = missing.walls().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Launcher);
    assert!(error.source().is_some());
    assert_eq!(Sandbox::new("/bin/echo").walls().unwrap_err().kind(), ErrorKind::Launcher);

    let scratch = Scratch::new_in(parent.path()).unwrap();
    let error = missing.run(&scratch, ["true"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Launcher);
}
