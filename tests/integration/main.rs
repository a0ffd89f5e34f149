//! The contract, section by section, as tests: through raw HTTP against a server on a port of its
//! own, each with its own data directory, all at once.

mod records;
mod bindings;
mod lifecycle;
mod upload;
mod change;
mod batch;
mod idempotency;
mod content;
mod variant;
mod weapons;
mod delete_restore;
mod listing;
mod health;
mod admin;
mod clouds;
mod errors;
mod limits;
mod races;
mod recovery;
mod old_data;
mod story;
