//! Arguments of `events`.

use clap::Args;
use filestore_core::api::OrganizationId;

use super::organization::organization_id;

/// `events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Print each new event, until you press Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only events after this one, oldest first: an id, `start` or `end`
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) after: Option<String>,
    /// Only these types, separated by commas. `file.*` means all types that begin with `file.`
    #[arg(long, value_name = "TYPES")]
    pub(crate) types: Option<String>,
    /// Only events of this organization
    #[arg(long, value_name = "ID", value_parser = organization_id())]
    pub(crate) org: Option<OrganizationId>,
    /// Events per page, 1 to 1000 [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Show all events that are kept, oldest first
    #[arg(long, conflicts_with = "follow")]
    pub(crate) all: bool,
}
