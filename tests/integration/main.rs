//! The HTTP API, section by section of its reference, as tests.
//!
//! The reference is `filestore-server/docs/reference`; each module names its section. The tests speak
//! raw HTTP to a server on a port of its own, each with its own data directory, all at once.

#[path = "../support/clock.rs"]
mod clock;
mod records;
mod names;
mod clients;
mod bindings;
mod lifecycle;
mod upload;
mod resumable;
mod resumable_client;
mod resumable_draft;
mod resumable_signed;
mod resumable_wire;
mod change;
mod edit;
mod batch;
mod idempotency;
mod content;
mod media_types;
mod rfc9110;
mod variant;
mod pictures;
mod animated;
mod weapons;
mod delete_restore;
mod delete_many;
mod restore_many;
mod receipts;
mod explaining;
mod listing;
mod health;
mod admin;
mod fsck;
mod erasure;
mod backups;
mod clouds;
mod errors;
mod access;
mod guard;
mod limits;
mod usage;
mod organizations;
mod events;
mod webhooks;
mod event_streams;
mod me;
mod console;
mod monitoring;
mod mount;
mod preconditions;
mod races;
mod recovery;
mod identity;
mod old_data;
mod cors;
mod sheet;
mod signed;
mod signed_keys;
mod story;
#[cfg(feature = "postgres")]
mod servers;
