//! `upload --recursive`: a whole directory, in as many runs as it takes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use filestore_core::api::ErrorCode;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::journal::{Entry, Journal, Keys, Subject, default_path, hex};
use super::walk::{Found, Tree, modified_ns, walk};
use crate::args::UploadArgs;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Meter, Output, counted, size};
use crate::target::{Acknowledged, Input, Item, Lifetime, Opened, Place, Target, Upload};

/// The counts of a run.
#[derive(Debug, Default, Serialize)]
struct Summary {
    uploaded: u64,
    uploaded_bytes: u64,
    /// Files that are in the journal and unchanged.
    skipped: u64,
    /// Symbolic links and other things that are no regular file.
    left_out: u64,
    failed: u64,
    /// True if the run ended early: the next file would have fared no better.
    stopped: bool,
    journal: String,
}

/// Uploads the files that are below `root` and not in the journal yet.
pub(super) async fn run(
    root: &Path,
    args: UploadArgs,
    opened: &Opened,
    out: Output,
) -> Result<Exit> {
    let directory = root
        .canonicalize()
        .map_err(|e| Failure::io(format!("cannot upload {}", root.display()), &e))?;

    let place: Place = args.place.into();
    let subject = Subject {
        target: opened.name.clone(),
        directory: directory.display().to_string(),
        organization_id: place.organization_id.clone(),
        sub_system: place.sub_system.clone(),
    };

    let path = args.journal.map_or_else(|| default_path(&subject), Ok)?;
    let journal = Journal::open(&path, &subject)?;
    let tree = walk(root, &path)?;

    let mut run = DirectoryUpload { journal, out, exit: Exit::Done, summary: Summary::default() };
    run.summary.journal = path.display().to_string();
    let files = run.sort_out(tree);
    let total = files.iter().map(|found| found.size_bytes).sum();
    let meter = out.bytes_meter(counted(files.len() as u64, "file"), Some(total));

    let sender = Sender { target: &*opened.target, root, place, meter: meter.clone() };
    run.upload_all(files, &sender, usize::from(args.jobs)).await?;
    drop((sender, meter));
    run.finish()
}

/// The state of a run, changed in one place as results come in.
struct DirectoryUpload {
    journal: Journal,
    out: Output,
    exit: Exit,
    summary: Summary,
}

impl DirectoryUpload {
    /// Names the files that are left out, and returns those not known to be uploaded.
    fn sort_out(&mut self, tree: Tree) -> Vec<Found> {
        for path in &tree.left_out {
            self.out.note(format!("left out, not a regular file: {}", path.display()));
        }
        self.summary.left_out = tree.left_out.len() as u64;
        for failure in tree.failures {
            self.fail(&failure);
        }
        let all = tree.files.len();

        let mut files = tree.files;
        files.retain(|found| {
            self.journal.entry(&found.relative).is_none_or(|entry| entry.found != *found)
        });
        self.summary.skipped = (all - files.len()) as u64;

        files
    }

    async fn upload_all(
        &mut self,
        files: Vec<Found>,
        sender: &Sender<'_>,
        jobs: usize,
    ) -> Result<()> {
        let total = files.len();
        let keys = self.journal.keys();
        let known: Vec<_> =
            files.iter().map(|found| self.journal.entry(&found.relative).cloned()).collect();
        let mut results = stream::iter(files.into_iter().zip(known))
            .map(|(found, known)| sender.send(found, known, &keys))
            .buffer_unordered(jobs);

        let mut ended = 0_usize;
        while let Some(result) = results.next().await {
            ended += 1;
            sender.meter.set_message(format!("{ended}/{total}"));
            match result {
                Ok(sent) => self.sent(sent)?,
                Err(failure) => {
                    sender.meter.aside(|| self.fail(&failure));
                    if failure.hits_all() {
                        self.summary.stopped = ended < total;
                        break;
                    }
                }
            }
        }

        Ok(())
    }

    fn sent(&mut self, sent: Sent) -> Result<()> {
        match sent {
            Sent::Uploaded(entry) => {
                self.summary.uploaded += 1;
                self.summary.uploaded_bytes += entry.found.size_bytes;
                self.journal.add(entry)
            }
            Sent::Known(entry) => {
                self.summary.skipped += 1;
                self.journal.add(entry)
            }
        }
    }

    fn fail(&mut self, failure: &Failure) {
        self.out.failure(failure);
        self.summary.failed += 1;
        self.exit = self.exit.max(failure.exit());
    }

