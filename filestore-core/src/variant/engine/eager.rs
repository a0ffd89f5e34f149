//! Makes variants in advance when a picture arrives, in the background, with one decode for all sizes.
//!
//! # Purpose
//! This makes the first view faster, and is best effort. Waiting files are forgotten when the process ends,
//! and cancelled when requests need the threads or the memory. A missing variant is made when it is
//! requested. This work never delays or fails an upload.
//!
//! The work claims its keys when it begins. If a claim is dropped, waiting callers do the work themselves.
//! The work never waits for memory, and stops between two sizes when requests wait.

use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::caller::Source;
use super::flight::Claim;
use super::pool::Memory;
use super::shared::Shared;
use super::variant_engine::VariantEngine;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::variant::key::{DigestedKey, KeyDigest};
use crate::variant::pictures::{Deadline, NoSpare, Rendering, Retained};
use crate::variant::{Variant, VariantKey};

impl VariantEngine {
    /// Makes the missing variants of one file in the background, from one decode. Returns at once. Call it
    /// within a Tokio runtime.
    ///
    /// The `keys` differ only in size and fit. `source` is the source for [`get`](Self::get). The call is
    /// best effort and reports no result. The work is dropped if too many files wait, if requests need the
    /// threads or the memory, and when the process ends.
    pub fn prepare(&self, keys: Vec<VariantKey>, source: Source) {
        if keys.is_empty() {
            return;
        }
        let organization = keys[0].organization_id.clone();
        let preparation = Arc::clone(&self.shared).prepare_quietly(keys, source);
        self.shared.eager.push(&organization, Box::pin(preparation));
    }
}

impl Shared {
    /// Prepares the variants of a file and counts them. Failures are only logged.
    async fn prepare_quietly(self: Arc<Self>, keys: Vec<VariantKey>, source: Source) {
        let file_id = keys[0].file_id;

        match Arc::clone(&self).prepare(keys, source).await {
            Ok(made) => {
                self.eager.count_made(made);
                tracing::debug!(%file_id, made, "variants made in advance");
            }
            Err(error) if error.kind() == ErrorKind::Busy => {
                self.eager.count_dropped(error.message());
            }
            // A request for one will hear it; most of these files are no pictures.
            Err(error) => {
                tracing::debug!(%file_id, %error, "variants cannot be made in advance");
            }
        }
    }

    /// Makes and publishes the missing variants. Returns their number.
    async fn prepare(self: Arc<Self>, keys: Vec<VariantKey>, source: Source) -> Result<u64> {
        let entries = self.missing(keys).await;
        if entries.is_empty() || !source.currency.holds().await {
            return Ok(0);
        }

        let wanted = entries.iter().map(|entry| (entry.key.size, entry.key.fit)).collect();
        let assessed = self.assess(source.open().await?, wanted, source.small).await;
        let (rendering, file) =
            assessed.inspect_err(|error| self.remember_refusals(&entries, error))?;
        if rendering.memory_bytes == 0 {
            self.sketch_later(&entries[0].key, &source);
            return Ok(0);
        }
        // Never waits for memory: the requests behind it would wait as well.
        let memory = self.pool.memory_if_free(rendering.memory_bytes);
        let memory = memory.ok_or_else(|| pressed("requests need the memory"))?;

        let digests = entries.iter().map(|entry| entry.digest).collect();
        let (reports, results) = reports();
        let job = Job { shared: Arc::clone(&self), rendering, file, digests, memory, reports };
        self.pool.submit_when_idle(move || job.run())?;

        self.collect(&entries, results, source).await
    }

