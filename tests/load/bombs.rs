//! Requests made to do harm, one after another: what each costs the server that refuses it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::server::{Outcome, Server};

/// Requests of each kind: the kernel counts processor time in hundredths of a second.
const ROUNDS: u32 = 20;
/// The most processor time of a rejected request.
const CPU: Duration = Duration::from_millis(50);
/// The most processor time of one whose header is refused.
const HEADER_CPU: Duration = Duration::from_millis(5);
/// The most memory that a rejected request takes.
const MEMORY_KIB: u64 = 32 << 10;
/// The longest wait for a reply, and for the end of what a request has staged.
const PATIENCE: Duration = Duration::from_secs(30);

const MIB: usize = 1 << 20;

/// A request that has to be refused.
struct Bomb {
    name: &'static str,
    path: &'static str,
    /// The header lines besides Host, each with its CRLF.
    head: String,
    /// What is sent after the head: each piece so many times.
    body: Vec<(Vec<u8>, usize)>,
    status: u16,
    /// The client's end before the announced length, after which no reply need come.
    is_cut_short: bool,
    cpu: Duration,
}

impl Bomb {
    /// Makes a form for `path` that announces a length which may be right.
    fn form(name: &'static str, path: &'static str, status: u16) -> Self {
        let head = format!(
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n",
            1 << 30
        );
        Self { name, path, head, body: Vec::new(), status, is_cut_short: false, cpu: CPU }
    }

    fn typed(mut self, content_type: &str) -> Self {
        self.head = format!("Content-Type: {content_type}\r\nContent-Length: 1000\r\n");
        self
    }

    fn cut_short(mut self) -> Self {
        self.is_cut_short = true;
        self
    }

    fn is_refused_by(&self, status: Option<u16>) -> bool {
        status.map_or(self.is_cut_short, |status| status == self.status)
    }

    fn with(mut self, piece: impl Into<Vec<u8>>, times: usize) -> Self {
        self.body.push((piece.into(), times));
        self
    }

    /// Sends the request and returns the status of the reply; the server may close before all is sent.
    fn throw(&self, address: &str) -> io::Result<Option<u16>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n",
            self.path, self.head
        );
        stream.write_all(head.as_bytes())?;

        'sending: for (piece, times) in &self.body {
            for _ in 0..*times {
                if stream.write_all(piece).is_err() {
                    break 'sending;
                }
            }
        }

        if self.is_cut_short {
            stream.shutdown(Shutdown::Write)?;
        }
        let mut reply = Vec::new();
        // A reset after the reply is the end of the drain.
        let _ = stream.read_to_end(&mut reply);
        let status = reply.get(9..12).and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        Ok(status)
    }
}

/// Makes the start of a part with this name.
fn part(name: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n")
}

fn crowd(count: usize) -> String {
    let all: Vec<_> = (0..count).map(|n| format!(";{n:x}=a")).collect();
    all.concat()
}

