//! Small durable uploads against the raw file system, in turns.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::server::{Connection, Outcome, Server, noise, work_dir};

const SIZE: u64 = 64 << 10;
const AT_ONCE: usize = 32;
const FILES: u64 = 4000;
const ROUNDS: usize = 5;

pub(crate) fn run() -> Outcome {
    let server = Server::start("")?;
    let raw_dir = work_dir()?;

    let mut ratios = Vec::new();
    for round in 0..=ROUNDS {
        let raw = rate(|index| write_raw(raw_dir.path(), index))?;
        let ours = {
            let connections: Vec<_> = (0..AT_ONCE)
                .map(|_| Connection::open(&server.address).map(std::sync::Mutex::new))
                .collect::<Result<_, _>>()?;
            rate_by(|worker, index| {
                let mut connection = connections[worker].lock().expect("one thread per connection");
                let reply = connection.upload(SIZE, |_, out| noise(index, out))?;
                if reply.status == 201 {
                    Ok(())
                } else {
                    Err(format!("status {}", reply.status).into())
                }
            })?
        };
        if round == 0 {
            continue; // warm-up
        }
        println!("raw {raw:>8.0} files/s   uploads {ours:>8.0} files/s   ratio {:.2}", ours / raw);
        ratios.push(ours / raw);
    }

    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2} (at least 0.5 is what we are after)", ratios[ratios.len() / 2]);
    Ok(())
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

/// Write, fsync, rename, fsync of the directory: what a careful program does for one file.
fn write_raw(dir: &Path, index: u64) -> Outcome {
    let mut bytes = vec![0; usize::try_from(SIZE)?];
    noise(index, &mut bytes);
    let (temporary, name) = (dir.join(format!("{index}.tmp")), dir.join(index.to_string()));
    let mut file = File::create_new(&temporary)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, &name)?;
    File::open(dir)?.sync_all()?;
    Ok(())
}
