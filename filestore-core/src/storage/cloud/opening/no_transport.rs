//! A build without HTTP: there is no client, and no provider that needs one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use opendal::Operator;

use super::remote_clock::RemoteClock;
use crate::domain::error::Result;
use crate::domain::provider::ProviderConfig;
use crate::storage::cloud_types::unusable;

/// HTTP client, which this build does not have.
pub(in crate::storage::cloud) enum Client {}

impl Client {
    pub(super) fn new(config: &ProviderConfig) -> Result<Self> {
        Err(unusable(&config.code, "this build sends no HTTP requests"))
    }

    #[expect(clippy::unused_async, reason = "the client of other builds waits")]
    pub(in crate::storage::cloud) async fn send(
        &self,
        _: Request<&'static str>,
        _: Duration,
    ) -> opendal::Result<Response<Bytes>> {
        match *self {}
    }
}

/// Observer of requests, of which this build sends none.
pub(super) enum Observe {}

impl Observe {
    pub(super) fn new(
        client: &Client,
        _: &ProviderConfig,
        _: &Arc<RemoteClock>,
        _: &Arc<AtomicBool>,
    ) -> Self {
        match *client {}
    }

    pub(super) fn over(self, _: Operator) -> Operator {
        match self {}
    }
}
