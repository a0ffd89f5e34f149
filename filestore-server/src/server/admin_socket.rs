//! The Unix socket over which the command line administers a running server.
//!
//! Every process that may open the socket's file may do everything. So the file has mode 0600 from the
//! moment it is visible: it is bound in a directory of mode 0700, given its mode, and renamed into
//! place, over any socket that a crash left there. The caller holds the lock of the data directory.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use tokio::net::UnixListener;

/// Binds the socket `path`. Fails where the path is too long for a socket (about 100 bytes) and
/// where the file system has none.
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
    let listener = UnixListener::bind(&inner)?;
    std::fs::set_permissions(&inner, Permissions::from_mode(0o600))?;
    std::fs::rename(&inner, path)?;
    Ok(listener)
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
    async fn a_path_too_long_for_a_socket_is_an_error_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("x".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        assert!(bind(&deep.join("admin.sock")).is_err());
        assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 0);
    }
}
