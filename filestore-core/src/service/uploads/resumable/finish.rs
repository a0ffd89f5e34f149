//! The commit of a resumable upload (steps R6 to R8).
//!
//! # Cancellation
//! The commit runs in a task of its own: a client that goes away does not stop it.
//!
//! # Crash safety
//! One transaction makes the record and finishes the row. Before it, a crash leaves a row that is completing,
//! which the next start opens again; behind it, a record with a staged file, which recovery renames.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::ResumableUploads;
use super::parts::Parts;
use super::request::Recheck;
use super::state::{End, Finishing};
use super::terms::{Planned, Terms};
use super::transfer::tell;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::{ResumableUpload, UploadFailure, UploadStage};
use crate::domain::id::UploadId;
use crate::metadata::{FinishUpload, UploadChange, UploadChanged, UploadRow};
use crate::service::FileStore;
use crate::service::request::Uploaded;
use crate::service::uploads::claims::{ReplacementClaims, UploadClaims};
use crate::service::uploads::idempotency::IdempotencyKey;
use crate::storage::{StagedBlob, StagedPoint};
use crate::tasks;

/// The longest time for which a request waits for a commit.
const PATIENCE: Duration = Duration::from_mins(1);

/// Uploads looked at in one round.
const PAGE: usize = 200;

/// The pause between two looks at a commit of another server.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// An upload whose bytes are all durable.
pub(super) struct Completing {
    pub(super) store: FileStore,
    pub(super) row: UploadRow,
    /// The end of the file.
    pub(super) whole: StagedPoint,
    /// The end of what may be told before the file exists.
    pub(super) told: StagedPoint,
    /// Where the bytes go before they are told, if other servers can continue the upload.
    pub(super) parts: Option<Parts>,
    pub(super) finishing: Finishing,
    pub(super) recheck: Option<Recheck>,
}

impl Completing {
    /// Makes the file, and waits for it. `Busy` if that takes long: the commit goes on.
    pub(super) async fn finish(self) -> Result<ResumableUpload> {
        let (done, outcome) = oneshot::channel();
        tasks::spawn_in_span(async move {
            // Nobody may be there to hear of it.
            done.send(self.run().await).ok();
        });
        match timeout(PATIENCE, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(lost)) => Err(Error::internal("finishing an upload", lost)),
            Err(_) => Err(still_running()),
        }
    }

    async fn run(mut self) -> Result<ResumableUpload> {
        let settled = match self.commit().await {
            Ok(()) => self.store.resumable().row(self.row.upload_id, &Scope::All).await,
            Err(error) => self.settle(error).await,
        };
        if settled.as_ref().is_ok_and(|row| row.stage == UploadStage::Finished) {
            self.store.inner.uploads.resumable.note_end(self.row.upload_id, End::Finished);
        }
        drop(self.finishing);
        self.store.resumable().view(settled?).await
    }

    async fn commit(&mut self) -> Result<()> {
        let terms = Terms::read(&self.row.terms)?;
        let caller = terms.caller().map(str::to_owned);
        let scope = match self.recheck.take() {
            Some(recheck) => recheck(terms.replaces()?).await?,
            None => Scope::All,
        };
        scope.check(&self.row.organization)?;
        let permit = terms.permit()?;
        if let Some(permit) = &permit {
            self.store.resumable().recheck_permit(permit, &self.row.organization).await?;
        }

        match terms.plan(&self.row.organization)? {
            Planned::New(new) => {
                let mut claims = UploadClaims::new(self.row.organization.clone());
                match permit {
                    Some(permit) => claims.permit = Some(permit.permit),
                    None => claims.idempotency = self.idempotency(caller.as_deref())?,
                }
                let mut session = self.session();
                session.claim_without_room(claims).await?;
                match session.commit(new).await? {
                    Uploaded::New(_) => Ok(()),
                    Uploaded::Replayed(reply) => {
                        let file_id = reply.file_ids().first().copied();
                        self.store.resumable().note_replay(&self.row, file_id).await
                    }
                }
            }
            Planned::Replace(file_id, new, conditions) => {
                let claims = ReplacementClaims::new(file_id).with_conditions(conditions);
                let mut session = self.session();
                session.claim_replacement_without_room(claims, &scope).await?;
                session.commit_replacement(new, &scope).await.map(drop)
            }
        }
    }

    /// Makes a session that has all bytes, and whose commit finishes the row.
    fn session(&self) -> crate::service::uploads::session::UploadSession {
        let inner = &self.store.inner;
        let now = inner.now();
        let end = FinishUpload {
            upload_id: self.row.upload_id,
            epoch: self.row.epoch,
            length: self.whole.size_bytes,
            now,
            kept_until: now.plus(inner.config().uploads.lifetime),
        };
        let session = self.store.uploads().begun_in(self.row.era).begin_unclaimed();
        session.with_whole_upload(self.blob(), end)
    }

    fn blob(&self) -> StagedBlob {
        let digest = self.whole.digest.clone().unwrap_or_default().digest();
        let local = self.store.inner.stores.local();
        let (size, head) = (self.whole.size_bytes, self.whole.head.clone());
        let mut blob = local.adopt(self.row.blob_id, size, digest, head);
        blob.era = self.row.era;
        blob
    }

    fn idempotency(&self, caller: Option<&str>) -> Result<Option<IdempotencyKey>> {
        let Some(scoped) = &self.row.idempotency else { return Ok(None) };
        let caller = caller.unwrap_or_default();
        let key = scoped.strip_prefix(caller).and_then(|rest| rest.strip_prefix('\n'));
        IdempotencyKey::new(caller, key.unwrap_or(scoped)).map(Some)
    }
}

