//! Uploading several files, all or none.

use std::fmt;
use std::sync::Arc;

use filestore_core::api::FileRecord;

use crate::error::{Error, Result};
use crate::organization::Place;
use crate::progress::{OnProgress, Progress};
use crate::upload::IdempotencyKey;
use crate::upload::item::Item;
use crate::upload::sending::check_stored;

/// Several files to be stored together: all of them, or none. No reader ever sees a part.
///
/// ```no_run
/// use filestore_client::{Batch, Item, Place};
///
/// # async fn run(gallery: Place) -> filestore_client::Result<()> {
/// let batch = Batch::new()
///     .item(Item::from_path("front.jpg")?)
///     .item(Item::from_bytes("made by hand").original_name("caption.txt"));
/// for record in gallery.batch(batch).await? {
///     println!("{} {}", record.file_id, record.original_name);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Batch {
    items: Vec<Item>,
    key: IdempotencyKey,
    on_progress: Option<OnProgress>,
}

impl Batch {
    /// Starts an empty batch.
    pub fn new() -> Self {
        Self { items: Vec::new(), key: IdempotencyKey::Random, on_progress: None }
    }

    /// Adds one file. A problem's `item` counts from zero in the order of these calls.
    #[must_use]
    pub fn item(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    /// Sets a key of your own; see [`Upload::idempotency_key`](crate::Upload::idempotency_key).
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.key = IdempotencyKey::Given(key.into());
        self
    }

    /// Sends no idempotency key; see [`Upload::without_idempotency_key`](crate::Upload::without_idempotency_key).
    #[must_use]
    pub fn without_idempotency_key(mut self) -> Self {
        self.key = IdempotencyKey::Off;
        self
    }

    /// Calls back as the files' bytes are sent, counted over all of them.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// Stores a batch; the records come in the order of its items.
    pub async fn batch(&self, batch: Batch) -> Result<Vec<FileRecord>> {
        let mut form = self.form();
        for (index, item) in batch.items.into_iter().enumerate() {
            form.item(&format!("items[{index}]."), item);
        }
        form.on_progress(batch.on_progress);

        let sent = self.client.send_upload(&["files", "batch"], form, batch.key).await;
        let (reply, digests) = sent?;
        let records: Vec<FileRecord> = reply.json()?;
        if records.len() != digests.len() {
            let counts = format!("{} for {}", records.len(), digests.len());
            return Err(Error::protocol(format!(
                "the reply has another number of records than the batch: {counts}"
            )));
        }

        for (record, digest) in records.iter().zip(&digests) {
            check_stored(&record.file_id, &record.sha256, digest)?;
        }
        Ok(records)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("items", &self.items).finish_non_exhaustive()
    }
}
