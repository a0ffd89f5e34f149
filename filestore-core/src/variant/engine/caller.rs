//! The two questions that a caller answers for the engine: the blob's bytes, and whether the blob
//! is still current.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use crate::domain::error::Result;

/// The opening of a blob, done when it is awaited.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<File>> + Send>>;

type Answer = Pin<Box<dyn Future<Output = bool> + Send>>;

/// The question whether a blob is still its file's and the file still there. Cheap to clone.
#[derive(Clone)]
pub(super) struct Currency(Arc<dyn Fn() -> Answer + Send + Sync>);

impl Currency {
    pub(super) fn new<C, F>(still_current: C) -> Self
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(still_current())))
    }

    /// Asks the caller, who may look into the database.
    pub(super) async fn holds(&self) -> bool {
        (self.0)().await
    }
}
