//! Administration of a server: background work, keys, providers and backups.
//!
//! [`Client::admin`] returns [`Admin`]. Each subject is a group of its own, for example
//! `client.admin().keys()`. A group is cheap to create and to copy.

mod keys;
mod signing;
mod receipts;
mod providers;
mod sync;
mod migrations;
mod purge;
mod organizations;
mod fsck;
mod backups;
mod uploads;
mod variants;

use filestore_core::api::StatusReply;
use reqwest::{Method, RequestBuilder};

pub use backups::Backups;
pub use fsck::Fsck;
pub use keys::Keys;
pub use migrations::Migrations;
pub use organizations::Organizations;
pub use providers::Providers;
pub use purge::Purge;
pub use receipts::Receipts;
pub use signing::Signing;
pub use sync::SyncQueue;
pub use uploads::Uploads;
pub use variants::Variants;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's administration, returned by [`Client::admin`].
///
/// If the server asks for API keys, the client's key needs the scope `admin` for all organizations.
///
/// For example, create a key for a web shop and print the service's state:
///
/// ```no_run
/// use filestore_client::api::CreateKey;
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let admin = client.admin();
/// let created = admin.keys().create(&CreateKey::new(["42"], ["read", "write"])).await?;
/// println!("the new key is {}", created.key);
/// for advice in admin.status().await?.advice {
///     println!("{}: {}", advice.about, advice.next);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Admin<'a> {
    client: &'a Client,
}

impl Client {
    /// Returns the server's administration.
    pub fn admin(&self) -> Admin<'_> {
        Admin { client: self }
    }

    /// Starts a request to `/api/v1/admin/<segments>`.
    fn admin_request(&self, method: Method, segments: &[&str]) -> RequestBuilder {
        let mut path = vec!["admin"];
        path.extend(segments);
        self.request(method, &path)
    }
}

impl<'a> Admin<'a> {
    /// Reports the state of the whole service: store, disk, providers, pending work, and advice on
    /// each problem.
    pub async fn status(self) -> Result<StatusReply> {
        let request = self.client.admin_request(Method::GET, &["status"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Returns the calls for API keys.
    pub fn keys(self) -> Keys<'a> {
        Keys { client: self.client }
    }

    /// Returns the calls for the secrets that sign URLs.
    pub fn signing(self) -> Signing<'a> {
        Signing { client: self.client }
    }

    /// Returns the calls for purge receipts.
    pub fn receipts(self) -> Receipts<'a> {
        Receipts { client: self.client }
    }

    /// Returns the calls for storage providers.
    pub fn providers(self) -> Providers<'a> {
        Providers { client: self.client }
    }

    /// Returns the calls for the sync queue.
    pub fn sync(self) -> SyncQueue<'a> {
        SyncQueue { client: self.client }
    }

    /// Returns the calls for migrations.
    pub fn migrations(self) -> Migrations<'a> {
        Migrations { client: self.client }
    }

    /// Returns the calls for the purge.
    pub fn purge(self) -> Purge<'a> {
        Purge { client: self.client }
    }

    /// Returns the calls for organizations.
    pub fn organizations(self) -> Organizations<'a> {
        Organizations { client: self.client }
    }

    /// Returns the calls for checks of the store.
    pub fn fsck(self) -> Fsck<'a> {
        Fsck { client: self.client }
    }

    /// Returns the calls for backups.
    pub fn backups(self) -> Backups<'a> {
        Backups { client: self.client }
    }

    /// Returns the calls for resumable uploads.
    pub fn uploads(self) -> Uploads<'a> {
        Uploads { client: self.client }
    }

    /// Returns the calls for the variant cache.
    pub fn variants(self) -> Variants<'a> {
        Variants { client: self.client }
    }
}
