//! Arguments of `metadata`.

use std::path::PathBuf;

use clap::Subcommand;

use super::examples;

/// `metadata`.
#[derive(Debug, Subcommand)]
pub(crate) enum MetadataCommand {
    /// Move the records of a data directory from SQLite to PostgreSQL, and its files to a backend
    #[command(after_help = examples::METADATA_COPY)]
    Copy(CopyArgs),
}

/// `metadata copy`.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The data directory, on which no server runs
    #[arg(long, value_name = "sqlite:DIR")]
    pub(crate) from: String,
    /// The database, without a password; by default the one that --config names
    #[arg(long, value_name = "postgres://USER@HOST/DATABASE")]
    pub(crate) to: Option<String>,
    /// The schema in that database, which is made [default: filestore]
    #[arg(long, requires = "to", value_name = "NAME")]
    pub(crate) schema: Option<String>,
    /// A file with the password; by default it is in FILESTORE_DATABASE_PASSWORD
    #[arg(long, requires = "to", value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Leave the files in the data directory, although --config names a backend for them
    #[arg(long)]
    pub(crate) leave_files: bool,
}
