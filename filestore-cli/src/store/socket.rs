//! The admin socket of a running server in its data directory.
//!
//! The address of a socket has about 100 bytes. If the path is longer, Linux connects through
//! `/proc/self/fd` and the open directory.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// File name of the socket.
const NAME: &str = "admin.sock";

/// Longest path that every system can connect to, in bytes.
const MAX_ADDRESS: usize = 100;

/// A socket and its address.
#[derive(Debug)]
pub(crate) struct AdminSocket {
    address: PathBuf,
    /// The directory behind a short address, which stays open.
    _directory: Option<File>,
}

impl AdminSocket {
    /// Finds the socket of a data directory. Fails if the directory cannot be opened.
    pub(super) fn of(dir: &Path) -> io::Result<Self> {
        let path = dir.join(NAME);
        if path.as_os_str().len() <= MAX_ADDRESS {
            return Ok(Self { address: path, _directory: None });
        }
        let directory = File::open(dir)?;
        let address = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(NAME);
        Ok(Self { address, _directory: Some(directory) })
    }

    /// Returns the path to connect to.
    pub(super) fn address(&self) -> &Path {
        &self.address
    }

    /// Returns true if a server listens on the socket.
    ///
    /// A killed server leaves its socket behind, and the directory might now belong to a command. A
    /// socket of another user counts as served, so that the user sees the connection error.
    pub(super) fn is_served(&self) -> bool {
        match UnixStream::connect(&self.address) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_below_a_long_path_is_reached_through_its_directory() {
        if !Path::new("/proc/self/fd").exists() {
            eprintln!("skipped: this system has no /proc/self/fd");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("x".repeat(120));
        std::fs::create_dir(&deep).unwrap();

        let socket = AdminSocket::of(&deep).unwrap();
        assert!(!socket.is_served());
        let _listener = UnixListener::bind(socket.address()).unwrap();
        assert!(socket.is_served() && AdminSocket::of(&deep).unwrap().is_served());
        assert!(deep.join(NAME).exists());
    }
}
