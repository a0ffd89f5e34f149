//! Keys that sign purge receipts.

use filestore_core::api::ReceiptKeyReply;
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's purge receipts. [`Admin::receipts`](super::Admin::receipts) returns this group.
///
/// To read a receipt or to list the public keys, you need no administration: see
/// [`Client::receipt`] and [`Client::receipt_keys`].
#[derive(Debug, Clone, Copy)]
pub struct Receipts<'a> {
    pub(super) client: &'a Client,
}

impl Receipts<'_> {
    /// Creates a key that signs all new receipts. The old public keys stay in the list.
    pub async fn rotate_key(self) -> Result<Vec<ReceiptKeyReply>> {
        let request = self.client.admin_request(Method::POST, &["receipt-keys", "rotate"]);
        self.client.json(Call::once(request)).await
    }
}
