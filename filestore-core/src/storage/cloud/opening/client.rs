//! The HTTP client of a provider.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use opendal::ErrorKind as Theirs;
use reqwest::redirect::Policy;

use crate::domain::error::{Error, Result};
use crate::domain::provider::ProviderConfig;
use crate::storage::tls;

/// HTTP client that trusts the operating system's certificates.
///
/// The client follows no redirect. A provider could lead it to addresses that only this machine reaches, with
/// headers that hold credentials (`x-amz-security-token`).
#[derive(Debug, Clone)]
pub(in crate::storage::cloud) struct Client(pub(super) reqwest::Client);

impl Client {
    /// Makes the client. Sends nothing.
    pub(super) fn new(config: &ProviderConfig) -> Result<Self> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::client_config()?)
            .connect_timeout(config.timeout)
            .redirect(Policy::none())
            .build();
        client.map(Self).map_err(|error| Error::internal("preparing requests to a provider", error))
    }

    /// Sends a request as it is and reads the reply, within `limit`. The error does not show the URL, which may
    /// be a signed one.
    pub(in crate::storage::cloud) async fn send(
        &self,
        request: Request<&'static str>,
        limit: Duration,
    ) -> opendal::Result<Response<Bytes>> {
        let send = async {
            let mut request = reqwest::Request::try_from(request)?;
            *request.timeout_mut() = Some(limit);
            let received = self.0.execute(request).await?;
            let (status, headers) = (received.status(), received.headers().clone());
            let mut reply = Response::new(received.bytes().await?);
            *reply.status_mut() = status;
            *reply.headers_mut() = headers;
            Ok(reply)
        };
        send.await.map_err(|error: reqwest::Error| {
            opendal::Error::new(Theirs::Unexpected, "send http request")
                .set_source(error.without_url())
        })
    }
}
