//! Uploading several files, all or none.

use std::fmt;
use std::sync::Arc;

use filestore_core::api::FileRecord;
use reqwest::Method;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::progress::{OnProgress, Progress};
use crate::upload::item::Item;
use crate::upload::multipart::Form;
use crate::upload::sending::check_stored;
use crate::upload::{IdempotencyKey, repeat, with_key};

/// Several files to be stored together: all of them, or none. No reader ever sees a part.
///
/// ```no_run
/// use filestore_client::{Batch, Client, Item};
///
/// # async fn run(client: Client) -> filestore_client::Result<()> {
/// let batch = Batch::new("42", "gallery")
///     .item(Item::from_path("front.jpg")?)
///     .item(Item::from_bytes("made by hand").original_name("caption.txt"));
/// for record in client.batch(batch).await? {
///     println!("{} {}", record.file_id, record.original_name);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Batch {
    organization_id: String,
    sub_system: String,
    items: Vec<Item>,
    key: IdempotencyKey,
    on_progress: Option<OnProgress>,
}

impl Batch {
    /// Starts an empty batch for `organization_id` and the part of its application called `sub_system`.
    pub fn new(organization_id: impl Into<String>, sub_system: impl Into<String>) -> Self {
        Self {
            organization_id: organization_id.into(),
            sub_system: sub_system.into(),
            items: Vec::new(),
            key: IdempotencyKey::Random,
            on_progress: None,
        }
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

impl Client {
    /// Stores a batch; the records come in the order of its items.
    pub async fn batch(&self, batch: Batch) -> Result<Vec<FileRecord>> {
        let mut form = Form::default();
        form.text("organization_id", batch.organization_id);
        form.text("sub_system", batch.sub_system);
        for (index, item) in batch.items.into_iter().enumerate() {
            form.item(&format!("items[{index}]."), item);
        }
        form.on_progress(batch.on_progress);
        let key = batch.key.resolve(&form);
        let target = || with_key(self.request(Method::POST, &["files", "batch"]), key.as_deref());
        let (reply, digests) = self.send_form(target, form, repeat(key.as_deref())).await?;
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
        f.debug_struct("Batch")
            .field("organization_id", &self.organization_id)
            .field("sub_system", &self.sub_system)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}
