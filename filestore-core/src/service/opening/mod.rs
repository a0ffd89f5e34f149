//! Opens a store: database, recovery and configuration changes.
//!
//! This module does not depend on requests.

pub(super) mod open;
pub(super) mod checks;
pub(super) mod external_database;
pub(super) mod last_used;
pub(super) mod reload;
pub(crate) mod recovery;
pub(crate) mod unflushed;
