//! `organization`: lists organizations, and exports or erases one.
//!
//! # Crash safety
//! A file of an export gets its final name when it is complete. It gets its line in the manifest
//! after the export has read it back and compared the digest. A resumed export skips files with a
//! line.

mod list;
mod erase_plan;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use filestore_core::api::{
    BindingReply, EraseReceipt, FileRecord, ListQuery, OrganizationId, OrganizationNumber,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::get::safe_name;
use crate::args::OrganizationCommand;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Meter, Output, counted, plain, size};
use crate::store::{Destination, Overwrite, Target, create_dir_all, hand_over};

/// Number of downloads of a file that keeps changing. After that, a later run tries again.
const ATTEMPTS: usize = 3;

/// Lists organizations, or exports or erases one.
pub(super) async fn run(
    command: OrganizationCommand,
    target: &dyn Target,
    out: Output,
    stop: &watch::Sender<bool>,
) -> Result<Exit> {
    match command {
        OrganizationCommand::List(args) => list::list(args, target, out).await,
        OrganizationCommand::SubSystems { org, pages } => {
            list::sub_systems(&org.id(), pages, target, out).await
        }

        OrganizationCommand::Export { org, to } => {
            let org = org.id();
            let meter = out.count_meter("exporting");
            let exported = export(&org, &to, target, &meter).await;
            drop(meter);

            let report =
                exported.map_err(|e| e.doing(format!("cannot export {}", plain(org.as_str()))))?;
            out.report(&report, exported_text)?;
            Ok(if report.changed == 0 { Exit::Done } else { Exit::Refused })
        }

        OrganizationCommand::Erase { org, yes, dry_run } => {
            let org = org.id();
            let doing = format!("cannot erase {}", plain(org.as_str()));
            if dry_run {
                return erase_plan::show(&org, target, out).await.map_err(|e| e.doing(doing));
            }
            if !yes {
                let why = "you cannot undo this, so confirm with --yes";
                let hint = "to see the effect first, use --dry-run";
                return Err(Failure::failed(why).doing(doing).hint(hint));
            }

            let meter = out.count_meter("erasing");
            let erased = target.erase(&org, stop.subscribe(), &meter).await;
            drop(meter);

            let receipt = erased.map_err(|e| e.doing(doing))?;
            out.report(&receipt, erased_text)?;
            Ok(if receipt.complete { Exit::Done } else { Exit::Refused })
        }
    }
}

/// A line of the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Path of the file below the directory of the export.
    path: String,
    record: FileRecord,
}

/// The first line of the manifest.
#[derive(Serialize)]
struct Head<'a> {
    organization_id: &'a str,
    bindings: &'a [BindingReply],
}

/// The result of an export.
#[derive(Debug, Default, Serialize)]
struct Exported {
    files: u64,
    bytes: u64,
    /// Files that an earlier run exported.
    skipped: u64,
    /// Files that disappeared or changed during the export.
    changed: u64,
}

async fn export(
    org: &OrganizationId,
    to: &Path,
    target: &dyn Target,
    meter: &Meter,
) -> Result<Exported> {
    let mut manifest = Manifest::open(org, to, target).await?;
    let mut report = Exported::default();
    let mut query = ListQuery::new().organization_id(org);
    query.limit = Some(500);

    loop {
        let page = target.list(&query).await?;
        for record in page.items {
            if manifest.has(&record) {
                report.skipped += 1;
            } else if let Some(line) = fetch(record.clone(), to, target).await? {
                manifest.append(&line)?;
            } else {
                report.changed += 1;
                continue;
            }
            report.files += 1;
            report.bytes += record.file_size;
            meter.add(1);
        }

        manifest.sync()?;
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(report);
        }
    }
}

/// Downloads a file and compares the written bytes with the record's digest. Returns `None` if the
/// file is gone or keeps changing.
async fn fetch(mut record: FileRecord, to: &Path, target: &dyn Target) -> Result<Option<Line>> {
    for _ in 0..ATTEMPTS {
        let path = path_of(&record);
        let whole = to.join(&path);
        let directory = whole.parent().expect("a path below the directory of the export");
        create_dir_all(directory).map_err(|e| io_failure(directory, &e))?;

        let destination = Destination::File(whole.clone(), Overwrite::Replace);
        let meter = Meter::hidden();
        match target.download(&record.file_id, None, &destination, &meter).await {
            Ok(_) if digest(&whole).map_err(|e| io_failure(&whole, &e))? == record.sha256 => {
                return Ok(Some(Line { path, record }));
            }
            Ok(_) => {}
            Err(failure) if failure.is_missing() => return Ok(None),
            Err(failure) => return Err(failure),
        }
        record = match target.info(&record.file_id).await {
            Ok(record) => record,
            Err(failure) if failure.is_missing() => return Ok(None),
            Err(failure) => return Err(failure),
        };
    }
    Ok(None)
}

