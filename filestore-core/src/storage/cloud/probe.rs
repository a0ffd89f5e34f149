//! What an S3 store really does with checksums and conditions. The many that speak S3 differ, and none
//! of them says; so it is tried out once, before the first put.

use std::time::Duration;

use opendal::ErrorKind as Theirs;
use opendal::options::WriteOptions;

use super::put::STORING;
use super::{Cloud, Scheme};
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::BlobId;

/// Where objects are that are none of the files'. They are removed at once.
const PROBE_DIRECTORY: &str = ".filestore-check";

/// How long the presigned PUT of the probe is good for.
const PROBE_LIFE: Duration = Duration::from_mins(1);

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probed {
    /// A put with a checksum that its bytes do not have is refused.
    pub(super) checks_checksums: bool,
    /// "If-None-Match: *" can be sent. A store may still ignore it.
    pub(super) puts_if_absent: bool,
}

impl Cloud {
    /// What the provider does, tried out at the first call. A provider that cannot be reached is asked
    /// again at the next one.
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

    /// Some stores answer 501 to the condition, others 400: for them a put goes without.
    async fn takes_conditions(&self, path: &str) -> Result<bool> {
        let put = |if_not_exists| {
            let options = WriteOptions { if_not_exists, ..WriteOptions::default() };
            self.inner.operator.write_options(path, "probe", options)
        };
        match put(true).await {
            Ok(_) => Ok(true),
            // An attempt before this one was applied, and its reply got lost.
            Err(error) if error.kind() == Theirs::ConditionNotMatch => Ok(true),
            Err(error)
                if error.is_permanent()
                    && matches!(error.kind(), Theirs::Unexpected | Theirs::Unsupported) =>
            {
                put(false).await.map(|_| false).map_err(|error| self.fault(STORING, &error))
            }
            Err(error) => Err(self.fault(STORING, &error)),
        }
    }

    /// Sends bytes with the checksum of no bytes, which a presigned PUT carries.
    async fn refuses_wrong_checksum(&self, path: &str) -> Result<bool> {
        let signed = self.inner.operator.presign_write(path, PROBE_LIFE).await;
        let signed = signed.map_err(|error| self.fault(STORING, &error))?;
        let is_checksum =
            |name: &http::HeaderName| name.as_str().contains("checksum") || name == "content-md5";
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
        match self.inner.operator.read(path).await {
            Ok(_) => Ok(false),
            Err(error) if super::fault::is_missing_object(&error) => Ok(true),
            Err(error) => Err(self.fault(STORING, &error)),
        }
    }

    /// A failed request of the bare client. Its text would show the signed URL.
    pub(super) fn unreachable(&self, error: reqwest::Error) -> crate::domain::error::Error {
        let error = opendal::Error::new(Theirs::Unexpected, "send http request")
            .set_source(error.without_url());
        self.fault(STORING, &error)
    }
}

/// A path of its own for each probe.
pub(super) fn probe_path() -> String {
    format!("{PROBE_DIRECTORY}/{}", BlobId::generate(Timestamp::now()))
}
