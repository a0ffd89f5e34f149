//! Objects: putting, verifying, reading, listing, removing.

pub(super) mod put;
pub(super) mod parts;
pub(super) mod verify;
pub(super) mod read;
pub(super) mod inspect;
pub(super) mod objects;
pub(super) mod durable;
pub(super) mod store;
