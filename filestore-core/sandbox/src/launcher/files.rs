//! Restricts the files of a command with Landlock, which also denies the network.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::Others;
use crate::walls::Landlock;

/// The newest supported version of Landlock. On an older kernel, the supported part is used.
const LANDLOCK: ABI = ABI::V6;

/// The directories and files that commands can read: programs, libraries, fonts, colour profiles.
const READABLE: [&str; 16] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/var/cache/fontconfig",
];

/// Devices that programs expect.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Denies all files except the system's files, the files in `readable`, and the files in `work`, which are
/// also writable. With `Others::InReach`, does not restrict signals.
pub(super) fn restrict(work: &Path, readable: &[PathBuf], others: Others) -> Landlock {
    match try_restrict(work, readable, others).map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Landlock::Whole,
        Ok(RulesetStatus::PartiallyEnforced) => Landlock::Partly,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Landlock::Missing,
    }
}

fn try_restrict(
    work: &Path,
    readable: &[PathBuf],
    others: Others,
) -> Result<RestrictionStatus, RulesetError> {
    let read = AccessFs::from_read(LANDLOCK);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    // Root without namespaces could make the disk's device there.
    let own = AccessFs::from_all(LANDLOCK) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let scopes = match others {
        Others::OutOfReach => Scope::from_all(LANDLOCK),
        Others::InReach => Scope::AbstractUnixSocket.into(),
    };

    Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(scopes)?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules([work], own))?
        .restrict_self()
}
