//! Attacks by a converter that a file has taken over: it reaches for what is not its own, takes more than
//! its share, and stays. (The `sleep`s in its scripts are processes that have to be killed.)
//!
//! Perl makes the system calls: it is part of every Debian.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench::{
    Bench, NO_TYPE, is_out_of_reach, launched_program, launcher, none_is_left, picture,
    processes_with, said,
};

/// The walls that hold on all machines, on those without user namespaces, and on those before Linux 6.12.
const WALLS: [&[&str]; 3] = [&[], &["namespaces"], &["namespaces", "scopes"]];

/// Says each thing that it could do. The numbers of calls are those of x86-64.
const REACHES_OUT: &str = r#"
use Socket;
my ($file, $socket, $process) = @ARGV;
$process += 0;
my ($attribute, $value, $name) = ("user.x", "v", "name");
my ($limit, $cpus, $zero) = (pack("QQ", 100000, 100000), pack("Q", 1), pack("l", 0));
sub try { my ($what, $worked) = @_; print "$what " if $worked; }

socket(my $stream, PF_UNIX, SOCK_STREAM, 0);
try("connect", connect($stream, pack_sockaddr_un($socket)));
socket(my $datagram, PF_UNIX, SOCK_DGRAM, 0)
    and try("send", send($datagram, "x", 0, pack_sockaddr_un("$socket.datagrams")));
socketpair(my $one, my $other, PF_UNIX, SOCK_DGRAM, 0)
    and try("send of a pair", send($one, "x", 0, pack_sockaddr_un("$socket.datagrams")));
try("internet", socket(my $tcp, PF_INET, SOCK_STREAM, 0));

try("read", open(my $in, "<", $file));
try("append", open(my $out, ">>", $file));
try("chmod", chmod(0777, $file));
try("fchmodat2", syscall(452, -100, $file, 0777, 0) == 0);
try("chown", chown(0, 0, $file));
try("utime", utime(1, 1, $file));
try("truncate", syscall(76, $file, 0) == 0);
try("xattr", syscall(188, $file, $attribute, $value, 1, 0) == 0);
try("link", link($file, "link"));
try("unlink", unlink($file));
try("rename", rename($file, "taken"));
try("device", syscall(133, $name, 0020600, 0x103) == 0);
try("memory of the machine", open(my $shm, ">", "/dev/shm/filestore-attack"));

try("signal", kill(0, $process));
try("KILL", kill("KILL", $process));
try("queued signal", syscall(129, $process, 9, $limit) == 0);
try("descriptor of it", syscall(434, $process, 0) >= 0 && syscall(424, syscall(434, $process, 0), 9, 0, 0) == 0);
try("limit", syscall(302, $process, 7, $limit, 0) == 0);
try("priority", syscall(141, 0, $process, 0) == 0);
try("priorities of the user", syscall(141, 2, 0, 0) == 0);
try("affinity", syscall(203, $process, 8, $cpus) == 0);
try("environment", open(my $environment, "<", "/proc/$process/environ"));

try("memfd", syscall(319, $name, 0) >= 0);
try("shared memory", defined shmget(0x46535452, 4096, 0600 | 01000));
try("queue", syscall(240, $name, 0102, 0600, 0) >= 0);
try("own session", syscall(112) >= 0);
try("own group", syscall(109, 0, 0) == 0);
try("x32", syscall(0x40000000 | 112) >= 0 || $!{ENOSYS});
try("outliving", syscall(157, 1, 0, 0, 0) == 0);
try("hiding", syscall(157, 4, 0, 0, 0) == 0);
print "end";
"#;

/// Lists the descriptors beyond the first three that a program starts with.
const LIST_DESCRIPTORS: &str =
    r#"my @found = grep { open(my $copy, "<&", $_) } 3 .. 999; print "@found.";"#;

/// A process of the same user, which ends with the test.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lists the descriptors that the tests were started with themselves, which they pass on.
fn inherited() -> String {
    let perl = Command::new("/usr/bin/perl").args(["-e", LIST_DESCRIPTORS]).output().unwrap();
    said(&perl)
}

#[test]
fn no_descriptor_is_passed_on_whichever_walls_hold() {
    if is_out_of_reach() {
        return;
    }

    for without in WALLS {
        let listed = launched_program(without, &["/usr/bin/perl", "-e", LIST_DESCRIPTORS]);
        assert_eq!(said(&listed), inherited(), "without {without:?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn nothing_outside_is_reached_whichever_walls_hold() {
    if is_out_of_reach() {
        return;
    }

    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("file");
    fs::write(&file, "kept").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let socket = outside.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let _datagrams = UnixDatagram::bind(outside.path().join("socket.datagrams")).unwrap();
    let mut victim = Victim(Command::new("/bin/sleep").arg("87654").spawn().unwrap());
    let process = victim.0.id().to_string();

    let [file_path, socket] = [&file, &socket].map(|path: &PathBuf| path.to_str().unwrap());
    for without in WALLS {
        let program =
            ["/usr/bin/perl", "-M-warnings", "-e", REACHES_OUT, file_path, socket, &process];
        let reached = launched_program(without, &program);
        assert_eq!(said(&reached), "end", "without {without:?}");
        assert!(victim.0.try_wait().unwrap().is_none(), "without {without:?}");
    }

    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn what_a_converter_needs_is_left_to_it_whichever_walls_hold() {
    if is_out_of_reach() {
        return;
    }

    let script = r"
        mkdir d && cd d && echo x > f && touch f && cp -p f g && mv g h && ln h i && rm h f &&
        (/bin/true; exit 3); [ $? = 3 ] && echo x | cat > /dev/null && mktemp -p . > /dev/null && echo all";
    for without in WALLS {
        let output = launched_program(without, &["/bin/bash", "-c", script]);
        assert!(said(&output).ends_with("all"), "without {without:?}: {}", said(&output));
    }
}

/// Waits until `count` processes have `word` among their arguments.
fn until_started(word: &str, count: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while processes_with(word) < count {
        assert!(Instant::now() < until, "{} of {count} processes", processes_with(word));
        std::thread::yield_now();
    }
}

#[test]
fn all_processes_end_with_the_server_whichever_walls_hold() {
    if is_out_of_reach() {
        return;
    }

    for (without, word) in WALLS.into_iter().zip(["76501", "76502", "76503"]) {
        let work = tempfile::tempdir().unwrap();
        let script =
            format!("trap '' TERM HUP; (sleep {word} & (sleep {word} &)); sleep {word}; :");
        let mut launcher = launcher(work.path(), without, &["/bin/bash", "-c", &script]);
        // The server's part: the thread that started the launcher, and the other end of its stdin.
        let started = std::thread::spawn(move || {
            let mut child = launcher.stdout(Stdio::null()).spawn().unwrap();
            let tie = child.stdin.take();
            until_started(word, 3);
            drop(tie);
            child
        });
        let mut child = started.join().unwrap();
        none_is_left(word, &format!("a server, without {without:?}"));
        child.wait().unwrap();
    }
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
    tokio::task::spawn_blocking(|| until_started("65401", 1)).await.unwrap();
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
    let limits = "timeout_secs = 4\ncpu_secs = 3\nmemory_bytes = 100000000\n\
        max_output_bytes = 1000000\nmax_input_bytes = 1000";
    let bench = Bench::start(&scripts, limits);
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
