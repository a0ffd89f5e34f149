//! `purge receipt`, `purge receipt-keys`: proof that a purged file is gone.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use filestore_core::Timestamp;
use filestore_core::api::{BackupLook, DeletedBy, PurgeReceipt, ReceiptKeyReply};
use filestore_core::receipts::{VerifiedReceipt, verify_receipt};
use serde::Serialize;

use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Table, plain, size, when};
use crate::store::Target;

/// Maximum size of a receipt, in bytes. The longest possible receipt is smaller.
const MAX_BYTES: u64 = 64 << 20;

/// The result of `--verify`, as `--json` prints it.
#[derive(Serialize)]
struct Verified {
    file_id: String,
    store_id: String,
    public_key: String,
    issued_at: String,
    absent_everywhere: bool,
}

/// `purge receipt ID`: shows a purge receipt.
pub(super) async fn show(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = format!("cannot show the receipt of {id}");
    let signed = match target.receipt(id).await {
        Ok(signed) => signed,
        Err(failure) => return Err(with_reason(failure, id, target).await.doing(doing)),
    };
    let read = signed.read();
    let receipt = read.map_err(|error| Failure::failed(error.to_string()).doing(doing))?;
    out.data(
        &signed,
        |one| one.receipt["file_id"].as_str().into_iter().collect(),
        |_| receipt_text(&receipt),
    )?;
    Ok(Exit::Done)
}

/// Explains a missing receipt, if the file is not purged yet.
async fn with_reason(failure: Failure, id: &str, target: &dyn Target) -> Failure {
    if !failure.is_missing() {
        return failure;
    }
    let Ok(file) = target.info(id).await else {
        return failure
            .hint("check the id. A receipt exists only after the purge, for 90 days by default");
    };
    match (file.purge_status, file.purge_due_at) {
        (None, _) => failure.hint("the file is not deleted. A receipt exists only after the purge"),
        (Some(_), Some(due)) => failure.hint(not_purged(&due, Timestamp::now())),
        (Some(_), None) => failure.hint(
            "the file is deleted, but not purged yet. To purge now, use `filestore purge run --now`",
        ),
    }
}

/// Explains when the purge removes a deleted file. A purge that fails leaves a time in the past.
fn not_purged(due: &str, now: Timestamp) -> String {
    let is_past = due.parse::<Timestamp>().is_ok_and(|due| due <= now);
    let due = when(due);
    if is_past {
        format!(
            "the file is deleted, but not purged yet. The purge was due {due} UTC. To purge now and see \
             errors, use `filestore purge run --now`"
        )
    } else {
        format!(
            "the file is deleted, but not purged yet: the purge is due {due} UTC. To purge now, use \
             `filestore purge run --now`"
        )
    }
}

/// The key that must have signed a receipt.
pub(in crate::command) enum Signer {
    /// The key in the receipt itself.
    Named,
    /// This public key.
    Key(String),
    /// A key of the store that was not retired at the time.
    Store(Vec<ReceiptKeyReply>),
}

impl Signer {
    /// Reads the signer from the options and the file of keys.
    pub(in crate::command) fn of(public_key: Option<&str>, keys: Option<&Path>) -> Result<Self> {
        let Some(file) = keys else {
            return Ok(public_key.map_or(Self::Named, |key| Self::Key(key.to_owned())));
        };

        let doing = format!("cannot read the keys in {}", file.display());
        let text = read(file).map_err(|error| Failure::io(doing.clone(), &error))?;
        let keys = serde_json::from_slice(&text).map_err(|error| {
            let message =
                format!("the file is not the output of `purge receipt-keys --json`: {error}");
            Failure::failed(message).doing(doing)
        })?;
        Ok(Self::Store(keys))
    }

    fn public_key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::Named | Self::Store(_) => None,
        }
    }

    /// Checks that a key of the store signed the receipt before the store retired the key.
    fn check(&self, verified: &VerifiedReceipt) -> Result<()> {
        let Self::Store(keys) = self else { return Ok(()) };
        let is_signer =
            |key: &&ReceiptKeyReply| key.public_key.eq_ignore_ascii_case(&verified.public_key);
        let Some(key) = keys.iter().find(is_signer) else {
            return Err(Failure::refused(
                "the receipt was signed with a key that is not the store's",
            ));
        };
        let Some(retired_at) = &key.retired_at else { return Ok(()) };

        let until: Timestamp = retired_at.parse().map_err(|_| {
            Failure::failed(format!("retired_at of a key is not a time: {}", plain(retired_at)))
        })?;
        if verified.issued_at <= until {
            return Ok(());
        }
        let (issued, retired) = (verified.issued_at, when(retired_at));
        Err(Failure::refused(format!(
            "the receipt is from {} UTC, but its key was retired {retired} UTC: the store did not sign it",
            when(&issued.to_string())
        )))
    }
}

