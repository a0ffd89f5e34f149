//! The blocking pool, on which all file operations run.

use tokio::runtime::Handle;

use crate::domain::error::{Error, Result};
use crate::tasks;

/// Runs `work` on the blocking pool.
pub(super) async fn run<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tasks::blocking(work).await.unwrap_or_else(|lost| Err(Error::internal(doing, lost)))
}

/// A value whose drop may do file operations.
pub(super) trait DropsFiles: Send + 'static {
    /// Tells whether the drop does any, as things stand.
    fn drops_files(&self) -> bool;
}

/// A value that is moved to the blocking pool before its drop does file operations, wherever it is
/// dropped. Without a runtime, or after its end, the value is dropped on the spot.
pub(super) struct DropOnPool<T: DropsFiles>(Option<T>);

impl<T: DropsFiles> DropOnPool<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Borrows the value.
    pub(super) fn get(&self) -> &T {
        self.0.as_ref().expect("the value is there until it is taken or dropped")
    }

    /// Borrows the value to change it.
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("the value is there until it is taken or dropped")
    }

    /// Takes the value out; from here on it is dropped wherever it is.
    pub(super) fn take(mut self) -> T {
        self.0.take().expect("the value is there until it is taken or dropped")
    }
}

impl<T: DropsFiles> Drop for DropOnPool<T> {
    fn drop(&mut self) {
        let Some(value) = self.0.take() else { return };
        // A visit to the pool costs more than the drop of what has nothing to do there.
        if !value.drops_files() {
            return;
        }

        if let Ok(runtime) = Handle::try_current() {
            // A runtime that shuts down drops the closure, and with it the value, right here.
            tasks::blocking_on(&runtime, move || drop(value));
        }
    }
}
