//! Arguments of `metadata`.

use std::path::PathBuf;

use clap::Subcommand;

use super::examples;

/// `metadata`.
#[derive(Debug, Subcommand)]
pub(crate) enum MetadataCommand {
    /// Move the records from SQLite to PostgreSQL, and the files to a backend
    #[command(after_help = examples::METADATA_COPY)]
    Copy(CopyArgs),
}

/// `metadata copy`.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// Data directory. Stop its server first
    #[arg(long, value_name = "sqlite:DIR")]
    pub(crate) from: String,
    /// Database, without a password [default: the database in --config]
    #[arg(long, value_name = "postgres://USER@HOST/DATABASE")]
    pub(crate) to: Option<String>,
    /// Schema to create in the database [default: filestore]
    #[arg(long, requires = "to", value_name = "NAME")]
    pub(crate) schema: Option<String>,
    /// File with the password [default: the variable FILESTORE_DATABASE_PASSWORD]
    #[arg(long, requires = "to", value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Leave the files in the data directory, even if --config names a backend
    #[arg(long)]
    pub(crate) leave_files: bool,
}
