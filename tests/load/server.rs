//! The server under load, as a process of its own, and a client that costs little.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A running release server with a data directory of its own.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    dir: tempfile::TempDir,
}

impl Server {
    /// Starts the binary on a free port, with `config` as its configuration file.
    pub(crate) fn start(config: &str) -> Outcome<Self> {
        Self::run(Command::new(binary()?), config)
    }

    /// Starts the binary with so many descriptors at most.
    pub(crate) fn start_with_descriptors(config: &str, most: u32) -> Outcome<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &most.to_string()]).arg(binary()?);
        Self::run(shell, config)
    }

    fn run(mut program: Command, config: &str) -> Outcome<Self> {
        let dir = work_dir()?;
        let file = dir.path().join("filestore.toml");
        std::fs::write(&file, config)?;
        let mut child = program
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir.path().join("data"))
            .arg("--config")
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()?;

        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line)?;
        let address = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("http://"))
            .ok_or_else(|| format!("the server did not say where it listens: {line:?}"))?
            .to_owned();

        Ok(Self { child, address, dir })
    }

    /// Forgets the peak of the resident memory so far.
    pub(crate) fn forget_peak(&self) -> Outcome {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }

    /// The processor time so far, in hundredths of a second (`proc_pid_stat(5)`).
    pub(crate) fn processor_time(&self) -> Outcome<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = stat.rsplit_once(')').ok_or("no name in /proc/<pid>/stat")?.1;
        let ticks: u64 =
            fields.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// The bytes that the process has passed to `write(2)` and its kin so far (`proc_pid_io(5)`).
    pub(crate) fn written_bytes(&self) -> Outcome<u64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.child.id()))?;
        let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
        Ok(line.ok_or("no wchar in /proc/<pid>/io")?.parse()?)
    }

    /// Ends the server, and lets `look` read its database.
    pub(crate) fn look_at_database<T>(
        mut self,
        look: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Outcome<T> {
        self.child.kill()?;
        self.child.wait()?;
        let database = rusqlite::Connection::open(self.dir.path().join("data/metadata.sqlite3"))?;
        Ok(look(&database)?)
    }

    /// The number of open descriptors.
    pub(crate) fn descriptors(&self) -> Outcome<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }

    /// Waits until nothing is staged, and returns how many files still are.
    pub(crate) fn staged_after(&self, patience: Duration) -> Outcome<usize> {
        let began = Instant::now();
        loop {
            let staged = std::fs::read_dir(self.dir.path().join("data/staging"))?.count();
            if staged == 0 || began.elapsed() > patience {
                return Ok(staged);
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Resident memory in KiB: now, and at its peak.
    pub(crate) fn memory_kib(&self) -> Outcome<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| {
                    line.strip_prefix(name)?.trim_end_matches("kB").trim().parse().ok()
                })
                .ok_or_else(|| format!("no {name} in /proc/<pid>/status"))
        };
        Ok((field("VmRSS:")?, field("VmHWM:")?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary directory on the disk to be measured.
pub(crate) fn work_dir() -> Outcome<tempfile::TempDir> {
    Ok(match std::env::var_os("FILESTORE_LOAD_DIR") {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir()?,
    })
}

fn binary() -> Outcome<PathBuf> {
    let path = std::env::var_os("FILESTORE_SERVER_BIN").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/release/filestore-server"),
        PathBuf::from,
    );
    if path.exists() {
        return Ok(path);
    }
    Err(format!("no {}: run `cargo build --release -p filestore-server` first", path.display())
        .into())
}

/// One keep-alive connection that sends prepared requests and reads whole replies.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
    /// Kept from request to request.
    buffer: Vec<u8>,
}

/// A reply: status, the `Location` header, the body if it was kept.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) location: String,
    pub(crate) body_bytes: u64,
}

/// The bytes that are sent at a time.
const BLOCK_BYTES: usize = 256 << 10;

