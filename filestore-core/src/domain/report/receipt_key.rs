//! Keys that sign purge receipts, and the signed text.
//!
//! # Format
//! The signed text is the line `filestore-receipt-v1`, a line feed, and the receipt as JSON in the
//! form of RFC 8785 (JCS): no spaces, members sorted by name, strings with the fewest escapes.
//! Receipts have no fractions, so each number is written in decimal digits. The signature is
//! Ed25519 (RFC 8032). Keys and signatures are lower-case hexadecimal digits.
//!
//! The signature also covers members that a reader does not know, so verify a receipt exactly as it
//! was sent.

use std::fmt;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::receipt::PurgeReceipt;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::time::clock::Timestamp;
use crate::domain::unique_keys::UniqueKeys;

/// First line of every signed text. No other use of a key has this line.
const FORMAT: &str = "filestore-receipt-v1";

/// Length of a public key, and of a private key's seed, in bytes.
const KEY_BYTES: usize = 32;

/// Signature length, in bytes.
const SIGNATURE_BYTES: usize = 64;

/// A private key that signs receipts. `Debug` shows only the public key.
pub struct ReceiptKey {
    pair: Ed25519KeyPair,
    seed: [u8; KEY_BYTES],
}

impl ReceiptKey {
    /// Creates the key from a random seed.
    pub fn new(seed: [u8; KEY_BYTES]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .expect("every 32 bytes are the seed of a key (RFC 8032 section 5.1.5)");
        Self { pair, seed }
    }

    /// Reads the text from [`Self::to_hex`]. `None` for other text.
    pub fn from_hex(text: &str) -> Option<Self> {
        from_hex(text).map(Self::new)
    }

    /// Returns the private key in hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.seed)
    }

    /// Returns the public key in hexadecimal digits.
    pub fn public_key(&self) -> String {
        hex::encode(self.pair.public_key().as_ref())
    }

    /// Signs a receipt.
    pub(crate) fn sign(&self, receipt: PurgeReceipt) -> SignedReceipt {
        let json = receipt.to_json(&self.public_key());
        let signature = hex::encode(self.pair.sign(signed_text(&json).as_bytes()).as_ref());
        SignedReceipt { receipt, json, signature }
    }
}

impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let public_key = self.public_key();
        f.debug_struct("ReceiptKey").field("public_key", &public_key).finish_non_exhaustive()
    }
}

/// A public key for receipts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiptKeyInfo {
    /// Public key, 64 hexadecimal digits.
    pub public_key: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Retirement time: from then on, the key signs no receipts. `None` for the current key.
    pub retired_at: Option<Timestamp>,
}

/// A receipt with its signature. For example, save [`to_document`](Self::to_document) to a file,
/// and verify the file later with [`verify_receipt`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedReceipt {
    /// The receipt.
    pub receipt: PurgeReceipt,
    /// The receipt as it was signed.
    pub(crate) json: Value,
    /// Signature, 128 hexadecimal digits.
    pub signature: String,
}

impl SignedReceipt {
    /// Returns the JSON document that [`verify_receipt`] reads.
    pub fn to_document(&self) -> String {
        json!({"receipt": self.json, "signature": self.signature}).to_string()
    }
}

/// A receipt with a valid signature.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedReceipt {
    /// The purged file's id.
    pub file_id: String,
    /// Store id in the receipt.
    pub store_id: String,
    /// Public key of the signature, 64 hexadecimal digits.
    pub public_key: String,
    /// Time in the receipt. If the key was retired before this time, the receipt is not from the
    /// store.
    pub issued_at: Timestamp,
    /// True if every place was checked and does not contain the file's bytes.
    pub is_absent_everywhere: bool,
}

/// Verifies a receipt from the API, without a store. `public_key` is the expected key. If it is
/// `None`, the receipt is verified with the key inside it, and you must compare `public_key` of the
/// result with the store's key.
///
/// `MalformedBody` if the document is not a receipt. `SignatureInvalid` if the receipt was changed,
/// or signed with another key.
///
/// ```
/// let error = filestore_core::receipts::verify_receipt(b"{}", None).unwrap_err();
/// assert_eq!(error.kind(), filestore_core::ErrorKind::MalformedBody);
/// ```
pub fn verify_receipt(document: &[u8], public_key: Option<&str>) -> Result<VerifiedReceipt> {
    let UniqueKeys(document) = serde_json::from_slice(document).map_err(|_| malformed())?;
    let members =
        document.as_object().filter(|members| members.len() == 2).ok_or_else(malformed)?;
    let receipt = members.get("receipt").filter(|receipt| receipt.is_object());
    let signature = members.get("signature").and_then(Value::as_str);
    let (receipt, signature) = receipt.zip(signature).ok_or_else(malformed)?;

    let text = |name: &str| receipt[name].as_str().map(str::to_owned).ok_or_else(malformed);
    let named = text("public_key")?;
    if public_key.is_some_and(|expected| !expected.eq_ignore_ascii_case(&named)) {
        return Err(invalid("the receipt is signed with another key"));
    }

    let key: [u8; KEY_BYTES] = from_hex(&named).ok_or_else(malformed)?;
    let signature: [u8; SIGNATURE_BYTES] = from_hex(signature).ok_or_else(malformed)?;
    UnparsedPublicKey::new(&ED25519, key)
        .verify(signed_text(receipt).as_bytes(), &signature)
        .map_err(|_| invalid("the receipt is not as it was signed"))?;

    let is_absent_everywhere = receipt["absent_everywhere"].as_bool().ok_or_else(malformed)?;
    let issued_at = text("issued_at")?.parse().map_err(|_| malformed())?;
    Ok(VerifiedReceipt {
        file_id: text("file_id")?,
        store_id: text("store_id")?,
        public_key: named,
        issued_at,
        is_absent_everywhere,
    })
}

