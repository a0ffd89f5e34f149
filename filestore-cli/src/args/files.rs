//! Arguments of the commands on files.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use filestore_core::api::{
    Disposition, Fit, ListOrder, MAX_SHEET_FILES, Metadata, PurgeStatus, Status, SyncStatus,
    VARIANT_SIZES,
};
use filestore_core::config_file::{ByteCount, Seconds};

use crate::store::{ByteRange, IfMatch};

/// The organization and the sub-system of files.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// Organization of the file: 1 to 64 letters, digits, _ and -
    #[arg(long, env = "FILESTORE_ORG", hide_env_values = true, value_name = "ID")]
    pub(crate) org: String,
    /// Sub-system: a part of your application, for example gallery
    #[arg(long, env = "FILESTORE_SUB", hide_env_values = true, value_name = "NAME")]
    pub(crate) sub: String,
}

/// `upload`.
#[derive(Debug, Args)]
pub(crate) struct UploadArgs {
    /// Files to upload (- is stdin)
    #[arg(required_unless_present = "recursive", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Upload all files below this directory. Can be resumed
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["files", "name", "mime", "metadata", "temp", "sha256", "idempotency_key"]
    )]
    pub(crate) recursive: Option<PathBuf>,
    /// Number of parallel uploads with --recursive
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        requires = "recursive",
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub(crate) jobs: u16,
    /// Journal file of --recursive [default: a file in your state directory]
    #[arg(long, value_name = "PATH", requires = "recursive")]
    pub(crate) journal: Option<PathBuf>,
    /// Name to store [default: the name of the file]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Media type [default: detected from the content]
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// Custom metadata: a JSON object of up to 4 KiB, for example '{"customer": 7}'
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) metadata: Option<Metadata>,
    /// Store a temporary file, which expires unless you use `ready` or `thumbnail`
    #[arg(long)]
    pub(crate) temp: bool,
    /// Require this SHA-256, or store no file
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// Idempotency key: a retry with this key within 24 h returns the first record
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// `batch`.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// Files to upload
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Custom metadata for each file: a JSON object of up to 4 KiB
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) metadata: Option<Metadata>,
    /// Idempotency key: a retry with this key within 24 h returns the first records
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// The output of a download.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Output file or directory (- is stdout) [default: the name of the file]
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, short)]
    pub(crate) force: bool,
}

/// `get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Ids of the files. For several files, --output must be a directory [default: the current one]
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Range of bytes: 0-99, 100- or -100 (the last 100)
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    pub(crate) range: Option<ByteRange>,
}

