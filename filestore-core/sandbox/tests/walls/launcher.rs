//! The launcher by itself, with and without each of its walls.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use filestore_sandbox::{LAUNCHER_ARGUMENT, Landlock};

use crate::attacks::WALLS;
use crate::bench::{launched, launcher, none_is_left, own_program, said, sandbox, until_started};

pub(crate) fn a_command_cannot_leave_its_sandbox_with_or_without_each_of_its_walls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    let outside = Command::new("/bin/bash").args(["-c", &reach]).output().unwrap();
    assert_eq!(said(&outside), "reached", "the network is there for others");

    let walls = sandbox().walls().unwrap();
    let (namespaces, landlock) = (walls.namespaces, walls.landlock != Landlock::Missing);
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

pub(crate) fn the_launcher_ends_as_its_program_does() {
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("head -c 2000000 /dev/zero > f; exit $?", 153)]
    {
        let ended = launched(&[], script);
        let code_of_shell = ended.status.code();
        assert_eq!(code_of_shell, Some(code), "{script}: {}", said(&ended));
    }
    let missing = Command::new(own_program())
        .args([LAUNCHER_ARGUMENT, "--work", "/tmp", "--", "no-such-program-anywhere"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(127), "{}", said(&missing));
}

pub(crate) fn all_processes_end_with_their_program_whichever_walls_hold() {
    for (without, word) in WALLS.into_iter().zip(["76501", "76502", "76503"]) {
        let work = tempfile::tempdir().unwrap();
        let script =
            format!("trap '' TERM HUP; (sleep {word} & (sleep {word} &)); sleep {word}; :");
        let mut launcher = launcher(work.path(), without, &["/bin/bash", "-c", &script]);
        // The program's part: the thread that started the launcher, and the other end of its stdin.
        let started = std::thread::spawn(move || {
            let mut child = launcher.stdout(Stdio::null()).spawn().unwrap();
            let tie = child.stdin.take();
            until_started(word, 3);
            drop(tie);
            child
        });
        let mut child = started.join().unwrap();
        none_is_left(word, &format!("a program, without {without:?}"));
        child.wait().unwrap();
    }
}
