//! Migrations of an organization's files to another provider.

use filestore_core::api::{
    MigratePlan, MigrateReport, MigrateRunRequest, MigrateStatus, MigrateStopRequest,
    MigrateVerifyReport, MigrateVerifyRequest, OrganizationNumber,
};
use reqwest::Method;
use serde::Deserialize;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's migrations. [`Admin::migrations`](super::Admin::migrations) returns this group.
///
/// Bind the organization to the new provider first, see [`Bindings`](crate::Bindings). For example:
///
/// ```no_run
/// use filestore_client::api::MigrateRunRequest;
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let migrations = client.admin().migrations();
/// let plan = migrations.plan(42.try_into()?, "s3-eu").await?;
/// println!("{} files to move", plan.move_files);
///
/// let request = MigrateRunRequest::new(42.try_into()?, "s3-eu").bytes_per_second(20 << 20);
/// let report = migrations.run(&request).await?;
/// println!("{} files moved, {} left", report.moved_files, report.left_files);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Migrations<'a> {
    pub(super) client: &'a Client,
}

impl Migrations<'_> {
    /// Plans a migration of the organization to the provider `to`. Has no effect on files.
    pub async fn plan(self, organization: OrganizationNumber, to: &str) -> Result<MigratePlan> {
        let request = self.client.admin_request(Method::GET, &["migrate", "plan"]);
        let request = request.query(&[("organizationId", organization)]).query(&[("to", to)]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Moves the organization's files to its provider and returns when the migration ends. The call
    /// has no time limit.
    ///
    /// Fails with [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if the organization is bound
    /// to another provider, or if its migration is already running.
    ///
    /// If you drop the future, the server completes the copies in progress and stops the migration.
    /// To stop the migration and still get the report, call [`stop`](Self::stop).
    pub async fn run(self, request: &MigrateRunRequest) -> Result<MigrateReport> {
        let request = self.client.admin_request(Method::POST, &["migrate", "run"]).json(request);
        self.client.json(Call::once(request).endless()).await
    }

    /// Starts a migration that continues without the client, and returns when the server has accepted
    /// it. To follow it, call [`status`](Self::status). Errors as for [`run`](Self::run).
    pub async fn start(self, request: &MigrateRunRequest) -> Result<MigrateStatus> {
        let mut request = request.clone();
        request.detach = Some(true);
        let organization = request.organization_id;
        let request = self.client.admin_request(Method::POST, &["migrate", "run"]).json(&request);
        match self.client.json(Call::once(request).endless()).await? {
            Started::Shown(status) => Ok(status),
            Started::Unread {} => self.status(organization).await,
        }
    }

    /// Stops the organization's running migration. Returns the locations of its files.
    pub async fn stop(self, organization: OrganizationNumber) -> Result<MigrateStatus> {
        let body = MigrateStopRequest::new(organization);
        let request = self.client.admin_request(Method::POST, &["migrate", "stop"]).json(&body);
        self.client.json(Call::idempotent(request)).await
    }

    /// Returns the locations of the organization's files, and its running migration.
    pub async fn status(self, organization: OrganizationNumber) -> Result<MigrateStatus> {
        let request = self.client.admin_request(Method::GET, &["migrate", "status"]);
        let request = request.query(&[("organizationId", organization)]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Reads every READY file of the organization at the provider `to`, and compares its digest
    /// with the record. Returns at the end. If you drop the future, the server stops.
    pub async fn verify(
        self,
        organization: OrganizationNumber,
        to: &str,
    ) -> Result<MigrateVerifyReport> {
        let body = MigrateVerifyRequest::new(organization, to);
        let request = self.client.admin_request(Method::POST, &["migrate", "verify"]).json(&body);
        self.client.json(Call::idempotent(request).endless()).await
    }
}

/// The reply to a migration that was accepted.
#[derive(Deserialize)]
#[serde(untagged)]
enum Started {
    Shown(MigrateStatus),
    /// The server could not read the status.
    Unread {},
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accepted_migration_may_have_no_status() {
        assert!(matches!(serde_json::from_str("{}").unwrap(), Started::Unread {}));
        let status = r#"{"organizationId":42,"bound_to":null,"holdings":[],"running":null}"#;
        assert!(matches!(serde_json::from_str(status).unwrap(), Started::Shown(_)));
    }
}