/// `variant`.
#[derive(Debug, Args)]
pub(crate) struct VariantArgs {
    /// Id of the image
    pub(crate) id: String,
    /// Side of the square, in pixels
    #[arg(value_parser = PossibleValuesParser::new(SIZES).map(|size| parse_size(&size)))]
    pub(crate) size: u32,
    /// Crop the image to the square, or show the whole image
    #[arg(long, value_enum, default_value_t = FitArg::Cover)]
    pub(crate) fit: FitArg,
    /// Include all frames of an animation, if the server supports animated variants
    #[arg(long)]
    pub(crate) animated: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `sheet`.
#[derive(Debug, Args)]
pub(crate) struct SheetArgs {
    /// Ids of up to 100 images, in order
    #[arg(required = true, num_args = 1..=MAX_SHEET_FILES)]
    pub(crate) ids: Vec<String>,
    /// Side of each cell, in pixels
    #[arg(long, default_value = "200", value_parser = PossibleValuesParser::new(SIZES).map(|size| parse_size(&size)))]
    pub(crate) size: u32,
    /// Crop each image to its cell, or show the whole image
    #[arg(long, value_enum, default_value_t = FitArg::Cover)]
    pub(crate) fit: FitArg,
    /// Print the positions of the images instead of downloading the sheet
    #[arg(long, conflicts_with_all = ["output", "force"])]
    pub(crate) map: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// [`VARIANT_SIZES`] as clap needs them. A test compares the two.
const SIZES: [&str; VARIANT_SIZES.len()] = ["200", "250", "300", "400", "500", "700", "1000"];

fn parse_size(text: &str) -> u32 {
    text.parse().expect("clap accepts only the sizes above")
}

/// The way to fit an image into the square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitArg {
    /// Fill the square and crop around the centre
    Cover,
    /// Show the whole image inside the square
    Inside,
}

impl From<FitArg> for Fit {
    fn from(arg: FitArg) -> Self {
        match arg {
            FitArg::Cover => Self::Cover,
            FitArg::Inside => Self::Inside,
        }
    }
}

/// The argument of commands for one file.
#[derive(Debug, Args)]
pub(crate) struct IdArgs {
    /// Id of the file
    pub(crate) id: String,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only files of this organization
    #[arg(long, value_name = "ID")]
    pub(crate) org: Option<String>,
    /// Only files of this sub-system
    #[arg(long, value_name = "NAME")]
    pub(crate) sub: Option<String>,
    /// Only files in this status
    #[arg(long, value_enum)]
    pub(crate) status: Option<StatusArg>,
    /// Only files with this sync status. `info` shows the reason of a failure
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) sync_status: Option<SyncStatusArg>,
    /// Only deleted files [default: no deleted files]
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) purge_status: Option<PurgeStatusArg>,
    /// Only files with this name prefix. With --org, sorted by name
    #[arg(long, value_name = "TEXT")]
    pub(crate) name_prefix: Option<String>,
    /// Only files with this text in their name, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub(crate) name_contains: Option<String>,
    /// Only files of this media type
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// Only files created at or after this time: 2026-11-21 or 2026-11-21T08:15:30Z
    #[arg(long, value_name = "TIME")]
    pub(crate) created_after: Option<String>,
    /// Only files created before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) created_before: Option<String>,
    /// Only files with this custom metadata. Can be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = member)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Order of the files [default: newest first, or by name with --name-prefix and --org]
    #[arg(long, value_enum, value_name = "ORDER", conflicts_with = "name_prefix")]
    pub(crate) order: Option<OrderArg>,
    /// Only this file, deleted or not. Can be repeated, up to 100 times
    #[arg(long = "id", value_name = "ID", conflicts_with_all = ["org", "sub", "status", "sync_status", "purge_status",
        "name_prefix", "name_contains", "mime", "created_after", "created_before", "metadata", "limit", "cursor",
        "order", "all"])]
    pub(crate) ids: Vec<String>,
    /// Files per page, 1 to 1000 [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Continue after the page with this next_cursor
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    pub(crate) cursor: Option<String>,
    /// Show all pages. With --json, one record per line
    #[arg(long)]
    pub(crate) all: bool,
}

/// A page of a list, or all pages.
#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// Rows per page, 1 to 1000 [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Continue after the page with this next_cursor
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    pub(crate) cursor: Option<String>,
    /// Show all pages. With --json, one row per line
    #[arg(long)]
    pub(crate) all: bool,
}

/// Parses `KEY=VALUE`. The first equals sign separates the two.
fn member(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or("use a key and a value, for example customer=7")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// `list --status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum StatusArg {
    Temp,
    Thumbnail,
    Ready,
}

impl From<StatusArg> for Status {
    fn from(arg: StatusArg) -> Self {
        match arg {
            StatusArg::Temp => Self::Temp,
            StatusArg::Thumbnail => Self::Thumbnail,
            StatusArg::Ready => Self::Ready,
        }
    }
}

/// `list --sync-status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum SyncStatusArg {
    None,
    Pending,
    Syncing,
    Synced,
    Failed,
}

impl From<SyncStatusArg> for SyncStatus {
    fn from(arg: SyncStatusArg) -> Self {
        match arg {
            SyncStatusArg::None => Self::None,
            SyncStatusArg::Pending => Self::Pending,
            SyncStatusArg::Syncing => Self::Syncing,
            SyncStatusArg::Synced => Self::Synced,
            SyncStatusArg::Failed => Self::Failed,
        }
    }
}

/// `list --order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    /// Newest first
    Newest,
    /// Oldest first
    Oldest,
    /// Latest deletion first, with --purge-status
    Deleted,
}

impl From<OrderArg> for ListOrder {
    fn from(arg: OrderArg) -> Self {
        match arg {
            OrderArg::Newest => Self::Newest,
            OrderArg::Oldest => Self::Oldest,
            OrderArg::Deleted => Self::Deleted,
        }
    }
}

/// `list --purge-status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum PurgeStatusArg {
    SystemPurge,
}

impl From<PurgeStatusArg> for PurgeStatus {
    fn from(PurgeStatusArg::SystemPurge: PurgeStatusArg) -> Self {
        Self::SystemPurge
    }
}

/// `ready`.
#[derive(Debug, Args)]
pub(crate) struct ReadyArgs {
    /// Id of the file
    pub(crate) id: String,
    /// File with new bytes (- is stdin)
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) description: DescriptionArgs,
    #[command(flatten)]
    pub(crate) condition: ConditionArgs,
}

