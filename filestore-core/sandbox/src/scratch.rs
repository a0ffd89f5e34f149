//! The directory of a run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{self, Component, Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{Error, ErrorKind, Result};
use crate::tree::remove_tree;

/// The maximum bytes of the command's stderr that are kept for errors.
const STDERR_BYTES: u64 = 2048;

/// A scratch directory: the only directory that a command can write to. Dropping it removes it, with all its files.
///
/// Put the input in, run the command, and open the output. A program that is killed leaves its scratch directories.
/// Remove them at the next start with [`remove_tree`].
///
/// ```
/// use filestore_sandbox::Scratch;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let parent = tempfile::tempdir()?;
/// # let parent = parent.path();
/// let scratch = Scratch::new_in(parent)?;
/// scratch.copy_in("input", &mut &b"hello"[..])?;
/// // Run a command here. This is its work.
/// std::fs::rename(scratch.path().join("input"), scratch.path().join("output"))?;
///
/// let output = scratch.open_output("output", 1_000_000)?;
/// assert_eq!(std::io::read_to_string(output)?, "hello");
/// scratch.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Scratch {
    /// The directory to remove. The command cannot reach its contents except `work`.
    all: PathBuf,
    work: PathBuf,
}

impl Scratch {
    /// Creates a scratch directory with a random name below `parent`, only for this account. Creates `parent`
    /// if necessary. Blocks.
    pub fn new_in(parent: impl AsRef<Path>) -> io::Result<Self> {
        // The command starts in the directory, where a relative path leads elsewhere.
        let all = path::absolute(parent)?.join(random_name()?);
        let scratch = Self { work: all.join("work"), all };
        DirBuilder::new().mode(0o700).recursive(true).create(&scratch.work)?;
        Ok(scratch)
    }

    /// Returns the path of the command's working directory.
    pub fn path(&self) -> &Path {
        &self.work
    }

    /// Writes a new file `name` with all bytes of `source`, only for this account. Blocks.
    pub fn copy_in(&self, name: &str, source: &mut impl Read) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(self.file(name)?)?;
        io::copy(source, &mut file)?;
        Ok(())
    }

    /// Opens the file `name` that the command wrote, and unlinks it, so that its bytes cannot change. Blocks.
    ///
    /// Returns [`ErrorKind::NoOutput`] if it is missing, a link or not a plain file, or has another name.
    /// Returns [`ErrorKind::TooMuchOutput`] if it has more than `max_bytes`.
    pub fn open_output(&self, name: &str, max_bytes: u64) -> Result<File> {
        let path = self.file(name).map_err(Error::io)?;
        // A pipe must not block, and a link leads out of the directory.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).expect("flags of open are few");
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let Ok(file) = opened else { return Err(Error::new(ErrorKind::NoOutput)) };

        let metadata = file.metadata().map_err(Error::io)?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return Err(Error::new(ErrorKind::NoOutput));
        }
        if metadata.len() > max_bytes {
            return Err(Error::new(ErrorKind::TooMuchOutput));
        }
        let _ = fs::remove_file(path);
        Ok(file)
    }

    /// Returns the beginning of the last command's stderr, without white space around it. Blocks.
    pub fn stderr(&self) -> String {
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(self.stderr_path()) {
            let _ = file.take(STDERR_BYTES).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Removes the directory and reports errors. Dropping the value cannot report them. Blocks.
    pub fn close(self) -> io::Result<()> {
        remove_tree(&self.all)
    }

    /// Creates the file for a command's stderr.
    pub(crate) fn create_stderr(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).open(self.stderr_path())
    }

    fn stderr_path(&self) -> PathBuf {
        self.all.join("stderr")
    }

    /// Returns the path of a file in the working directory. `name` must be a plain name.
    fn file(&self, name: &str) -> io::Result<PathBuf> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(name)), None) => Ok(self.work.join(name)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no file name: {name}"))),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove_tree(&self.all);
    }
}

/// Returns a random name that a command cannot guess: 20 hexadecimal digits.
pub(crate) fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:020x}", u128::from_le_bytes(bytes) >> 48))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn is_no_output(scratch: &Scratch, name: &str) -> bool {
        let error = scratch.open_output(name, 10).unwrap_err();
        error.kind() == ErrorKind::NoOutput
    }

    #[test]
    fn only_a_plain_file_with_one_name_is_an_output() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(parent.path().join("made")).unwrap();
        let work = scratch.path();

        assert!(is_no_output(&scratch, "missing"));
        fs::create_dir(work.join("directory")).unwrap();
        assert!(is_no_output(&scratch, "directory"));
        symlink("/etc/hostname", work.join("link")).unwrap();
        assert!(is_no_output(&scratch, "link"));
        fs::write(work.join("file"), "0123456789").unwrap();
        fs::hard_link(work.join("file"), work.join("again")).unwrap();
        assert!(is_no_output(&scratch, "file"));
        fs::remove_file(work.join("again")).unwrap();

        let error = scratch.open_output("file", 9).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooMuchOutput);
        let file = scratch.open_output("file", 10).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "0123456789");
        assert!(is_no_output(&scratch, "file"), "it is opened once");
    }

    #[test]
    fn names_lead_nowhere_else_and_replace_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(parent.path()).unwrap();
        for name in ["", ".", "..", "/etc/hostname", "a/b", "../stderr"] {
            let error = scratch.copy_in(name, &mut io::empty()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        scratch.copy_in("input", &mut io::empty()).unwrap();
        let error = scratch.copy_in("input", &mut io::empty()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_dropped_directory_is_gone_with_its_files() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(parent.path()).unwrap();
        scratch.copy_in("input", &mut &b"x"[..]).unwrap();
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
