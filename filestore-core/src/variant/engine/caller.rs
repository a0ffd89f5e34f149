//! The caller's functions for a picture: open its blob, tell whether the blob is still current, and store its
//! placeholder.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use crate::domain::error::Result;
use crate::domain::file::record::Thumbhash;
use crate::variant::pictures::Small;

/// The opening of a blob. The opening starts when awaited.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<File>> + Send>>;

type Answer = Pin<Box<dyn Future<Output = bool> + Send>>;

/// The blob behind variants. Cheap to clone.
#[derive(Clone)]
pub struct Source {
    open: Arc<dyn Fn() -> Opening + Send + Sync>,
    pub(super) currency: Currency,
    /// The treatment of a picture that is no larger than requested.
    pub(super) small: Small,
    /// A function that stores a placeholder, if the caller has none yet.
    placeholder: Option<Arc<dyn Fn(Thumbhash) -> Noting + Send + Sync>>,
}

type Noting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Source {
    /// Describes a blob. `open` opens the blob. `still_current` returns true if the file still exists and
    /// still has this blob.
    pub fn new<O, P, C, F>(open: O, still_current: C) -> Self
    where
        O: Fn() -> P + Send + Sync + 'static,
        P: Future<Output = Result<File>> + Send + 'static,
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        Self {
            open: Arc::new(move || Box::pin(open())),
            currency: Currency::new(still_current),
            small: Small::PassesThrough,
            placeholder: None,
        }
    }

    /// Requests a placeholder of the picture. The placeholder is made in the background after a variant, and
    /// passed to `note`.
    #[must_use]
    pub fn with_placeholder<N, F>(mut self, note: N) -> Self
    where
        N: Fn(Thumbhash) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.placeholder = Some(Arc::new(move |thumbhash| Box::pin(note(thumbhash))));
        self
    }

    /// Declares that `open` is slow and returns a picture that was made from the blob. A small picture is
    /// then rendered in its own size, because the blob itself is not a picture.
    #[must_use]
    pub fn converted(mut self) -> Self {
        self.small = Small::IsRendered;
        self
    }

    /// Opens the blob when it is awaited.
    pub(super) fn open(&self) -> Opening {
        (self.open)()
    }

    /// Returns true if the caller wants a placeholder.
    pub(super) fn wants_placeholder(&self) -> bool {
        self.placeholder.is_some()
    }

    /// Passes the requested placeholder to the caller.
    pub(super) async fn note(&self, thumbhash: Thumbhash) {
        if let Some(note) = &self.placeholder {
            note(thumbhash).await;
        }
    }
}

/// A function that tells whether the file still exists and still has this blob. Cheap to clone.
#[derive(Clone)]
pub(super) struct Currency(Arc<dyn Fn() -> Answer + Send + Sync>);

impl Currency {
    fn new<C, F>(still_current: C) -> Self
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(still_current())))
    }

    /// Asks the caller, who can query the database.
    pub(super) async fn holds(&self) -> bool {
        (self.0)().await
    }
}
