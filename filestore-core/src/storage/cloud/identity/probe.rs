//! Tests how an S3 provider handles checksums and conditions. S3-compatible services differ and do not
//! document this. The first put therefore triggers a probe. [`probe_objects`](super::probe_objects) removes
//! its objects.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use opendal::options::WriteOptions;
use opendal::{ErrorKind as Theirs, Metadata};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::probe_objects::{ProbeObjects, probe_path};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::time::clock::Timestamp;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::object::put::STORING;
use crate::storage::cloud::{Cloud, Scheme};
use crate::tasks;

/// The lifetime of the probe's presigned PUT.
const PROBE_LIFE: Duration = Duration::from_mins(1);

/// The result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage::cloud) struct Probed {
    /// The provider refuses a put with a wrong checksum.
    pub(in crate::storage::cloud) checks_checksums: bool,
    /// The provider accepts "If-None-Match: *", but can still ignore it.
    pub(in crate::storage::cloud) puts_if_absent: bool,
}

/// The time for which a failed probe is remembered, so that concurrent callers do not repeat it.
const FAILURE_REMEMBERED: Duration = Duration::from_secs(3);

/// The probe of one provider. The probe runs once for all waiting callers.
#[derive(Default)]
pub(in crate::storage::cloud) struct Probing {
    found: OnceLock<Probed>,
    stage: Mutex<Stage>,
    /// The objects that the probes may have stored.
    pub(in crate::storage::cloud) objects: ProbeObjects,
}

#[derive(Default)]
enum Stage {
    /// No probe runs. After a success, `found` has the result.
    #[default]
    Idle,
    Running(Shared<BoxFuture<'static, Result<Probed>>>),
    Failed {
        at: Timestamp,
        error: Error,
    },
}

impl Probing {
    /// Returns the result, if there is one yet.
    pub(in crate::storage::cloud) fn found(&self) -> Option<&Probed> {
        self.found.get()
    }
}

impl Cloud {
    /// Returns the result of the probe. The first call runs it, and concurrent callers wait for the same
    /// result. A failure is remembered for 3 seconds, and then the next call runs the probe again.
    pub(in crate::storage::cloud) async fn probed(&self) -> Result<Probed> {
        if let Some(found) = self.inner.probing.found() {
            return Ok(*found);
        }
        if self.inner.scheme != Scheme::S3 {
            let can = self.inner.operator.info().capability();
            let puts_if_absent = can.write_with_if_not_exists;
            let found = Probed { checks_checksums: false, puts_if_absent };
            return Ok(*self.inner.probing.found.get_or_init(|| found));
        }

        let running = {
            let mut stage = self.inner.probing.stage.lock();
            match &*stage {
                Stage::Running(running) => running.clone(),
                Stage::Failed { at, error }
                    if self.inner.now.now() < at.plus(FAILURE_REMEMBERED) =>
                {
                    return Err(error.clone());
                }
                Stage::Idle | Stage::Failed { .. } => {
                    let running = self.begin_probe();
                    *stage = Stage::Running(running.clone());
                    running
                }
            }
        };
        let probed = running.await;
        if probed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Internal) {
            // The probe broke off with its runtime: the next caller begins another.
            *self.inner.probing.stage.lock() = Stage::Idle;
        }
        probed
    }

    /// Starts a probe in its own task, so that no waiting caller can cancel it for the others.
    fn begin_probe(&self) -> Shared<BoxFuture<'static, Result<Probed>>> {
        let cloud = self.clone();
        let probe = tasks::spawn(async move {
            let limit = cloud.inner.timeout + cloud.inner.io_timeout;
            let probed = timeout(limit, cloud.probe()).await.unwrap_or_else(|_| {
                Err(cloud.broken(STORING, format!("no end of its probe within {limit:?}")))
            });

            let stage = match &probed {
                Ok(found) => {
                    _ = cloud.inner.probing.found.set(*found);
                    Stage::Idle
                }
                Err(error) => Stage::Failed { at: cloud.inner.now.now(), error: error.clone() },
            };
            *cloud.inner.probing.stage.lock() = stage;

            if probed.is_ok() {
                cloud.tidy_after_probe().await;
            }
            probed
        });

