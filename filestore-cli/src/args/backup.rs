//! Arguments of `backup`.

use std::num::NonZeroUsize;

use clap::Subcommand;

use super::examples;

/// `backup`.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Take a snapshot of the store, which goes on running
    #[command(after_help = examples::BACKUP_CREATE)]
    Create {
        /// A directory, with a slash in it, or a destination of the server's configuration
        #[arg(long, value_name = "DESTINATION")]
        to: String,
        /// Only note files that providers hold, and do not copy them
        #[arg(long)]
        local_only: bool,
        /// Give files second names instead of copying them; they share the disk of the store
        #[arg(long)]
        hard_links: bool,
    },
    /// Read a whole snapshot and compare every digest
    #[command(after_help = examples::BACKUP_VERIFY)]
    Verify(SnapshotArgs),
    /// Restore a whole store, an organization's files, or one file
    #[command(after_help = examples::BACKUP_RESTORE)]
    Restore {
        #[command(flatten)]
        snapshot: SnapshotArgs,
        #[command(flatten)]
        what: RestoredPart,
        /// With --all: restore the store itself, which must not run any more, instead of a copy
        #[arg(long, requires = "all")]
        replace: bool,
    },
    /// List the snapshots of a destination
    #[command(after_help = examples::BACKUP_LIST)]
    List {
        /// A directory, with a slash in it, or a destination of the server's configuration
        #[arg(long, value_name = "DESTINATION")]
        from: String,
    },
    /// Remove all but the newest snapshots
    #[command(after_help = examples::BACKUP_PRUNE)]
    Prune {
        /// A directory, with a slash in it, or a destination of the server's configuration
        #[arg(long, value_name = "DESTINATION")]
        from: String,
        /// Number of snapshots to keep
        #[arg(long, value_name = "NUMBER")]
        keep: NonZeroUsize,
    },
    /// Forget disks and buckets that had snapshots and are gone, so that receipts do not name them
    #[command(after_help = examples::BACKUP_FORGET)]
    Forget {
        /// A directory, with a slash in it, or a destination of the server's configuration
        #[arg(long, value_name = "DESTINATION")]
        from: String,
        /// The id of the disk, as receipts show it [default: all that are not there]
        #[arg(long, value_name = "ID")]
        disk: Option<String>,
    },
}

/// The snapshot that is read.
#[derive(Debug, clap::Args)]
pub(crate) struct SnapshotArgs {
    /// A directory, with a slash in it, or a destination of the server's configuration
    #[arg(long, value_name = "DESTINATION")]
    pub(crate) from: String,
    /// The snapshot's id, see `backup list` [default: the newest]
    #[arg(long, value_name = "ID")]
    pub(crate) snapshot: Option<String>,
}

/// The part that is restored.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RestoredPart {
    /// Everything, into the empty or absent directory that --data-dir names
    #[arg(long)]
    pub(crate) all: bool,
    /// The files of this organization that the store has not any more
    #[arg(long, value_name = "ID")]
    pub(crate) org: Option<String>,
    /// This file, under its id
    #[arg(long, value_name = "ID")]
    pub(crate) file: Option<String>,
}
