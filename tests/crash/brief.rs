//! A short run of each part of the crash harness (`main.rs`), and the proof that the harness notices
//! what is missing.
//!
//! `FILESTORE_CRASH_ROUNDS` sets the number of kills. The seeds are the same at each run, so that a change
//! is judged by what it changes; long runs take others.

use std::process::{Command, Output};

fn crash(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_crash")).args(arguments).output();
    let output = output.expect("the harness runs");
    println!("crash {}", arguments.join(" "));
    println!("{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn holds(arguments: &[&str]) {
    let output = crash(arguments);
    assert!(output.status.success(), "{}", output.status);
}

/// Runs the harness without a part of the protocol: it must fail because promises are broken, and not
/// because it could not run.
fn notices(arguments: &[&str]) {
    let output = crash(arguments);
    assert_eq!(output.status.code(), Some(1), "the harness did not notice");
    let text = String::from_utf8_lossy(&output.stdout);
    let found = [
        "acknowledged and lost",
        "records without bytes",
        "mixed or cut contents",
        "events missing or untrue",
    ];
    let counts = text.lines().filter_map(|line| line.trim().split_once("  "));
    let mut broken = counts.filter(|(count, name)| found.contains(name) && *count != "0");
    assert!(broken.next().is_some(), "{text}");
}

fn rounds() -> String {
    std::env::var("FILESTORE_CRASH_ROUNDS").unwrap_or_else(|_| "8".into())
}

#[test]
fn nothing_acknowledged_is_lost_by_kills_and_nothing_else_is_half_there() {
    holds(&["--rounds", &rounds(), "--seed-range", "0..1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_acknowledged_is_lost_by_power_cuts() {
    holds(&["--rounds", &rounds(), "--seed-range", "0..1", "--power"]);
}

#[cfg(target_os = "linux")]
#[test]
fn without_fsyncs_power_cuts_lose_what_was_acknowledged() {
    notices(&["--rounds", "50", "--seed-range", "0..2", "--power", "--without", "fsync"]);
}

#[test]
fn without_staging_kills_leave_what_is_half_there() {
    notices(&["--rounds", "100", "--seed-range", "0..4", "--without", "staging"]);
}

#[test]
fn with_the_record_before_the_bytes_kills_lose_what_was_acknowledged() {
    notices(&["--rounds", "100", "--seed-range", "0..4", "--without", "bytes-first"]);
}

#[test]
fn without_the_triggers_changes_go_untold() {
    notices(&["--rounds", "4", "--seed-range", "0..1", "--without", "events"]);
}

#[cfg(target_os = "linux")]
#[test]
fn uploads_after_a_failed_fsync_and_a_restart_survive_a_power_cut() {
    holds(&["failed-sync"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_old_database_survives_a_kill_at_each_step_of_its_migration() {
    holds(&["old-data"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_starts_on_a_full_disk() {
    holds(&["full-disk"]);
}

#[test]
fn every_step_of_the_protocol_survives_a_kill() {
    holds(&["steps"]);
}

#[test]
fn a_purge_that_was_killed_before_its_end_has_a_true_receipt() {
    holds(&["receipt"]);
}

#[test]
fn a_call_that_fails_costs_nothing_that_was_acknowledged() {
    holds(&["failures"]);
}

#[test]
fn work_at_once_on_one_file_is_as_if_done_in_turn() {
    holds(&["races", "--rounds", "5", "--seed", "1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn with_the_durability_of_a_process_power_cuts_leave_a_sound_store() {
    let cuts = ["--power", "--durability", "process"];
    holds(&[&["--rounds", &rounds(), "--seed-range", "0..1"], &cuts[..]].concat());
}

#[cfg(target_os = "linux")]
#[test]
fn over_a_disk_quota_deletes_work_and_nothing_ends() {
    holds(&["quota"]);
}

#[test]
fn a_crowd_meets_no_locked_database() {
    holds(&["crowd", "--secs", "3"]);
}