fn malformed() -> Error {
    let form = "a receipt is a JSON object from the API, with the members receipt and signature";
    Error::new(ErrorKind::MalformedBody, form)
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::SignatureInvalid, message)
}

/// Returns the text to sign.
fn signed_text(receipt: &Value) -> String {
    let mut text = format!("{FORMAT}\n");
    write_canonical(receipt, &mut text);
    text
}

/// Writes JSON as in RFC 8785, for ASCII names and integers.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);

            let mut before = '{';
            for (name, value) in members {
                text.push(before);
                write_canonical(&Value::from(name.as_str()), text);
                text.push(':');
                write_canonical(value, text);
                before = ',';
            }
            text.push_str(if before == '{' { "{}" } else { "}" });
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

/// Reads lower-case digits only, so that each key and signature has one spelling.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    (hex::encode(bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{KeyId, Sha256};
    use crate::domain::report::erasure::ErasedPlace;
    use crate::domain::report::receipt::{
        AwaitedBlob, Content, DeletedBy, HoldingSnapshot, LookedAt, PurgedFile, RemovedBlob,
    };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_795_334_400_000 + millis)
    }

    fn receipt() -> PurgeReceipt {
        let content = Content { sha256: Sha256([0xab; 32]), size_bytes: 5 };
        let key = "42/docs/2026/11/22/01ARZ3NDEKTSV4RRFFQ69G5FAV"
            .parse::<crate::domain::file::path::BlobKey>();
        let key = key.unwrap();
        let by: KeyId = "01ARZ3NDEKTSV4RRFFQ69G5FAW".parse().unwrap();
        PurgeReceipt {
            store_id: "01ARZ3NDEKTSV4RRFFQ69G5FAX".parse().unwrap(),
            issued_at: at(60_000),
            kept_until: at(7_776_000_000),
            history_from: None,
            file: PurgedFile {
                file_id: "01ARZ3NDEKTSV4RRFFQ69G5FAY".parse().unwrap(),
                organization_id: "42".parse().unwrap(),
                created_at: at(0),
                deleted_at: at(1000),
                deleted_by: DeletedBy::Key { id: by, name: "büro \"1\"\u{1}".into() },
                purged_at: at(2000),
                removed: vec![RemovedBlob {
                    holder: "LOCAL".parse().unwrap(),
                    key: key.clone(),
                    content: Some(content),
                    absent_at: at(1900),
                    checked_at: at(1950),
                }],
                unlisted: 0,
                awaited: vec![AwaitedBlob { holder: "s3".parse().unwrap(), key, due_at: None }],
            },
            quarantine: ErasedPlace::new("quarantine", None),
            backups: vec![LookedAt {
                destination_id: None,
                destination: "nightly".into(),
                checked_at: at(60_000),
                snapshots: vec![HoldingSnapshot {
                    id: "01ARZ3NDEKTSV4RRFFQ69G5FAZ".parse().unwrap(),
                    created_at: at(500),
                    sha256: vec![content.sha256],
                }],
                loose: Vec::new(),
                problem: None,
            }],
        }
    }

    #[test]
    fn the_signed_text_and_its_signature_are_those_of_the_reference() {
        let signed = ReceiptKey::new([7; 32]).sign(receipt());
        let reference =
            include_str!("../../../../filestore-server/docs/reference/http/receipts.md");
        for line in [signed_text(&signed.json).lines().last().unwrap(), &signed.signature] {
            assert!(reference.contains(line), "section 4.13 must have: {line}");
        }
    }

    #[test]
    fn a_receipt_with_any_byte_flipped_is_refused() {
        let key = ReceiptKey::new([7; 32]);
        let document = key.sign(receipt()).to_document().into_bytes();
        let verified = verify_receipt(&document, Some(&key.public_key())).unwrap();
        assert!(!verified.is_absent_everywhere);

        for at in 0..document.len() {
            for bit in 0..8 {
                let mut flipped = document.clone();
                flipped[at] ^= 1 << bit;
                let shown = String::from_utf8_lossy(&flipped[at.saturating_sub(20)..]).into_owned();
                assert!(verify_receipt(&flipped, None).is_err(), "byte {at}, bit {bit}: {shown}");
            }
        }
    }

    #[test]
    fn a_receipt_of_another_key_is_refused_and_its_spelling_does_not_matter() {
        let (key, other) = (ReceiptKey::new([7; 32]), ReceiptKey::new([8; 32]));
        let signed = key.sign(receipt());
        let document = signed.to_document();
        let refused = verify_receipt(document.as_bytes(), Some(&other.public_key())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SignatureInvalid);

        let indented = json!({"signature": signed.signature, "receipt": signed.json});
        let indented = serde_json::to_vec_pretty(&indented).unwrap();
        verify_receipt(&indented, Some(&key.public_key())).unwrap();
        assert_eq!(ReceiptKey::from_hex(&key.to_hex()).unwrap().public_key(), key.public_key());
        assert!(!format!("{key:?}").contains(&key.to_hex()));
    }

    #[test]
    fn a_member_that_is_there_twice_is_refused() {
        let key = ReceiptKey::new([7; 32]);
        let document = key.sign(receipt()).to_document();
        verify_receipt(document.as_bytes(), None).unwrap();

        let forged = r#"{"receipt":{"absent_everywhere":true},"#;
        let around = document.replacen('{', forged, 1);
        let member = r#""absent_everywhere":"#;
        let within = document.replacen(member, &format!("{member}true,{member}"), 1);
        for twice in [around, within] {
            assert_ne!(twice, document);
            let refused = verify_receipt(twice.as_bytes(), None).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::MalformedBody, "{twice}");
        }
    }
}
