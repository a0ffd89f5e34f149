//! Probing what an S3 provider really does with checksums and conditions. The many services that
//! speak S3 differ and none of them says how, so both are tried out once, before the first put.

use std::time::Duration;

use opendal::ErrorKind as Theirs;
use opendal::options::WriteOptions;

use super::breaker::Direction;
use super::put::STORING;
use super::{Cloud, Scheme};
use crate::domain::clock::Clock;
use crate::domain::error::Result;
use crate::domain::id::BlobId;

/// Directory of objects that belong to no file. They are removed at once.
const PROBE_DIRECTORY: &str = ".filestore-check";

/// Life of the probe's presigned PUT.
const PROBE_LIFE: Duration = Duration::from_mins(1);

/// Findings of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probed {
    /// A put with a checksum that its bytes do not have is refused.
    pub(super) checks_checksums: bool,
    /// "If-None-Match: *" can be sent, although the provider may still ignore it.
    pub(super) puts_if_absent: bool,
}

impl Cloud {
    /// Returns what the provider does, tried out at the first call. A provider that cannot be
    /// reached is asked again at the next call.
    pub(super) async fn probed(&self) -> Result<Probed> {
        self.inner.probed.get_or_try_init(|| self.probe()).await.copied()
    }

    async fn probe(&self) -> Result<Probed> {
        let can = self.inner.operator.info().capability();
        if self.inner.scheme != Scheme::S3 {
            return Ok(Probed {
                checks_checksums: false,
                puts_if_absent: can.write_with_if_not_exists,
            });
        }

        let (plain, wrong) = (probe_path(), probe_path());
        let probed = async {
            let puts_if_absent = self.takes_conditions(&plain).await?;
            let checks_checksums = self.refuses_wrong_checksum(&wrong).await?;
            Ok(Probed { checks_checksums, puts_if_absent })
        };
        let probed = probed.await;

        for path in [plain, wrong] {
            if let Err(error) = self.remove_path(&path).await {
                tracing::warn!(provider = %self.code(), path, error = %error.chain(), "a probe object is left");
            }
        }

        if let Ok(Probed { checks_checksums, puts_if_absent }) = probed {
            tracing::debug!(provider = %self.code(), checks_checksums, puts_if_absent, "provider probed");
        }
        probed
    }

    /// Puts an object "if absent". Some providers answer 501 to the condition, others 400: their
    /// puts are made without it.
    async fn takes_conditions(&self, path: &str) -> Result<bool> {
        let operator = &self.inner.operator;
        let if_absent = WriteOptions { if_not_exists: true, ..WriteOptions::default() };

        match self.ask(Direction::Write, operator.write_options(path, "probe", if_absent)).await {
            Ok(_) => Ok(true),
            // An earlier attempt was applied, and its reply got lost.
            Err(error) if error.kind() == Theirs::ConditionNotMatch => Ok(true),
            Err(error)
                if error.is_permanent()
                    && matches!(error.kind(), Theirs::Unexpected | Theirs::Unsupported) =>
            {
                let put = self.ask(Direction::Write, operator.write(path, "probe")).await;
                put.map(|_| false).map_err(|error| self.fault(STORING, &error))
            }
            Err(error) => Err(self.fault(STORING, &error)),
        }
    }

    /// Sends bytes with the checksum of no bytes, which a presigned PUT carries.
    async fn refuses_wrong_checksum(&self, path: &str) -> Result<bool> {
        let signed = self.inner.operator.presign_write(path, PROBE_LIFE).await;
        let signed = signed.map_err(|error| self.fault(STORING, &error))?;
        let mut headers = signed.header().clone();
        headers.remove(http::header::CONTENT_LENGTH);
        if !headers.keys().any(is_checksum) {
            return Ok(false);
        }

        let request = self.inner.http.put(signed.uri().to_string()).headers(headers).body("probe");
        let reply = request
            .timeout(self.inner.timeout)
            .send()
            .await
            .map_err(|error| self.unreachable(error))?;
        self.inner.clock.hear(reply.headers());

        let status = reply.status();
        if status.is_server_error() {
            return Err(
                self.broken(STORING, format!("it answers {status} to the probe of its checksums"))
            );
        }

        let body = reply.text().await.unwrap_or_default().to_ascii_lowercase();
        let is_refused =
            status.is_client_error() && (body.contains("digest") || body.contains("checksum"));
        Ok(is_refused && self.is_absent(path).await?)
    }

    async fn is_absent(&self, path: &str) -> Result<bool> {
        match self.ask(Direction::Read, self.inner.operator.read(path)).await {
            Ok(_) => Ok(false),
            Err(error) if super::fault::is_missing_object(&error) => Ok(true),
            Err(error) => Err(self.fault(STORING, &error)),
        }
    }

    /// Translates a failed request of the bare client, whose text would show the signed URL.
    pub(super) fn unreachable(&self, error: reqwest::Error) -> crate::domain::error::Error {
        let error = opendal::Error::new(Theirs::Unexpected, "send http request")
            .set_source(error.without_url());
        self.fault(STORING, &error)
    }
}

/// Recognizes the headers that carry a checksum of the body.
fn is_checksum(name: &http::HeaderName) -> bool {
    name.as_str().contains("checksum") || name == "content-md5"
}

/// Makes a path that no other probe uses.
pub(super) fn probe_path() -> String {
    format!("{PROBE_DIRECTORY}/{}", BlobId::generate(Clock::system().now()))
}
