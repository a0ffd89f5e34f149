//! Arguments of `backup`.

use std::num::NonZeroUsize;

use clap::Subcommand;

use super::examples;

/// `backup`.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Take a snapshot of the running store
    #[command(after_help = examples::BACKUP_CREATE)]
    Create {
        /// Directory (with a slash), or a name from [[backup.destinations]]
        #[arg(long, value_name = "DESTINATION")]
        to: String,
        /// List the files at providers without copying them
        #[arg(long)]
        local_only: bool,
        /// Use hard links instead of copies. The snapshot shares the disk of the store
        #[arg(long)]
        hard_links: bool,
        /// Return when the server has started the snapshot. See `backup list`
        #[arg(long)]
        detach: bool,
    },
    /// Read a snapshot and compare all digests
    #[command(after_help = examples::BACKUP_VERIFY)]
    Verify(SnapshotArgs),
    /// Restore a whole store, the files of an organization, or one file
    #[command(after_help = examples::BACKUP_RESTORE)]
    Restore {
        #[command(flatten)]
        snapshot: SnapshotArgs,
        #[command(flatten)]
        what: RestoredPart,
        /// With --all: restore the original store instead of a copy. Stop its server first
        #[arg(long, conflicts_with_all = ["org", "file"])]
        replace: bool,
        /// With --all: store the records in SQLite, even if --config names PostgreSQL
        #[arg(long, conflicts_with_all = ["org", "file"])]
        sqlite: bool,
        #[command(flatten)]
        access: RestoredKeysArgs,
    },
    /// List the snapshots of a destination
    #[command(after_help = examples::BACKUP_LIST)]
    List {
        /// Directory (with a slash), or a name from [[backup.destinations]] [default: the only
        /// configured destination]
        #[arg(long, value_name = "DESTINATION")]
        from: Option<String>,
    },
    /// Remove old snapshots
    #[command(after_help = examples::BACKUP_PRUNE)]
    Prune {
        /// Directory (with a slash), or a name from [[backup.destinations]]
        #[arg(long, value_name = "DESTINATION")]
        from: String,
        /// Number of newest snapshots to keep
        #[arg(long, value_name = "NUMBER")]
        keep: NonZeroUsize,
        /// Only show the effect, change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Forget destroyed disks and buckets, so that receipts stop naming them
    #[command(after_help = examples::BACKUP_FORGET)]
    Forget {
        /// Directory (with a slash), or a name from [[backup.destinations]]
        #[arg(long, value_name = "DESTINATION")]
        from: String,
        /// Id of the disk in receipts [default: all missing disks]
        #[arg(long, value_name = "ID")]
        disk: Option<String>,
    },
}

/// The snapshot to read.
#[derive(Debug, clap::Args)]
pub(crate) struct SnapshotArgs {
    /// Directory (with a slash), or a name from [[backup.destinations]]
    #[arg(long, value_name = "DESTINATION")]
    pub(crate) from: String,
    /// Id of the snapshot, see `backup list` [default: the newest]
    #[arg(long, value_name = "ID")]
    pub(crate) snapshot: Option<String>,
}

/// The treatment of the API keys and signing secrets in a snapshot.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct RestoredKeysArgs {
    /// With --all: revoke all API keys and signing secrets [default for a copy]
    #[arg(long, conflicts_with_all = ["org", "file"])]
    pub(crate) revoke_keys: bool,
    /// With --all: keep API keys and signing secrets valid [default with --replace]
    #[arg(long, conflicts_with_all = ["org", "file"])]
    pub(crate) keep_keys: bool,
}

/// The part to restore.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RestoredPart {
    /// Restore everything into --data-dir, which must be empty or missing
    #[arg(long)]
    pub(crate) all: bool,
    /// Restore the missing files of this organization
    #[arg(long, value_name = "ID")]
    pub(crate) org: Option<String>,
    /// Restore this file
    #[arg(long, value_name = "ID")]
    pub(crate) file: Option<String>,
}
