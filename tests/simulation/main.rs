//! The whole store in simulated time: use cases, workers and SQL as they ship, on one thread, with
//! providers and receivers of webhooks that fail in every way, and a process that is killed again and
//! again, while organizations are erased and resumable uploads go on. A seed decides everything, and the same seed gives the same
//! events in every process.
//!
//! A run of `cargo test` takes a few seeds. A long run takes ranges of them, as many as wanted; the
//! parts of one range add up:
//!
//! ```text
//! FILESTORE_SIMULATED_HOURS=0..50000 FILESTORE_SIMULATED_DAYS=0..200 \
//!     cargo test --release --test simulation -- --nocapture
//! ```
//!
//! A seed that fails is printed; `FILESTORE_SIMULATION_LOG=1` with that seed alone prints its events.

mod check;
mod client;
mod content;
mod erasures;
mod explaining;
mod events;
mod machine;
mod model;
mod uploads;
mod webhooks;
mod world;

use std::ops::Range;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use world::{Damage, Report, simulate};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

#[test]
fn hours_of_mixed_work_lose_nothing() {
    run("FILESTORE_SIMULATED_HOURS", 0..100, HOUR);
}

#[test]
fn days_of_mixed_work_lose_nothing() {
    run("FILESTORE_SIMULATED_DAYS", 0..2, DAY);
}

#[test]
fn lost_bytes_commits_offsets_events_deliveries_and_erasures_are_noticed() {
    let all = [
        Damage::TakesABlob,
        Damage::TakesCommits,
        Damage::LowersOffsets,
        Damage::TakesEvents,
        Damage::TakesDeliveries,
        Damage::SkipsErasures,
    ];
    for damage in all {
        // What is damaged in a run can be what a client has deleted anyway: then the next run shows it.
        let is_noticed = (1..=4).any(|seed| {
            std::thread::spawn(move || simulate(seed, 3 * HOUR, damage)).join().is_err()
        });
        assert!(is_noticed, "{damage:?} went unnoticed");
    }
}

#[test]
fn a_seed_gives_the_same_events_in_another_process() {
    let ours = simulate(4711, HOUR, Damage::None);
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args(["--exact", "prints_the_digest_of_one_seed", "--nocapture", "--ignored"])
        .output()
        .unwrap();

    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&ours.digest), "{} is not in {text}", ours.digest);
}

#[test]
#[ignore = "runs in a process of its own, for the test above"]
fn prints_the_digest_of_one_seed() {
    println!("digest {}", simulate(4711, HOUR, Damage::None).digest);
}

/// Simulates `span` from each seed of a range, on all processors, and prints the sums.
fn run(variable: &str, default: Range<u64>, span: Duration) {
    let seeds = std::env::var(variable).map_or(default, |text| range(&text));
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Report::default());

    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    // Not in one expression with the lock, which would keep the other threads out.
                    let report = simulate(seed, span, Damage::None);
                    total.lock().unwrap().add(&report);
                }
            });
        }
    });

    let total = total.into_inner().unwrap();
    println!("{variable}={}..{}: {total}", seeds.start, seeds.end);
    let is_enough =
        total.erased > 0 && total.resumed > 0 && total.explained > 0 && total.delivered > 0;
    assert!(is_enough, "the seeds are too few");
}

fn range(text: &str) -> Range<u64> {
    let (start, end) = text.split_once("..").expect("a range of seeds like 0..100");
    start.parse().expect("the first seed")..end.parse().expect("the seed after the last one")
}
