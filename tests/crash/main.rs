//! The crash harness: kills the server at random moments, cuts its power, fills its disk, and compares
//! what is left with what was acknowledged.
//!
//! `cargo run -p filestore-workspace --bin crash -- --rounds 3000 --seed-range 0..120`
//!
//! A load of every kind of work runs against a server in a process of its own, and keeps a log of what
//! it began and what was acknowledged ([`oracle`]), outside of the data directory. Contents identify
//! themselves ([`content`]). After every kill, and after starts that are killed as well, [`verify`]
//! compares what the server shows, and what lies on the disk and at the provider, with the log. Each
//! seed is a life of its own, so that parts of a long run can be shared out by ranges of seeds; `crash
//! sum` adds their reports up. A seed that fails is printed.
//!
//! | run | does |
//! |---|---|
//! | (none) | kills at random moments; with `--power` also cuts the power of a simulated disk ([`disk`]), with `--file-system` that of a real one ([`image`]) |
//! | `steps` | a kill at every step of the protocol ([`steps`]) |
//! | `failures` | refuses each call to the disk in turn ([`failures`]) |
//! | `races` | two kinds of work at once on one file, each beside each ([`races`]) |
//! | `receipt` | kills between the removal of bytes and the end of a purge ([`receipts`]) |
//! | `crowd` | 64 writers, 64 readers and an administrator at once |
//! | `quota` | an exceeded disk quota under a running server |
//! | `starts` | how long a start takes, after a crash and otherwise |
//! | `failed-sync` | a failed fsync of the log, the restart that follows, and a power cut |
//! | `old-data` | kills at each step of the migration of an old database |
//! | `full-disk` | starts on a disk with nothing free |
//! | `sum` | adds up the reports of several runs |
//!
//! `--without fsync`, `staging`, `bytes-first` or `events` takes that part of the protocol away (a build with
//! the feature `sabotage`): the run must fail then, or it proves nothing.

mod backups;
mod child;
mod content;
mod crowd;
mod disk;
mod erasures;
mod events;
mod failed_sync;
mod failures;
mod full_disk;
mod image;
mod kills;
mod load;
mod old_data;
mod oracle;
mod quota;
mod races;
mod receipts;
mod scenario;
mod serve;
mod settle;
mod starts;
mod steps;
mod tally;
mod tus;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Kills a server again and again, and compares what is left with what was acknowledged.
#[derive(Debug, Parser)]
struct Args {
    #[command(flatten)]
    kills: kills::Options,

    #[command(subcommand)]
    run: Option<Run>,
}

#[derive(Debug, Subcommand)]
enum Run {
    /// A kill at every step of the protocol
    Steps(steps::Options),
    /// Each call to the disk fails in turn
    Failures(failures::Options),
    /// Two kinds of work at once on one file
    Races(races::Options),
    /// Kills between the removal of bytes and the end of a purge
    Receipt,
    /// An exceeded disk quota
    Quota,
    /// Writers, readers and an administrator at once
    Crowd(crowd::Options),
    /// The time that a start takes
    Starts(starts::Options),
    /// A failed fsync of the log, the restart that follows, and a power cut
    FailedSync,
    /// Kills at each step of the migration of an old database
    OldData,
    /// Starts on a disk with nothing free
    FullDisk,
    /// Adds up the reports of several runs
    Sum {
        /// Files that `--report` has written
        #[arg(required = true)]
        reports: Vec<PathBuf>,
    },
    /// The server of a run, in a process of its own
    #[command(hide = true)]
    Serve(serve::Options),
    /// The scenario of a run, in a process of its own
    #[command(hide = true)]
    Life(scenario::Options),
}

fn main() -> ExitCode {
    let Args { kills, run } = Args::parse();
    content::check_itself();
    races::check_itself();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime needs only threads and a poller");

    runtime.block_on(async {
        match run {
            None => kills::run(kills).await,
            Some(Run::Steps(options)) => steps::run(options).await,
            Some(Run::Failures(options)) => failures::run(options).await,
            Some(Run::Races(options)) => races::run(options).await,
            Some(Run::Receipt) => receipts::run().await,
            Some(Run::Quota) => quota::run().await,
            Some(Run::Crowd(options)) => crowd::run(options).await,
            Some(Run::Starts(options)) => starts::run(options).await,
            Some(Run::FailedSync) => failed_sync::run().await,
            Some(Run::OldData) => old_data::run().await,
            Some(Run::FullDisk) => full_disk::run().await,
            Some(Run::Sum { reports }) => tally::sum(&reports),
            Some(Run::Serve(options)) => serve::run(options).await,
            Some(Run::Life(options)) => scenario::live(options).await,
        }
    })
}
