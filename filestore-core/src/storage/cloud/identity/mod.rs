//! The identity and capabilities of a provider: marker, probes and checks.

pub(super) mod marker;
pub(super) mod probe;
pub(super) mod probe_objects;
pub(super) mod check;
