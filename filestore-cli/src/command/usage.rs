//! `usage`.

use std::fmt::Write as _;

use filestore_core::api::{OrganizationId, UsageReply};

use crate::failure::{Exit, Result};
use crate::output::{Output, counted, size};
use crate::store::Target;

/// `usage`: counts the files and bytes of an organization.
pub(super) async fn run(
    organization: &OrganizationId,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let doing = format!("cannot count the files of {organization}");
    let usage = target.usage(organization).await.map_err(|e| e.doing(doing))?;
    out.report(&usage, usage_text)?;
    Ok(Exit::Done)
}

fn usage_text(usage: &UsageReply) -> String {
    let (local, cloud) = (&usage.by_location.local, &usage.by_location.cloud);
    let quota =
        [usage.quota_files.map(|files| counted(files, "file")), usage.quota_bytes.map(size)];
    let quota = quota.into_iter().flatten().collect::<Vec<_>>().join(", ");

    let rows = [
        ("stored", usage.files, usage.bytes),
        ("local", local.files, local.bytes),
        ("at providers", cloud.files, cloud.bytes),
        ("temporary", usage.temp.files, usage.temp.bytes),
        ("deleted", usage.deleted.files, usage.deleted.bytes),
    ];
    let mut text = String::new();
    for (label, files, bytes) in rows {
        let line = format!("{label:<13} {}, {}", counted(files, "file"), size(bytes));
        writeln!(text, "{line}").expect("a string accepts every write");
    }
    text + &format!("{:<13} {}\n", "quota", if quota.is_empty() { "none" } else { &quota })
}