        let probe = async move {
            probe.await.unwrap_or_else(|lost| Err(Error::internal("probing a provider", lost)))
        };
        probe.boxed().shared()
    }

    async fn probe(&self) -> Result<Probed> {
        let puts_if_absent = self.takes_conditions(&probe_path()).await?;
        let checks_checksums = self.refuses_wrong_checksum(&probe_path()).await?;

        tracing::debug!(provider = %self.code(), checks_checksums, puts_if_absent, "provider probed");
        Ok(Probed { checks_checksums, puts_if_absent })
    }

    /// Records a probe object that the next request can create, so that it is removed later.
    fn note_object(&self, path: &str) {
        self.inner.probing.objects.note(path);
    }

    /// Puts an object "if absent". Some providers answer the condition with 501, others with 400. The puts of
    /// such providers omit the condition.
    async fn takes_conditions(&self, path: &str) -> Result<bool> {
        self.note_object(path);
        let if_absent = WriteOptions { if_not_exists: true, ..WriteOptions::default() };

        match self.put_probe(path, if_absent).await {
            Ok(_) => Ok(true),
            // An earlier attempt was applied, and its reply got lost.
            Err(error) if error.kind() == Theirs::ConditionNotMatch => Ok(true),
            Err(error)
                if error.is_permanent()
                    && matches!(error.kind(), Theirs::Unexpected | Theirs::Unsupported) =>
            {
                let put = self.put_probe(path, WriteOptions::default()).await;
                put.map(|_| false).map_err(|error| self.fault(STORING, &error))
            }
            Err(error) => Err(self.fault(STORING, &error)),
        }
    }

    async fn put_probe(&self, path: &str, options: WriteOptions) -> opendal::Result<Metadata> {
        let (operator, path) = (self.inner.operator.clone(), path.to_owned());
        let put = async move { operator.write_options(&path, "probe", options).await };
        self.ask(Direction::Write, put).await
    }

    /// Sends bytes with the checksum of an empty body, in a presigned PUT.
    async fn refuses_wrong_checksum(&self, path: &str) -> Result<bool> {
        self.note_object(path);
        let signed = self.inner.operator.presign_write(path, PROBE_LIFE).await;
        let signed = signed.map_err(|error| self.fault(STORING, &error))?;
        let mut request = http::Request::new("probe");
        *request.method_mut() = http::Method::PUT;
        *request.uri_mut() = signed.uri().clone();
        *request.headers_mut() = signed.header().clone();
        request.headers_mut().remove(http::header::CONTENT_LENGTH);
        if !request.headers().keys().any(is_checksum) {
            return Ok(false);
        }

        let reply = self.send_unsigned(request).await?;
        let status = reply.status();
        if status.is_server_error() {
            return Err(
                self.broken(STORING, format!("it answers {status} to the probe of its checksums"))
            );
        }

        let body = String::from_utf8_lossy(reply.body()).to_ascii_lowercase();
        let is_refused =
            status.is_client_error() && (body.contains("digest") || body.contains("checksum"));
        let is_absent = is_refused && self.is_absent(path).await?;
        if is_absent {
            self.inner.probing.objects.forget(path);
        }
        Ok(is_absent)
    }

    async fn is_absent(&self, path: &str) -> Result<bool> {
        let (operator, path) = (self.inner.operator.clone(), path.to_owned());
        match self.ask(Direction::Read, async move { operator.read(&path).await }).await {
            Ok(_) => Ok(false),
            Err(error) if crate::storage::cloud::opening::fault::is_missing_object(&error) => {
                Ok(true)
            }
            Err(error) => Err(self.fault(STORING, &error)),
        }
    }

    /// Sends a request without signing it, for example a request with a presigned URL. Reads the whole reply.
    pub(in crate::storage::cloud) async fn send_unsigned(
        &self,
        request: http::Request<&'static str>,
    ) -> Result<http::Response<bytes::Bytes>> {
        let Some(client) = &self.inner.http else {
            return Err(self.broken(STORING, "it is no server".to_owned()));
        };
        let reply = client.send(request, self.inner.timeout).await;
        let reply = reply.map_err(|error| self.fault(STORING, &error))?;
        self.inner.clock.hear(reply.headers());
        Ok(reply)
    }
}

/// Returns true for headers with a checksum of the body.
fn is_checksum(name: &http::HeaderName) -> bool {
    name.as_str().contains("checksum") || name == "content-md5"
}
