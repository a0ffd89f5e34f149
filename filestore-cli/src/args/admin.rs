//! Arguments of the commands that look after the store.

use clap::Subcommand;

use super::examples;

/// `provider`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// List the providers that take files
    #[command(after_help = examples::PROVIDER_LIST)]
    List,
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
        /// Whether to store locally first and let the provider follow
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
}

/// `sync`.
#[derive(Debug, Subcommand)]
pub(crate) enum SyncCommand {
    /// Do now what is waiting
    #[command(after_help = examples::SYNC_RUN)]
    Run,
    /// Count files by sync status
    #[command(after_help = examples::SYNC_STATUS)]
    Status,
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
