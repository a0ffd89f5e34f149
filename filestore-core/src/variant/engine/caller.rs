//! What a caller hands the engine of a picture: how its blob is opened, the answer to whether the blob
//! is still current, and a place for its placeholder.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use crate::domain::error::Result;
use crate::domain::record::Thumbhash;
use crate::variant::pipeline::render::Small;

/// The opening of a blob, done when it is awaited.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<File>> + Send>>;

type Answer = Pin<Box<dyn Future<Output = bool> + Send>>;

/// The blob behind variants. Cheap to clone.
#[derive(Clone)]
pub struct Source {
    open: Arc<dyn Fn() -> Opening + Send + Sync>,
    pub(super) currency: Currency,
    /// The fate of a picture that is no larger than asked.
    pub(super) small: Small,
    /// The place for a placeholder, if the caller has none yet.
    placeholder: Option<Arc<dyn Fn(Thumbhash) -> Noting + Send + Sync>>,
}

type Noting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Source {
    /// Describes a blob. `open` opens it; `still_current` says whether it is still its file's, and the
    /// file still there.
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

    /// Asks for a placeholder of the picture, made in the background once a variant was made, and given
    /// to `note`.
    #[must_use]
    pub fn with_placeholder<N, F>(mut self, note: N) -> Self
    where
        N: Fn(Thumbhash) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.placeholder = Some(Arc::new(move |thumbhash| Box::pin(note(thumbhash))));
        self
    }

    /// Says that opening takes long and gives a picture that was made of the blob: one that is small
    /// enough is rendered in its own size, as the blob itself would be no picture.
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

    /// Hands the caller the placeholder that was asked for.
    pub(super) async fn note(&self, thumbhash: Thumbhash) {
        if let Some(note) = &self.placeholder {
            note(thumbhash).await;
        }
    }
}

/// The question whether a blob is still its file's and the file still there. Cheap to clone.
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

    /// Asks the caller, who may look into the database.
    pub(super) async fn holds(&self) -> bool {
        (self.0)().await
    }
}
