//! `organization`: takes an organization's files out, or erases the organization.
//!
//! # Crash safety
//! A file of an export has its final name when all its bytes are there, and its line in the manifest when
//! they were read back and have the record's digest. An export that was stopped skips what has its line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use filestore_core::api::{BindingReply, EraseReceipt, FileRecord, ListQuery};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::get::safe_name;
use crate::args::OrganizationCommand;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Meter, Output, counted, plain, size};
use crate::target::{Destination, Overwrite, Target};

/// Downloads of a file that changes meanwhile, before it is left to a later run.
const ATTEMPTS: usize = 3;

/// Exports or erases an organization.
pub(super) async fn run(
    command: OrganizationCommand,
    target: &dyn Target,
    out: Output,
    stop: &watch::Sender<bool>,
) -> Result<Exit> {
    match command {
        OrganizationCommand::Export { org, to } => {
            let meter = out.count_meter("exporting");
            let exported = export(&org, &to, target, &meter).await;
            drop(meter);
            let report = exported.map_err(|e| e.doing(format!("cannot export {}", plain(&org))))?;
            out.data(&report, |_| Vec::new(), exported_text)?;
            Ok(if report.changed == 0 { Exit::Done } else { Exit::Refused })
        }
        OrganizationCommand::Erase { org, yes } => {
            let doing = format!("cannot erase {}", plain(&org));
            if !yes {
                let why = "nothing of it could be restored: confirm with --yes";
                return Err(Failure::failed(why).doing(doing));
            }
            let meter = out.count_meter("erasing");
            let erased = target.erase(&org, stop.subscribe(), &meter).await;
            drop(meter);
            let receipt = erased.map_err(|e| e.doing(doing))?;
            out.data(&receipt, |_| Vec::new(), erased_text)?;
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
    /// Files of these that an earlier run had written.
    skipped: u64,
    /// Files that went or changed while they were read.
    changed: u64,
}

async fn export(org: &str, to: &Path, target: &dyn Target, meter: &Meter) -> Result<Exported> {
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

/// Downloads a file and compares what was written with the record's digest. `None` if the file is gone or
/// keeps changing.
async fn fetch(mut record: FileRecord, to: &Path, target: &dyn Target) -> Result<Option<Line>> {
    for _ in 0..ATTEMPTS {
        let path = path_of(&record);
        let whole = to.join(&path);
        let directory = whole.parent().expect("a path below the directory of the export");
        fs::create_dir_all(directory).map_err(|e| io_failure(directory, &e))?;

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

/// Makes the path of an exported file: its id makes it unique, and keeps the order of uploads.
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

    let mut hex = String::with_capacity(64);
    for byte in hasher.finalize() {
        write!(hex, "{byte:02x}").expect("a string takes every write");
    }
    Ok(hex)
}

/// The manifest of an export, one JSON value on each line.
struct Manifest {
    file: File,
    path: PathBuf,
    directory: PathBuf,
    /// Digest and path of each file that has its line.
    written: HashMap<String, (String, String)>,
}

impl Manifest {
    /// Opens a manifest, or begins one with the organization's bindings. What a killed run has left of a
    /// last line is cut off.
    async fn open(org: &str, directory: &Path, target: &dyn Target) -> Result<Self> {
        fs::create_dir_all(directory).map_err(|e| io_failure(directory, &e))?;
        let path = directory.join("manifest.jsonl");
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = opened.map_err(|e| io_failure(&path, &e))?;

        let mut manifest =
            Self { file, path, directory: directory.to_owned(), written: HashMap::new() };
        let is_begun = manifest.read(org)?;
        if !is_begun {
            let bindings = match org.parse() {
                Ok(number) => target.bindings(Some(number)).await.unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            manifest.put(&Head { organization_id: org, bindings: &bindings })?;
        }
        Ok(manifest)
    }

    /// Reads the lines of earlier runs. Tells if there are any.
    fn read(&mut self, org: &str) -> Result<bool> {
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
                let why = "the directory holds the export of another organization";
                return Err(Failure::failed(why).doing(format!("cannot export {}", plain(org))));
            }
            is_begun = true;
            line.clear();
        }
        self.file.set_len(whole).map_err(|e| io_failure(&self.path, &e))?;
        Ok(is_begun)
    }

    /// Tells whether the bytes of a record are there.
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
        "exported {} ({}), {} of them by an earlier run",
        counted(report.files, "file"),
        size(report.bytes),
        report.skipped
    );
    if report.changed > 0 {
        let _ = write!(text, "; {} went or kept changing", counted(report.changed, "file"));
    }
    text
}

fn erased_text(receipt: &EraseReceipt) -> String {
    let mut text = format!(
        "erased {}: {} ({}), {}, {}; {} revoked, {} narrowed\n",
        plain(&receipt.organization_id),
        counted(receipt.files, "file"),
        size(receipt.bytes),
        counted(receipt.bindings, "binding"),
        counted(receipt.replies, "remembered reply"),
        counted(receipt.keys_revoked.len() as u64, "key"),
        receipt.keys_narrowed.len(),
    );
    for place in &receipt.places {
        let found = if place.absent { "nothing left".to_owned() } else { plain(&place.detail) };
        let _ = writeln!(text, "{:<12} {found}", plain(&place.place));
    }
    if !receipt.complete {
        text += "not complete: run the command again\n";
    }
    text
}
