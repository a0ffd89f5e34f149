//! Serving beside nginx with sendfile, under wrk: a small file, a variant, larger files and replies
//! without a body, with and without keys; and the 99th percentile at half of the top rate. `row=N` compares
//! only the row of that number; nginx keeps `files=100` open, or none with 0, its default.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::neighbours::option;
use super::server::{Connection, Outcome, Server, noise, work_dir};

/// Turns, unless `rounds=N` says otherwise.
const ROUNDS: usize = 9;

/// The length of a turn in seconds, unless `window=SECS` says otherwise.
const WINDOW_SECS: u64 = 4;

/// The files that nginx keeps open, unless `files=N` says otherwise.
const OPEN_FILES: u64 = 100;

/// Connections at once.
const CONNECTIONS: u32 = 32;

/// A request that both are asked, and the ratio that is wanted.
struct Row {
    name: &'static str,
    theirs: Get,
    ours: Get,
    /// The ratio of our rate to theirs that is wanted.
    wanted: f64,
}

/// A request to one of them.
#[derive(Clone)]
struct Get {
    url: String,
    /// A header line.
    header: Option<String>,
    /// The status of each reply.
    status: u16,
}

impl Get {
    fn of(url: String) -> Self {
        Self { url, header: None, status: 200 }
    }

    /// Asks for changes since the reply that the service or nginx gives now: there are none.
    fn unchanged(&self) -> Outcome<Self> {
        let head = curl(&[&self.url, "--head"])?;
        let head = String::from_utf8_lossy(&head);
        let etag = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("etag").then(|| value.trim().to_owned())
        });
        let etag = etag.ok_or_else(|| format!("no ETag from {}", self.url))?;
        Ok(Self { header: Some(format!("If-None-Match: {etag}")), status: 304, ..self.clone() })
    }

    /// Fails unless the reply has the status.
    fn check(&self) -> Outcome {
        let mut args = vec!["--output", "/dev/null", "--write-out", "%{http_code}", &self.url];
        args.extend(self.header.iter().flat_map(|header| ["--header", header]));
        let status = curl(&args)?;
        if status == self.status.to_string().as_bytes() {
            return Ok(());
        }
        Err(format!("{} from {}", String::from_utf8_lossy(&status), self.url).into())
    }

    /// Returns the requests per second over a window.
    fn rate(&self, window: u64) -> Outcome<f64> {
        let (connections, window) = (format!("-c{CONNECTIONS}"), format!("-d{window}s"));
        let mut args = vec!["-t1", &connections, &window, "--timeout", "30s", &self.url];
        args.extend(self.header.iter().flat_map(|header| ["-H", header]));
        let out = Command::new("wrk").args(args).output()?;
        let text = String::from_utf8_lossy(&out.stdout);
        if text.contains("Non-2xx") {
            return Err(format!("refusals from {}", self.url).into());
        }
        let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
        Ok(rate.ok_or_else(|| format!("wrk printed no rate: {text}"))?.trim().parse()?)
    }

    /// Returns the 99th percentile of the latency in seconds at `rate` requests per second, counted
    /// from when each request was due.
    fn late(&self, rate: f64, window: u64) -> Outcome<f64> {
        let (connections, window) = (CONNECTIONS.to_string(), format!("{window}s"));
        let rate = format!("{rate:.0}");
        let mut args = vec!["--no-tui", "--output-format", "json", "--latency-correction"];
        args.extend(["-c", &connections, "-z", &window, "-q", &rate]);
        args.extend(self.header.iter().flat_map(|header| ["-H", header]));
        args.push(&self.url);
        let out = Command::new("oha").args(args).output()?;
        let report: serde_json::Value = serde_json::from_slice(&out.stdout)?;
        let late = report["latencyPercentiles"]["p99"].as_f64();
        Ok(late.ok_or_else(|| format!("oha printed no p99: {report}"))?)
    }
}

