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
use crate::target::Target;

/// The most bytes of a receipt: more than those of one with all that may be listed.
const MAX_BYTES: u64 = 64 << 20;

/// The outcome of `--verify`, as `--json` prints it.
#[derive(Serialize)]
struct Verified {
    file_id: String,
    store_id: String,
    public_key: String,
    issued_at: String,
    absent_everywhere: bool,
}

/// `purge receipt ID`: shows the receipt of a purge.
pub(super) async fn show(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = format!("cannot show the receipt of {id}");
    let signed = target.receipt(id).await.map_err(|e| e.doing(doing.clone()))?;
    let read = signed.read();
    let receipt = read.map_err(|error| Failure::failed(error.to_string()).doing(doing))?;
    out.data(
        &signed,
        |one| one.receipt["file_id"].as_str().into_iter().collect(),
        |_| receipt_text(&receipt),
    )?;
    Ok(Exit::Done)
}

/// The key that must have signed a receipt.
pub(super) enum Signer {
    /// The one that the receipt names.
    Named,
    /// The one with this public key.
    Key(String),
    /// One of the store's, before it was retired.
    Store(Vec<ReceiptKeyReply>),
}

impl Signer {
    /// Takes the signer from the options; reads the file of keys.
    pub(super) fn of(public_key: Option<&str>, keys: Option<&Path>) -> Result<Self> {
        let Some(file) = keys else {
            return Ok(public_key.map_or(Self::Named, |key| Self::Key(key.to_owned())));
        };

        let doing = format!("cannot read the keys in {}", file.display());
        let text = read(file).map_err(|error| Failure::io(doing.clone(), &error))?;
        let keys = serde_json::from_slice(&text).map_err(|error| {
            let message = format!("not what `purge receipt-keys --json` prints: {error}");
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

    /// Checks that the store may have signed then.
    fn check(&self, verified: &VerifiedReceipt) -> Result<()> {
        let Self::Store(keys) = self else { return Ok(()) };
        let is_signer =
            |key: &&ReceiptKeyReply| key.public_key.eq_ignore_ascii_case(&verified.public_key);
        let Some(key) = keys.iter().find(is_signer) else {
            return Err(Failure::refused("the receipt is signed by a key that is not the store's"));
        };
        let Some(retired_at) = &key.retired_at else { return Ok(()) };

        let until: Timestamp = retired_at.parse().map_err(|_| {
            Failure::failed(format!("retired_at of a key is no time: {}", plain(retired_at)))
        })?;
        if verified.issued_at <= until {
            return Ok(());
        }
        let (issued, retired) = (verified.issued_at, when(retired_at));
        Err(Failure::refused(format!(
            "the receipt says that it was issued {} UTC, and its key was retired {retired} UTC: it is not the store's",
            when(&issued.to_string())
        )))
    }
}

/// `purge receipt --verify FILE`: verifies a receipt, without a store.
pub(super) fn verify(file: &Path, signer: &Signer, out: Output) -> Result<Exit> {
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
        out.note("the key is the one that the receipt names: compare it with the store's, see purge receipt-keys");
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

/// `purge receipt-keys`: lists the public keys, after a rotation if one is asked for.
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
        out.note("no keys: the first receipt makes one");
    }
    Ok(Exit::Done)
}

fn table(keys: &[ReceiptKeyReply]) -> String {
    if keys.is_empty() {
        return String::new();
    }

    let columns = ["PUBLIC KEY", "MADE (UTC)", "RETIRED (UTC)"];
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
    format!("good: file {file} of store {store}, {end} as of {issued} UTC\nsigned by {key}")
}

fn receipt_text(receipt: &PurgeReceipt) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        writeln!(text, "{label:<12} {value}").expect("a string takes every write");
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
            _ => "what a broken write may have left".to_owned(),
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
        return format!("could not be looked at ({})", plain(problem));
    }
    let mut holding: Vec<_> = found
        .snapshots
        .iter()
        .map(|one| format!("snapshot {} has it", plain(&one.snapshot_id)))
        .collect();
    if !found.loose.is_empty() {
        holding.push(
            "it lies there outside of any finished snapshot: prune the destination".to_owned(),
        );
    }
    if holding.is_empty() { "has none of it".to_owned() } else { holding.join(", ") }
}
