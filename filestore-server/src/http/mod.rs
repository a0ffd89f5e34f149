//! HTTP semantics as pure functions: the rules of RFC 9110 and related RFCs, without a server, a store or a
//! clock. The rules of reads are those of [`filestore_core::web`].

pub use filestore_core::web::{conditional, date, etag, range, values};

pub mod query;
pub mod trace;
pub(crate) mod accept;
pub(crate) mod base;
pub(crate) mod forwarded;
pub(crate) mod host;

pub(crate) use filestore_core::web::single;
