//! Arguments of the commands that look after the store.

use std::path::PathBuf;

use clap::Subcommand;

use super::examples;
use super::rate::Rate;

/// `provider`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// List the providers that take files
    #[command(after_help = examples::PROVIDER_LIST)]
    List {
        /// Also those that take no new files, with what is known of each
        #[arg(long)]
        all: bool,
    },
    /// Try a provider out: what it can do, and whether files can be kept at it
    #[command(after_help = examples::PROVIDER_CHECK)]
    Check {
        /// A provider code, see `provider list`
        code: String,
    },
}

/// `binding`.
#[derive(Debug, Subcommand)]
pub(crate) enum BindingCommand {
    /// Bind an organization to a provider
    #[command(after_help = examples::BINDING_CREATE)]
    Create {
        /// The organization's number
        #[arg(long, value_name = "NUMBER")]
        org: i64,
        /// The organization's name
        #[arg(long)]
        name: String,
        /// A provider code, see `provider list`
        #[arg(long, value_name = "CODE")]
        provider: String,
        /// Store locally first and let the provider follow
        #[arg(long)]
        sync: bool,
    },
    /// Change an organization's active binding; what is not given stays as it is
    #[command(after_help = examples::BINDING_UPDATE)]
    Update {
        /// The organization's number
        #[arg(long, value_name = "NUMBER")]
        org: i64,
        /// The organization's new name
        #[arg(long)]
        name: Option<String>,
        /// The new provider's code, see `provider list`
        #[arg(long, value_name = "CODE")]
        provider: Option<String>,
        /// Store locally first and let the provider follow
        #[arg(long, value_name = "BOOL")]
        sync: Option<bool>,
        /// false terminates the binding, true resumes the newest terminated one
        #[arg(long, value_name = "BOOL")]
        active: Option<bool>,
    },
    /// List bindings, newest first
    #[command(after_help = examples::BINDING_LIST)]
    List {
        /// Only of this organization
        #[arg(long, value_name = "NUMBER")]
        org: Option<i64>,
    },
}

/// `key`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key, and print it this once
    #[command(after_help = examples::KEY_CREATE)]
    Create {
        /// An organization whose files the key reaches, or '*' for all; repeat it for several
        #[arg(long, value_name = "ORG", required = true)]
        org: Vec<String>,
        /// A kind of work that the key allows: read, write, delete or admin; repeat it for several
        #[arg(long, value_name = "SCOPE", required = true)]
        scope: Vec<String>,
        /// A name for people
        #[arg(long)]
        name: Option<String>,
        /// Refuse the key after so many seconds
        #[arg(long, value_name = "SECONDS")]
        expires_in: Option<u64>,
    },
    /// List keys, newest first, without their texts
    #[command(after_help = examples::KEY_LIST)]
    List,
    /// Refuse a key from now on
    #[command(after_help = examples::KEY_REVOKE)]
    Revoke {
        /// The key's id, see `key list`
        id: String,
    },
    /// Give a key another text, and print it this once
    #[command(after_help = examples::KEY_ROTATE)]
    Rotate {
        /// The key's id, see `key list`
        id: String,
        /// Accept the text before for so many seconds more
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        overlap: u64,
    },
    /// Print a text and its hash, for a server whose first key comes from its configuration
    #[command(after_help = examples::KEY_GENERATE)]
    Generate,
}

