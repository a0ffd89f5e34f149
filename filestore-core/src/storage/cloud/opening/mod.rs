//! Turns a configuration into an operator: options, TLS, transport, logging, and errors without secrets.
//!
//! Without the feature `transport` there is no HTTP: [`no_transport`] has the same types, without values.

pub(super) mod open;
pub(super) mod options;
#[cfg(feature = "transport")]
mod client;
#[cfg(feature = "transport")]
mod observe;
#[cfg(feature = "transport")]
mod transport;
#[cfg(not(feature = "transport"))]
mod no_transport;
pub(super) mod cancelling;
pub(super) mod remote_clock;
pub(super) mod fault;

#[cfg(feature = "transport")]
pub(super) use self::client::Client;
#[cfg(not(feature = "transport"))]
pub(super) use self::no_transport::Client;
#[cfg(not(feature = "transport"))]
use self::no_transport::Observe;
#[cfg(feature = "transport")]
use self::observe::Observe;
