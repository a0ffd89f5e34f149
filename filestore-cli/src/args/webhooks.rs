//! Arguments of `webhook`.

use clap::{ArgGroup, Args, Subcommand};
use filestore_core::api::OrganizationId;
use filestore_core::config_file::Seconds;

use super::examples;
use super::organization::organization_id;

/// `webhook`.
#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Create a webhook and print its secret once
    #[command(after_help = examples::WEBHOOK_CREATE)]
    Create {
        /// URL that gets the events
        url: String,
        /// Only these types, separated by commas. `file.*` means all types that begin with `file.`
        #[arg(long, value_name = "TYPES", value_delimiter = ',')]
        types: Option<Vec<String>>,
        /// Only events of this organization
        #[arg(long, value_name = "ID", value_parser = organization_id())]
        org: Option<OrganizationId>,
        /// Name of the webhook, for your own reference
        #[arg(long)]
        name: Option<String>,
        /// Send the events after this id, or from `start` or `end` [default: end]
        #[arg(long, value_name = "ID", allow_hyphen_values = true)]
        from: Option<String>,
    },
    /// List webhooks, oldest first
    #[command(after_help = examples::WEBHOOK_LIST)]
    List,
    /// Show a webhook and the state of its deliveries
    #[command(after_help = examples::WEBHOOK_SHOW)]
    Show(WebhookIdArgs),
    /// Change the URL, name or types of a webhook
    #[command(after_help = examples::WEBHOOK_EDIT)]
    Edit(WebhookEditArgs),
    /// Give a webhook a new secret and print it once
    #[command(after_help = examples::WEBHOOK_ROTATE)]
    Rotate {
        #[command(flatten)]
        webhook: WebhookIdArgs,
        /// Time for which both secrets sign: seconds, or with a unit such as 1h
        #[arg(long, value_name = "TIME", default_value = "1d")]
        overlap: Seconds,
    },
    /// Send a test event and show the answer
    #[command(after_help = examples::WEBHOOK_PING)]
    Ping(WebhookIdArgs),
    /// List events that the endpoint did not accept at once
    #[command(after_help = examples::WEBHOOK_FAILURES)]
    Failures {
        #[command(flatten)]
        webhook: WebhookIdArgs,
        /// Only this state: waiting, held or failed
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
    },
    /// Send events again
    #[command(after_help = examples::WEBHOOK_REDELIVER)]
    Redeliver(RedeliverArgs),
    /// Send events again after a webhook was disabled
    #[command(after_help = examples::WEBHOOK_ENABLE)]
    Enable {
        #[command(flatten)]
        webhook: WebhookIdArgs,
        /// Send the events after this id, or from `start` or `end` [default: from its last event]
        #[arg(long, value_name = "ID", allow_hyphen_values = true)]
        from: Option<String>,
    },
    /// Stop sending events
    #[command(after_help = examples::WEBHOOK_DISABLE)]
    Disable(WebhookIdArgs),
    /// Delete a webhook
    #[command(after_help = examples::WEBHOOK_DELETE)]
    Delete(WebhookIdArgs),
}

/// The id of a webhook.
#[derive(Debug, Args)]
pub(crate) struct WebhookIdArgs {
    /// Id of the webhook, see `webhook list`
    pub(crate) id: String,
}

/// `webhook edit`.
#[derive(Debug, Args)]
pub(crate) struct WebhookEditArgs {
    #[command(flatten)]
    pub(crate) webhook: WebhookIdArgs,
    /// URL that gets the events
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Name of the webhook
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only these types, separated by commas. An empty text means all types
    #[arg(long, value_name = "TYPES")]
    pub(crate) types: Option<String>,
}

/// `webhook redeliver`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["event", "after", "failed"])))]
pub(crate) struct RedeliverArgs {
    #[command(flatten)]
    pub(crate) webhook: WebhookIdArgs,
    /// One event
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) event: Option<String>,
    /// All events after this id (or `start`), up to --until
    #[arg(long, value_name = "ID", allow_hyphen_values = true, requires = "until")]
    pub(crate) after: Option<String>,
    /// The last event of the range
    #[arg(long, value_name = "ID", allow_hyphen_values = true, requires = "after")]
    pub(crate) until: Option<String>,
    /// All failed events
    #[arg(long)]
    pub(crate) failed: bool,
}