const BOUNDARY: &str = "load-4f1c6b0e9a";

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?, address)
    }

    /// Takes a connection to `address` that blocks.
    pub(crate) fn over(stream: TcpStream, address: &str) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(256 << 10, stream);
        Ok(Self { stream, address: address.to_owned(), buffer: Vec::new() })
    }

    /// Uploads `len` bytes that `fill` writes into each block.
    pub(crate) fn upload(
        &mut self,
        len: u64,
        mut fill: impl FnMut(u64, &mut [u8]),
    ) -> io::Result<Reply> {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"organization_id\"\r\n\r\nload\r\n\
             --{BOUNDARY}\r\nContent-Disposition: form-data; name=\"sub_system\"\r\n\r\nbench\r\n\
             --{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"load.bin\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );

        let tail = format!("\r\n--{BOUNDARY}--\r\n");
        let total = head.len() as u64 + len + tail.len() as u64;
        let first = format!(
            "POST /api/v1/files/upload HTTP/1.1\r\nHost: {}\r\nContent-Type: multipart/form-data; \
             boundary={BOUNDARY}\r\nContent-Length: {total}\r\n\r\n{head}",
            self.address
        );

        let (buffer, stream) = (&mut self.buffer, self.stream.get_mut());
        buffer.clear();
        buffer.extend_from_slice(first.as_bytes());

        let mut sent = 0;
        while sent < len {
            let now = usize::try_from((len - sent).min(BLOCK_BYTES as u64)).expect("a block fits");
            let start = buffer.len();
            buffer.resize(start + now, 0);
            fill(sent, &mut buffer[start..]);
            sent += now as u64;
            if sent == len {
                buffer.extend_from_slice(tail.as_bytes());
            }
            stream.write_all(buffer)?;
            buffer.clear();
        }

        self.reply()
    }

    /// Uploads `len` bytes as a resumable upload, in pieces of at most `piece` bytes.
    pub(crate) fn resume(
        &mut self,
        len: u64,
        piece: u64,
        mut fill: impl FnMut(u64, &mut [u8]),
    ) -> io::Result<Reply> {
        let place = "/api/v1/uploads?organization_id=load&sub_system=bench";
        let more = format!("Upload-Length: {len}\r\nContent-Length: 0\r\n");
        self.tus("POST", place, &more)?;
        let mut reply = self.reply()?;
        let path = std::mem::take(&mut reply.location);

        let mut offset = 0;
        while offset < len {
            let now = piece.min(len - offset);
            let more = format!(
                "Upload-Offset: {offset}\r\nContent-Length: {now}\r\nContent-Type: application/offset+octet-stream\r\n"
            );
            self.tus("PATCH", &path, &more)?;
            let (buffer, stream) = (&mut self.buffer, self.stream.get_mut());
            let end = offset + now;
            while offset < end {
                let block = (end - offset).min(BLOCK_BYTES as u64);
                buffer.resize(usize::try_from(block).expect("a block fits"), 0);
                fill(offset, buffer);
                stream.write_all(buffer)?;
                offset += block;
            }
            reply = self.reply()?;
            if reply.status != 204 {
                break;
            }
        }
        Ok(reply)
    }

    fn tus(&mut self, method: &str, path: &str, more: &str) -> io::Result<()> {
        let host = &self.address;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nTus-Resumable: 1.0.0\r\n{more}\r\n"
        );
        self.stream.get_mut().write_all(head.as_bytes())
    }

    /// Reads `path` and throws the body away.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<Reply> {
        write!(self.stream.get_mut(), "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut reply = Reply::default();
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if let Some((name, value)) = text.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => reply.body_bytes = value.trim().parse().unwrap_or(0),
                    "location" => value.trim().clone_into(&mut reply.location),
                    _ => {}
                }
            } else {
                reply.status =
                    text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
            }
        }

        io::copy(&mut (&mut self.stream).take(reply.body_bytes), &mut io::sink())?;
        Ok(reply)
    }
}

/// Bytes that no layer below can compress, made once so that making them is no part of a figure; the
/// first ones are `seed`, so that no two blocks are the same.
pub(crate) fn noise(seed: u64, out: &mut [u8]) {
    static BLOCK: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let words = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        words.take(BLOCK_BYTES / 8).flatten().collect()
    });
    let (block, seed) = (&BLOCK[..out.len()], seed.to_le_bytes());
    out.copy_from_slice(block);

    let stamp = out.len().min(seed.len());
    out[..stamp].copy_from_slice(&seed[..stamp]);
}
