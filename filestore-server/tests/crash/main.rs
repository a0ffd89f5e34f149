//! Kills the server at random moments, again and again, on one data directory. Acknowledged work is
//! never lost, and work without an acknowledgement is never half there.
//!
//! A load of uploads, batches, replaces and deletes runs against the real binary, and keeps a log of
//! what it began and what was acknowledged ([`oracle`]), outside of the data directory. Contents
//! identify themselves ([`content`]). After every kill, and after restarts that are killed as well,
//! [`verify`] compares what the server shows, and what lies on the disk, with the log.
//!
//! On Linux a simulated disk ([`disk`]) adds failed fsyncs and power cuts ([`power_cut`]), and kills
//! at each step of a migration ([`migration`]); a small one is full ([`full_disk`]).
//!
//! `FILESTORE_CRASH_ROUNDS` sets the number of rounds (5), `FILESTORE_CRASH_SEED` the seed.

mod child;
mod content;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod full_disk;
mod load;
#[cfg(target_os = "linux")]
mod migration;
mod oracle;
#[cfg(target_os = "linux")]
mod power_cut;
#[path = "../support/mod.rs"]
mod support;
mod verify;

use std::time::Duration;

use child::Child;
use oracle::Oracle;

/// The number of requests at one time.
const WORKERS: usize = 6;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_nothing_else_is_half_there() {
    let seed = setting("FILESTORE_CRASH_SEED", fastrand::u64(..));
    println!("FILESTORE_CRASH_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let home = tempfile::tempdir().expect("a temporary directory");
    let oracle = Oracle::create(home.path().join("oracle.log"));

    for round in 0..setting("FILESTORE_CRASH_ROUNDS", 5) {
        let server = Child::start(home.path());
        load::run_until_killed(server, &oracle, &mut random).await;
        for _ in 0..random.u32(0..3) {
            interrupt_a_start(home.path(), random.u64(0..40_000));
        }
        let server = Child::start(home.path());
        let stored = verify::whole_store(&server, &oracle.replay()).await;
        server.stop();
        println!("round {round}: {stored} files are what they should be");
        assert!(stored > 0, "the load stored nothing");
    }
}

/// Kills a server while it recovers, after so many microseconds.
#[expect(clippy::disallowed_methods, reason = "the moment itself is what varies")]
fn interrupt_a_start(home: &std::path::Path, micros: u64) {
    let server = Child::spawn(home);
    // Not a wait for anything: the moment itself is what varies.
    std::thread::sleep(Duration::from_micros(micros));
    server.kill();
}
