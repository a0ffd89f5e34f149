//! Probing what an S3 provider really does with checksums and conditions. The many services that
//! speak S3 differ and none of them says how, so both are tried out once, before the first put.
//! [`probe_objects`](super::probe_objects) removes what a probe stored.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use opendal::options::WriteOptions;
use opendal::{ErrorKind as Theirs, Metadata};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::breaker::Direction;
use super::probe_objects::{ProbeObjects, probe_path};
use super::put::STORING;
use super::{Cloud, Scheme};
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::tasks;

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

/// Time for which a failed probe counts, so that those who come meanwhile need not find out again.
const FAILURE_COUNTS: Duration = Duration::from_secs(3);

/// The probe of one provider: done once, by one for all who wait.
#[derive(Default)]
pub(super) struct Probing {
    found: OnceLock<Probed>,
    stage: Mutex<Stage>,
    /// Objects that the probes may have stored.
    pub(super) objects: ProbeObjects,
}

#[derive(Default)]
enum Stage {
    #[default]
    NotBegun,
    Running(Shared<BoxFuture<'static, Result<Probed>>>),
    Failed {
        at: Timestamp,
        error: Error,
    },
}

impl Probing {
    /// Returns the findings, if there are any yet.
    pub(super) fn found(&self) -> Option<&Probed> {
        self.found.get()
    }
}

impl Cloud {
    /// Returns what the provider does, tried out at the first call. All who ask meanwhile wait for
    /// the same outcome. A failure counts for some seconds; then the provider is asked again.
    pub(super) async fn probed(&self) -> Result<Probed> {
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
                Stage::Failed { at, error } if self.inner.now.now() < at.plus(FAILURE_COUNTS) => {
                    return Err(error.clone());
                }
                Stage::NotBegun | Stage::Failed { .. } => {
                    let running = self.begin_probe();
                    *stage = Stage::Running(running.clone());
                    running
                }
            }
        };
        let probed = running.await;
        if probed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Internal) {
            // The probe broke off with its runtime: the next caller begins another.
            *self.inner.probing.stage.lock() = Stage::NotBegun;
        }
        probed
    }

    /// Starts a probe in a task of its own: nobody who waits for it can cancel it for the others.
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
                    Stage::NotBegun
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

    /// Notes a probe object that the next request may make.
    fn may_make(&self, path: &str) {
        self.inner.probing.objects.note(path);
    }

    /// Puts an object "if absent". Some providers answer 501 to the condition, others 400: their
    /// puts are made without it.
    async fn takes_conditions(&self, path: &str) -> Result<bool> {
        self.may_make(path);
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

    /// Sends bytes with the checksum of no bytes, which a presigned PUT carries.
    async fn refuses_wrong_checksum(&self, path: &str) -> Result<bool> {
        self.may_make(path);
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
