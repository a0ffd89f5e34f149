//! The file of the audit log, and the thread that writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// The maximum number of lines that wait for the disk. A line has a few hundred bytes.
const QUEUE: usize = 4096;

/// A handle for the thread. Dropping it writes the waiting lines, and ends the thread.
#[derive(Debug)]
pub(super) struct AuditFile {
    lines: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl AuditFile {
    /// Opens the file at `path` for appending. Creates it with access only for its owner.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut target = Target { path: path.to_owned(), file: append_to(path)? };
        let (lines, waiting) = sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || target.write_all_of(&waiting))?;
        Ok(Self { lines: Some(lines), thread: Some(thread) })
    }

    /// Queues a line. Returns it if the queue is full.
    pub(super) fn write(&self, line: String) -> Option<String> {
        let lines = self.lines.as_ref().expect("taken on drop only");
        lines.try_send(line).err().map(|refused| match refused {
            TrySendError::Full(line) | TrySendError::Disconnected(line) => line,
        })
    }
}

impl Drop for AuditFile {
    fn drop(&mut self) {
        drop(self.lines.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there was printed.
            let _ = thread.join();
        }
    }
}

/// The open file of the thread.
struct Target {
    path: PathBuf,
    file: File,
}

impl Target {
    fn write_all_of(&mut self, waiting: &Receiver<String>) {
        while let Ok(mut line) = waiting.recv() {
            line.push('\n');
            if let Err(error) = self.append(&line) {
                tracing::error!(
                    target: "filestore_server::audit",
                    %error,
                    "the audit log cannot be written: {}", line.trim_end()
                );
            }
        }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        if !self.is_current() {
            self.file = append_to(&self.path)?;
        }
        self.file.write_all(line.as_bytes())
    }

    /// Returns true if the path still refers to the open file. A rotation renames it.
    fn is_current(&self) -> bool {
        match (self.file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
            _ => false,
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}