pub(crate) fn run() -> Outcome {
    let rounds = option("rounds=").map_or(Ok(ROUNDS), usize::try_from)?;
    let window = option("window=").unwrap_or(WINDOW_SECS);
    let (open, closed) = (Server::start("")?, Server::start("")?);
    let web = work_dir()?;
    let (nginx, address) = Nginx::start(web.path(), option("files=").unwrap_or(OPEN_FILES))?;

    let mut rows = Vec::new();
    for (name, bytes, wanted) in [
        ("20 KB", noise_of(20_000), 0.95),
        ("1 MiB", noise_of(1 << 20), 0.75),
        ("64 MiB", noise_of(64 << 20), 1.0),
    ] {
        fs::write(web.path().join(name.replace(' ', "-")), &bytes)?;
        let theirs = Get::of(format!("http://{address}/{}", name.replace(' ', "-")));
        let ours = Get::of(upload(&open, &bytes)?);
        rows.push(Row { name, theirs, ours, wanted });
    }

    let variant = Get::of(format!("{}/400/400", upload(&open, &photo()?)?));
    let bytes = curl(&[&variant.url])?;
    fs::write(web.path().join("variant"), &bytes)?;
    let theirs = Get::of(format!("http://{address}/variant"));
    rows.insert(1, Row { name: "variant", theirs, ours: variant, wanted: 0.95 });

    let (theirs, ours) = (rows[0].theirs.unchanged()?, rows[0].ours.unchanged()?);
    rows.insert(2, Row { name: "20 KB, 304", theirs, ours, wanted: 0.6 });

    // With and without keys, beside each other: here `theirs` is the open server.
    let url = upload(&closed, &noise_of(20_000))?;
    let header = Some(format!("Authorization: Bearer {}", first_key(&closed)?));
    let ours = Get { url, header, status: 200 };
    rows.push(Row { name: "20 KB, key", theirs: rows[0].ours.clone(), ours, wanted: 0.8 });

    // The workers of an nginx started as root run as another user, who must reach the files.
    Command::new("chmod").arg("-R").arg("a+rX").arg(web.path()).status()?;
    println!("requests per second, {rounds} turns of {window} s with {CONNECTIONS} connections");
    let wanted = option("row=");
    for (_, row) in (1..).zip(&rows).filter(|(number, _)| wanted.is_none_or(|one| one == *number)) {
        row.compare(rounds, window)?;
    }
    if wanted.is_some() {
        return Ok(());
    }

    let half = rows[0].ours.rate(window)? / 2.0;
    late(&rows[0], half, rounds, window)?;
    drop(nginx);
    Ok(())
}

impl Row {
    fn compare(&self, rounds: usize, window: u64) -> Outcome {
        self.theirs.check()?;
        self.ours.check()?;
        let mut turns = Vec::new();
        for round in 0..=rounds {
            let (theirs, ours) = (self.theirs.rate(window)?, self.ours.rate(window)?);
            // The first turn warms both up.
            if round > 0 {
                turns.push((ours / theirs, ours, theirs));
            }
        }

        let spread = spread(turns.iter().map(|turn| turn.0));
        let rates =
            [median(turns.iter().map(|turn| turn.1)), median(turns.iter().map(|turn| turn.2))];
        let Self { name, wanted, .. } = self;
        println!("{name:<12} {:>9.0} to {:>9.0}   {spread}   wanted {wanted}", rates[0], rates[1]);
        Ok(())
    }
}