/// `purge`.
#[derive(Debug, Subcommand)]
pub(crate) enum PurgeCommand {
    /// Remove now all that is due
    #[command(after_help = examples::PURGE_RUN)]
    Run {
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// Show who deleted a purged file, what went from where, and what still has it; or verify that
    #[command(after_help = examples::PURGE_RECEIPT)]
    Receipt {
        /// A file's id
        #[arg(required_unless_present = "verify")]
        id: Option<String>,
        /// Verify the receipt in FILE, or '-' for stdin; needs no server
        #[arg(long, value_name = "FILE", conflicts_with = "id")]
        verify: Option<PathBuf>,
        /// The public key that must have signed, see `purge receipt-keys`
        #[arg(long, value_name = "HEX", requires = "verify")]
        public_key: Option<String>,
        /// The store's keys, as `purge receipt-keys --json` printed them: one of them must have signed,
        /// before it was retired
        #[arg(long, value_name = "FILE", requires = "verify", conflicts_with = "public_key")]
        keys: Option<PathBuf>,
    },
    /// List the public keys that verify receipts
    #[command(after_help = examples::PURGE_RECEIPT_KEYS)]
    ReceiptKeys {
        /// Sign with a new key from now on; those before stay listed
        #[arg(long)]
        rotate: bool,
    },
}

/// `sync`.
#[derive(Debug, Subcommand)]
pub(crate) enum SyncCommand {
    /// Do now what is waiting
    #[command(after_help = examples::SYNC_RUN)]
    Run,
    /// Queue an organization's files from before its binding
    #[command(after_help = examples::SYNC_ENQUEUE)]
    Enqueue {
        /// The organization's number
        #[arg(long, value_name = "NUMBER")]
        org: i64,
    },
    /// Queue FAILED files once more
    #[command(after_help = examples::SYNC_RETRY)]
    Retry {
        /// Only of this organization
        #[arg(long, value_name = "NUMBER")]
        org: Option<i64>,
    },
    /// Count files by sync status
    #[command(after_help = examples::SYNC_STATUS)]
    Status,
}

/// `migrate`.
#[derive(Debug, Subcommand)]
pub(crate) enum MigrateCommand {
    /// Show what a migration would move
    #[command(after_help = examples::MIGRATE_PLAN)]
    Plan(MigrateTarget),
    /// Move an organization's files to its provider
    #[command(after_help = examples::MIGRATE_RUN)]
    Run {
        #[command(flatten)]
        target: MigrateTarget,
        /// Read at most so many bytes in a second, such as 20MiB
        #[arg(long, value_name = "BYTES_PER_SECOND")]
        rate: Option<Rate>,
        /// Only say what would be moved
        #[arg(long)]
        dry_run: bool,
    },
    /// Show where an organization's files are
    #[command(after_help = examples::MIGRATE_STATUS)]
    Status {
        /// The organization's number
        #[arg(long, value_name = "NUMBER")]
        org: i64,
    },
    /// Read an organization's files at a provider and compare their digests
    #[command(after_help = examples::MIGRATE_VERIFY)]
    Verify(MigrateTarget),
}

/// The organization whose files move, and their target.
#[derive(Debug, clap::Args)]
pub(crate) struct MigrateTarget {
    /// The organization's number
    #[arg(long, value_name = "NUMBER")]
    pub(crate) org: i64,
    /// A provider code, see `provider list`
    #[arg(long, value_name = "CODE")]
    pub(crate) to: String,
}

/// `organization`.
#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationCommand {
    /// Download all files of an organization, with a manifest
    #[command(after_help = examples::ORGANIZATION_EXPORT)]
    Export {
        /// The organization, as its files name it
        org: String,
        /// The directory to write to; an export into it that was stopped is resumed
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Remove an organization for good: files, bindings, its keys' rights
    #[command(after_help = examples::ORGANIZATION_ERASE)]
    Erase {
        /// The organization, as its files name it
        org: String,
        /// Yes, erase it: nothing of it can be restored
        #[arg(long)]
        yes: bool,
    },
}

/// `fsck`.
#[derive(Debug, clap::Args)]
pub(crate) struct FsckArgs {
    /// Read every stored byte and compare its digest
    #[arg(long)]
    pub(crate) deep: bool,
    /// Set right, or aside, what is found; without it nothing is changed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Read at most so many bytes in a second, such as 50MiB
    #[arg(long, value_name = "BYTES_PER_SECOND")]
    pub(crate) pace: Option<Rate>,
    /// Look only at the bytes of this provider, see `provider list`; LOCAL is the data directory
    #[arg(long, value_name = "CODE")]
    pub(crate) provider: Option<String>,
    /// Begin anew, although an earlier check of the same kind was stopped
    #[arg(long)]
    pub(crate) restart: bool,
}

/// `variants`.
#[derive(Debug, Subcommand)]
pub(crate) enum VariantsCommand {
    /// Show what the cache holds
    #[command(after_help = examples::VARIANTS_STATUS)]
    Status,
    /// Empty the cache; variants are made again when asked for
    #[command(after_help = examples::VARIANTS_PRUNE)]
    Prune,
}

/// `signing`.
#[derive(Debug, Subcommand)]
pub(crate) enum SigningCommand {
    /// List the secrets that sign URLs
    #[command(after_help = examples::SIGNING_LIST)]
    List,
    /// Sign with a new secret; URLs of the old one stay good until they expire
    #[command(after_help = examples::SIGNING_ROTATE)]
    Rotate,
    /// Refuse all URLs of a secret at once
    #[command(after_help = examples::SIGNING_REVOKE)]
    Revoke {
        /// The name of the secret, see `signing list`
        kid: String,
    },
}