/// `purge receipt --verify FILE`: verifies a receipt, without a store.
pub(in crate::command) fn verify(file: &Path, signer: &Signer, out: Output) -> Result<Exit> {
    let doing = format!("cannot verify {}", file.display());
    let document = read(file).map_err(|error| Failure::io(doing.clone(), &error))?;
    let verified = verify_receipt(&document, signer.public_key());
    let verified = verified.map_err(|error| Failure::from(error).doing(doing.clone()))?;
    signer.check(&verified).map_err(|error| error.doing(doing))?;

    let shown = Verified {
        file_id: verified.file_id,
        store_id: verified.store_id,
        public_key: verified.public_key,
        issued_at: verified.issued_at.to_string(),
        absent_everywhere: verified.is_absent_everywhere,
    };
    out.data(&shown, |one| vec![one.file_id.as_str()], verified_text)?;
    if matches!(signer, Signer::Named) {
        out.note("this key comes from the receipt itself: compare it with the output of `purge receipt-keys`");
    }
    Ok(if shown.absent_everywhere { Exit::Done } else { Exit::Found })
}

/// Reads a file, or stdin for `-`.
fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut document = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES).read_to_end(&mut document)?;
    } else {
        std::fs::File::open(file)?.take(MAX_BYTES).read_to_end(&mut document)?;
    }
    Ok(document)
}

/// `purge receipt-keys`: lists the public keys. With `--rotate`, rotates the key first.
pub(super) async fn keys(rotate: bool, target: &dyn Target, out: Output) -> Result<Exit> {
    let outcome =
        if rotate { target.rotate_receipt_key().await } else { target.receipt_keys().await };
    let doing = if rotate { "cannot rotate the key" } else { "cannot list keys" };

    let keys = outcome.map_err(|e| e.doing(doing))?;
    out.data(
        &keys,
        |all| all.iter().map(|one| one.public_key.as_str()).collect(),
        |all| table(all),
    )?;

    if keys.is_empty() {
        out.note("no keys: filestore creates a key with the first receipt");
    }
    Ok(Exit::Done)
}

fn table(keys: &[ReceiptKeyReply]) -> String {
    if keys.is_empty() {
        return String::new();
    }

    let columns = ["PUBLIC KEY", "CREATED (UTC)", "RETIRED (UTC)"];
    let mut table = Table::new(columns.map(|name| (name, Align::Left)));
    for key in keys {
        let retired_at = key.retired_at.as_deref().map_or_else(|| "-".to_owned(), when);
        table.row([plain(&key.public_key), when(&key.created_at), retired_at]);
    }
    table.render()
}

fn verified_text(verified: &Verified) -> String {
    let end =
        if verified.absent_everywhere { "absent everywhere" } else { "NOT absent everywhere" };
    let (file, store) = (plain(&verified.file_id), plain(&verified.store_id));
    let (issued, key) = (when(&verified.issued_at), plain(&verified.public_key));
    format!("valid: file {file} of store {store}, {end} as of {issued} UTC\nsigned by {key}")
}

fn receipt_text(receipt: &PurgeReceipt) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        writeln!(text, "{label:<12} {value}").expect("a string accepts every write");
    };

    line("file", plain(&receipt.file_id));
    line("organization", plain(&receipt.organization_id));
    line(
        "deleted",
        format!("{} UTC by {}", when(&receipt.deleted_at), deleter(&receipt.deleted_by)),
    );
    line("purged", format!("{} UTC", when(&receipt.purged_at)));

    for blob in &receipt.removed {
        let bytes = match (&blob.sha256, blob.size_bytes) {
            (Some(sha256), Some(bytes)) => format!("{} ({})", plain(sha256), size(bytes)),
            _ => "possible remains of a failed write".to_owned(),
        };
        let (place, at) = (plain(&blob.provider), when(&blob.checked_at));
        line("removed", format!("{bytes} at {place}, absent {at} UTC"));
    }
    for blob in &receipt.awaited {
        line("awaited", format!("{} at {}", plain(&blob.key), plain(&blob.provider)));
    }
    if !receipt.quarantine.absent {
        line("quarantine", plain(&receipt.quarantine.detail));
    }
    for found in &receipt.backups {
        let disk = found.destination_id.as_deref().map(|id| format!(", disk {}", plain(id)));
        let disk = disk.unwrap_or_default();
        line("backup", format!("{}{disk}: {}", plain(&found.destination), look(found)));
    }

    let end = if receipt.absent_everywhere { "yes" } else { "no" };
    line("gone", format!("absent everywhere: {end}, as of {} UTC", when(&receipt.issued_at)));
    text
}

fn deleter(by: &DeletedBy) -> String {
    match (&by.key_id, &by.key_name) {
        (Some(id), Some(name)) => format!("key {} ({})", plain(id), plain(name)),
        _ => plain(&by.kind).replace('_', " "),
    }
}

fn look(found: &BackupLook) -> String {
    if let Some(problem) = &found.problem {
        return format!("could not be checked ({})", plain(problem));
    }

    let mut holding: Vec<_> = found
        .snapshots
        .iter()
        .map(|one| format!("snapshot {} contains it", plain(&one.snapshot_id)))
        .collect();

    if !found.loose.is_empty() {
        holding
            .push("leftovers of unfinished snapshots contain it: prune the destination".to_owned());
    }

    if holding.is_empty() { "does not contain it".to_owned() } else { holding.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_that_is_overdue_is_not_promised() {
        let due = "2026-11-21T08:15:30.123Z";
        let at = due.parse::<Timestamp>().unwrap();
        let early = not_purged(due, Timestamp::from_millis(at.as_millis() - 1));
        assert!(early.contains("the purge is due 2026-11-21 08:15:30 UTC"), "{early}");
        let late = not_purged(due, at);
        assert!(late.contains("The purge was due 2026-11-21 08:15:30 UTC"), "{late}");
    }
}
