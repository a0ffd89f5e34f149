//! Starts the launcher, which is the calling program itself.

use std::ffi::OsString;
use std::process::ExitCode;

/// The first argument of a program that was started as the launcher.
pub const LAUNCHER_ARGUMENT: &str = "sandbox-exec";

/// The launcher's exit code if the kernel lacks a protection. The next codes are for a program that does not
/// start or is missing.
pub(crate) const NOT_ISOLATED: u8 = 125;
pub(crate) const NOT_STARTED: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;

/// Runs the launcher, if the program was started with [`LAUNCHER_ARGUMENT`] as its first argument. Otherwise returns
/// `None` at once.
///
/// Call it first in `main`, before the program starts a thread. For example:
///
/// ```
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = filestore_sandbox::launch(std::env::args_os()) {
///         return code;
///     }
///     // The program itself.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != LAUNCHER_ARGUMENT {
        return None;
    }

    #[cfg(target_os = "linux")]
    return Some(crate::launcher::run(arguments.collect()));
    #[cfg(not(target_os = "linux"))]
    {
        eprintln!("the sandbox needs Linux");
        Some(ExitCode::from(NOT_ISOLATED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_started_in_any_other_way_is_no_launcher() {
        let lines: [&[&str]; 4] =
            [&[], &["program"], &["program", "other"], &["program", "other", LAUNCHER_ARGUMENT]];
        for line in lines {
            assert!(launch(line.iter().map(OsString::from)).is_none(), "{line:?}");
        }
    }
}
