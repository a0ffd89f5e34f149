//! Makes animated variants for waiting callers.
//!
//! # Purpose
//! An animated variant comes from memory or from the disk, or is made once, like a still variant. If the
//! picture is not animated, its still variant is the answer, and the cache records only this fact.

use std::sync::Arc;

use super::caller::Source;
use super::pool::Held;
use super::shared::{Shared, Work};
use crate::domain::error::Result;
use crate::tasks;
use crate::variant::key::DigestedKey;
use crate::variant::pictures::{Animation, corrupt};
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

    /// Returns the still variant, and records that it is the answer.
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

    /// Makes the animated variant. `None` if the still variant is the answer.
    async fn animate(&self, key: &VariantKey, source: &Source) -> Result<Option<Variant>> {
        let mut place = self.pool.place(&key.organization_id)?;
        let (config, size, fit) = (self.config.clone(), key.size, key.fit);
        let assessed = place.keeps(async {
            let file = source.open().await?;
            let assessed = tasks::blocking(move || {
                Animation::assess(&file, size, fit, &config).map(|animation| (animation, file))
            });
            assessed.await.map_err(|error| corrupt(error.to_string()))?
        });
        let (animation, file) = assessed.await?;
        let Some(animation) = animation else { return Ok(None) };

        let (bytes, config) = (animation.memory_bytes, self.config.clone());
        let webp = self
            .run(Work::Animation, place, bytes, move |deadline, held: Held, report| {
                let is_wanted = || !report.is_closed();
                let made = Animation::run(&animation, &file, &config, deadline, &is_wanted);
                drop(held);
                let _ = report.send(made);
            })
            .await?;
        Ok(webp.map(Variant::WebP))
    }
}
