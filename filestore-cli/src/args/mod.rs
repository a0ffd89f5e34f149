//! The command line. Parsing only validates: what a command does is in `command`.

mod files;
mod admin;
mod backup;
mod metadata;
mod rate;
mod examples;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::target::Address;

pub(crate) use admin::{
    BindingCommand, FsckArgs, KeyCommand, MigrateCommand, MigrateTarget, OrganizationCommand,
    ProviderCommand, PurgeCommand, SigningCommand, SyncCommand, VariantsCommand,
};
pub(crate) use backup::{BackupCommand, RestoredPart, SnapshotArgs};
pub(crate) use files::{
    BatchArgs, DeleteArgs, EditArgs, GetArgs, IdArgs, ListArgs, OutputArgs, PlaceArgs, ReadyArgs,
    ReplaceArgs, SheetArgs, SignArgs, SignUploadArgs, UploadArgs, VariantArgs,
};
pub(crate) use metadata::{CopyArgs, MetadataCommand};

/// The server that commands go to if nothing else is said.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// Store files for organizations, and look after the store.
///
/// A file belongs to an organization and, within it, to a part of its application (the
/// sub-system). Uploading gives it an id, and everything else is done by that id.
///
/// The same commands work on two targets. With --server they go to a running server. With --data-dir
/// they work on a data directory itself, without any server; if a server is running on that directory,
/// they go to it through the socket in there, which needs no key.
#[derive(Debug, Parser)]
#[command(name = "filestore", version, max_term_width = 100, after_help = examples::TOP)]
#[command(arg_required_else_help = true, infer_long_args = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The server to talk to [env: FILESTORE_URL] [default: http://127.0.0.1:8080]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The API key for the server
    #[arg(long, global = true, value_name = "KEY", env = "FILESTORE_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// Work on this data directory instead of a server
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The server's configuration file: with --data-dir, the same providers and limits hold [env:
    /// FILESTORE_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON for programs instead of tables for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print ids, keys and URLs only, and no progress and no notes
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// The things that can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Upload files, or a whole directory
    #[command(after_help = examples::UPLOAD)]
    Upload(UploadArgs),
    /// Upload several files, all or none of them
    #[command(after_help = examples::BATCH)]
    Batch(BatchArgs),
    /// Download a file
    #[command(after_help = examples::GET)]
    Get(GetArgs),
    /// Download a square WebP of an image
    #[command(after_help = examples::VARIANT)]
    Variant(VariantArgs),
    /// Download the WebPs of many images in one
    #[command(after_help = examples::SHEET)]
    Sheet(SheetArgs),
    /// Show everything known of a file
    #[command(after_help = examples::INFO)]
    Info(IdArgs),
    /// List files, newest first, or by name
    #[command(after_help = examples::LIST)]
    List(ListArgs),
    /// Keep a temporary file as a thumbnail
    #[command(after_help = examples::THUMBNAIL)]
    Thumbnail(IdArgs),
    /// Promote a temporary file or thumbnail to an ordinary file
    #[command(after_help = examples::READY)]
    Ready(ReadyArgs),
    /// Give a file new bytes under the same id
    #[command(after_help = examples::REPLACE)]
    Replace(ReplaceArgs),
    /// Change a file's name, type or metadata, and keep its bytes
    #[command(after_help = examples::EDIT)]
    Edit(EditArgs),
    /// Delete files
    #[command(after_help = examples::DELETE)]
    Delete(DeleteArgs),
    /// Take a deletion back
    #[command(after_help = examples::RESTORE)]
    Restore(IdArgs),
    /// Print a URL under which anybody can read a file for some time
    #[command(after_help = examples::SIGN)]
    Sign(SignArgs),
    /// Print a URL to which anybody can upload one file for some time
    #[command(after_help = examples::SIGN_UPLOAD)]
    SignUpload(SignUploadArgs),
    /// The secrets that sign URLs
    #[command(subcommand)]
    Signing(SigningCommand),
    /// The places where bytes can be stored
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// The provider that an organization's files go to
    #[command(subcommand)]
    Binding(BindingCommand),
    /// The keys that callers of a server show
    #[command(subcommand)]
    Key(KeyCommand),
    /// Remove the bytes of deleted files
    #[command(subcommand)]
    Purge(PurgeCommand),
    /// Files that wait for their organization's provider
    #[command(subcommand)]
    Sync(SyncCommand),
    /// Moving an organization's files to another provider
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Take an organization's files out, or erase the organization
    #[command(subcommand)]
    Organization(OrganizationCommand),
    /// Check the whole store: files without bytes, bytes without a file, damage, leftovers
    #[command(after_help = examples::FSCK)]
    Fsck(FsckArgs),
    /// Snapshots of the store, and restoring from them
    #[command(subcommand)]
    Backup(BackupCommand),
    /// The database of the records, and moving it
    #[command(subcommand)]
    Metadata(MetadataCommand),
    /// The cache of WebP variants
    #[command(subcommand)]
    Variants(VariantsCommand),
    /// Count what an organization stores
    #[command(after_help = examples::USAGE)]
    Usage {
        /// The organization, as its files name it
        #[arg(long, value_name = "ID")]
        org: String,
    },
    /// Show the whole service on one screen, and what to do about what is not well
    #[command(after_help = examples::STATUS)]
    Status,
    /// Check that the target answers and can store
    #[command(after_help = examples::HEALTH)]
    Health,
    /// Print a completion script for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl GlobalArgs {
    /// Returns the address that the options name, or else the environment.
    ///
    /// `--server` is read from `FILESTORE_URL` here rather than by clap, so that the variable does not
    /// conflict with `--data-dir`.
    pub(crate) fn address(&self) -> Address {
        match &self.data_dir {
            Some(path) => Address::Directory { path: path.clone(), config: self.configuration() },
            None => Address::Server {
                url: self
                    .server
                    .clone()
                    .or_else(|| variable("FILESTORE_URL").and_then(|url| url.into_string().ok()))
                    .unwrap_or_else(|| DEFAULT_SERVER.to_owned()),
                key: self.key.clone().filter(|key| !key.is_empty()),
            },
        }
    }

    /// Returns the path of the server's configuration file, if one is named.
    pub(crate) fn configuration(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| variable("FILESTORE_CONFIG").map(PathBuf::from))
    }
}