impl Completing {
    /// Decides what becomes of an upload whose commit failed with `error`: it has failed, or it is open again one
    /// byte before its end. Returns the row if it is finished all the same.
    async fn settle(&mut self, error: Error) -> Result<UploadRow> {
        let inner = &self.store.inner;
        if error.kind() == ErrorKind::OutcomeUnknown {
            inner.metadata.outcomes_known().await?;
        }
        let row = inner.metadata.upload(self.row.upload_id).await?.ok_or_else(super::unknown)?;
        match row.stage {
            UploadStage::Finished => {
                let live = inner.metadata.live_local_keys(&[row.blob_id]).await?;
                inner.publish_soon(live);
                return Ok(row);
            }
            // Another server has taken it.
            UploadStage::Completing if row.epoch != self.row.epoch => {}
            UploadStage::Completing if is_final(&error) => {
                self.store.resumable().fail(&row, &error).await?;
            }
            UploadStage::Completing => self.open_again(&row).await?,
            _ => {}
        }
        Err(error)
    }

    /// Opens the upload again. If other servers can continue it, the end becomes a part first, so that the client
    /// repeats one byte.
    async fn open_again(&mut self, row: &UploadRow) -> Result<()> {
        let uploads = self.store.resumable();
        if self.parts.is_some() {
            let change = UploadChange::of(row, |next| {
                next.stage = UploadStage::Open;
                next.epoch += 1;
                tell(next, &self.told);
            });
            let next = change.next.clone();
            match uploads.change_with_part(change, self.parts.as_mut()).await {
                Ok(UploadChanged::Done) => {
                    uploads.note_copy(&next, self.told.clone());
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(error = %error.chain(), "the end of an upload is sent again");
                }
            }
        }
        uploads.reopen(row).await
    }
}

fn still_running() -> Error {
    let message = "the bytes are all here, and the file is being stored";
    Error::new(ErrorKind::Busy, message).with_retry_after_secs(5)
}