/// Compares the 99th percentile of the latency where both are asked at `rate`.
fn late(row: &Row, rate: f64, rounds: usize, window: u64) -> Outcome {
    if Command::new("oha").arg("--version").output().is_err() {
        println!("p99 at half rate: not measured, there is no `oha` (cargo install oha)");
        return Ok(());
    }

    let mut turns = Vec::new();
    for _ in 0..rounds {
        let (theirs, ours) = (row.theirs.late(rate, window)?, row.ours.late(rate, window)?);
        turns.push((ours / theirs, ours * 1e3, theirs * 1e3));
    }
    let (ours, theirs) =
        (median(turns.iter().map(|turn| turn.1)), median(turns.iter().map(|turn| turn.2)));
    let spread = spread(turns.iter().map(|turn| turn.0));
    println!(
        "p99 of {} at {rate:.0}/s   {ours:.2} ms to {theirs:.2}   {spread}   wanted at most 2",
        row.name
    );
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Formats the median of the ratios, and the least and the greatest of them.
fn spread(ratios: impl Iterator<Item = f64> + Clone) -> String {
    let (least, most) =
        (ratios.clone().fold(f64::MAX, f64::min), ratios.clone().fold(0.0, f64::max));
    format!("ratio {:.2} ({least:.2} to {most:.2})", median(ratios))
}

fn noise_of(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (seed, block) in (0..).zip(bytes.chunks_mut(64 << 10)) {
        noise(seed, block);
    }
    bytes
}

/// Uploads bytes; returns the URL of the file.
fn upload(server: &Server, bytes: &[u8]) -> Outcome<String> {
    let reply = Connection::open(&server.address)?.upload(bytes.len() as u64, |at, out| {
        let at = usize::try_from(at).expect("the bytes fit in memory");
        out.copy_from_slice(&bytes[at..at + out.len()]);
    })?;
    Ok(format!("http://{}{}", server.address, reply.location))
}

/// Makes the first key of an open server, which asks for it from then on.
fn first_key(server: &Server) -> Outcome<String> {
    let url = format!("http://{}/api/v1/admin/keys", server.address);
    let body = r#"{"organizations":["*"],"scopes":["read"]}"#;
    let made = curl(&[&url, "--json", body])?;
    let made: serde_json::Value = serde_json::from_slice(&made)?;
    Ok(made["key"].as_str().ok_or_else(|| format!("no key in {made}"))?.to_owned())
}

/// A picture with enough detail that its 400 px variant has about the size of a real one.
fn photo() -> Outcome<Vec<u8>> {
    let picture = image::RgbImage::from_fn(1600, 1200, |x, y| {
        let wave = |k: u32| {
            u8::try_from((x * k / 7 + y * (k + 3) / 11 + (x * y / 97) % 31) % 256).unwrap_or(0)
        };
        image::Rgb([wave(1), wave(2), wave(3)])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Jpeg)?;
    Ok(bytes.into_inner())
}

fn curl(args: &[&str]) -> Outcome<Vec<u8>> {
    let out = Command::new("curl").args(["--silent", "--fail"]).args(args).output()?;
    if out.status.success() { Ok(out.stdout) } else { Err(format!("curl {args:?} failed").into()) }
}

struct Nginx(Child);

impl Nginx {
    fn start(root: &Path, open_files: u64) -> Outcome<(Self, String)> {
        let cache = if open_files == 0 { "off".to_owned() } else { format!("max={open_files}") };
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (dir, conf) = (root.display(), root.join("nginx.conf"));
        fs::write(
            &conf,
            format!(
                "daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log; worker_processes auto;\n\
                 events {{ worker_connections 1024; }}\n\
                 http {{ access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000;\n\
                 open_file_cache {cache}; types {{ image/webp webp; }} client_body_temp_path {dir}/b;\n\
                 proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;\n\
                 server {{ listen 127.0.0.1:{port}; root {dir}; }} }}\n"
            ),
        )?;

        let child = Command::new("nginx")
            .arg("-c")
            .arg(&conf)
            .arg("-p")
            .arg(root)
            .stderr(Stdio::null())
            .spawn()?;

        let (server, address) = (Self(child), format!("127.0.0.1:{port}"));
        while std::net::TcpStream::connect(&address).is_err() {
            std::thread::yield_now();
        }

        Ok((server, address))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-QUIT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}
