//! `upload --recursive`: uploads a whole directory, in one run or several.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use filestore_core::api::ErrorCode;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::journal::{Entry, Journal, Keys, Subject, default_path};
use super::walk::{Found, Tree, modified_ns, walk};
use crate::args::UploadArgs;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Meter, Output, counted, size};
use crate::store::{Acknowledged, Input, Item, Lifetime, Opened, Place, Target, Upload};

/// The counts of a run.
#[derive(Debug, Default, Serialize)]
struct Summary {
    uploaded: u64,
    uploaded_bytes: u64,
    /// Unchanged files in the journal.
    skipped: u64,
    /// Symbolic links and everything else that is not a regular file.
    left_out: u64,
    failed: u64,
    /// True if the run ended early, because the next file would fail for the same reason.
    stopped: bool,
    journal: String,
}

/// Uploads the files below `root` that are not in the journal yet.
pub(in crate::command) async fn recursive(
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
    // Before the meter, so that a stopped run removes the bar first.
    let mut done = Done::new(run.summary.skipped, files.len() as u64, out);
    let meter = out.bytes_meter(counted(files.len() as u64, "file"), Some(total));

    let sender = Sender { target: &*opened.target, root, place, meter: meter.clone() };
    let uploaded = run.upload_all(files, &sender, usize::from(args.jobs), &mut done).await;
    done.has_ended = true;
    drop((sender, meter));
    uploaded?;
    run.finish()
}

/// The files of a run that are stored. If the user stops the run, the command is dropped, and this
/// value then says how to continue.
struct Done {
    files: u64,
    of: u64,
    out: Output,
    has_ended: bool,
}

impl Done {
    fn new(skipped: u64, to_upload: u64, out: Output) -> Self {
        Self { files: skipped, of: skipped + to_upload, out, has_ended: false }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if !self.has_ended {
            let stored = format!("{} of {}", self.files, counted(self.of, "file"));
            let note =
                format!("stopped: {stored} are stored. To continue, run the same command again");
            self.out.note(note);
        }
    }
}

/// The state of a run. Only one task changes it.
struct DirectoryUpload {
    journal: Journal,
    out: Output,
    exit: Exit,
    summary: Summary,
}

impl DirectoryUpload {
    /// Prints the files that are left out. Returns the files without an upload in the journal.
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
        done: &mut Done,
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
                Ok(sent) => {
                    self.sent(sent)?;
                    done.files += 1;
                }
                Err(failure) => {
                    sender.meter.suspend(|| self.fail(&failure));
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
                let file_id = entry.file_id.clone();
                self.journal.add(entry)?;
                match self.out.id(&file_id) {
                    // A reader that closes the pipe does not stop the upload.
                    Err(failure) if failure.exit() == Exit::Done => Ok(()),
                    printed => printed,
                }
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
        self.out.report(&self.summary, Summary::text)?;
        if self.summary.failed > 0 {
            self.out.note("run the same command again to upload the missing files");
        }
        Ok(self.exit)
    }
}

impl Summary {
    fn text(&self) -> String {
        let Self { skipped, left_out, failed, .. } = self;
        let uploaded = counted(self.uploaded, "file");
        let bytes = size(self.uploaded_bytes);
        let stopped = if self.stopped { ", stopped early" } else { "" };
        format!(
            "uploaded {uploaded} ({bytes}), skipped {skipped}, left out {left_out}, failed {failed}{stopped}"
        )
    }
}

/// The outcome of sending a file.
enum Sent {
    Uploaded(Entry),
    /// The time of the file changed, but it still has the uploaded bytes.
    Known(Entry),
}

/// The data that all uploads of a run share.
struct Sender<'a> {
    target: &'a dyn Target,
    root: &'a Path,
    place: Place,
    meter: Meter,
}

impl Sender<'_> {
    /// Uploads a file, unless the journal already has its bytes.
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

        // Ends with a new upload, or with an earlier one whose file still exists.
        loop {
            let key = keys.of(&found.relative, &sha256, previous.as_deref());
            let Acknowledged { record, is_replay } =
                self.upload(&path, found.size_bytes, &sha256, key).await?;

            if !is_replay || self.is_stored(&record.file_id, &sha256).await? {
                return Ok(Sent::Uploaded(Entry { found, sha256, file_id: record.file_id }));
            }
            if previous.as_ref() == Some(&record.file_id) {
                return Err(Failure::failed(
                    "the server returned the stored reply of an upload that no longer exists",
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
                failure.hint("the file changed during the upload, so run the command again")
            }
            _ => failure,
        })
    }

    /// Returns true if the file of an earlier upload still exists with the same bytes.
    async fn is_stored(&self, file_id: &str, sha256: &str) -> Result<bool> {
        match self.target.info(file_id).await {
            Ok(record) => Ok(record.purge_status.is_none() && record.sha256 == sha256),
            Err(failure) if failure.code() == Some(&ErrorCode::NotFound) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

/// Reads the file as it is now. Returns its state and the SHA-256 that the target must check.
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
            0 => return Ok((found, hex::encode(hasher.finalize()))),
            read => hasher.update(&buffer[..read]),
        }
    }
}
