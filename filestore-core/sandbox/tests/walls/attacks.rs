//! Attacks by a command that a file has taken over: it reaches for files, processes and sockets outside.
//!
//! Perl makes the system calls, because every Debian has it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command};

use crate::bench::{launched_program, said};

/// The walls that hold on all machines, on those without user namespaces, and on those before Linux 6.12.
pub(crate) const WALLS: [&[&str]; 3] = [&[], &["namespaces"], &["namespaces", "scopes"]];

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

/// Says each socket that it gets and should not, and each kind of news of other files. The numbers of calls
/// are those of x86-64.
const LISTENS_OUT: &str = r#"
use Errno;
my ($directory, $pair, $name) = ($ARGV[0], pack("ll", 0, 0), "watched");
my $upper = 1 << 32;

sub denied {
    my ($what, $result) = @_;
    print "$what:$result:$! " unless $result == -1 && $!{EPERM};
}

for my $family (0 .. 50) {
    for my $type (0 .. 15) {
        for my $flags (0, 02000000, 04000, 02004000, 0x10, $upper) {
            my ($what, $asked) = ("$family/$type/$flags", $type | $flags);
            my $socket = syscall(41, $family, $asked, 0);
            my $why = $! + 0;
            my $both = syscall(53, $family, $asked, 0, $pair);
            if ($family == 1 && $type == 1) {
                # The kernel knows no flag 0x10.
                print "no stream $what " if $flags != 0x10 && ($socket < 0 || $both < 0);
            } else {
                denied("pair $what", $both);
                $! = $why;
                denied("socket $what", $socket);
            }
            syscall(3, $socket) if $socket >= 0;
            if ($both == 0) { syscall(3, $_) for unpack("ll", $pair); }
        }
        # Arguments of 32 bits, with something above them.
        my $socket = syscall(41, $family | $upper, $type | $upper, 0);
        denied("socket $family/$type above", $socket) unless $family == 1 && $type == 1;
        syscall(3, $socket) if $socket >= 0;
    }
}

denied("inotify_init", syscall(253));
denied("inotify_init1", syscall(294, 0));
denied("inotify_add_watch", syscall(254, 0, $directory, 0xfff));
denied("fanotify_init", syscall(300, 0, 0));
denied("fanotify_init by name", syscall(300, 0xe00, 0));
denied("fanotify_mark", syscall(301, 0, 1, 0x100, -100, $directory));
denied("getxattr", syscall(191, $directory, $name, $pair, 8));
denied("lgetxattr", syscall(192, $directory, $name, $pair, 8));
denied("listxattr", syscall(194, $directory, $pair, 8));
denied("llistxattr", syscall(195, $directory, $pair, 8));
denied("getxattrat", syscall(464, -100, $directory, 0, $name, $pair, 16));
denied("listxattrat", syscall(465, -100, $directory, 0, $pair, 8));
denied("open_tree_attr", syscall(467, -100, $directory, 0, $pair, 32));
denied("file_getattr", syscall(468, -100, $directory, $pair, 24, 0));
denied("file_setattr", syscall(469, -100, $directory, $pair, 24, 0));
denied("statmount", syscall(457, $pair, $name, 1, 0));
denied("listmount", syscall(458, $pair, $name, 1, 0));
denied("syslog", syscall(103, 10, 0, 0));
my $x32 = syscall(0x40000000 | 253);
denied("x32 inotify_init", $x32) unless $x32 == -1 && $!{ENOSYS};
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

pub(crate) fn no_descriptor_is_passed_on_whichever_walls_hold() {
    for without in WALLS {
        let listed = launched_program(without, &["/usr/bin/perl", "-e", LIST_DESCRIPTORS]);
        assert_eq!(said(&listed), inherited(), "without {without:?}");
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn nothing_outside_is_reached_whichever_walls_hold() {
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

#[cfg(target_arch = "x86_64")]
pub(crate) fn only_local_streams_are_sockets_and_no_news_of_other_files_arrives_whichever_walls_hold()
 {
    let outside = tempfile::tempdir().unwrap();
    let directory = outside.path().to_str().unwrap();
    for without in WALLS {
        let program = ["/usr/bin/perl", "-e", LISTENS_OUT, directory];
        let told = launched_program(without, &program);
        assert_eq!(said(&told), "end", "without {without:?}");
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn no_datagram_leaves_the_sandbox_by_a_raw_socket_whichever_walls_hold() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("datagrams");
    let datagrams = UnixDatagram::bind(&path).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let script = r#"use Socket; my $to = pack_sockaddr_un($ARGV[0]);
        for my $type (1 .. 10) {
            socket(my $one, PF_UNIX, $type, 0) and send($one, "x", 0, $to);
            socketpair(my $two, my $three, PF_UNIX, $type, 0) and send($two, "x", 0, $to);
        }
        print "end";"#;
    for without in WALLS {
        let sent = launched_program(
            without,
            &["/usr/bin/perl", "-M-warnings", "-e", script, path.to_str().unwrap()],
        );
        assert_eq!(said(&sent), "end", "without {without:?}");
        let received = datagrams.recv(&mut [0; 8]);
        assert_eq!(received.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{without:?}");
    }
}

pub(crate) fn what_a_command_needs_is_left_to_it_whichever_walls_hold() {
    let script = r"
        mkdir d && cd d && echo x > f && touch f && cp -p f g && mv g h && ln h i && rm h f &&
        (/bin/true; exit 3); [ $? = 3 ] && echo x | cat > /dev/null && mktemp -p . > /dev/null && echo all";
    for without in WALLS {
        let output = launched_program(without, &["/bin/bash", "-c", script]);
        assert!(said(&output).ends_with("all"), "without {without:?}: {}", said(&output));
    }
}
