//! Providers: bindings, objects, and moves between providers.

pub(super) mod bindings;
pub(crate) mod overview;
pub(super) mod identity;
pub(crate) mod cloud_write;
pub(crate) mod relocate;
