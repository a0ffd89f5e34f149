//! The Unix socket through which the command line administers a running server.
//!
//! Every process with access to the socket's file has all rights. The file therefore has mode 0600 from the
//! start. The socket is bound in a directory of mode 0700, gets its mode, and is then renamed into place,
//! over any socket that a crash left. The caller holds the lock of the data directory.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// Longest path that every system can bind, in bytes.
const MAX_ADDRESS: usize = 100;

/// Binds the socket `path`. Fails if the file system has no sockets. Fails also if the path is too
/// long for a socket and the system has no `/proc`.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    let private = path.with_file_name(".admin");
    remove(&private)?;
    DirBuilder::new().mode(0o700).create(&private)?;
    let bound = bind_in(&private, path);
    remove(&private)?;
    bound
}

fn bind_in(private: &Path, path: &Path) -> io::Result<UnixListener> {
    let inner = private.join("s");
    let directory = File::open(private)?;
    let listener = UnixListener::bind(address(&inner, &directory))?;
    std::fs::set_permissions(&inner, Permissions::from_mode(0o600))?;
    std::fs::rename(&inner, path)?;
    Ok(listener)
}

/// Returns the path itself, or a shorter one through the open directory of the socket.
fn address(path: &Path, directory: &File) -> PathBuf {
    let name = path.file_name().filter(|_| path.as_os_str().len() > MAX_ADDRESS);
    match name {
        Some(name) => Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name),
        None => path.to_owned(),
    }
}

/// Removes the socket's file at the end, so that no client tries to reach a server that is gone.
pub(super) fn unlink(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(%error, "cannot remove the admin socket");
    }
}

fn remove(directory: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixStream;

    #[tokio::test]
    async fn the_socket_is_private_and_replaces_a_stale_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        drop(bind(&path).unwrap());
        assert!(UnixStream::connect(&path).await.is_err(), "nobody listens any more");

        let _listener = bind(&path).unwrap();
        UnixStream::connect(&path).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "the private directory is gone"
        );
    }

    #[tokio::test]
    async fn a_path_too_long_for_a_socket_is_bound_through_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("x".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("admin.sock");
        assert!(UnixStream::connect(&path).await.is_err(), "the path itself is too long");

        let bound = bind(&path);
        if !Path::new("/proc/self/fd").exists() {
            assert!(bound.is_err());
            assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 0, "it leaves nothing");
            return;
        }
        let _listener = bound.unwrap();
        let open = File::open(&deep).unwrap();
        UnixStream::connect(address(&path, &open)).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 1);
    }
}
