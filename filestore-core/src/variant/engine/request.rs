//! Obtains one variant for waiting callers: from the disk, from a retained picture, or from the file.

use std::fs::File;
use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::caller::{Currency, Source};
use super::pool::{Held, Place};
use super::shared::{Shared, Work};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::tasks;
use crate::variant::key::DigestedKey;
use crate::variant::pictures::{Deadline, Geometry, Plan, Rendering, Retained, Small, Spare};
use crate::variant::{Variant, VariantKey};

/// A variant that was just made.
pub(super) struct Made {
    pub(super) variant: Variant,
    /// The pixels for further sizes. The pixels arrive after the variant.
    retained: Option<oneshot::Receiver<Retained>>,
}

impl Shared {
    /// Reads the variant from the disk, or makes and publishes it.
    pub(super) async fn obtain(
        self: Arc<Self>,
        entry: DigestedKey,
        source: Source,
    ) -> Result<Variant> {
        if let Some(variant) = self.look_up(&entry, &source).await? {
            return Ok(variant);
        }

        let made = self.make(&entry.key, &source).await;
        let Made { variant, retained } = made.inspect_err(|error| {
            self.served.failed.bump();
            self.caches.remember_refusal(&entry, error);
        })?;
        self.served.made.bump();

        let currency = &source.currency;
        if !currency.holds().await {
            return Ok(variant);
        }
        self.caches.publish(&entry, &variant).await;
        if self.forget_unless_current(&entry, currency).await {
            tasks::spawn(self.keep(entry.key, retained, source));
        }
        Ok(variant)
    }

    /// Reads the variant from memory or from the disk. `None` if it must be made. [`ErrorKind::Conflict`] if
    /// it must be made and the blob is no longer current.
    pub(super) async fn look_up(
        self: &Arc<Self>,
        entry: &DigestedKey,
        source: &Source,
    ) -> Result<Option<Variant>> {
        // Another flight may have ended between the look-up before it and this one.
        if let Some(variant) = self.caches.in_memory(&entry.key) {
            self.served.from_memory.bump();
            return Ok(Some(variant));
        }
        if let Some(variant) = self.caches.on_disk(entry).await {
            self.served.from_disk.bump();
            self.caches.insert_in_memory(entry, &variant);
            if self.forget_unless_current(entry, &source.currency).await {
                self.sketch_later(&entry.key, source);
            }
            return Ok(Some(variant));
        }

        if source.currency.holds().await {
            return Ok(None);
        }
        Err(Error::new(ErrorKind::Conflict, "the file was changed at the same moment"))
    }

    /// Removes a published variant if its blob was replaced or purged in the meantime. Returns whether the
    /// variant stays.
    pub(super) async fn forget_unless_current(
        &self,
        entry: &DigestedKey,
        currency: &Currency,
    ) -> bool {
        let is_current = currency.holds().await;
        if !is_current {
            self.caches.forget(entry).await;
        }
        is_current
    }

    /// Retains the pixels of a rendering for other sizes, unless the blob is no longer current. Then makes
    /// the placeholder, if possible from these pixels.
    pub(super) async fn keep(
        self: Arc<Self>,
        key: VariantKey,
        retained: Option<oneshot::Receiver<Retained>>,
        source: Source,
    ) {
        if let Some(retained) = retained
            && let Ok(retained) = retained.await
        {
            self.caches.retain(&key, retained);
        }

        // After they are there: a removal comes later and finds them, or has come and is seen here.
        if source.currency.holds().await {
            self.sketch_later(&key, &source);
        } else {
            self.caches.forget_retained(key.file_id);
        }
    }

    async fn make(&self, key: &VariantKey, source: &Source) -> Result<Made> {
        if let Some(retained) = self.caches.retained(key)
            && let Some(plan) = retained.plan(key.size, key.fit, source.small)
        {
            let place = self.pool.place(&key.organization_id)?;
            let variant = match plan {
                Plan::PassThrough => retained.pass_through(),
                Plan::Render(wanted) => self.render_retained(retained, wanted, place).await?,
            };
            return Ok(Made { variant, retained: None });
        }

        let (file, mut place) = match source.small {
            Small::PassesThrough => {
                let mut place = self.pool.place(&key.organization_id)?;
                (place.keeps(source.open()).await?, place)
            }
            // A conversion, which keeps nobody from a place.
            Small::IsRendered => (source.open().await?, self.pool.place(&key.organization_id)?),
        };
        let wanted = vec![(key.size, key.fit)];
        let (rendering, file) = place.keeps(self.assess(file, wanted, source.small)).await?;
        if rendering.memory_bytes == 0 {
            return Ok(Made { variant: rendering.pass_through(), retained: None });
        }
        self.render_file(rendering, file, place).await
    }

    async fn render_retained(
        &self,
        retained: Arc<Retained>,
        wanted: Geometry,
        place: Place,
    ) -> Result<Variant> {
        let (bytes, quality) = (wanted.memory_bytes(), self.config.quality);

        self.run(Work::Picture, place, bytes, move |_, held, report| {
            let rendered = retained.render(wanted, quality);
            drop((retained, held));
            let _ = report.send(rendered);
        })
        .await
    }

    pub(super) async fn render_file(
        &self,
        rendering: Rendering,
        file: File,
        place: Place,
    ) -> Result<Made> {
        let (bytes, quality) = (rendering.memory_bytes, self.config.quality);
        let max_bytes = self.caches.max_retained_bytes();
        let (retain, retained) = oneshot::channel();
        let pool = self.pool.clone();

        let variant = self.run(Work::Picture, place, bytes, move |deadline, held, report| {
            let Held { turn, memory } = held;
            let (rendered, pixels) = match render_first(&rendering, &file, quality, deadline, &pool)
            {
                Ok((variant, pixels)) => (Ok(variant), pixels),
                Err(error) => (Err(error), None),
            };
            // Before the report, so that a caller who hears of it finds the place free.
            drop(turn);
            let _ = report.send(rendered);

            if let Some(reduced) = pixels.and_then(|pixels| pixels.reduce_to(max_bytes)) {
                let _ = retain.send(reduced);
            }
            drop(memory);
        });
        Ok(Made { variant: variant.await?, retained: Some(retained) })
    }
}

/// Renders the first variant of `rendering`. Returns it with the pixels from which it was made.
fn render_first(
    rendering: &Rendering,
    file: &File,
    quality: f32,
    deadline: Deadline,
    spare: &dyn Spare,
) -> Result<(Variant, Option<Retained>)> {
    let mut variant = None;
    let pixels = rendering.run(file, quality, deadline, spare, |_, made| {
        variant = Some(made);
        ControlFlow::Break(())
    })?;

    let variant =
        variant.ok_or_else(|| Error::internal("making a variant", "there is no result"))?;
    Ok((variant, pixels))
}
