//! A disk that refuses: each call of each kind in turn fails once, in every kind of work.
//!
//! What was acknowledged must be there all the same, nothing else may be half there, and the store goes
//! on without a restart.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use filestore_core::internals::tasks::step::Call;
use rustix::io::Errno;

use crate::scenario::{REFUSED, Scenario};
use crate::serve::Sabotage;
use crate::steps::{Bases, compare, live, note};
use crate::tally::{Kind, Tally, Violation};

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Let every call fail, rather than every seventh
    #[arg(long)]
    all: bool,

    /// Append the counts to a file, for `sum`
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// More calls of one kind than any scenario makes.
const MOST_CALLS: u64 = 1000;

/// Lives after which the calls of a kind count as exhausted: none came to its number any more.
const UNTOUCHED: u32 = 2;

/// Lets the calls fail and prints the table.
pub(crate) async fn run(options: Options) -> ExitCode {
    let bases = Bases::lay();
    let mut tally = Tally::default();
    let (errnos, stride) =
        ([Errno::IO, Errno::NOSPC, Errno::DQUOT], if options.all { 1 } else { 7 });

    for scenario in Scenario::ALL {
        for call in Call::ALL {
            let mut untouched = 0;
            for (number, errno) in (1..MOST_CALLS).step_by(stride).zip(errnos.iter().cycle()) {
                let failed = fail(&bases, scenario, *call, number, *errno, &mut tally).await;
                untouched = if failed { 0 } else { untouched + 1 };
                if untouched >= UNTOUCHED {
                    break;
                }
            }
        }
    }

    if let Some(report) = &options.report {
        tally.append_to(report);
    }
    tally.conclude()
}

/// Lets one call fail, and compares; false if the scenario came to its end before that call.
async fn fail(
    bases: &Bases,
    scenario: Scenario,
    call: Call,
    number: u64,
    errno: Errno,
    tally: &mut Tally,
) -> bool {
    let home = bases.home_like(&bases.base_of(scenario));
    let log = home.path().join("calls");
    let failure = format!("{call:?}:{number}:1:{}", errno.raw_os_error());
    let sabotage = Sabotage {
        fail: Some(failure.clone()),
        step_log: Some(log.clone()),
        ..Sabotage::default()
    };
    let status = live(home.path(), scenario, &sabotage);
    let at = format!("{scenario:?} with {failure}");

    let is_clean = matches!(status.code(), Some(code) if code == 0 || code == i32::from(REFUSED));
    if !is_clean {
        let what = format!("{at}: {status}");
        tally.note(0, &Violation { kind: Kind::Broken, what });
    }
    let lines = std::fs::read_to_string(log).expect("a life with a plan writes a log");
    let failed = lines.lines().any(|line| line == "refused");
    tally.add("calls that failed", u64::from(failed));
    tally.add("refusals", u64::from(status.code() == Some(i32::from(REFUSED))));
    note(&at, &compare(home.path()).await, tally);
    failed
}
