//! Arguments of the commands on files.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use filestore_core::api::{
    Disposition, Fit, MAX_SHEET_FILES, Metadata, PurgeStatus, Status, VARIANT_SIZES,
};

use crate::target::{ByteRange, IfMatch};

/// The organization and sub-system of files.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// The organization of the file: 1 to 64 letters, digits, _ and -
    #[arg(long, value_name = "ID")]
    pub(crate) org: String,
    /// For which part of the application
    #[arg(long, value_name = "NAME")]
    pub(crate) sub: String,
}

/// `upload`.
#[derive(Debug, Args)]
pub(crate) struct UploadArgs {
    /// The files; - is stdin
    #[arg(required_unless_present = "recursive", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Upload every file below this directory; can be interrupted and run again
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["files", "name", "mime", "metadata", "temp", "sha256", "idempotency_key"]
    )]
    pub(crate) recursive: Option<PathBuf>,
    /// Files in flight at once, with --recursive
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        requires = "recursive",
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub(crate) jobs: u16,
    /// Where --recursive remembers what is done [default: in the state directory of the user]
    #[arg(long, value_name = "PATH", requires = "recursive")]
    pub(crate) journal: Option<PathBuf>,
    /// The name to store, rather than the file's
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The media type, rather than what the bytes say
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// An object to keep with the file, such as '{"customer": 7}', of at most 4 KiB
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) metadata: Option<Metadata>,
    /// Temporary: expires unless it is made ready or a thumbnail
    #[arg(long)]
    pub(crate) temp: bool,
    /// Refuse bytes that do not have this SHA-256
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// Makes a repeated upload answer the first one's record (24 h)
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// `batch`.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// An object to keep with each of the files
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) metadata: Option<Metadata>,
    /// Makes a repeated batch answer the first one's records (24 h)
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// The place a download goes to.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// A file or directory to write to; - is stdout [default: the file's name, in this directory]
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite a file that exists
    #[arg(long, short)]
    pub(crate) force: bool,
}

/// `get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The file's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Only these bytes: 0-99, 100- or -100 (the last 100)
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    pub(crate) range: Option<ByteRange>,
}

/// `variant`.
#[derive(Debug, Args)]
pub(crate) struct VariantArgs {
    /// The image's id
    pub(crate) id: String,
    /// The side of the square in pixels
    #[arg(value_parser = PossibleValuesParser::new(SIZES).map(|size| parse_size(&size)))]
    pub(crate) size: u32,
    /// Fill the square and crop, or show the whole picture
    #[arg(long, value_enum, default_value_t = FitArg::Cover)]
    pub(crate) fit: FitArg,
    /// Show all frames of an animation, where the server makes such variants
    #[arg(long)]
    pub(crate) animated: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `sheet`.
#[derive(Debug, Args)]
pub(crate) struct SheetArgs {
    /// The images' ids, up to 100, in their order
    #[arg(required = true, num_args = 1..=MAX_SHEET_FILES)]
    pub(crate) ids: Vec<String>,
    /// The side of each cell in pixels
    #[arg(long, default_value = "200", value_parser = PossibleValuesParser::new(SIZES).map(|size| parse_size(&size)))]
    pub(crate) size: u32,
    /// Fill each cell and crop, or show the whole pictures
    #[arg(long, value_enum, default_value_t = FitArg::Cover)]
    pub(crate) fit: FitArg,
    /// Print the map of the cells as JSON, and make no picture
    #[arg(long, conflicts_with_all = ["output", "force"])]
    pub(crate) map: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// [`VARIANT_SIZES`] as clap wants them; a test keeps the two equal.
const SIZES: [&str; VARIANT_SIZES.len()] = ["200", "250", "300", "400", "500", "700", "1000"];

fn parse_size(text: &str) -> u32 {
    text.parse().expect("only the sizes above are let through")
}

/// The way a picture is fitted into the square.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitArg {
    /// Fill the square, crop the centre
    Cover,
    /// Keep the whole picture within the square
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

/// Commands on one file.
#[derive(Debug, Args)]
pub(crate) struct IdArgs {
    /// The file's id
    pub(crate) id: String,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only files of this organization
    #[arg(long, value_name = "ID")]
    pub(crate) org: Option<String>,
    /// Only files of this part of the application
    #[arg(long, value_name = "NAME")]
    pub(crate) sub: Option<String>,
    /// Only files in this status
    #[arg(long, value_enum)]
    pub(crate) status: Option<StatusArg>,
    /// Only deleted files, which are left out otherwise
    #[arg(long, value_enum, value_name = "STATUS")]
    pub(crate) purge_status: Option<PurgeStatusArg>,
    /// Only files whose name begins so; with --org they come by name
    #[arg(long, value_name = "TEXT")]
    pub(crate) name_prefix: Option<String>,
    /// Only files of this media type
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// Only files created at this time or later: a date, or as 2026-11-21T08:15:30Z
    #[arg(long, value_name = "TIME")]
    pub(crate) created_after: Option<String>,
    /// Only files created before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) created_before: Option<String>,
    /// Only files with this member in their metadata; can be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = member)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Files on a page, 1 to 1000 [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Go on where a page ended (its next_cursor)
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
    pub(crate) cursor: Option<String>,
    /// All pages; with --json one record per line
    #[arg(long)]
    pub(crate) all: bool,
}

/// Reads `KEY=VALUE`; the first equals sign parts the two.
fn member(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it is a key and a value, as customer=7")?;
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
    /// The file's id
    pub(crate) id: String,
    /// New bytes to promote it with; - is stdin
    pub(crate) file: Option<PathBuf>,
    /// The name to store, rather than that of FILE
    #[arg(long, requires = "file")]
    pub(crate) name: Option<String>,
    /// The media type of FILE, rather than what the bytes say
    #[arg(long = "type", value_name = "TYPE", id = "mime", requires = "file")]
    pub(crate) mime: Option<String>,
    /// The object to keep with FILE, rather than the one that the file has
    #[arg(long, value_name = "JSON", value_parser = object, requires = "file")]
    pub(crate) metadata: Option<Metadata>,
    /// Only if the file's content has this SHA-256 now
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_match: Option<IfMatch>,
}

/// `replace`.
#[derive(Debug, Args)]
pub(crate) struct ReplaceArgs {
    /// The file's id
    pub(crate) id: String,
    /// The new bytes; - is stdin
    pub(crate) file: PathBuf,
    /// The name to store, rather than that of FILE
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The media type of FILE, rather than what the bytes say
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// The new object to keep with the file, rather than the one it has
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) metadata: Option<Metadata>,
    /// Only if the file's content has this SHA-256 now
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_match: Option<IfMatch>,
}

/// `edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The file's id
    pub(crate) id: String,
    /// The new name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The new media type
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// The new object, in the place of the old one; '{}' removes it
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) metadata: Option<Metadata>,
    /// Only if the file's content has this SHA-256 now
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_match: Option<IfMatch>,
}

