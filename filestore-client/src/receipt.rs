//! Receipts of purges.

use filestore_core::api::{ReceiptKeyReply, SignedReceipt};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

impl Client {
    /// Asks for the receipt of a purged file: who deleted it, which bytes went from where, and which
    /// backups still have them. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) until the purge has
    /// ended. The signature is not looked at: `filestore purge receipt --verify` does that, and
    /// `filestore_core::receipts::verify_receipt`.
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
        self.json(Call::repeatable(request)).await
    }

    /// Lists the public keys that verify receipts, the oldest first.
    pub async fn receipt_keys(&self) -> Result<Vec<ReceiptKeyReply>> {
        self.json(Call::repeatable(self.request(Method::GET, &["receipt-keys"]))).await
    }
}