fn bombs() -> Vec<Bomb> {
    const UPLOAD: &str = "/api/v1/files/upload";
    const BATCH: &str = "/api/v1/files/batch";
    let form = Bomb::form;

    let mut header = form("a header of 62 KB full of parameters", UPLOAD, 400)
        .typed(&format!("multipart/form-data{};boundary=b", crowd(9300)));
    header.cpu = HEADER_CPU;

    let names: Vec<_> =
        (0..1000).map(|n| format!("{}x\r\n", part(&format!("items[{n}].original_name")))).collect();
    let names = names.concat();
    let mut bombs = vec![
        header,
        form("a million empty parts", UPLOAD, 400).with("--b\r\n\r\n\r\n".repeat(1000), 1000),
        form("a million parts without a meaning", BATCH, 400)
            .with(format!("{}\r\n", part("_charset_")).repeat(1000), 1000),
        form("a million items", BATCH, 413).with(names, 1000),
        form("a part header of 64 MiB", UPLOAD, 413)
            .with("--b\r\nX: ", 1)
            .with(vec![b'x'; MIB], 64),
        form("a part header of 64 MiB in lines", UPLOAD, 413)
            .with("--b\r\n", 1)
            .with("X: y\r\n".repeat(MIB / 6), 64),
        form("a preamble of 1 GiB", UPLOAD, 400).with(vec![b'x'; MIB], 1024),
        form("a preamble of near boundaries", UPLOAD, 400)
            .with("\r\n--\r\n--a".repeat(MIB / 9), 1024),
        form("thousands of parameters in a part", UPLOAD, 400).with(
            format!("--b\r\nContent-Disposition: form-data; name=file{}\r\n\r\n", crowd(1200)),
            1,
        ),
        form("an index beyond all", BATCH, 400).with(part("items[4294967294].file"), 1),
        form("an index beyond all numbers", BATCH, 400)
            .with(part("items[99999999999999999999].file"), 1),
        form("a name of 7 KB", BATCH, 400)
            .with(part(&format!("items[{}].file", "9".repeat(7000))), 1),
        form("a boundary line with text", UPLOAD, 400).with("--bx\r\n\r\n", 1),
        form("a body that ends in the boundary", UPLOAD, 400).with("--b", 1).cut_short(),
        form("a form that is over before it begins", UPLOAD, 400)
            .typed("multipart/form-data; boundary=b")
            .with("--b--\r\n", 1)
            .cut_short(),
        form("a length that is never reached", UPLOAD, 400)
            .with(part("file"), 1)
            .with(vec![b'x'; MIB], 3)
            .cut_short(),
    ];

    for boundary in
        ["", "=", "=\"\"", "=\"a \"", "=a;boundary=b", "=a*b", &format!("={}", "a".repeat(71))]
    {
        let kind = format!("multipart/form-data; boundary{boundary}");
        bombs.push(form("an odd boundary", UPLOAD, 400).typed(&kind).with("--b--\r\n", 1));
    }

    let nested = "[".repeat(60_000);
    let mut json = form("JSON that is nested", "/api/v1/organization-storage-bindings/create", 400)
        .with(nested, 1);
    json.head.clear();
    json.head.push_str("Content-Type: application/json\r\nContent-Length: 60000\r\n");
    bombs.push(json);

    let whole =
        format!("{}acme\r\n{}s\r\n{}", part("organization_id"), part("sub_system"), part("file"));
    for tenth in 1..10 {
        let mut aborted = form("an upload that is aborted", UPLOAD, 400)
            .with(whole.clone(), 1)
            .with(vec![b'x'; MIB / 10], 100 * tenth / 10)
            .cut_short();
        // 10 MiB are announced; the rest never comes.
        aborted.head =
            "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 10486000\r\n".into();
        bombs.push(aborted);
    }
    bombs
}

pub(crate) fn run() -> Outcome {
    let server = Server::start("")?;
    let mut failures = 0;
    println!("{:<40} {:>6} {:>10} {:>9}", "request", "status", "processor", "memory");

    for bomb in bombs() {
        server.forget_peak()?;
        let ((before, _), cpu) = (server.memory_kib()?, server.processor_time()?);
        let mut status = None;
        for _ in 0..ROUNDS {
            status = bomb.throw(&server.address)?;
            if !bomb.is_refused_by(status) {
                break;
            }
        }

        let cost = (server.processor_time()?.saturating_sub(cpu)) / ROUNDS;
        let grown = server.memory_kib()?.1.saturating_sub(before);
        let staged = server.staged_after(PATIENCE)?;
        let is_good =
            bomb.is_refused_by(status) && cost <= bomb.cpu && grown <= MEMORY_KIB && staged == 0;
        failures += u32::from(!is_good);

        let shown = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let verdict = if is_good { "" } else { "  <- too much, wrong or left behind" };
        println!("{:<40} {shown:>6} {cost:>10.1?} {:>5} KiB{verdict}", bomb.name, grown);
    }

    if failures > 0 {
        return Err(
            format!("{failures} kinds of requests were not refused as they should be").into()
        );
    }
    Ok(())
}
