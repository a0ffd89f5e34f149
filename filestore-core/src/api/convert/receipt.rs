//! Purge receipts.

use crate::api;
use crate::domain::report::receipt_key::{ReceiptKeyInfo, SignedReceipt};

impl From<SignedReceipt> for api::SignedReceipt {
    /// Converts the receipt without changes, because the signature covers its exact text.
    fn from(signed: SignedReceipt) -> Self {
        Self::new(signed.json, signed.signature)
    }
}

impl From<ReceiptKeyInfo> for api::ReceiptKeyReply {
    fn from(info: ReceiptKeyInfo) -> Self {
        Self {
            public_key: info.public_key,
            created_at: info.created_at.to_string(),
            retired_at: info.retired_at.map(|at| at.to_string()),
        }
    }
}