/// `replace`.
#[derive(Debug, Args)]
pub(crate) struct ReplaceArgs {
    /// Id of the file
    pub(crate) id: String,
    /// File with the new bytes (- is stdin)
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) description: DescriptionArgs,
    #[command(flatten)]
    pub(crate) condition: ConditionArgs,
}

/// The description of new bytes, which the argument `file` names.
#[derive(Debug, Args)]
pub(crate) struct DescriptionArgs {
    /// Name to store [default: the name of FILE]
    #[arg(long, requires = "file")]
    pub(crate) name: Option<String>,
    /// Media type of FILE [default: detected from the content]
    #[arg(long = "type", value_name = "TYPE", id = "mime", requires = "file")]
    pub(crate) mime: Option<String>,
    /// Custom metadata to store with FILE [default: the old custom metadata stays]
    #[arg(long, value_name = "JSON", value_parser = object, requires = "file")]
    pub(crate) metadata: Option<Metadata>,
}

/// The condition of a change.
#[derive(Debug, Args)]
pub(crate) struct ConditionArgs {
    /// Change the file only if its content has this SHA-256 (* is any content)
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_match: Option<IfMatch>,
}

/// `edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Id of the file
    pub(crate) id: String,
    /// New name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// New media type
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// Custom metadata to change: null removes a member, and other members stay
    #[arg(long, value_name = "JSON", value_parser = object, conflicts_with = "clear_metadata")]
    pub(crate) metadata: Option<Metadata>,
    /// Remove all custom metadata
    #[arg(long)]
    pub(crate) clear_metadata: bool,
    #[command(flatten)]
    pub(crate) condition: ConditionArgs,
}

/// Parses a JSON object.
fn object(text: &str) -> Result<Metadata, String> {
    serde_json::from_str(text)
        .map_err(|e| format!("use a JSON object, for example {{\"a\": 1}}: {e}"))
}

/// `delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Ids of the files (- reads them from stdin)
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Delete only if the content has this SHA-256. Needs a single id
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_match: Option<IfMatch>,
    /// Only show the effect, change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Ids of the files (- reads them from stdin)
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

/// `sign`.
#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// Id of the file
    pub(crate) id: String,
    /// Side of a variant in pixels [default: sign the file itself]
    #[arg(long, value_parser = PossibleValuesParser::new(SIZES).map(|size| parse_size(&size)))]
    pub(crate) size: Option<u32>,
    /// Crop the image to the square, or show the whole image
    #[arg(
        long,
        requires = "size",
        value_parser = PossibleValuesParser::new(["cover", "inside"]).map(|fit| parse_word::<Fit>(&fit))
    )]
    pub(crate) fit: Option<Fit>,
    /// Include all frames of an animation, if the server supports animated variants
    #[arg(long, requires = "size")]
    pub(crate) animated: bool,
    /// Make browsers save the file (attachment) or show it (inline)
    #[arg(
        long,
        conflicts_with = "size",
        value_parser = PossibleValuesParser::new(["attachment", "inline"])
            .map(|how| parse_word::<Disposition>(&how))
    )]
    pub(crate) disposition: Option<Disposition>,
    /// Let no shared cache keep the reply
    #[arg(long)]
    pub(crate) private: bool,
    /// Make the server send the file itself, without a redirect to a provider
    #[arg(long, conflicts_with = "size")]
    pub(crate) no_redirect: bool,
    /// Lifetime of the URL, up to 7d: seconds, or with a unit such as 10m [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_in: Option<Seconds>,
}

/// `sign-upload`.
#[derive(Debug, Args)]
pub(crate) struct SignUploadArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Maximum size of the file: bytes, or with a unit such as 5MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<ByteCount>,
    /// Media type of the file [default: detected from the content]
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// Store a temporary file, which expires unless you use `ready` or `thumbnail`
    #[arg(long)]
    pub(crate) temp: bool,
    /// Sign a URL for a resumable upload (Uppy, tus, iOS) instead of a form
    #[arg(long)]
    pub(crate) resumable: bool,
    /// Sign this many URLs, for one file each, 1 to 100 [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) count: Option<u32>,
    /// Lifetime of the URL, up to 7d: seconds, or with a unit such as 10m [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_in: Option<Seconds>,
}

/// Parses a word that clap has checked.
fn parse_word<T: FromStr>(text: &str) -> T {
    text.parse().ok().expect("clap accepts only these words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_offered_are_those_of_the_service() {
        assert_eq!(SIZES.map(|size| size.parse::<u32>().unwrap()), VARIANT_SIZES);
    }
}
