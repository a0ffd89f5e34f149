//! Animated variants for the callers that wait for them.
//!
//! # Purpose
//! As with the still ones: from memory, from the disk, else made once. The picture decides what it is: one
//! that does not move is answered with its still variant, and the cache only notes that.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::caller::Source;
use super::shared::{Shared, Work};
use crate::domain::error::Result;
use crate::tasks;
use crate::variant::key::DigestedKey;
use crate::variant::pipeline::animation::{Animation, assess};
use crate::variant::pipeline::refusal::corrupt;
use crate::variant::{Variant, VariantKey};

impl Shared {
    /// Reads the animated variant from the disk, or makes and publishes it.
    pub(super) async fn obtain_animated(
        self: Arc<Self>,
        entry: DigestedKey,
        source: Source,
    ) -> Result<Variant> {
        if let Some(variant) = self.look_up(&entry, &source).await? {
            return Ok(variant);
        }

        let made = self.animate(&entry.key, &source).await.inspect_err(|error| {
            self.served.failed.bump();
            self.caches.remember_refusal(&entry, error);
        })?;
        match made {
            Some(variant) => {
                self.served.made.bump();
                self.publish_animated(&entry, variant, &source).await
            }
            None => self.obtain_still(entry, source).await,
        }
    }

    /// Answers with the still variant, and notes that it is the answer.
    async fn obtain_still(self: Arc<Self>, entry: DigestedKey, source: Source) -> Result<Variant> {
        let still = DigestedKey::from(entry.key.still());
        let (shared, digest, of_still) = (Arc::clone(&self), still.digest, source.clone());
        let obtained = self.flights.join(digest, move || shared.obtain(still, of_still)).await;
        let variant = obtained.inspect_err(|error| self.caches.remember_refusal(&entry, error))?;

        if source.currency.holds().await {
            self.caches.publish_still(&entry, &variant).await;
            self.forget_unless_current(&entry, &source.currency).await;
        }
        Ok(variant)
    }

    async fn publish_animated(
        self: Arc<Self>,
        entry: &DigestedKey,
        variant: Variant,
        source: &Source,
    ) -> Result<Variant> {
        if source.currency.holds().await {
            self.caches.publish(entry, &variant).await;
            if self.forget_unless_current(entry, &source.currency).await {
                self.sketch_later(&entry.key, source);
            }
        }
        Ok(variant)
    }

    /// Makes the animated variant; `None` if the still one is the answer.
    async fn animate(&self, key: &VariantKey, source: &Source) -> Result<Option<Variant>> {
        let place = self.limits.place()?;
        let file = source.open().await?;
        let turn = self.limits.wait_for_animation(self.config.deadline).await?;
        let (config, size, fit) = (self.config.clone(), key.size, key.fit);
        let assessed = tasks::blocking(move || {
            assess(&file, size, fit, &config).map(|animation| (animation, file))
        });
        let (animation, file) = assessed.await.map_err(|error| corrupt(error.to_string()))??;
        let Some(animation) = animation else { return Ok(None) };

        let memory = self.wait_for_memory(animation.memory_bytes).await?;
        let config = self.config.clone();
        let webp = self
            .run(Work::Picture, move |deadline, report: oneshot::Sender<_>| {
                let is_wanted = || !report.is_closed();
                let made = Animation::run(&animation, &file, &config, deadline, &is_wanted);
                drop((memory, turn, place));
                let _ = report.send(made);
            })
            .await?;
        Ok(webp.map(Variant::WebP))
    }
}
