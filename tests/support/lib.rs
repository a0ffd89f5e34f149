//! The small language that the integration tests are written in.
//!
//! | module | holds |
//! |---|---|
//! | [`server`] | [`TestServer`]: a whole server in this process, with a data directory of its own |
//! | [`upload`] | uploads, batches and changes, spelled as sentences |
//! | [`call`] | any other request, and [`call::Reply`]: the whole answer with its checks |
//! | [`http`] | the HTTP client underneath |
//! | [`form`] | multipart bodies byte by byte, so that the server meets what clients really send |
//! | [`remote`] | a place at a provider, of one test alone |
//! | [`events`] | streams of events, block by block |
//! | [`neighbour`] | organizations that must not notice what happens to another |
//! | [`wire`] | plain TCP, for what no HTTP library would send |
//! | [`fixtures`] | files of every kind, made in code |
//! | [`names`] | file names of every kind, and the reader of a disposition |
//! | [`scene`] | a photograph painted in code, upright or stored sideways |
//! | [`s3`] | an S3 provider in this process, and everything that goes wrong with one |
//! | [`eventually()`] | waiting for a condition, the only waiting there is |
//!
//! Nothing here knows how the server works inside: the tests hold the API to its reference,
//! `filestore-server/docs/reference`, whatever the implementation.

pub mod server;
pub mod upload;
pub mod call;
pub mod http;
pub mod form;
pub mod wire;
pub mod fixtures;
pub mod names;
pub mod scene;
pub mod s3;
pub mod remote;
pub mod neighbour;
pub mod events;
mod eventually;
mod disk;

pub use call::{Call, Reply};
pub use disk::{directory_in_memory, files_under};
pub use events::EventReader;
pub use eventually::{HANG, eventually};
pub use form::Form;
pub use http::http_client;
pub use neighbour::Neighbour;
pub use remote::Remote;
pub use s3::S3Server;
#[cfg(feature = "postgres")]
pub use server::Servers;
pub use server::TestServer;

/// The SHA-256 of `bytes` as the API shows it: 64 lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};

    hex::encode(Sha256::digest(bytes))
}

/// Compiles and runs the Rust of the how-to pages.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../filestore-server/docs/how-to/avoid-lost-updates.md")]
    struct AvoidLostUpdates;
    #[doc = include_str!("../../filestore-server/docs/how-to/retry-safely.md")]
    struct RetrySafely;
    #[doc = include_str!("../../filestore-server/docs/how-to/rust-client.md")]
    struct RustClient;
    #[doc = include_str!("../../filestore-server/docs/how-to/serve-from-axum.md")]
    struct ServeFromAxum;
    #[doc = include_str!("../../filestore-server/docs/how-to/test-your-app.md")]
    struct TestYourApp;
}
