//! Resumable uploads to plain uploads, in turns: large ones, and small ones.

use std::time::Instant;

use super::neighbours::option;
use super::server::{Connection, Outcome, Server, noise};

/// The size of a large upload in MiB, unless `mib=N` says otherwise.
const LARGE_MIB: u64 = 1024;
const PIECE: u64 = 32 << 20;
/// Turns of large uploads, unless `rounds=N` says otherwise.
const ROUNDS: u64 = 5;

const SMALL: u64 = 64 << 10;
/// Uploads of a turn of small ones.
const SMALL_FILES: u64 = 400;

pub(crate) fn run() -> Outcome {
    let rounds = option("rounds=").unwrap_or(ROUNDS);
    large(rounds, option("mib=").unwrap_or(LARGE_MIB) << 20)?;
    small(rounds)
}

/// How an upload is sent.
#[derive(Clone, Copy)]
enum How {
    /// As a form.
    Plain,
    /// As a resumable upload, in pieces of at most so many bytes.
    Pieces(u64),
}

/// What uploads took: seconds on the clock, and of the server's processor time.
#[derive(Clone, Copy)]
struct Cost {
    clock: f64,
    processor: f64,
    grown_kib: u64,
}

/// A store of its own for each upload, so that no turn pays for the files of an earlier one.
fn large(rounds: u64, len: u64) -> Outcome {
    let ways = [How::Plain, How::Pieces(len), How::Pieces(PIECE)];
    let mut ratios = [const { Vec::new() }; 3];
    for round in 0..=rounds {
        let mut costs = Vec::new();
        for way in 0..ways.len() {
            let way = (way + usize::try_from(round)?) % ways.len();
            let server = Server::start("[limits]\nmax_file_size = 4294967296\n")?;
            costs.push((way, cost(&server, ways[way], len, 1)?));
        }
        costs.sort_by_key(|(way, _)| *way);
        if round == 0 {
            continue; // warm-up
        }
        let [plain, whole, pieces] = [0, 1, 2].map(|way: usize| costs[way].1);
        println!(
            "{} MiB: plain {:.2} s, one PATCH {:.2} s ({:.2}), pieces {:.2} s ({:.2}); processor {:.2}, {:.2}, {:.2} s; \
             memory + {}, {}, {} MiB",
            len >> 20,
            plain.clock,
            whole.clock,
            plain.clock / whole.clock,
            pieces.clock,
            plain.clock / pieces.clock,
            plain.processor,
            whole.processor,
            pieces.processor,
            plain.grown_kib >> 10,
            whole.grown_kib >> 10,
            pieces.grown_kib >> 10,
        );
        for (way, cost) in [plain, whole, pieces].into_iter().enumerate() {
            ratios[way].push((plain.clock / cost.clock, cost.processor / plain.processor));
        }
    }
    let [_, whole, pieces] = ratios;
    let rate = |ratios: &[(f64, f64)]| median(ratios.iter().map(|ratio| ratio.0));
    let time = |ratios: &[(f64, f64)]| median(ratios.iter().map(|ratio| ratio.1));
    println!(
        "median rates to a plain upload: one PATCH {:.2} (wanted 0.9), pieces of 32 MiB {:.2} (wanted 0.8); processor \
         time {:.2}, {:.2}",
        rate(&whole),
        rate(&pieces),
        time(&whole),
        time(&pieces)
    );
    Ok(())
}

fn small(rounds: u64) -> Outcome {
    let server = Server::start("")?;
    let (mut clocks, mut processors) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (first, second) = if round % 2 == 0 {
            (How::Plain, How::Pieces(SMALL))
        } else {
            (How::Pieces(SMALL), How::Plain)
        };
        let first = cost(&server, first, SMALL, SMALL_FILES)?;
        let second = cost(&server, second, SMALL, SMALL_FILES)?;
        let (plain, resumable) = if round % 2 == 0 { (first, second) } else { (second, first) };
        if round > 0 {
            clocks.push(resumable.clock / plain.clock);
            processors.push(resumable.processor / plain.processor);
        }
    }
    println!(
        "64 KiB, one after the other, medians of a resumable upload to a plain one: clock {:.2} (wanted 2.5), processor \
         time {:.2}",
        median(clocks.into_iter()),
        median(processors.into_iter())
    );
    Ok(())
}

/// Sends so many uploads, one after the other.
fn cost(server: &Server, how: How, len: u64, files: u64) -> Outcome<Cost> {
    let mut connection = Connection::open(&server.address)?;
    let (before_kib, _) = server.memory_kib()?;
    server.forget_peak()?;
    let (processor, began) = (server.processor_time()?, Instant::now());
    for _ in 0..files {
        let (reply, wanted) = match how {
            How::Plain => (connection.upload(len, noise)?, 201),
            How::Pieces(piece) => (connection.resume(len, piece, noise)?, 204),
        };
        if reply.status != wanted {
            return Err(format!("status {}, not {wanted}", reply.status).into());
        }
    }
    let clock = began.elapsed().as_secs_f64();
    let processor = server.processor_time()?.saturating_sub(processor).as_secs_f64();
    let (_, peak_kib) = server.memory_kib()?;
    Ok(Cost { clock, processor, grown_kib: peak_kib.saturating_sub(before_kib) })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
