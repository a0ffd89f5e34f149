//! `upload FILE...`, `upload --recursive` and `batch`.

mod recursive;
mod journal;
mod pending;
mod walk;

pub(super) use recursive::recursive;

use std::path::Path;

use filestore_core::api::FileRecord;

use self::pending::Pending;
use self::walk::modified_ns;
use crate::args::{BatchArgs, PlaceArgs, UploadArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, counted, files};
use crate::store::{Batch, Input, Item, Lifetime, Opened, Place, Target, Upload};

impl From<PlaceArgs> for Place {
    fn from(args: PlaceArgs) -> Self {
        Self { organization_id: args.org, sub_system: args.sub }
    }
}

/// `upload`: uploads files one by one. A failure does not stop the next files.
pub(super) async fn run(args: UploadArgs, opened: &Opened, out: Output) -> Result<Exit> {
    check_single(&args)?;
    let (mut records, mut exit) = (Vec::new(), Exit::Done);
    for (tried, path) in (1..).zip(&args.files) {
        let uploaded = upload_one(path, &args, opened, out).await;
        match uploaded.map_err(|e| e.doing(format!("cannot upload {}", named(path)))) {
            Ok(record) => records.push(record),
            Err(failure) => {
                out.failure(&failure);
                exit = exit.max(failure.exit());
                if failure.hits_all() {
                    note_untried(args.files.len() - tried, out);
                    break;
                }
            }
        }
    }

    show(&records, out)?;
    Ok(exit)
}

fn note_untried(files: usize, out: Output) {
    if files > 0 {
        out.note(format!("not tried: {}", counted(files as u64, "more file")));
    }
}

async fn upload_one(
    path: &Path,
    args: &UploadArgs,
    opened: &Opened,
    out: Output,
) -> Result<FileRecord> {
    let input = Input::find(path)?;
    let mut stopped = Stopped { pending: pending(&input, args, &opened.name), path, out };
    // Before the upload, so that a stopped upload removes the bar first.
    let meter = out.bytes_meter(named(path), input.size_bytes());

    let mut item = Item::new(input);
    item.name.clone_from(&args.name);
    item.mime_type.clone_from(&args.mime);
    item.metadata.clone_from(&args.metadata);
    let upload = Upload {
        place: args.place.clone().into(),
        item,
        lifetime: if args.temp { Lifetime::Temporary } else { Lifetime::Lasting },
        sha256: args.sha256.clone(),
        idempotency_key: match &stopped.pending {
            Some(pending) => Some(pending.key().to_owned()),
            None => args.idempotency_key.clone(),
        },
    };

    let uploaded = opened.target.upload(upload, &meter).await;
    drop(meter);
    if let Some(pending) = stopped.pending.take() {
        match &uploaded {
            Err(failure) if failure.may_pass() => stopped.pending = Some(pending),
            _ => pending.end(),
        }
    }
    Ok(uploaded?.record)
}

/// Opens the note of an upload that can continue later. The user's own idempotency key needs no note.
fn pending(input: &Input, args: &UploadArgs, server: &str) -> Option<Pending> {
    let Input::File(path, size_bytes) = input else { return None };
    let is_remote = server.contains("://");
    if !is_remote || *size_bytes < pending::FROM_BYTES || args.idempotency_key.is_some() {
        return None;
    }
    let (path, metadata) = (path.canonicalize().ok()?, path.metadata().ok()?);
    let subject = (
        (server, path.as_os_str().as_encoded_bytes(), size_bytes, modified_ns(&metadata).ok()?),
        (&args.place.org, &args.place.sub, args.temp),
        (&args.name, &args.mime, &args.metadata, &args.sha256),
    );
    Pending::open(&subject)
}

/// An upload that can continue later. If the user stops it, or if it fails for now, this value says how to continue.
struct Stopped<'a> {
    pending: Option<Pending>,
    path: &'a Path,
    out: Output,
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if self.pending.is_some() {
            let name = named(self.path);
            self.out.note(format!(
                "stopped: {name} is not stored yet. To continue, run the same command again within a day"
            ));
        }
    }
}

/// `batch`: uploads all files or none.
pub(super) async fn batch(args: BatchArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut items = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let input = Input::find(path).map_err(|e| e.doing("cannot upload the batch"))?;
        items.push(Item { metadata: args.metadata.clone(), ..Item::new(input) });
    }

    let total = items.iter().map(|item| item.input.size_bytes()).sum();
    let meter = out.bytes_meter(format!("{} files", items.len()), total);
    let batch = Batch { place: args.place.into(), items, idempotency_key: args.idempotency_key };
    let records = target.batch(batch, &meter).await.map_err(|failure| {
        let item = failure.item().and_then(|index| args.files.get(index));
        failure.doing(match item {
            Some(path) => format!("cannot upload the batch because of {}", named(path)),
            None => "cannot upload the batch".to_owned(),
        })
    })?;

    drop(meter);
    show(&records, out)?;
    Ok(Exit::Done)
}

fn show(records: &Vec<FileRecord>, out: Output) -> Result<()> {
    out.data(
        records,
        |all| all.iter().map(|file| file.file_id.as_str()).collect(),
        |all| files(all),
    )
}

/// Refuses options for a single file if there are several files.
fn check_single(args: &UploadArgs) -> Result<()> {
    let given = [
        ("--name", args.name.is_some()),
        ("--sha256", args.sha256.is_some()),
        ("--idempotency-key", args.idempotency_key.is_some()),
    ];

    match given.into_iter().find(|(_, given)| *given && args.files.len() > 1) {
        Some((option, _)) => Err(Failure::failed(format!("{option} needs a single file"))
            .hint("run one command for each file")),
        None => Ok(()),
    }
}

/// Returns a path for messages: `stdin` for `-`.
pub(super) fn named(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { path.display().to_string() }
}
