//! Load runs against the release binary: the memory it takes, and how it compares.
//!
//! `cargo build --release -p filestore-server && cargo bench --bench load -- <run>`, where `<run>` is one of
//!
//! | run | prints |
//! |---|---|
//! | `bombs` | what requests made to do harm (a million parts, a header of 64 MiB, aborted uploads) cost the server that refuses them: processor, memory, what is left in staging |
//! | `memory` | growth of the server's peak resident memory over one 2 GiB upload and download, and over 64 uploads of 64 MiB at once |
//! | `pictures` | growth of the server's peak resident memory while 64 variants of 50 MP pictures are made at once, against the budget for decoding (`FILESTORE_LOAD_PICTURE` adds a picture of one's own, a progressive JPEG say) |
//! | `uploads` | 64 KiB uploads, 32 at once, with full durability, as a ratio to write + fsync + rename + directory fsync on the same disk, in turns; and the same work behind a socket, as a bound |
//! | `events` | uploads with the log of events to uploads without, in turns: processor time, and bytes written; the bytes of an event on the disk |
//! | `resumable` | 1 GiB as a resumable upload, in one piece and in pieces of 32 MiB, to a plain upload, in turns; the same for 64 KiB (`rounds=N`, `mib=N`) |
//! | `serve` | a small file, a variant, 1 MiB, 64 MiB and a reply of 304 under `wrk -c32`, as ratios to nginx serving the same bytes with sendfile, in turns; a small file with a key to the same without; the 99th percentile at half of the top rate (needs `wrk`, `nginx`, and `oha` for the last; `window=SECS`, `rounds=N`, `row=N`) |
//! | `slow` | 10,000 idle connections, 1,000 uploads at 1.1 KiB/s, clients that are slow in every way, and as many as there are descriptors: what they take, when they are cut, and what others notice |
//! | `sync` | a sync of 2,000 files of 64 KiB to Garage, as a ratio to `rclone copy` with as many transfers, in turns (by `tests/services/run`) |
//! | `sync-memory` | growth of the peak resident memory over such a sync, and over one of two files of 2 GiB (by `tests/services/run`) |
//! | `migrate` | 10,000 files that move to Garage, back and out again under reads and replaces: failed reads, wrong bytes, orphans (by `tests/services/run`) |
//! | `neighbours` | what two organizations (LOCAL, a sound provider) notice of a third one whose provider is dead, silent, throttled or rate-limiting: p50 and p99 with the fault to those without, in alternating windows, medians of five (`window=SECS`, `rounds=N`) |
//!
//! Figures are ratios within one run: machines differ and are shared. `FILESTORE_LOAD_DIR` names the
//! directory to work in (default: the system's temporary one; must not be a tmpfs for `uploads`).

mod bombs;
mod clouds;
mod events;
mod neighbours;
mod server;
mod memory;
mod pictures;
mod resumable;
mod serve;
mod slow;
mod uploads;

use std::process::ExitCode;

fn main() -> ExitCode {
    // `cargo bench` and `cargo test --benches` pass flags of their own; the run is the first word.
    let run = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let outcome = match run.as_deref() {
        Some("bombs") => bombs::run(),
        Some("events") => events::run(),
        Some("memory") => memory::run(),
        Some("pictures") => pictures::run(),
        Some("migrate") => clouds::migrate(),
        Some("sync") => clouds::sync(),
        Some("sync-memory") => clouds::memory(),
        Some("neighbours") => neighbours::run(),
        Some("resumable") => resumable::run(),
        Some("serve") => serve::run(),
        Some("slow") => slow::run(),
        Some("uploads") => uploads::run(),
        _ => {
            eprintln!(
                "usage: cargo bench --bench load -- bombs|events|memory|migrate|neighbours|pictures|resumable|serve|slow|sync|sync-memory|uploads"
            );
            return ExitCode::SUCCESS;
        }
    };

    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