/// Reads an environment variable; an empty one counts as absent.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

impl Cli {
    /// Parses the process's arguments; prints what is wrong with them and exits with 2 if need be.
    pub(crate) fn parse_checked() -> Self {
        let cli = Self::parse();
        // Options that are global escape clap's own conflict check when one stands before and the
        // other after the subcommand.
        if cli.global.server.is_some() && cli.global.data_dir.is_some() {
            Self::command()
                .error(
                    ErrorKind::ArgumentConflict,
                    "--server and --data-dir exclude each other: a command has one target",
                )
                .exit();
        }

        let names_a_directory =
            cli.global.data_dir.is_some() || matches!(cli.command, Command::Metadata(_));
        if cli.global.config.is_some() && !names_a_directory {
            Self::command()
                .error(
                    ErrorKind::MissingRequiredArgument,
                    "--config needs --data-dir: a server has read its own configuration",
                )
                .exit();
        }

        cli
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_may_follow_the_command() {
        let cli =
            Cli::try_parse_from(["filestore", "health", "--server", "http://h", "--json"]).unwrap();
        assert_eq!(cli.global.server.as_deref(), Some("http://h"));
        assert!(cli.global.json);
    }

    #[test]
    fn every_command_teaches_by_example() {
        fn check(command: &clap::Command) {
            if command.has_subcommands() {
                command.get_subcommands().for_each(check);
            } else {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("filestore "), "{} has no example", command.get_name());
            }
        }
        check(&Cli::command());
    }
}
