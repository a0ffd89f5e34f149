//! A typed async client for a filestore server.
//!
//! [`Client`] has a method for every endpoint but the API's own description and `/metrics`. It adds to plain
//! HTTP:
//!
//! - uploads are streamed in bounded memory, carry an idempotency key, and are compared with the
//!   digest the server stored;
//! - downloads go on where a broken connection left them, follow the redirect to a storage
//!   provider without taking the key along, and are checked against the file's SHA-256;
//! - what is safe to repeat is repeated, with jitter, when the server is out of reach or busy
//!   ([`RetryPolicy`]);
//! - an [`Error`] has a [`ErrorKind`] to branch on, and says in one line what to do next.
//!
//! ```no_run
//! use filestore_client::{Client, Item};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::builder("http://127.0.0.1:8080")?.api_key("fsk_…").build()?;
//!     let gallery = client.organization("42")?.sub_system("gallery")?;
//!     let record = gallery.upload(Item::from_path("photo.jpg")?).await?;
//!     let thumbnail = client.variant(&record.file_id, 200).await?;
//!     std::fs::write("photo-200.webp", &thumbnail.bytes)?;
//!     Ok(())
//! }
//! ```
//!
//! The types of the wire are [`api`]'s. A later server may send more fields, and words that this
//! version does not know: neither is an error, and such a word is kept as `Unknown`.

mod client;
mod organization;
mod upload;
mod download;
mod variant;
mod sheet;
mod list;
mod sign;
mod bindings;
mod providers;
mod receipt;
mod admin;
mod progress;
mod transport;
mod digest;
mod error;

pub use filestore_core::api;
pub use filestore_core::api::{
    Disposition, DryRun, ErrorCode, FileId, FileRecord, Fit, InvalidId, ListQuery, OrganizationId,
    PurgeStatus, Status, StorageLocation, SubSystem, SyncStatus,
};

pub use admin::Admin;
pub use bindings::Bindings;
pub use client::Client;
pub use client::builder::ClientBuilder;
pub use download::{Download, Downloaded};
pub use error::{Error, ErrorKind, Result};
pub use organization::{Organization, Place};
pub use progress::{OnProgress, Progress};
pub use providers::Providers;
pub use sheet::SheetRequest;
pub use transport::reply::Reply;
pub use transport::retry::RetryPolicy;
pub use upload::Upload;
pub use upload::batch::Batch;
pub use upload::change::Change;
pub use upload::item::Item;
pub use variant::{Variant, VariantRequest};

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
