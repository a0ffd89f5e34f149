//! The blocking pool. All file operations run there.

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

/// A value whose drop can do file operations.
pub(super) trait DropsFiles: Send + 'static {
    /// Returns true if the drop would do file operations now.
    fn drops_files(&self) -> bool;
}

/// A value that is moved to the blocking pool before its drop does file operations. Without a runtime, or
/// after its end, the value is dropped at once.
pub(super) struct DropOnPool<T: DropsFiles>(Option<T>);

impl<T: DropsFiles> DropOnPool<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Returns a reference to the value.
    pub(super) fn get(&self) -> &T {
        self.0.as_ref().expect("the value is there until it is taken or dropped")
    }

    /// Returns a mutable reference to the value.
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("the value is there until it is taken or dropped")
    }

    /// Returns the value. From now on it is dropped on the current thread.
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
