//! Arguments of the administration commands.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::StyledStr;
use filestore_core::api::{KEY_SCOPES, OrganizationId, OrganizationNumber};
use filestore_core::config_file::Seconds;

use super::examples;
use super::files::PageArgs;
use super::organization::{OrganizationArgs, organization_id, organization_number};
use super::rate::Rate;

/// `provider`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// List the providers that accept new files
    #[command(after_help = examples::PROVIDER_LIST)]
    List {
        /// Include inactive providers, and show the state of each
        #[arg(long)]
        all: bool,
    },
    /// Test a provider with objects of its own
    #[command(after_help = examples::PROVIDER_CHECK)]
    Check {
        /// Provider code, see `provider list`
        code: String,
    },
}

/// `binding`.
#[derive(Debug, Subcommand)]
pub(crate) enum BindingCommand {
    /// Bind an organization to a provider
    #[command(after_help = examples::BINDING_CREATE)]
    Create {
        /// Number of the organization
        #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
        org: OrganizationNumber,
        /// Name of the organization
        #[arg(long)]
        name: String,
        /// Provider code, see `provider list`
        #[arg(long, value_name = "CODE")]
        provider: String,
        /// Store uploads locally and copy them to the provider in the background
        #[arg(long)]
        sync: bool,
    },
    /// Change the active binding of an organization
    #[command(after_help = examples::BINDING_UPDATE)]
    Update {
        /// Number of the organization
        #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
        org: OrganizationNumber,
        /// New name of the organization
        #[arg(long)]
        name: Option<String>,
        /// New provider code, see `provider list`
        #[arg(long, value_name = "CODE")]
        provider: Option<String>,
        /// Store uploads locally and copy them to the provider in the background
        #[arg(long, value_name = "BOOL")]
        sync: Option<bool>,
        /// Terminate the binding (false), or resume the newest terminated binding (true)
        #[arg(long, value_name = "BOOL")]
        active: Option<bool>,
    },
    /// List bindings, newest first
    #[command(after_help = examples::BINDING_LIST)]
    List {
        /// Only bindings of this organization
        #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
        org: Option<OrganizationNumber>,
    },
}

/// `key`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create an API key and print its secret once
    #[command(after_help = examples::KEY_CREATE)]
    Create {
        /// Organization that the key can access, or '*' for all. Can be repeated
        #[arg(long, value_name = "ORG", required = true)]
        org: Vec<String>,
        #[arg(long, value_name = "SCOPE", required = true, help = scope_help())]
        scope: Vec<String>,
        /// Name of the key, for your own reference
        #[arg(long)]
        name: Option<String>,
        /// Time until the key expires: seconds, or with a unit such as 30d [default: never]
        #[arg(long, value_name = "TIME")]
        expires_in: Option<Seconds>,
    },
    /// List API keys without their secrets, newest first
    #[command(after_help = examples::KEY_LIST)]
    List,
    /// Revoke a key
    #[command(after_help = examples::KEY_REVOKE)]
    Revoke {
        /// Id of the key, see `key list`
        id: String,
    },
    /// Give a key a new secret and print it once
    #[command(after_help = examples::KEY_ROTATE)]
    Rotate {
        /// Id of the key, see `key list`
        id: String,
        /// Time for which the old secret stays valid: seconds, or with a unit such as 1h
        #[arg(long, value_name = "TIME", default_value = "0")]
        overlap: Seconds,
    },
    /// Print a new secret and its hash, for the configuration of a new server
    #[command(after_help = examples::KEY_GENERATE)]
    Generate,
}

/// Returns the help text of `key create --scope`, with all scopes that exist.
fn scope_help() -> StyledStr {
    let mut help = StyledStr::new();
    let scopes = KEY_SCOPES.join(", ");
    write!(help, "Right that the key has: {scopes}. Can be repeated").expect("it is in memory");
    help
}

/// `uploads`.
#[derive(Debug, Subcommand)]
pub(crate) enum UploadsCommand {
    /// List resumable uploads, oldest first
    #[command(after_help = examples::UPLOADS_LIST)]
    List {
        /// Only uploads of this organization [default: all organizations]
        #[arg(long, value_name = "ID", value_parser = organization_id())]
        org: Option<OrganizationId>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a resumable upload
    #[command(after_help = examples::UPLOADS_SHOW)]
    Show {
        /// Id of the upload, see `uploads list`
        id: String,
    },
    /// Cancel a resumable upload and remove its bytes
    #[command(after_help = examples::UPLOADS_CANCEL)]
    Cancel {
        /// Id of the upload, see `uploads list`
        id: String,
    },
}

/// `purge`.
#[derive(Debug, Subcommand)]
pub(crate) enum PurgeCommand {
    /// Remove deleted files for good
    #[command(after_help = examples::PURGE_RUN)]
    Run(PurgeRunArgs),
    /// Show or verify the signed receipt of a purged file
    #[command(after_help = examples::PURGE_RECEIPT)]
    Receipt {
        /// Id of the file
        #[arg(required_unless_present = "verify")]
        id: Option<String>,
        /// Verify the receipt in FILE (- is stdin). Needs no server
        #[arg(long, value_name = "FILE", conflicts_with = "id")]
        verify: Option<PathBuf>,
        /// Require a signature by this public key, see `purge receipt-keys`
        #[arg(long, value_name = "HEX", requires = "verify")]
        public_key: Option<String>,
        /// Require a signature by a key of the store: FILE is the output of `purge receipt-keys
        /// --json`
        #[arg(long, value_name = "FILE", requires = "verify", conflicts_with = "public_key")]
        keys: Option<PathBuf>,
    },
    /// List the public keys that verify receipts
    #[command(after_help = examples::PURGE_RECEIPT_KEYS)]
    ReceiptKeys {
        /// Create a new key for new receipts. Old keys stay in the list
        #[arg(long)]
        rotate: bool,
    },
}

/// `purge run`.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeRunArgs {
    /// Only show the effect, change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove deleted files without a grace period. They cannot be restored
    #[arg(long)]
    pub(crate) now: bool,
    /// Remove only files of this organization
    #[arg(long, value_name = "ORG")]
    pub(crate) org: Option<String>,
}