    /// Publishes the results of a job as they arrive. Returns their number.
    async fn collect(
        self: Arc<Self>,
        entries: &[DigestedKey],
        results: Results,
        source: Source,
    ) -> Result<u64> {
        let currency = source.currency.clone();
        let Results { mut made, retained, ended } = results;
        let mut count = 0;
        while let Some(Finished { index, variant, claim }) = made.recv().await {
            let entry = &entries[index];
            if currency.holds().await {
                self.caches.publish(entry, &variant).await;
                self.forget_unless_current(entry, &currency).await;
            }
            claim.report(Ok(variant));
            count += 1;
        }

        Arc::clone(&self).keep(entries[0].key.clone(), Some(retained), source).await;
        match ended.await {
            Ok(Ok(())) => Ok(count),
            Ok(Err(error)) => {
                self.remember_refusals(entries, &error);
                self.eager.count_made(count);
                Err(error)
            }
            Err(_) => Err(Error::internal("making variants in advance", "the decoder panicked")),
        }
    }

    async fn missing(&self, keys: Vec<VariantKey>) -> Vec<DigestedKey> {
        let mut missing = Vec::with_capacity(keys.len());
        for key in keys {
            if self.caches.in_memory(&key).is_some() {
                continue;
            }
            let entry = DigestedKey::from(key);
            if self.caches.on_disk(&entry).await.is_none() {
                missing.push(entry);
            }
        }
        missing
    }

    fn remember_refusals(&self, entries: &[DigestedKey], error: &Error) {
        for entry in entries {
            self.caches.remember_refusal(entry, error);
        }
    }
}

/// The part of the work that runs on a thread of the pool.
struct Job {
    shared: Arc<Shared>,
    rendering: Rendering,
    file: File,
    /// The digests of the requested variants, by index.
    digests: Vec<KeyDigest>,
    memory: Memory,
    reports: Reports,
}

/// A variant with its index, and the duty to report it to waiting requests.
struct Finished {
    index: usize,
    variant: Variant,
    claim: Claim<KeyDigest, Variant>,
}

/// The senders of a job.
struct Reports {
    made: mpsc::UnboundedSender<Finished>,
    retained: oneshot::Sender<Retained>,
    ended: oneshot::Sender<Result<()>>,
}

/// The receivers: variants as they are made, then the pixels for further sizes, then the outcome.
struct Results {
    made: mpsc::UnboundedReceiver<Finished>,
    retained: oneshot::Receiver<Retained>,
    ended: oneshot::Receiver<Result<()>>,
}

fn reports() -> (Reports, Results) {
    let (send_made, made) = mpsc::unbounded_channel();
    let (send_retained, retained) = oneshot::channel();
    let (send_ended, ended) = oneshot::channel();
    (
        Reports { made: send_made, retained: send_retained, ended: send_ended },
        Results { made, retained, ended },
    )
}

impl Job {
    /// Renders until requests need the thread, and reports the results.
    fn run(self) {
        let Self { shared, mut rendering, file, digests, memory, reports } = self;
        let Reports { made, retained, ended } = reports;

        // Only now, so that nobody waits for work that has not begun.
        let mut claims: HashMap<usize, Claim<KeyDigest, Variant>> = rendering
            .rendered()
            .filter_map(|index| Some((index, shared.flights.claim(digests[index])?)))
            .collect();
        rendering.retain(|index| claims.contains_key(&index));

        let deadline = Deadline::after(shared.config.deadline);
        let quality = shared.config.quality;
        // Nobody waits: the processors are for those who do.
        let outcome = rendering.run(&file, quality, deadline, &NoSpare, |index, variant| {
            if let Some(claim) = claims.remove(&index) {
                let _ = made.send(Finished { index, variant, claim });
            }
            if shared.pool.is_pressed() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let outcome = outcome.map(|pixels| {
            let most = shared.caches.max_retained_bytes();
            if let Some(reduced) = pixels.and_then(|pixels| pixels.reduce_to(most)) {
                let _ = retained.send(reduced);
            }
        });
        drop(memory);

        let is_complete = claims.is_empty();
        let _ = ended.send(outcome.and_then(|()| {
            if is_complete { Ok(()) } else { Err(pressed("requests need the threads")) }
        }));
    }
}

/// Returns the error for work that was cancelled in favour of requests.
fn pressed(why: &str) -> Error {
    Error::new(ErrorKind::Busy, why)
}
