//! Checks which other accounts can change the directories and files that the service trusts.
//!
//! # Rules
//! An account that can write to a data directory can replace its database, its socket and its markers. The
//! service therefore refuses a data directory if other accounts can write to it. It also refuses a directory
//! of another account, because files that root creates there would stop that account's service. If other
//! accounts can only read, the service logs a warning.
//!
//! Two exceptions cause a warning at most. Root can own the directory, because a mount point or a volume
//! often belongs to root. A group of this process can have write access, because Kubernetes (`fsGroup`)
//! passes volumes to containers this way. For other places, the service only logs a warning: the backup
//! destination, an `fs` provider and the configuration.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Gid, getegid, geteuid, getgroups};

use crate::domain::error::{Error, ErrorKind, Result};

/// The account with all rights.
const ROOT: u32 = 0;

/// The owner and the mode of a directory or file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    owner: u32,
    group: u32,
    mode: u32,
}

/// The accounts of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    user: u32,
    groups: Vec<u32>,
}

/// The strongest access that other accounts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exposure {
    /// The directory belongs to another account.
    Foreign,
    /// Other accounts can write.
    Writable,
    /// A group of this process can write.
    Shared,
    /// Other accounts can read.
    Readable,
    /// Other accounts have no access.
    Private,
}

impl Access {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { owner: found.uid(), group: found.gid(), mode: found.mode() & 0o7777 })
    }

    fn exposure(self, process: &Process) -> Exposure {
        if self.owner != process.user && self.owner != ROOT {
            return Exposure::Foreign;
        }
        let is_own_group = process.groups.contains(&self.group);
        match self.mode {
            mode if mode & 0o002 != 0 => Exposure::Writable,
            mode if mode & 0o020 != 0 && !is_own_group => Exposure::Writable,
            mode if mode & 0o020 != 0 => Exposure::Shared,
            mode if mode & 0o005 != 0 => Exposure::Readable,
            mode if mode & 0o050 != 0 && !is_own_group => Exposure::Readable,
            _ => Exposure::Private,
        }
    }
}

impl Process {
    fn current() -> Self {
        let mut groups = vec![getegid().as_raw()];
        groups.extend(getgroups().unwrap_or_default().into_iter().map(Gid::as_raw));
        Self { user: geteuid().as_raw(), groups }
    }
}

/// Checks that no other account can change the data directory at `path`. Warns if other accounts can read it.
/// An absent directory is accepted. Otherwise returns `Unusable`, and the message tells how to fix the
/// problem.
pub(crate) fn check_data_directory(path: &Path) -> Result<()> {
    // The failure to look is the opener's to tell.
    let Ok(access) = Access::of(path) else { return Ok(()) };
    let process = Process::current();
    let (shown, mode) = (path.display(), access.mode & 0o777);

    match access.exposure(&process) {
        Exposure::Foreign => Err(refused(foreign(path, access.owner, process.user))),
        Exposure::Writable => {
            let mend = if access.owner == process.user {
                format!("Remove that right with: chmod 700 {shown}")
            } else {
                format!("Use a new directory inside: {shown}/filestore")
            };
            let problem = format!("others may write to the data directory {shown}, mode {mode:o}");
            Err(refused(format!(
                "{problem}, and could replace every file in the directory. {mend}"
            )))
        }
        Exposure::Shared => {
            tracing::warn!(
                path = %shown,
                mode = format!("{mode:o}"),
                "a group may write to the data directory: each member can replace every file in the directory"
            );
            Ok(())
        }
        Exposure::Readable => {
            tracing::warn!(
                path = %shown,
                mode = format!("{mode:o}"),
                "others may look into the data directory: chmod 700 keeps them out"
            );
            Ok(())
        }
        Exposure::Private => Ok(()),
    }
}

/// Logs a warning if other accounts can change `path`. `what` names the path, for example "the
/// configuration". The target of the warning is `filestore_core::exposed`, which the command line shows.
pub fn warn_of_others(what: &str, path: &Path) {
    let Ok(access) = Access::of(path) else { return };
    let why = match access.exposure(&Process::current()) {
        Exposure::Foreign => "it belongs to another account",
        Exposure::Writable => "others may write to it",
        Exposure::Shared | Exposure::Readable | Exposure::Private => return,
    };
    tracing::warn!(
        target: "filestore_core::exposed",
        path = %path.display(),
        mode = format!("{:o}", access.mode & 0o777),
        "{what} is trusted, and {why}"
    );
}

fn foreign(path: &Path, owner: u32, user: u32) -> String {
    let shown = path.display();
    let name = account(owner);
    let runs_as = if user == ROOT { "root".to_owned() } else { format!("account {user}") };
    let command = name
        .clone()
        .map_or_else(|| format!("sudo -u '#{owner}'"), |name| format!("sudo -u {name}"));
    let owner = name.unwrap_or_else(|| owner.to_string());
    format!(
        "the data directory {shown} belongs to the account {owner}, and this process runs as {runs_as}. The account \
         could not use the new files. Run filestore as the owner: {command} filestore ..."
    )
}

/// Returns the name of an account on this machine.
fn account(id: u32) -> Option<String> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_owned())
    })
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Unusable, message)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn others_are_everybody_but_the_owner_root_and_the_groups_of_the_process() {
        use Exposure::{Foreign, Private, Readable, Shared, Writable};

        let me = Process { user: 1000, groups: vec![1000, 5] };
        for (owner, group, mode, expected) in [
            (1000, 1000, 0o700, Private),
            (1000, 1000, 0o750, Private),
            (1000, 9, 0o710, Readable),
            (1000, 1000, 0o755, Readable),
            (1000, 1000, 0o701, Readable),
            (1000, 1000, 0o770, Shared),
            (0, 5, 0o2770, Shared),
            (1000, 9, 0o770, Writable),
            (1000, 1000, 0o777, Writable),
            (1000, 1000, 0o1777, Writable),
            (1000, 1000, 0o702, Writable),
            (0, 0, 0o777, Writable),
            (0, 0, 0o755, Readable),
            (1001, 1000, 0o700, Foreign),
        ] {
            let found = Access { owner, group, mode }.exposure(&me);
            assert_eq!(found, expected, "{owner}:{group} {mode:o}");
        }

        let root = Process { user: ROOT, groups: vec![0] };
        assert_eq!(Access { owner: 1000, group: 0, mode: 0o700 }.exposure(&root), Foreign);
        assert_eq!(Access { owner: 0, group: 0, mode: 0o700 }.exposure(&root), Private);
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused_until_they_may_not() {
        let home = tempfile::tempdir().unwrap();
        for mode in [0o777, 0o1777, 0o707, 0o702] {
            fs::set_permissions(home.path(), Permissions::from_mode(mode)).unwrap();
            let error = check_data_directory(home.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unusable);
            let mend = format!("chmod 700 {}", home.path().display());
            assert!(error.message().contains(&mend), "{mode:o}: {error}");
        }
        for mode in [0o700, 0o750, 0o755] {
            fs::set_permissions(home.path(), Permissions::from_mode(mode)).unwrap();
            check_data_directory(home.path()).unwrap();
        }
        check_data_directory(&home.path().join("absent")).unwrap();
    }

    #[test]
    fn a_directory_of_another_account_is_refused_by_name_with_the_way_out() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give a directory to another account");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        for (owner, expected) in [(1, "sudo -u daemon "), (54_321, "sudo -u '#54321' ")] {
            chown(home.path(), Some(owner), None).unwrap();
            let error = check_data_directory(home.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unusable);
            assert!(error.message().contains(expected), "{error}");
        }
    }
}
