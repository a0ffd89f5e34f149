//! Registers and signals for background work.

pub(super) mod background;
pub(crate) mod migrations;
pub(crate) mod checks;
pub(super) mod destinations;
pub(super) mod traffic;
pub(crate) mod wake;
pub(crate) mod at_work;
pub(crate) mod under_way;
pub(crate) mod overview;
