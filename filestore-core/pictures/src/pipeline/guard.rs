//! Catches panics of third-party decoders, and keeps their messages off the standard error stream.
//!
//! # Purpose
//! Third-party decoders sometimes index out of bounds on a damaged picture. Such a panic must end the work on
//! this picture, but not the thread. It must not alarm an operator either, because the senders of pictures
//! decide how often it happens.
//!
//! # Compatibility
//! The first decode wraps the panic hook of the process. Panics outside a guard still reach the earlier hook.
//! If the application sets another hook later, that hook also sees guarded panics.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// True while this thread runs guarded work.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    /// The message of the panic that ended the guarded work.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work` of a decoder. If the decoder panics, `Err` contains the panic's message and location.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(wrap_hook);

    let was_guarded = IS_GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    outcome.map_err(|_| LAST.take().unwrap_or_else(|| "the decoder panicked".to_owned()))
}

fn wrap_hook() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IS_GUARDED.try_with(Cell::get).unwrap_or(false) {
            // Nothing more can be done where the thread is ending.
            let _ = LAST.try_with(|last| last.replace(Some(info.to_string())));
        } else {
            before(info);
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The work that the next test runs in a child process.
    #[test]
    #[ignore = "run by the test below, in a process of its own"]
    fn panics_within_a_guard() {
        let text = guarded(|| panic!("a decoder stumbled")).map(|()| String::new()).unwrap_err();
        assert!(text.contains("a decoder stumbled") && text.contains("guard.rs"), "{text}");
        assert_eq!(guarded(|| guarded(|| panic!("within")).is_err()), Ok(true));
        assert_eq!(guarded(|| 7), Ok(7));
    }

    #[test]
    fn a_guarded_panic_writes_nothing() {
        let name = concat!(module_path!(), "::panics_within_a_guard");
        let (_, name) = name.split_once("::").unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture"])
            .output()
            .unwrap();
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
        assert!(!said.contains("stumbled") && complained.is_empty(), "{said}{complained}");
    }
}
