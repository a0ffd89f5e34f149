//! The two targets that a command can work on: a running server and a data directory.
//!
//! [`Target`] has one method per command and uses the types of the wire contract, so that a command
//! prints the same for both targets. [`open()`] chooses the target.

mod address;
mod item;
mod range;
mod mask;
mod request;
mod destination;
mod operations;
mod remote;
mod direct;
mod socket;
mod open;

pub(crate) use address::Address;
pub(crate) use destination::{Delivery, Destination, Overwrite};
pub(crate) use item::{Input, Item};
pub(crate) use mask::{create_dir_all, hand_over};
pub(crate) use open::{Absent, Opened, open};
pub(crate) use operations::Target;
pub(crate) use range::ByteRange;
pub(crate) use request::{
    Acknowledged, Batch, Change, DetachedRun, Edit, IfMatch, Lifetime, MetadataEdit, Migration,
    Place, Upload,
};
