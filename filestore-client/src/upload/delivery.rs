//! The options of sending that an upload and a batch share.

use crate::progress::OnProgress;
use crate::transport::random::random_u128;
use crate::upload::multipart::Form;

/// The idempotency key of an upload, and its progress callback.
#[derive(Default)]
pub(super) struct Delivery {
    pub(super) key: IdempotencyKey,
    pub(super) on_progress: Option<OnProgress>,
}

/// Defines the public setters of a field `delivery`, with their documentation.
macro_rules! delivery_setters {
    (
        idempotency_key: $key_doc:literal,
        without_idempotency_key: $without_doc:literal,
        on_progress: $progress_doc:literal,
    ) => {
        #[doc = $key_doc]
        #[must_use]
        pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
            self.delivery.key = $crate::upload::delivery::IdempotencyKey::Given(key.into());
            self
        }

        #[doc = $without_doc]
        #[must_use]
        pub fn without_idempotency_key(mut self) -> Self {
            self.delivery.key = $crate::upload::delivery::IdempotencyKey::Off;
            self
        }

        #[doc = $progress_doc]
        #[must_use]
        pub fn on_progress(
            mut self,
            callback: impl Fn($crate::Progress) + Send + Sync + 'static,
        ) -> Self {
            self.delivery.on_progress = Some(std::sync::Arc::new(callback));
            self
        }
    };
}
pub(super) use delivery_setters;

/// The source of the `Idempotency-Key`.
#[derive(Default)]
pub(super) enum IdempotencyKey {
    /// A random key of the client.
    #[default]
    Random,
    /// A key of the application.
    Given(String),
    /// No key.
    Off,
}

impl IdempotencyKey {
    /// Returns the header's value, and keeps a random key for a later form.
    pub(super) fn fixed(&mut self) -> Option<String> {
        if let Self::Random = self {
            *self = Self::Given(format!("{:032x}", random_u128()));
        }
        match self {
            Self::Given(key) => Some(key.clone()),
            Self::Random | Self::Off => None,
        }
    }

    /// Returns the header's value. A form that can be sent only once gets no random key.
    pub(super) fn resolve(self, form: &Form) -> Option<String> {
        match self {
            Self::Random if !form.is_repeatable() => None,
            Self::Random => Some(format!("{:032x}", random_u128())),
            Self::Given(key) => Some(key),
            Self::Off => None,
        }
    }
}