/// `sync`.
#[derive(Debug, Subcommand)]
pub(crate) enum SyncCommand {
    /// Copy all pending files now
    #[command(after_help = examples::SYNC_RUN)]
    Run,
    /// Queue the files from before the binding
    #[command(after_help = examples::SYNC_ENQUEUE)]
    Enqueue {
        /// Number of the organization
        #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
        org: OrganizationNumber,
    },
    /// Queue FAILED files again
    #[command(after_help = examples::SYNC_RETRY)]
    Retry {
        /// Only files of this organization
        #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
        org: Option<OrganizationNumber>,
    },
    /// Count files by sync status
    #[command(after_help = examples::SYNC_STATUS)]
    Status {
        /// Only files of this organization
        #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
        org: Option<OrganizationNumber>,
    },
}

/// `migrate`.
#[derive(Debug, Subcommand)]
pub(crate) enum MigrateCommand {
    /// Show the effect of a migration
    #[command(after_help = examples::MIGRATE_PLAN)]
    Plan(MigrateTarget),
    /// Move the files of an organization to its provider
    #[command(after_help = examples::MIGRATE_RUN)]
    Run {
        #[command(flatten)]
        target: MigrateTarget,
        /// Limit for reading, in bytes per second, for example 20MiB [default: no limit]
        #[arg(long, value_name = "BYTES_PER_SECOND")]
        rate: Option<Rate>,
        /// Only show the effect, change nothing
        #[arg(long)]
        dry_run: bool,
        /// Return when the server has started the migration. See `migrate status`
        #[arg(long, conflicts_with = "dry_run")]
        detach: bool,
    },
    /// Show the providers of an organization's files
    #[command(after_help = examples::MIGRATE_STATUS)]
    Status {
        /// Number of the organization
        #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
        org: OrganizationNumber,
    },
    /// Read the files at a provider and compare their digests
    #[command(after_help = examples::MIGRATE_VERIFY)]
    Verify(MigrateTarget),
}

/// The organization, and the target of its files.
#[derive(Debug, clap::Args)]
pub(crate) struct MigrateTarget {
    /// Number of the organization
    #[arg(long, value_name = "NUMBER", value_parser = organization_number())]
    pub(crate) org: OrganizationNumber,
    /// Provider code, see `provider list`
    #[arg(long, value_name = "CODE")]
    pub(crate) to: String,
}

/// `organization`.
#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationCommand {
    /// List organizations with their files and bytes
    #[command(after_help = examples::ORGANIZATION_LIST)]
    List(PageArgs),
    /// List the sub-systems of an organization with their files and bytes
    #[command(after_help = examples::ORGANIZATION_SUB_SYSTEMS)]
    SubSystems {
        #[command(flatten)]
        org: OrganizationArgs,
        #[command(flatten)]
        pages: PageArgs,
    },
    /// Download all files of an organization, with a manifest
    #[command(after_help = examples::ORGANIZATION_EXPORT)]
    Export {
        #[command(flatten)]
        org: OrganizationArgs,
        /// Output directory. If it contains an incomplete export, the command resumes it
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Remove an organization for good: files, bindings and key rights
    #[command(after_help = examples::ORGANIZATION_ERASE)]
    Erase {
        #[command(flatten)]
        org: OrganizationArgs,
        /// Confirm the erasure, which cannot be undone
        #[arg(long)]
        yes: bool,
        /// Only show the effect, change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// `fsck`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct FsckArgs {
    /// Read every stored byte and compare its digest
    #[arg(long)]
    pub(crate) deep: bool,
    /// Repair or quarantine the findings [default: only report them]
    #[arg(long)]
    pub(crate) repair: bool,
    /// Limit for reading, in bytes per second, for example 50MiB [default: no limit]
    #[arg(long, value_name = "BYTES_PER_SECOND")]
    pub(crate) pace: Option<Rate>,
    /// Check only this provider, see `provider list`. LOCAL is the data directory
    #[arg(long, value_name = "CODE")]
    pub(crate) provider: Option<String>,
    /// Start from the beginning instead of resuming a stopped check
    #[arg(long)]
    pub(crate) restart: bool,
    /// Return when the server has started the check. See --status
    #[arg(long)]
    pub(crate) detach: bool,
    /// Show the running check and the last results, check nothing
    #[arg(long, conflicts_with_all = ["deep", "repair", "pace", "provider", "restart", "detach"])]
    pub(crate) status: bool,
}

/// `variants`.
#[derive(Debug, Subcommand)]
pub(crate) enum VariantsCommand {
    /// Show the content of the cache
    #[command(after_help = examples::VARIANTS_STATUS)]
    Status,
    /// Empty the cache. filestore makes variants again on demand
    #[command(after_help = examples::VARIANTS_PRUNE)]
    Prune,
}

/// `signing`.
#[derive(Debug, Subcommand)]
pub(crate) enum SigningCommand {
    /// List the secrets that sign URLs
    #[command(after_help = examples::SIGNING_LIST)]
    List,
    /// Sign new URLs with a new secret. Old URLs work until they expire
    #[command(after_help = examples::SIGNING_ROTATE)]
    Rotate,
    /// Revoke a secret, and refuse all URLs that it signed
    #[command(after_help = examples::SIGNING_REVOKE)]
    Revoke {
        /// Name of the secret, see `signing list`
        kid: String,
    },
}
