//! Runs a multipart upload in its own task, so that it is finished or aborted even if its caller is dropped.
//! OpenDAL's writer cannot be aborted after one of its calls was dropped. If a caller is dropped, only the
//! current request is cancelled, and the writer can still abort.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use md5::{Digest, Md5};
use opendal::{Buffer, Metadata, Writer};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::put::STORING;
use crate::domain::error::{Error, Result};
use crate::storage::cloud::Cloud;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::line::gate::{Pass, Patience};
use crate::storage::cloud::opening::cancelling::cancelled_with;
use crate::tasks;

/// Sends parts to the task. Dropping it cancels the current request and aborts the upload.
pub(super) struct PartsWriter {
    steps: mpsc::Sender<Step>,
    /// Dropped with the writer, which cancels the current request.
    wanted: watch::Sender<()>,
    task: JoinHandle<()>,
    /// The MD5 of every sent part.
    md5s: Vec<u8>,
    parts: usize,
}

enum Step {
    Write(Buffer, oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<opendal::Result<Metadata>>),
}

impl PartsWriter {
    /// Starts the upload. The task keeps `memory`, the memory of the parts, until the upload ends.
    pub(in crate::storage::cloud) fn start(
        writer: Writer,
        cloud: Cloud,
        turns: Patience,
        memory: Pass,
    ) -> Self {
        let (steps, asked) = mpsc::channel(1);
        let (wanted, until) = watch::channel(());
        let sending = Sending { cloud, writer: Some(writer), sent_bytes: 0, turns, until };
        let task = tasks::spawn(sending.run(asked, memory));
        Self { steps, wanted, task, md5s: Vec::new(), parts: 0 }
    }

    /// Sends a part. All parts except the last must have the same length. Returns when there is room for the
    /// next part.
    pub(in crate::storage::cloud) async fn write(&mut self, part: Buffer) -> Result<()> {
        let mut md5 = Md5::new();
        part.clone().for_each(|piece| md5.update(&piece));
        self.md5s.extend_from_slice(&md5.finalize());
        self.parts += 1;

        let (done, answer) = oneshot::channel();
        self.step(Step::Write(part, done)).await?;
        answer.await.map_err(|lost| Error::internal(STORING, lost))?
    }

    /// Completes the upload. Returns the provider's answer, and the entity tag that providers compute from
    /// the MD5 of each part: AWS (except with KMS), MinIO, Ceph and Garage.
    pub(in crate::storage::cloud) async fn close(
        self,
    ) -> Result<(opendal::Result<Metadata>, String)> {
        let (done, answer) = oneshot::channel();
        self.step(Step::Close(done)).await?;
        let answer = answer.await.map_err(|lost| Error::internal(STORING, lost))?;

        let of_parts: [u8; 16] = Md5::digest(&self.md5s).into();
        Ok((answer, format!("{:032x}-{}", u128::from_be_bytes(of_parts), self.parts)))
    }

    /// Aborts the upload. A failure is only logged, because an unfinished upload is invisible and the
    /// provider's own rule for unfinished uploads removes it.
    pub(in crate::storage::cloud) async fn abort(self) {
        drop((self.steps, self.wanted));
        if let Err(lost) = self.task.await {
            tracing::error!(error = %lost, "a multipart upload was lost");
        }
    }

    async fn step(&self, step: Step) -> Result<()> {
        let sent = self.steps.send(step).await;
        sent.map_err(|_| Error::internal(STORING, "the upload has ended"))
    }
}

/// A running upload.
struct Sending {
    cloud: Cloud,
    /// `None` after an operation on it was abandoned.
    writer: Option<Writer>,
    sent_bytes: u64,
    turns: Patience,
    /// Closed when the upload is no longer wanted.
    until: watch::Receiver<()>,
}

impl Sending {
    /// Runs steps until the upload is closed. Aborts after a failure, and after an end without a close.
    async fn run(mut self, mut asked: mpsc::Receiver<Step>, memory: Pass) {
        while let Some(step) = asked.recv().await {
            match step {
                Step::Write(part, done) => {
                    let written = self.write(part).await;
                    memory.gets_on();
                    let is_over = written.is_err();
                    if is_over {
                        self.abort().await;
                    }
                    // Nobody listens if the put was dropped: then nobody will ask again either.
                    _ = done.send(written);
                    if is_over {
                        return;
                    }
                }

                Step::Close(done) => {
                    let closed = self.close().await;
                    if closed.is_err() {
                        self.abort().await;
                    }
                    _ = done.send(closed);
                    return;
                }
            }
        }

        drop(memory);
        self.abort().await;
    }

    async fn write(&mut self, part: Buffer) -> Result<()> {
        let turn = self.cloud.inner.turns.sends.pass(1, self.turns).await;
        let _turn = turn.map_err(|waited| self.cloud.busy("puts", waited))?;

        let bytes = part.len() as u64;
        self.sent_bytes += bytes;
        let written = self.step(bytes, |writer| writer.write(part).boxed()).await;
        written.map_err(|error| self.cloud.fault(STORING, &error))
    }

    /// Sends the last part and completes the upload.
    async fn close(&mut self) -> opendal::Result<Metadata> {
        let turn = self.cloud.inner.turns.sends.pass(1, self.turns).await;
        let _turn = turn.map_err(|_| {
            opendal::Error::new(opendal::ErrorKind::Unexpected, "too many puts are under way")
        })?;
        self.step(self.sent_bytes, |writer| writer.close().boxed()).await
    }

    /// Runs one step with the writer. Cancels it when the upload is no longer wanted.
    async fn step<T: Send + 'static>(
        &mut self,
        bytes: u64,
        step: impl for<'a> FnOnce(&'a mut Writer) -> BoxFuture<'a, opendal::Result<T>> + Send + 'static,
    ) -> opendal::Result<T> {
        let writer = self.writer.take().expect("an upload ends with its first failure");
        let asking = self.cloud.ask_with(Direction::Write, bytes, writer, step);

        let (writer, outcome) = cancelled_with(self.until.clone(), asking).await;
        self.writer = writer;
        outcome
    }

    /// Aborts the upload. If its writer is lost or the abort fails, the sweep of unfinished uploads removes
    /// it later.
    async fn abort(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        let aborted =
            self.cloud.ask_with(Direction::Write, 0, writer, |writer| writer.abort().boxed()).await;

        match aborted.1 {
            Ok(()) => {}
            // Already complete, or already aborted by an attempt whose reply got lost.
            Err(error) if error.kind() == opendal::ErrorKind::NotFound => {}
            Err(error) => {
                let (provider, error) = (self.cloud.code(), self.cloud.inner.faults.text(&error));
                tracing::warn!(%provider, error, "an unfinished upload could not be aborted");
            }
        }
    }
}