impl ResumableUploads<'_> {
    /// Waits for the commit that runs, here or at another server. `Busy` if that takes too long. Opens a row
    /// again that is completing without a commit in this process, or at a server that is gone.
    pub(super) async fn until_finished(self, id: UploadId) -> Result<()> {
        let inner = &self.store.inner;
        let until = Instant::now() + PATIENCE;
        loop {
            let waited = timeout_at(until, inner.uploads.resumable.finished(id)).await;
            waited.map_err(|_| still_running())?;
            let row = inner.metadata.upload(id).await?;
            let Some(row) = row.filter(|row| row.stage == UploadStage::Completing) else {
                return Ok(());
            };
            if self.is_stalled(&row).await? {
                return self.reopen(&row).await;
            }
            if Instant::now() >= until {
                return Err(still_running());
            }
            if !self.is_own(&row) {
                sleep(ASK_AGAIN).await;
            }
        }
    }

    /// Tests whether no commit can end an upload that is completing.
    async fn is_stalled(self, row: &UploadRow) -> Result<bool> {
        if self.is_own(row) {
            return Ok(!self.store.inner.uploads.resumable.is_finishing(row.upload_id));
        }
        self.is_of_gone_server(row).await
    }

    /// Tests whether the server that has the upload is gone.
    pub(super) async fn is_of_gone_server(self, row: &UploadRow) -> Result<bool> {
        match self.store.inner.metadata.servers() {
            Some(servers) => servers.is_gone(&row.server).await,
            None => Ok(false),
        }
    }

    /// Opens an upload again whose commit was not made.
    pub(super) async fn reopen(self, row: &UploadRow) -> Result<()> {
        let change = UploadChange::of(row, |next| {
            next.stage = UploadStage::Open;
            // A commit that was only late must not finish it any more.
            next.epoch += 1;
        });
        // Another request that did so before is as good.
        self.store.inner.metadata.change_upload(change).await.map(drop)
    }

    /// Finishes an upload whose idempotency key has the reply of an earlier one.
    async fn note_replay(
        self,
        row: &UploadRow,
        file_id: Option<crate::domain::id::FileId>,
    ) -> Result<()> {
        let inner = &self.store.inner;
        let kept_until = inner.now().plus(inner.config().uploads.lifetime);
        let change = UploadChange::of(row, |next| {
            next.stage = UploadStage::Finished;
            next.file_id = file_id;
            next.expires_at = kept_until;
        });
        if inner.metadata.change_upload(change).await? == UploadChanged::Lost {
            return Err(super::transfer::superseded());
        }
        inner.discard(vec![row.blob_id]).await;
        Ok(())
    }

    /// Notes that an upload can never succeed, and removes its bytes.
    pub(super) async fn fail(self, row: &UploadRow, error: &Error) -> Result<()> {
        let failure = UploadFailure {
            code: error.kind().code().to_owned(),
            message: error.message().to_owned(),
        };
        self.end(row, UploadStage::Failed, Some(failure)).await.map(drop)
    }
}

/// Opens uploads again that are completing, although no commit can end them: uploads of this server without a commit
/// in this process, and uploads of servers that are gone. An upload that fails does not stop the others.
pub(crate) async fn reopen_stalled(store: &FileStore) -> Result<()> {
    let (inner, uploads) = (store.inner(), store.resumable());
    let server = inner.metadata.server_name();
    let mut stalled = inner.metadata.completing_uploads(&server, PAGE).await?;
    // A commit notes itself before its row is completing.
    stalled.retain(|row| !inner.uploads.resumable.is_finishing(row.upload_id));
    if let Some(servers) = inner.metadata.servers() {
        let stranded = servers.stranded_uploads(PAGE).await?;
        stalled.extend(stranded.into_iter().filter(|row| !uploads.is_own(row)));
    }

    let mut outcome = Ok(());
    for row in stalled {
        tracing::info!(upload_id = %row.upload_id, "an upload is open again whose commit was not made");
        outcome = outcome.and(uploads.reopen(&row).await);
    }
    outcome
}

/// Tests whether the same bytes can never become the file. What may pass leaves the upload open.
fn is_final(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::QuotaExceeded
        | ErrorKind::BindingRequired
        | ErrorKind::ProviderInactive
        | ErrorKind::UploadSuperseded
        | ErrorKind::OutcomeUnknown => false,
        kind => !kind.is_retryable() && !kind.http_status().is_server_error(),
    }
}
