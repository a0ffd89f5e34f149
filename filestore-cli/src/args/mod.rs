//! The command line. This module only parses and validates. The commands themselves are in
//! `command`.

mod files;
mod admin;
mod backup;
mod metadata;
mod rate;
mod organization;
mod environment;
mod groups;
mod events;
mod webhooks;
mod usage;
mod examples;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use filestore_core::api::OrganizationId;

pub(crate) use admin::{
    BindingCommand, FsckArgs, KeyCommand, MigrateCommand, MigrateTarget, OrganizationCommand,
    ProviderCommand, PurgeCommand, PurgeRunArgs, SigningCommand, SyncCommand, UploadsCommand,
    VariantsCommand,
};
pub(crate) use backup::{BackupCommand, RestoredKeysArgs, RestoredPart, SnapshotArgs};
pub(crate) use events::EventsArgs;
pub(crate) use files::{
    BatchArgs, DeleteArgs, DescriptionArgs, EditArgs, GetArgs, IdArgs, ListArgs, OutputArgs,
    PageArgs, PlaceArgs, ReadyArgs, ReplaceArgs, RestoreArgs, SheetArgs, SignArgs, SignUploadArgs,
    UploadArgs, VariantArgs,
};
pub(crate) use metadata::{CopyArgs, MetadataCommand};
use organization::organization_id;
pub(crate) use usage::report_usage;
pub(crate) use webhooks::{RedeliverArgs, WebhookCommand, WebhookEditArgs};

