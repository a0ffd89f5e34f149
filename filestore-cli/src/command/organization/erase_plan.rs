//! `organization erase --dry-run`: shows the content that an erasure would remove.

use filestore_core::api::{KeyReply, OrganizationId, OrganizationNumber};
use serde::Serialize;

use crate::failure::{Exit, Result};
use crate::output::{Output, counted, plain, size};
use crate::store::Target;

/// The effect of an erasure, as `--json` prints it.
#[derive(Debug, Serialize)]
struct ErasePlan {
    dry_run: bool,
    organization_id: String,
    /// Files, including deleted files that the purge has not removed yet.
    files: u64,
    bytes: u64,
    bindings: u64,
    /// Ids of the keys for this organization only.
    keys_revoked: Vec<String>,
    /// Ids of the keys that keep their other organizations.
    keys_narrowed: Vec<String>,
}

/// Asks the store for an organization's content, and changes nothing.
pub(super) async fn show(
    organization: &OrganizationId,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let usage = target.usage(organization).await?;
    // Only a number can have bindings.
    let bindings = match organization.as_str().parse::<OrganizationNumber>() {
        Ok(number) => target.bindings(Some(number)).await?.len(),
        Err(_) => 0,
    };
    let (mut keys_revoked, mut keys_narrowed) = (Vec::new(), Vec::new());
    for key in target.keys().await? {
        match scope(&key, organization) {
            Some(Named::Alone) => keys_revoked.push(key.id),
            Some(Named::WithOthers) => keys_narrowed.push(key.id),
            None => {}
        }
    }

    let plan = ErasePlan {
        dry_run: true,
        organization_id: organization.as_str().to_owned(),
        files: usage.files,
        bytes: usage.bytes,
        bindings: bindings as u64,
        keys_revoked,
        keys_narrowed,
    };
    out.report(&plan, text)?;
    Ok(Exit::Done)
}

/// The organizations of a valid key that names the organization.
enum Named {
    Alone,
    WithOthers,
}

fn scope(key: &KeyReply, organization: &OrganizationId) -> Option<Named> {
    let names_it = key.organizations.iter().any(|name| name == organization.as_str());
    match key.organizations.len() {
        _ if key.revoked_at.is_some() || !names_it => None,
        1 => Some(Named::Alone),
        _ => Some(Named::WithOthers),
    }
}

fn text(plan: &ErasePlan) -> String {
    format!(
        "would erase {}: {} ({}), {}, {} revoked, {} restricted",
        plain(&plan.organization_id),
        counted(plan.files, "file"),
        size(plan.bytes),
        counted(plan.bindings, "binding"),
        counted(plan.keys_revoked.len() as u64, "key"),
        counted(plan.keys_narrowed.len() as u64, "key"),
    )
}
