//! Purge receipts.

use filestore_core::api::{ReceiptKeyReply, SignedReceipt};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

impl Client {
    /// Returns the receipt of a purged file: the caller who deleted it, the removed bytes, and the
    /// backups that still contain them.
    ///
    /// Fails with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) before the end of the purge.
    /// This call does not verify the signature. To verify the receipt, run `filestore purge receipt
    /// --verify`, or call `filestore_core::receipts::verify_receipt`.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let signed = client.receipt("01JD0000000000000000000000").await?;
    /// if signed.read()?.absent_everywhere {
    ///     std::fs::write("receipt.json", serde_json::to_vec(&signed)?)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn receipt(&self, file_id: impl AsRef<str>) -> Result<SignedReceipt> {
        let request = self.file_request(Method::GET, file_id.as_ref(), &["receipt"])?;
        self.json(Call::idempotent(request)).await
    }

    /// Lists the public keys that verify receipts, oldest first.
    pub async fn receipt_keys(&self) -> Result<Vec<ReceiptKeyReply>> {
        self.json(Call::idempotent(self.request(Method::GET, &["receipt-keys"]))).await
    }
}
