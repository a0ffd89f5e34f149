//! Administration: background work on demand, and its state.

use filestore_core::api::{PurgeReport, PurgeRunRequest, SyncReport, SyncStatusReport, VariantCacheReport};
use reqwest::{Method, RequestBuilder};

use crate::client::{Call, Client};
use crate::error::Result;

/// The administration of a server; its key needs the scope `admin`.
///
/// ```no_run
/// use filestore_client::DryRun;
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let plan = client.admin().purge_run(DryRun::Yes).await?;
/// println!("{} files, {} bytes would go", plan.purged, plan.purged_bytes);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Admin<'a> {
    client: &'a Client,
}

/// Whether a run only counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DryRun {
    /// Nothing is touched.
    Yes,
    /// The work is done.
    No,
}

impl Client {
    /// The administration of the server.
    pub fn admin(&self) -> Admin<'_> {
        Admin { client: self }
    }
}

impl Admin<'_> {
    /// Purges now what is due, and waits for the end of it, however long that takes.
    pub async fn purge_run(&self, dry_run: DryRun) -> Result<PurgeReport> {
        let body = PurgeRunRequest { dry_run: dry_run == DryRun::Yes };
        let request = self.request(Method::POST, &["purge", "run"]).json(&body);
        self.client.json(Call::once(request).endless()).await
    }

    /// Syncs now what is pending, and waits for the end of it, however long that takes.
    pub async fn sync_run(&self) -> Result<SyncReport> {
        let request = self.request(Method::POST, &["sync", "run"]);
        self.client.json(Call::once(request).endless()).await
    }

    /// How many files are in which sync status.
    pub async fn sync_status(&self) -> Result<SyncStatusReport> {
        self.client.json(Call::repeatable(self.request(Method::GET, &["sync", "status"]))).await
    }

    /// What the variant cache holds.
    pub async fn variants_status(&self) -> Result<VariantCacheReport> {
        self.client.json(Call::repeatable(self.request(Method::GET, &["variants", "status"]))).await
    }

    /// Trims the variant cache, and waits for the end of it.
    pub async fn variants_prune(&self) -> Result<VariantCacheReport> {
        let request = self.request(Method::POST, &["variants", "prune"]);
        self.client.json(Call::once(request).endless()).await
    }

    fn request(self, method: Method, path: &[&str; 2]) -> RequestBuilder {
        self.client.request(method, &["admin", path[0], path[1]])
    }
}
