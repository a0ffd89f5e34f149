//! The vocabulary and the rules: ids, states, paths, limits, errors. Pure; nothing here does I/O.

pub mod error;
pub mod id;
pub mod status;
pub mod lifecycle;
pub mod path;
pub mod media;
pub mod damage;
pub mod disposition;
pub mod serving;
pub mod binding;
pub mod provider;
pub mod provider_health;
pub mod overview;
pub mod record;
pub mod report;
pub mod backlog;
pub mod reply;
pub mod scope;
pub mod key;
pub mod signature;
pub mod signed_url;
pub mod listing;
pub mod variant;
pub mod clock;
pub(crate) mod leap;
pub mod config;
