//! Uploads of several files in one step.

use std::fmt;

use filestore_core::api::FileRecord;

use crate::error::{Error, Result};
use crate::organization::Place;
use crate::upload::delivery::{Delivery, delivery_setters};
use crate::upload::item::Item;
use crate::upload::sending::check_stored;

/// Several files to store in one step: the server stores all of them, or no file. Readers never see
/// a part of a batch. Send the batch with [`Place::batch`].
///
/// For example:
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
#[derive(Default)]
pub struct Batch {
    items: Vec<Item>,
    delivery: Delivery,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. If the server refuses a file, `item` in the error is the position of the file in
    /// the batch.
    #[must_use]
    pub fn item(mut self, item: Item) -> Self {
        self.items.push(item);
        self
    }

    delivery_setters! {
        idempotency_key: "Sets your own idempotency key. See \
                          [`Upload::idempotency_key`](crate::Upload::idempotency_key).",
        without_idempotency_key: "Sends no idempotency key. See \
                                  [`Upload::without_idempotency_key`](crate::Upload::without_idempotency_key).",
        on_progress: "Calls `callback` while the client sends the files, with the sum over all of them.",
    }
}

impl Place {
    /// Stores a batch. The records have the order of the items.
    pub async fn batch(&self, batch: Batch) -> Result<Vec<FileRecord>> {
        let mut form = self.form();
        for (index, item) in batch.items.into_iter().enumerate() {
            form.item(&format!("items[{index}]."), item);
        }

        let path = ["files", "batch"];
        let (reply, digests) = self.client.send_upload(&path, form, batch.delivery).await?;
        let records: Vec<FileRecord> = reply.json()?;
        if records.len() != digests.len() {
            let counts = format!("{} for {}", records.len(), digests.len());
            return Err(Error::protocol(format!(
                "the reply does not have one record for each file: {counts}"
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
