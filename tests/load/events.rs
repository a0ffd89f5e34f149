//! Uploads with the log of events to uploads without, in turns; and the bytes of an event on the disk.

use std::sync::atomic::{AtomicU64, Ordering};

use super::neighbours::option;
use super::server::{Connection, Outcome, Server, noise};

const SIZE: u64 = 64 << 10;
/// Uploads of a turn.
const FILES: u64 = 2000;
/// Turns of each server, unless `rounds=N` says otherwise.
const ROUNDS: u64 = 9;

/// The tables and indexes that events take.
const EVENT_PAGES: &str =
    "SELECT sum(pgsize) FROM dbstat WHERE name IN ('events', 'events_by_organization')";

pub(crate) fn run() -> Outcome {
    let with = Server::start("")?;
    let without = Server::start("[events]\nenabled = false\n")?;
    let rounds = option("rounds=").unwrap_or(ROUNDS);
    for at_once in [32, 1] {
        let (mut times, mut bytes) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            // The first of two turns is now one server's, now the other's.
            let (on, off) = if round % 2 == 0 {
                let on = turn(&with, at_once)?;
                (on, turn(&without, at_once)?)
            } else {
                let off = turn(&without, at_once)?;
                (turn(&with, at_once)?, off)
            };
            if round == 0 {
                continue; // warm-up
            }
            println!(
                "{at_once} at once: {:.3} ms and {:.0} bytes of an upload with events, {:.3} ms and {:.0} bytes without",
                on.0, on.1, off.0, off.1
            );
            times.push(on.0 / off.0);
            bytes.push(on.1 / off.1);
        }
        println!(
            "{at_once} at once, medians with to without: processor time {:.3}, bytes beside the content {:.3} (wanted 1.05)",
            median(times),
            median(bytes)
        );
    }

    let (bytes, events) = with.look_at_database(|database| {
        let count = |query: &str| database.query_row(query, [], |row| row.get::<_, f64>(0));
        Ok((count(EVENT_PAGES)?, count("SELECT count(*) FROM events")?))
    })?;
    println!("{:.0} bytes on the disk for each of {events} events (wanted 200)", bytes / events);
    Ok(())
}

/// Makes the uploads of a turn. Returns the milliseconds of processor time of each, and the bytes that the server
/// wrote for it beside its content.
#[expect(clippy::cast_precision_loss, reason = "a few thousand files of 64 KiB")]
fn turn(server: &Server, at_once: usize) -> Outcome<(f64, f64)> {
    static SEEDS: AtomicU64 = AtomicU64::new(0);
    let next = AtomicU64::new(0);
    let (time, bytes) = (server.processor_time()?, server.written_bytes()?);
    std::thread::scope(|scope| -> Outcome {
        let workers: Vec<_> = (0..at_once)
            .map(|_| {
                scope.spawn(|| -> Outcome {
                    let mut connection = Connection::open(&server.address)?;
                    while next.fetch_add(1, Ordering::Relaxed) < FILES {
                        let seed = SEEDS.fetch_add(1, Ordering::Relaxed);
                        let reply = connection.upload(SIZE, |_, out| noise(seed, out))?;
                        if reply.status != 201 {
                            return Err(format!("status {}", reply.status).into());
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("no load thread panics")?;
        }
        Ok(())
    })?;
    let time = server.processor_time()?.saturating_sub(time);
    let bytes = server.written_bytes()? - bytes - FILES * SIZE;
    Ok((time.as_secs_f64() * 1000.0 / FILES as f64, bytes as f64 / FILES as f64))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
