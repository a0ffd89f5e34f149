//! A multipart upload in a task of its own, so that the upload is finished or aborted whatever
//! becomes of its caller: OpenDAL's writer cannot be aborted any more once a call of it was
//! dropped.

use md5::{Digest, Md5};
use opendal::{Buffer, Metadata, Writer};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Cloud;
use super::breaker::Direction;
use super::budget::Reserved;
use super::put::STORING;
use crate::domain::error::{Error, Result};
use crate::tasks;

/// Sender of parts to the task. Dropping the sender has the upload aborted.
pub(super) struct PartsWriter {
    steps: mpsc::Sender<Step>,
    task: JoinHandle<()>,
    /// MD5 of every part sent.
    md5s: Vec<u8>,
    parts: usize,
}

enum Step {
    Write(Buffer, oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<opendal::Result<Metadata>>),
}

impl PartsWriter {
    /// Starts the upload. The task keeps `permit`, the memory of the parts, until it is done.
    pub(super) fn start(writer: Writer, cloud: Cloud, permit: Reserved) -> Self {
        let (steps, asked) = mpsc::channel(1);
        let task = tasks::spawn(async move {
            let _permit = permit;
            run(writer, &cloud, asked).await;
        });
        Self { steps, task, md5s: Vec::new(), parts: 0 }
    }

    /// Sends a part; all but the last must have the same length. Returns when there is room for the
    /// next one.
    pub(super) async fn write(&mut self, part: Buffer) -> Result<()> {
        let mut md5 = Md5::new();
        part.clone().for_each(|piece| md5.update(&piece));
        self.md5s.extend_from_slice(&md5.finalize());
        self.parts += 1;

        let (done, answer) = oneshot::channel();
        self.step(Step::Write(part, done)).await?;
        answer.await.map_err(|lost| Error::internal(STORING, lost))?
    }

    /// Completes the upload. Returns the provider's answer, and the entity tag that providers form
    /// from the MD5 of each part: AWS (except with KMS), MinIO, Ceph, Garage.
    pub(super) async fn close(self) -> Result<(opendal::Result<Metadata>, String)> {
        let (done, answer) = oneshot::channel();
        self.step(Step::Close(done)).await?;
        let answer = answer.await.map_err(|lost| Error::internal(STORING, lost))?;

        let of_parts: [u8; 16] = Md5::digest(&self.md5s).into();
        Ok((answer, format!("{:032x}-{}", u128::from_be_bytes(of_parts), self.parts)))
    }

    /// Aborts the upload. A failure is logged only: an unfinished upload is invisible, and the
    /// provider's own rule for unfinished uploads removes it.
    pub(super) async fn abort(self) {
        drop(self.steps);
        if let Err(lost) = self.task.await {
            tracing::error!(error = %lost, "a multipart upload was lost");
        }
    }

    async fn step(&self, step: Step) -> Result<()> {
        let sent = self.steps.send(step).await;
        sent.map_err(|_| Error::internal(STORING, "the upload has ended"))
    }
}

/// Takes steps until the upload is closed. Aborts on any failure, and on an end without a close.
async fn run(mut writer: Writer, cloud: &Cloud, mut asked: mpsc::Receiver<Step>) {
    while let Some(step) = asked.recv().await {
        match step {
            Step::Write(part, done) => {
                match cloud.ask(Direction::Write, writer.write(part)).await {
                    // Nobody listens if the put was dropped: then nobody will ask again either.
                    Ok(()) => _ = done.send(Ok(())),
                    Err(error) => {
                        abort(&mut writer, cloud).await;
                        _ = done.send(Err(cloud.fault(STORING, &error)));
                        return;
                    }
                }
            }

            Step::Close(done) => {
                let closed = cloud.ask(Direction::Write, writer.close()).await;
                if closed.is_err() {
                    abort(&mut writer, cloud).await;
                }
                _ = done.send(closed);
                return;
            }
        }
    }

    abort(&mut writer, cloud).await;
}

async fn abort(writer: &mut Writer, cloud: &Cloud) {
    match writer.abort().await {
        Ok(()) => {}
        // Already complete, or already aborted by an attempt whose reply got lost.
        Err(error) if error.kind() == opendal::ErrorKind::NotFound => {}
        Err(error) => {
            let (provider, error) = (cloud.code(), cloud.inner.faults.text(&error));
            tracing::warn!(%provider, error, "an unfinished upload could not be aborted");
        }
    }
}
