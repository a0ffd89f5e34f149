//! An S3 provider in this process, and everything that goes wrong with one.
//!
//! | module | holds |
//! |---|---|
//! | [`server`](S3Server) | the listener, and looking at what is stored |
//! | `gate` | HTTP in front of S3: counts requests, applies faults |
//! | [`faults`](Faults) | faults, and the requests that meet them |
//! | `store` | `s3s-fs`, with what it lacks of S3 |
//! | `intake` | the body of a PUT on its way to the disk, checked before it is there |
//!
//! Signatures, their expiry and the overrides of presigned URLs are checked and answered by `s3s`.
//! Beyond S3's documented behaviour the server is like the clones: a second
//! `CompleteMultipartUpload` of one upload is `NoSuchUpload`.

mod server;
mod gate;
mod faults;
mod operation;
mod store;
mod intake;

pub use faults::{Fault, Faults, On, Tally};
pub use operation::Operation;
pub use server::S3Server;
