//! As much of the usual test harness as `cargo test` needs: names, filters, a summary.

use std::env;
use std::panic;
use std::process::ExitCode;

/// A test and its name.
pub(crate) type Test = (&'static str, fn());

/// Lists functions as tests.
macro_rules! tests {
    ($($(#[$condition:meta])* $module:ident :: $name:ident,)*) => {
        &[$($(#[$condition])* (
            concat!(stringify!($module), "::", stringify!($name)),
            crate::$module::$name as fn(),
        ),)*]
    };
}
pub(crate) use tests;

/// The options of the usual harness that have a value.
const WITH_VALUE: [&str; 5] = ["--test-threads", "--format", "--color", "--logfile", "-Z"];

/// The command line: parts of names, as for every other test program.
#[derive(Default)]
struct Filter {
    wanted: Vec<String>,
    skipped: Vec<String>,
    is_exact: bool,
    is_list: bool,
    is_ignored: bool,
}

impl Filter {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut filter = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--skip" => filter.skipped.extend(arguments.next()),
                "--exact" => filter.is_exact = true,
                "--list" => filter.is_list = true,
                "--ignored" => filter.is_ignored = true,
                option if WITH_VALUE.contains(&option) => drop(arguments.next()),
                option if option.starts_with('-') => {}
                _ => filter.wanted.push(argument),
            }
        }
        filter
    }

    fn takes(&self, name: &str) -> bool {
        let is_named =
            |part: &String| if self.is_exact { name == part } else { name.contains(part) };
        let is_wanted = self.wanted.is_empty() || self.wanted.iter().any(is_named);
        // No test here is an ignored one.
        is_wanted && !self.skipped.iter().any(is_named) && !self.is_ignored
    }
}

/// Runs the tests that the command line asks for, unless they are out of reach.
pub(crate) fn run(all: &[Test], out_of_reach: Option<&str>) -> ExitCode {
    let filter = Filter::parse(env::args().skip(1));
    let chosen: Vec<_> = all.iter().filter(|(name, _)| filter.takes(name)).collect();
    if filter.is_list {
        for (name, _) in &chosen {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }

    println!("\nrunning {} tests", chosen.len());
    if let Some(missing) = out_of_reach {
        println!("NOT TESTED: the sandbox, as there is no {missing} here");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in &chosen {
        let is_ok = panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if is_ok { "ok" } else { "FAILED" });
        failed += usize::from(!is_ok);
    }

    let (word, passed) = (if failed == 0 { "ok" } else { "FAILED" }, chosen.len() - failed);
    println!("\ntest result: {word}. {passed} passed; {failed} failed\n");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