    fn finish(self) -> Result<Exit> {
        self.out.data(&self.summary, |_| Vec::new(), Summary::text)?;
        if self.summary.failed > 0 {
            self.out.note("run the same command again to upload what is missing");
        }
        Ok(self.exit)
    }
}

impl Summary {
    fn text(&self) -> String {
        let Self { skipped, left_out, failed, .. } = self;
        let uploaded = counted(self.uploaded, "file");
        let bytes = size(self.uploaded_bytes);
        let stopped = if self.stopped { "; stopped early" } else { "" };
        format!(
            "uploaded {uploaded} ({bytes}), skipped {skipped}, left out {left_out}, failed {failed}{stopped}"
        )
    }
}

/// The outcome of sending a file.
enum Sent {
    Uploaded(Entry),
    /// The file was modified since, and has the bytes that were uploaded.
    Known(Entry),
}

/// The part of a run that all its uploads share.
struct Sender<'a> {
    target: &'a dyn Target,
    root: &'a Path,
    place: Place,
    meter: Meter,
}

impl Sender<'_> {
    /// Uploads a file, unless its bytes are those that are known already.
    async fn send(&self, found: Found, known: Option<Entry>, keys: &Keys) -> Result<Sent> {
        let path = self.root.join(&found.relative);
        let doing = format!("cannot upload {}", path.display());
        self.send_from(path, found.relative, known, keys).await.map_err(|e| e.doing(doing))
    }

    async fn send_from(
        &self,
        path: PathBuf,
        relative: PathBuf,
        known: Option<Entry>,
        keys: &Keys,
    ) -> Result<Sent> {
        let (found, sha256) = digest(path.clone(), relative).await?;
        let mut previous = known.as_ref().map(|known| known.file_id.clone());
        if let Some(Entry { file_id, .. }) = known.filter(|known| known.sha256 == sha256) {
            self.meter.add(found.size_bytes);
            return Ok(Sent::Known(Entry { found, sha256, file_id }));
        }

        // Ends with an upload that is stored now, or one made before that still stands.
        loop {
            let key = keys.of(&found.relative, &sha256, previous.as_deref());
            let Acknowledged { record, is_replay } =
                self.upload(&path, found.size_bytes, &sha256, key).await?;

            if !is_replay || self.is_stored(&record.file_id, &sha256).await? {
                return Ok(Sent::Uploaded(Entry { found, sha256, file_id: record.file_id }));
            }
            if previous.as_ref() == Some(&record.file_id) {
                return Err(Failure::failed(
                    "the server repeats its answer to an upload that is gone",
                ));
            }
            previous = Some(record.file_id);
        }
    }

    async fn upload(
        &self,
        path: &Path,
        size_bytes: u64,
        sha256: &str,
        key: String,
    ) -> Result<Acknowledged> {
        let upload = Upload {
            place: self.place.clone(),
            item: Item::new(Input::File(path.to_owned(), size_bytes)),
            lifetime: Lifetime::Lasting,
            sha256: Some(sha256.to_owned()),
            idempotency_key: Some(key),
        };

        let uploaded = self.target.upload(upload, &self.meter.part()).await;
        uploaded.map_err(|failure| match failure.code() {
            Some(ErrorCode::DigestMismatch) => {
                failure.hint("it changed while it was read; run the command again")
            }
            _ => failure,
        })
    }

    /// Tests whether the file of an upload made before is still there, with the same bytes.
    async fn is_stored(&self, file_id: &str, sha256: &str) -> Result<bool> {
        match self.target.info(file_id).await {
            Ok(record) => Ok(record.purge_status.is_none() && record.sha256 == sha256),
            Err(failure) if failure.code() == Some(&ErrorCode::NotFound) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

/// Returns the file as it is now, and the SHA-256 of the bytes that the target must store or refuse.
async fn digest(path: PathBuf, relative: PathBuf) -> Result<(Found, String)> {
    let shown = path.display().to_string();
    tokio::task::spawn_blocking(move || read_through(&path, relative))
        .await
        .expect("reading a file does not panic")
        .map_err(|e| Failure::io(format!("cannot read {shown}"), &e))
}

fn read_through(path: &Path, relative: PathBuf) -> std::io::Result<(Found, String)> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let found =
        Found { relative, size_bytes: metadata.len(), modified_ns: modified_ns(&metadata)? };

    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((found, hex(&hasher.finalize()))),
            read => hasher.update(&buffer[..read]),
        }
    }
}
