//! Small durable uploads against the raw file system, in turns; and against what any server has to do, as a
//! bound of what can be reached.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use super::server::{Connection, Outcome, Server, noise, work_dir};

const SIZE: u64 = 64 << 10;
const AT_ONCE: usize = 32;
const FILES: u64 = 4000;
const ROUNDS: usize = 5;

pub(crate) fn run() -> Outcome {
    let server = Server::start("")?;
    let (raw_dir, received_dir) = (work_dir()?, work_dir()?);
    let least = start_least(received_dir.path())?;

    let mut turns = Vec::new();
    for round in 0..=ROUNDS {
        let raw = rate(|index| write_raw(raw_dir.path(), index))?;
        let least = uploads(&least)?;
        let ours = uploads(&server.address)?;
        if round == 0 {
            continue; // warm-up
        }
        println!(
            "raw {raw:>6.0} files/s   behind a socket {least:>6.0} {:.2}   uploads {ours:>6.0} {:.2}",
            least / raw,
            ours / raw
        );
        turns.push((least / raw, ours / raw));
    }

    let (least, ours) =
        (median(turns.iter().map(|turn| turn.0)), median(turns.iter().map(|turn| turn.1)));
    println!(
        "median ratio {ours:.2} (wanted 0.75); raw behind a socket, with a digest and no database: {least:.2}"
    );
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the uploads per second to a server.
fn uploads(address: &str) -> Outcome<f64> {
    let connections: Vec<_> = (0..AT_ONCE)
        .map(|_| Connection::open(address).map(Mutex::new))
        .collect::<Result<_, _>>()?;
    rate_by(|worker, index| {
        let mut connection = connections[worker].lock().expect("one thread per connection");
        let reply = connection.upload(SIZE, |_, out| noise(index, out))?;
        if reply.status == 201 { Ok(()) } else { Err(format!("status {}", reply.status).into()) }
    })
}

fn rate(work: impl Fn(u64) -> Outcome + Sync) -> Outcome<f64> {
    rate_by(|_, index| work(index))
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand files")]
fn rate_by(work: impl Fn(usize, u64) -> Outcome + Sync) -> Outcome<f64> {
    static NEXT_RUN: AtomicU64 = AtomicU64::new(0);
    let base = NEXT_RUN.fetch_add(FILES, Ordering::Relaxed);
    let next = AtomicU64::new(0);
    let start = Instant::now();

    std::thread::scope(|scope| -> Outcome {
        let (next, work) = (&next, &work);
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|worker| {
                scope.spawn(move || -> Outcome {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= FILES {
                            return Ok(());
                        }
                        work(worker, base + index)?;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("no load thread panics")?;
        }
        Ok(())
    })?;

    Ok(FILES as f64 / start.elapsed().as_secs_f64())
}

fn write_raw(dir: &Path, index: u64) -> Outcome {
    let mut bytes = vec![0; usize::try_from(SIZE)?];
    noise(index, &mut bytes);
    store(dir, &index.to_string(), &bytes)
}

/// Write, fsync, rename, fsync of the directory: what a careful program does for one file.
fn store(dir: &Path, name: &str, bytes: &[u8]) -> Outcome {
    let temporary = dir.join(format!("{name}.tmp"));
    let mut file = File::create_new(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(name))?;
    File::open(dir)?.sync_all()?;
    Ok(())
}

/// Starts the least that could be called a server: a thread for each connection, which reads a request, digests
/// and stores its body as `write_raw` does, and replies. Nothing is parsed, checked or recorded. Returns its
/// address.
fn start_least(dir: &Path) -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let dir = dir.to_owned();
    std::thread::spawn(move || {
        for (number, stream) in (0_u64..).zip(listener.incoming()) {
            let Ok(stream) = stream else { return };
            let dir = dir.clone();
            std::thread::spawn(move || receive(stream, &dir, number));
        }
    });
    Ok(address)
}

/// Serves one connection until its client is gone.
fn receive(stream: TcpStream, dir: &Path, number: u64) -> Outcome {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(128 << 10, stream);
    let mut body = Vec::new();

    for index in 0_u64.. {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse()?;
            }
            if line == "\r\n" {
                break;
            }
        }

        body.resize(length, 0);
        stream.read_exact(&mut body)?;
        let digest = Sha256::digest(&body);
        store(dir, &format!("{number}-{index}-{:02x}", digest[0]), &body)?;
        stream.get_mut().write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n")?;
    }
    Ok(())
}
