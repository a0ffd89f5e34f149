//! Conversions of the types in `api/admin`.

mod backup;
mod check;
mod key;
mod report;
mod fsck;
mod erase;
mod overview;