/// Returns the path of an exported file. The id makes the path unique and keeps the order of
/// uploads.
fn path_of(record: &FileRecord) -> String {
    let name = safe_name(&record.original_name).unwrap_or_else(|| "unnamed".to_owned());
    let sub_system = safe_name(&record.sub_system).unwrap_or_else(|| "files".to_owned());
    let id: String = record.file_id.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("files/{sub_system}/{id}-{name}")
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 256 << 10];
    loop {
        match file.read(&mut block)? {
            0 => break,
            read => hasher.update(&block[..read]),
        }
    }
    file.sync_all()?;

    Ok(hex::encode(hasher.finalize()))
}

/// The manifest of an export, one JSON value on each line.
struct Manifest {
    file: File,
    path: PathBuf,
    directory: PathBuf,
    /// Digest and path of each file with a line.
    written: HashMap<String, (String, String)>,
}

impl Manifest {
    /// Opens a manifest, or starts a new one with the organization's bindings. Removes an
    /// incomplete last line of a killed run.
    async fn open(org: &OrganizationId, directory: &Path, target: &dyn Target) -> Result<Self> {
        create_dir_all(directory).map_err(|e| io_failure(directory, &e))?;
        let path = directory.join("manifest.jsonl");
        let is_new = !path.exists();
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = opened.map_err(|e| io_failure(&path, &e))?;
        if is_new {
            hand_over(&file).map_err(|e| io_failure(&path, &e))?;
        }

        let mut manifest =
            Self { file, path, directory: directory.to_owned(), written: HashMap::new() };
        let is_begun = manifest.read(org)?;
        if !is_begun {
            let bindings = match org.as_str().parse::<OrganizationNumber>() {
                Ok(number) => target.bindings(Some(number)).await.unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            manifest.put(&Head { organization_id: org.as_str(), bindings: &bindings })?;
        }
        Ok(manifest)
    }

    /// Reads the lines of earlier runs. Returns true if there are any.
    fn read(&mut self, org: &OrganizationId) -> Result<bool> {
        let (mut whole, mut is_begun) = (0_u64, false);
        let mut lines = BufReader::new(&self.file);
        let mut line = String::new();

        while lines.read_line(&mut line).map_err(|e| io_failure(&self.path, &e))? > 0 {
            if !line.ends_with('\n') {
                break;
            }
            whole += line.len() as u64;
            if let Ok(Line { path, record }) = serde_json::from_str(&line) {
                self.written.insert(record.file_id, (record.sha256, path));
            } else if !is_begun && !line.contains(&format!("\"organization_id\":\"{org}\"")) {
                let why = "the directory contains an export of another organization";
                return Err(
                    Failure::failed(why).doing(format!("cannot export {}", plain(org.as_str())))
                );
            }
            is_begun = true;
            line.clear();
        }
        self.file.set_len(whole).map_err(|e| io_failure(&self.path, &e))?;
        Ok(is_begun)
    }

    /// Returns true if the directory contains a record's bytes.
    fn has(&self, record: &FileRecord) -> bool {
        self.written.get(&record.file_id).is_some_and(|(sha256, path)| {
            let found = fs::metadata(self.directory.join(path));
            *sha256 == record.sha256 && found.is_ok_and(|found| found.len() == record.file_size)
        })
    }

    fn append(&mut self, line: &Line) -> Result<()> {
        self.put(line)
    }

    fn put<T: Serialize>(&mut self, line: &T) -> Result<()> {
        let mut json = serde_json::to_string(line).expect("the wire types have string keys");
        json.push('\n');
        self.file.write_all(json.as_bytes()).map_err(|e| io_failure(&self.path, &e))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| io_failure(&self.path, &e))
    }
}

fn io_failure(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {}", plain(&path.display().to_string())), error)
}

fn exported_text(report: &Exported) -> String {
    let mut text = format!(
        "exported {} ({}), {} of them in an earlier run",
        counted(report.files, "file"),
        size(report.bytes),
        report.skipped
    );

    if report.changed > 0 {
        let _ = write!(
            text,
            ", {} changed or disappeared during the export",
            counted(report.changed, "file")
        );
    }
    text
}

fn erased_text(receipt: &EraseReceipt) -> String {
    let mut text = format!(
        "erased {}: {} ({}), {}, {}, {} revoked, {} restricted\n",
        plain(&receipt.organization_id),
        counted(receipt.files, "file"),
        size(receipt.bytes),
        counted(receipt.bindings, "binding"),
        counted(receipt.replies, "stored reply"),
        counted(receipt.keys_revoked.len() as u64, "key"),
        counted(receipt.keys_narrowed.len() as u64, "key"),
    );

    for place in &receipt.places {
        let found = if place.absent { "no content left".to_owned() } else { plain(&place.detail) };
        let _ = writeln!(text, "{:<12} {found}", plain(&place.place));
    }

    for place in &receipt.may_return {
        let until = place.until.as_deref().map(|at| format!(", until {at}")).unwrap_or_default();
        let (from, why) = (plain(&place.place), plain(&place.detail));
        let _ = writeln!(text, "content might return from {from}{until}: {why}");
    }

    if !receipt.complete {
        text += "not complete: run the command again\n";
    }
    text
}
