//! A typed async client for a filestore server.
//!
//! [`Client`] has a method for every endpoint except `/metrics`, the API description and `/uploads`,
//! which uploads use for large files. Compared with plain HTTP, the client adds:
//!
//! - **Uploads.** The client streams files in bounded memory, sends an idempotency key, and
//!   compares the stored digest with the sent bytes.
//! - **Large files.** Uploads of 16 MiB and more continue after a broken connection. See
//!   [`Resumable`].
//! - **Downloads.** The client resumes broken connections, follows the redirect to a storage
//!   provider without the API key, and checks the SHA-256 of the file.
//! - **Retries.** If the server is unreachable or busy, the client retries safe requests with
//!   jitter. See [`RetryPolicy`].
//! - **Errors.** [`Error::kind`] tells you the kind of failure, and the message contains a hint.
//!
//! For example, upload a photo and save its thumbnail:
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
//! The module [`api`] contains the types of requests and replies. A later server can send more
//! fields and unknown words. The client ignores such fields and keeps such words as `Unknown`.

mod client;
mod organization;
mod upload;
mod edit;
mod download;
mod variant;
mod sheet;
mod list;
mod many;
mod overview;
mod events;
mod webhooks;
mod sign;
mod bindings;
mod providers;
mod receipt;
mod explain;
pub mod admin;
mod progress;
mod transport;
mod digest;
mod error;

pub use filestore_core::api;
pub use filestore_core::api::{
    Disposition, DryRun, ErrorCode, Event, EventData, EventOrder, EventPage, EventQuery, EventType,
    FileId, FileRecord, Fit, InvalidId, ListQuery, OrganizationId, OrganizationNumber, PageQuery,
    PurgeStatus, Status, StorageLocation, SubSystem, SyncStatus,
};

pub use admin::Admin;
pub use bindings::Bindings;
pub use client::Client;
pub use client::builder::ClientBuilder;
pub use download::{Download, Downloaded};
pub use edit::Edit;
pub use error::{Error, ErrorKind, Result, TlsProblem};
pub use events::Events;
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
pub use upload::resumable::Resumable;
pub use variant::{Variant, VariantRequest};
pub use webhooks::Webhooks;

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