/// Reads a JSON object.
fn object(text: &str) -> Result<Metadata, String> {
    serde_json::from_str(text)
        .map_err(|e| format!("it is a JSON object, such as {{\"a\": 1}}: {e}"))
}

/// `delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The files' ids
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Only if the file's content has this SHA-256 now; for one file
    #[arg(long, value_name = "SHA256")]
    pub(crate) if_match: Option<IfMatch>,
}

/// `sign`.
#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// The file's id
    pub(crate) id: String,
    /// A variant of this many pixels a side, rather than the file itself
    #[arg(long, value_parser = PossibleValuesParser::new(SIZES).map(|size| parse_size(&size)))]
    pub(crate) size: Option<u32>,
    /// Fill the square and crop, or show the whole picture
    #[arg(
        long,
        requires = "size",
        value_parser = PossibleValuesParser::new(["cover", "inside"]).map(|fit| parse_word::<Fit>(&fit))
    )]
    pub(crate) fit: Option<Fit>,
    /// Show all frames of an animation, where the server makes such variants
    #[arg(long, requires = "size")]
    pub(crate) animated: bool,
    /// Let a browser save the file, or show it
    #[arg(
        long,
        conflicts_with = "size",
        value_parser = PossibleValuesParser::new(["attachment", "inline"])
            .map(|how| parse_word::<Disposition>(&how))
    )]
    pub(crate) disposition: Option<Disposition>,
    /// Life of the URL, at most 604800 (7 days) [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) expires_in: Option<u64>,
}

/// `sign-upload`.
#[derive(Debug, Args)]
pub(crate) struct SignUploadArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The most bytes the file may have
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_size: Option<u64>,
    /// The media type the file will have
    #[arg(long = "type", value_name = "TYPE", id = "mime")]
    pub(crate) mime: Option<String>,
    /// Temporary: expires unless it is made ready or a thumbnail
    #[arg(long)]
    pub(crate) temp: bool,
    /// Life of the URL, at most 604800 (7 days) [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) expires_in: Option<u64>,
}

/// Reads a word that clap has checked.
fn parse_word<T: FromStr>(text: &str) -> T {
    text.parse().ok().expect("clap takes only these words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_offered_are_those_of_the_service() {
        assert_eq!(SIZES.map(|size| size.parse::<u32>().unwrap()), VARIANT_SIZES);
    }
}
