//! Files: records, states, names, serving, variants. Without callers, and without providers except
//! their codes.

pub mod record;
pub mod lifecycle;
pub mod status;
pub mod path;
pub mod media;
pub mod policy;
pub mod custom_metadata;
pub mod disposition;
pub mod serving;
pub mod listing;
pub mod reply;
pub mod resumable;
pub mod usage;
pub mod variant;
pub mod sheet;
pub mod damage;