/// Upload, download and manage files in a filestore server or data directory
///
/// A file belongs to an organization and to a sub-system, which is a part of your application. An
/// upload returns the id of the new file. All other commands use that id.
///
/// You can run the same commands on two targets. With --server, a command talks to a running
/// server. With --data-dir, it works on a data directory, without a server. If a server is running
/// on that directory, the command talks to it through the admin socket in the directory, which
/// needs no key.
#[derive(Debug, Parser)]
#[command(name = "filestore", version, max_term_width = 100, after_help = examples::TOP)]
#[command(arg_required_else_help = true, infer_long_args = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of all commands.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// URL of the server [env: FILESTORE_URL] [default: http://127.0.0.1:8080]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// API key for the server. Other users of this machine can see it, so prefer --key-file [env:
    /// FILESTORE_KEY]
    #[arg(long, global = true, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// File with the API key [env: FILESTORE_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Also trust the certificates in this PEM file, for a server with a private authority [env:
    /// FILESTORE_CA_CERT]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Use this data directory instead of a server [env: FILESTORE_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Configuration file of the server, for its providers and limits, with --data-dir [env:
    /// FILESTORE_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON instead of tables. Errors are JSON too
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only ids, keys and URLs, without progress and notes. With --json, the data is the same
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Upload files or a whole directory
    #[command(after_help = examples::UPLOAD)]
    Upload(UploadArgs),
    /// List, show and cancel uploads that can be resumed
    #[command(subcommand)]
    Uploads(UploadsCommand),
    /// Upload several files in one step: all of them, or no file
    #[command(after_help = examples::BATCH)]
    Batch(BatchArgs),
    /// Download files
    #[command(after_help = examples::GET)]
    Get(GetArgs),
    /// Download a WebP variant of an image, square or whole
    #[command(after_help = examples::VARIANT)]
    Variant(VariantArgs),
    /// Download one image that shows many images
    #[command(after_help = examples::SHEET)]
    Sheet(SheetArgs),
    /// Show the record of a file
    #[command(after_help = examples::INFO)]
    Info(IdArgs),
    /// Explain where a file is and why, and what comes next
    #[command(after_help = examples::EXPLAIN)]
    Explain(IdArgs),
    /// List files, newest first or by name
    #[command(after_help = examples::LIST)]
    List(ListArgs),
    /// Show what happened to files, or follow it
    #[command(after_help = examples::EVENTS)]
    Events(EventsArgs),
    /// Keep a temporary file as a thumbnail
    #[command(after_help = examples::THUMBNAIL)]
    Thumbnail(IdArgs),
    /// Turn a temporary file or a thumbnail into a permanent file
    #[command(after_help = examples::READY)]
    Ready(ReadyArgs),
    /// Replace the bytes of a file and keep its id
    #[command(after_help = examples::REPLACE)]
    Replace(ReplaceArgs),
    /// Change the name, type or custom metadata of a file
    #[command(after_help = examples::EDIT)]
    Edit(EditArgs),
    /// Delete files
    #[command(after_help = examples::DELETE)]
    Delete(DeleteArgs),
    /// Restore deleted files
    #[command(after_help = examples::RESTORE)]
    Restore(RestoreArgs),
    /// Print a URL that lets anyone read one file for some time
    #[command(after_help = examples::SIGN)]
    Sign(SignArgs),
    /// Print a URL that lets anyone upload one file for some time
    #[command(after_help = examples::SIGN_UPLOAD)]
    SignUpload(SignUploadArgs),
    /// List, rotate and revoke the secrets that sign URLs
    #[command(subcommand)]
    Signing(SigningCommand),
    /// List and test storage providers
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// Choose the provider for the files of an organization
    #[command(subcommand)]
    Binding(BindingCommand),
    /// Create, list, rotate and revoke API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Create, list and test webhooks, which send events to a URL
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// Purge deleted files, and show or verify purge receipts
    #[command(subcommand)]
    Purge(PurgeCommand),
    /// Copy pending files to their provider
    #[command(subcommand)]
    Sync(SyncCommand),
    /// Move the files of an organization to another provider
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// List, export or erase organizations
    #[command(subcommand)]
    Organization(OrganizationCommand),
    /// Check the whole store for missing, damaged and unknown files
    #[command(after_help = examples::FSCK)]
    Fsck(FsckArgs),
    /// Take, verify, restore and remove snapshots
    #[command(subcommand)]
    Backup(BackupCommand),
    /// Move the records of a store to PostgreSQL
    #[command(subcommand)]
    Metadata(MetadataCommand),
    /// Show or empty the cache of WebP variants
    #[command(subcommand)]
    Variants(VariantsCommand),
    /// Count the files and bytes of an organization
    #[command(after_help = examples::USAGE)]
    Usage {
        /// The id of the organization
        #[arg(long, value_name = "ID", value_parser = organization_id())]
        org: OrganizationId,
    },
    /// Show your key, and the limits of the target
    #[command(after_help = examples::WHOAMI)]
    Whoami,
    /// Show the state of the service, with advice on each problem
    #[command(after_help = examples::STATUS)]
    Status,
    /// Check that the target answers and can store files
    #[command(after_help = examples::HEALTH)]
    Health,
    /// Print a shell completion script
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    #[command(after_help = examples::MAN)]
    Man {
        /// Output directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

impl Cli {
    /// Parses the arguments of the process. The error is wrong usage, or a request for help.
    pub(crate) fn parse_checked() -> Result<Self, clap::Error> {
        Self::parse_from_args(std::env::args_os())
    }

    fn parse_from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = groups::command().try_get_matches_from(args)?;
        let cli = Self::from_arg_matches(&matches)?;
        cli.check().map_err(|(kind, problem)| Self::command().error(kind, problem))?;
        Ok(cli)
    }

    /// Refuses combinations of global options. clap does not find them if the options are on both
    /// sides of the subcommand.
    fn check(&self) -> Result<(), (ErrorKind, &'static str)> {
        let global = &self.global;
        if global.server.is_some() && global.data_dir.is_some() {
            let problem =
                "--server and --data-dir cannot be used together: a command has one target";
            return Err((ErrorKind::ArgumentConflict, problem));
        }
        if global.key.is_some() && global.key_file.is_some() {
            let problem = "--key and --key-file cannot be used together";
            return Err((ErrorKind::ArgumentConflict, problem));
        }

        let names_a_directory =
            global.directory().is_some() || matches!(self.command, Command::Metadata(_));
        if global.config.is_some() && !names_a_directory {
            let problem = "--config needs --data-dir: a server uses its own configuration";
            return Err((ErrorKind::MissingRequiredArgument, problem));
        }
        Ok(())
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
