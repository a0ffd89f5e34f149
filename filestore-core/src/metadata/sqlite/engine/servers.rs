//! The servers that work on the database: this process alone, which holds the data directory.

use crate::metadata::Servers;
use crate::metadata::sqlite::SqliteMetadata;

impl Servers for SqliteMetadata {}
