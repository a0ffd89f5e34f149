//! The file of the audit log, and the thread that writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// The maximum number of lines that wait for the disk.
const QUEUE: usize = 4096;
/// The maximum bytes of the lines that wait for the disk. Most lines have a few hundred bytes, but a line about
/// a thousand files has more than 30,000.
const QUEUE_BYTES: usize = 4 << 20;

/// A handle for the thread. Dropping it writes the waiting lines, and ends the thread.
#[derive(Debug)]
pub(super) struct AuditFile {
    lines: Option<SyncSender<String>>,
    /// The bytes of the lines that wait.
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl AuditFile {
    /// Opens the file at `path` for appending. Creates it with access only for its owner.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let waiting = Arc::<AtomicUsize>::default();
        let mut target = Target { path: path.to_owned(), file: append_to(path)? };
        let (lines, queue) = sync_channel(QUEUE);
        let taken = Arc::clone(&waiting);
        let thread = thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || target.write_all_of(&queue, &taken))?;
        Ok(Self { lines: Some(lines), waiting, thread: Some(thread) })
    }

    /// Tests whether [`open`](Self::open) can open or create the file. Creates nothing.
    pub(super) fn check(path: &Path) -> io::Result<()> {
        match path.metadata() {
            Ok(found) if found.is_dir() => Err(Errno::ISDIR.into()),
            Ok(_) => access(path, Access::WRITE_OK).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(folder) = path.parent() else { return Err(error) };
                let is_here = folder.as_os_str().is_empty();
                let folder = if is_here { Path::new(".") } else { folder };
                access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
            }
            Err(error) => Err(error),
        }
    }

    /// Queues a line. Returns it if the queue is full.
    pub(super) fn write(&self, line: String) -> Option<String> {
        let lines = self.lines.as_ref().expect("taken on drop only");
        let bytes = line.len();
        if self.waiting.fetch_add(bytes, Relaxed) + bytes > QUEUE_BYTES {
            self.waiting.fetch_sub(bytes, Relaxed);
            return Some(line);
        }
        lines.try_send(line).err().map(|refused| {
            self.waiting.fetch_sub(bytes, Relaxed);
            match refused {
                TrySendError::Full(line) | TrySendError::Disconnected(line) => line,
            }
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
    fn write_all_of(&mut self, queue: &Receiver<String>, waiting: &AtomicUsize) {
        while let Ok(mut line) = queue.recv() {
            waiting.fetch_sub(line.len(), Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_refuses_what_opening_refuses_and_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "").unwrap();

        for bad in [at("absent/audit"), at("file/audit"), at("")] {
            let checked = AuditFile::check(&bad).unwrap_err();
            let opened = AuditFile::open(&bad).unwrap_err();
            assert_eq!(checked.to_string(), opened.to_string(), "{}", bad.display());
        }
        for good in [at("file"), at("new")] {
            AuditFile::check(&good).unwrap();
        }
        assert!(!at("new").exists());
    }

    #[test]
    fn the_lines_that_wait_are_bounded_in_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let audit = AuditFile::open(&dir.path().join("audit.jsonl")).unwrap();
        // As many as a disk that takes nothing would leave waiting.
        audit.waiting.store(QUEUE_BYTES - 10, Relaxed);

        assert_eq!(audit.write("eleven byte".to_owned()).as_deref(), Some("eleven byte"));
        assert_eq!(audit.waiting.load(Relaxed), QUEUE_BYTES - 10);
        assert_eq!(audit.write("ten bytes.".to_owned()), None);
    }
}
