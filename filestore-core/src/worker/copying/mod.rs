//! Moves a store: its records to PostgreSQL, and its files to a backend.

pub(super) mod files;
#[cfg(feature = "postgres")]
pub(super) mod pair;
pub(super) mod records;
