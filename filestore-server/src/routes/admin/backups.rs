//! `/admin/backups`: snapshots, only in configured destinations.

use std::num::NonZeroUsize;
use std::sync::Arc;

use filestore_core::admin::{BackupOptions, Backups, Progress, Selection, SnapshotId};
use filestore_core::api::{
    BackupDestination, BackupForgetReport, BackupPruneReport, BackupReport, BackupRestoreReport,
    BackupVerifyReport, CreateBackup, RestoreBackup, Snapshot,
};
use filestore_core::{Error, ErrorKind, FileStore, Result};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use warp::Filter;
use warp::reply::Response;

use super::long_run::{self, Acceptance, Departure};
use crate::reply::{self, Failure, RequestId};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_optional_json;
use crate::request::object::{Object, required};
use crate::routes::filters::{RouteFilter, any_of, get, get_at, post_at};
use crate::routes::path::Segment;
use crate::state::detached::AtStop;

/// Builds `/backups`, `/backups/{destination}`, and the runs below it.
pub(super) fn routes() -> RouteFilter {
    let destinations = warp::path!("backups").and(get(destinations));

    let list = get_at(warp::path!("backups" / Segment), list);
    let path = warp::path!("backups" / Segment / Run).map(|destination, run| (destination, run));

    any_of([destinations.boxed(), list, post_at(path, start)])
}

/// A run in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Create,
    Verify,
    Restore,
    Prune,
    Forget,
}

impl std::str::FromStr for Run {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Ok(match name {
            "create" => Self::Create,
            "verify" => Self::Verify,
            "restore" => Self::Restore,
            "prune" => Self::Prune,
            "forget" => Self::Forget,
            _ => return Err(()),
        })
    }
}

async fn destinations(call: Arc<Call>) -> Result<Response, Failure> {
    let config = call.store().config();
    let named = config.backup_destinations.iter();
    reply::ok(&named.map(|known| BackupDestination::new(&known.name)).collect::<Vec<_>>())
}

async fn list(call: Arc<Call>, destination: Segment) -> Result<Response, Failure> {
    let snapshots = open(call.store(), &named(&destination)).await?.list().await?;
    reply::ok(&snapshots.into_iter().map(Snapshot::from).collect::<Vec<_>>())
}

async fn start(
    call: Arc<Call>,
    (destination, run): (Segment, Run),
    body: Body,
) -> Result<Response, Failure> {
    let json = read_optional_json(&call, body).await?;
    let json = json.as_deref().unwrap_or(b"{}");
    let destination = named(&destination);
    match run {
        Run::Create => create(&call, destination, json).await,
        Run::Verify => verify(&call, destination, json).await,
        Run::Restore => restore(&call, destination, json).await,
        Run::Prune => prune(&call, destination, json).await,
        Run::Forget => forget(&call, &destination, json).await,
    }
}

async fn create(call: &Arc<Call>, destination: String, json: &[u8]) -> Result<Response, Failure> {
    let object = Object::parse(json, &["hard_links", "local_only", "detach"])?;
    let mut request = CreateBackup::default();
    request.hard_links = object.flag("hard_links")?.unwrap_or(false);
    request.local_only = object.flag("local_only")?.unwrap_or(false);
    let options = BackupOptions::from(request);

    let (store, name) = (call.store().clone(), destination.clone());
    let work = move |progress: Arc<dyn Progress>| async move {
        let backups = open(&store, &destination).await?;
        let report = store.admin().backup(&backups, options, progress).await?;
        Ok(BackupReport::from(report))
    };
    if object.flag("detach")?.unwrap_or(false) {
        return detached(call, name, work).await;
    }
    reporting(call, work, |error| BackupReport::failed(error.into())).await
}

/// Starts work that continues without the client, and replies with its destination. A stop of the server cancels the
/// work.
async fn detached<T, F>(
    call: &Arc<Call>,
    destination: String,
    work: impl FnOnce(Arc<dyn Progress>) -> F + Send + 'static,
) -> Result<Response, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let work = move |_, acceptance: Arc<Acceptance>| async move {
        work(acceptance).await.map_err(as_conflict)
    };
    let shown = async { Ok(BackupDestination::new(destination)) };
    long_run::reply_detached(call, AtStop::Cancel, work, shown).await
}

async fn verify(call: &Arc<Call>, destination: String, json: &[u8]) -> Result<Response, Failure> {
    let object = Object::parse(json, &["snapshot_id", "detach"])?;
    let id = snapshot_id(&object)?;
    let (store, name) = (call.store().clone(), destination.clone());
    let work = move |progress: Arc<dyn Progress>| async move {
        let report = open(&store, &destination).await?.verify(id, progress).await?;
        Ok(BackupVerifyReport::from(report))
    };
    if object.flag("detach")?.unwrap_or(false) {
        let (id, place) = (call.id, name.clone());
        let logged = move |progress: Arc<dyn Progress>| async move {
            let report = work(progress).await?;
            log_findings(id, &place, &report);
            Ok(report)
        };
        return detached(call, name, logged).await;
    }
    reporting(call, work, |error| BackupVerifyReport::failed(error.into())).await
}

/// Logs the findings of a verification without a client, because no reply contains them.
fn log_findings(id: RequestId, destination: &str, report: &BackupVerifyReport) {
    let BackupVerifyReport { snapshot, checked, missing, wrong, database_ok, .. } = report;
    let snapshot_id = snapshot.snapshot_id.as_str();
    if report.ok {
        tracing::info!(
            request_id = %id, trace_id = id.trace_id(), destination, snapshot_id, checked,
            "a detached verification found the snapshot intact"
        );
    } else {
        tracing::error!(
            request_id = %id, trace_id = id.trace_id(), destination, snapshot_id, checked, missing, wrong,
            database_ok, damaged = snapshot.damaged, damaged_records = snapshot.damaged_records,
            "a detached verification found a damaged or incomplete snapshot"
        );
    }
}

async fn restore(call: &Arc<Call>, destination: String, json: &[u8]) -> Result<Response, Failure> {
    let object = Object::parse(json, &["snapshot_id", "organization_id", "file_id"])?;
    let id = snapshot_id(&object)?;
    let mut request = RestoreBackup::default();
    request.organization_id = object.text("organization_id")?;
    request.file_id = object.text("file_id")?;
    let selection = Selection::try_from(&request)?;

    let store = call.store().clone();
    reporting(
        call,
        move |progress| async move {
            let backups = open(&store, &destination).await?;
            let report = store.admin().restore(&backups, id, selection, progress).await?;
            Ok(BackupRestoreReport::from(report))
        },
        |error| BackupRestoreReport::failed(error.into()),
    )
    .await
}

async fn prune(call: &Arc<Call>, destination: String, json: &[u8]) -> Result<Response, Failure> {
    let object = Object::parse(json, &["keep"])?;
    let keep = required("keep", object.count("keep")?)?;
    let keep = usize::try_from(keep).ok().and_then(NonZeroUsize::new);
    let keep = keep.ok_or_else(|| Error::invalid("keep", "keep must be at least 1"))?;

    let store = call.store().clone();
    reporting(
        call,
        move |progress| async move {
            let report = open(&store, &destination).await?.prune(keep, progress).await?;
            Ok(BackupPruneReport::from(report))
        },
        |error| BackupPruneReport::failed(error.into()),
    )
    .await
}

async fn forget(call: &Arc<Call>, destination: &str, json: &[u8]) -> Result<Response, Failure> {
    let object = Object::parse(json, &["destination_id"])?;
    let id = object.text("destination_id")?.as_deref().map(str::parse).transpose()?;
    let admin = call.store().admin();
    let forgotten = admin.forget_backups(admin.backup_place(destination)?, id).await?;
    reply::ok(&BackupForgetReport::new(forgotten))
}

/// Runs work. After the head of the reply is sent, a failure is part of its report.
async fn reporting<T, F>(
    call: &Arc<Call>,
    work: impl FnOnce(Arc<dyn Progress>) -> F + Send + 'static,
    failed: fn(&Error) -> T,
) -> Result<Response, Failure>
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let work = move |_, acceptance: Arc<Acceptance>| async move {
        work(acceptance).await.map_err(as_conflict)
    };
    long_run::reply_reporting(call, Departure::Abort, work, Some(failed)).await
}

/// Turns the refusal because of another run at a provider into a conflict.
fn as_conflict(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Locked => Error::new(ErrorKind::Conflict, error.message().to_owned()),
        _ => error,
    }
}

/// Opens a destination. Returns a conflict if another run uses the directory.
async fn open(store: &FileStore, destination: &str) -> Result<Backups> {
    store.admin().backups(destination).await.map_err(|error| match error.kind() {
        ErrorKind::Locked => {
            let message = "another run works on the snapshots of this destination";
            Error::new(ErrorKind::Conflict, message)
        }
        _ => error,
    })
}

fn named(destination: &Segment) -> String {
    percent_decode_str(&destination.0).decode_utf8_lossy().into_owned()
}

fn snapshot_id(object: &Object) -> Result<Option<SnapshotId>> {
    object.text("snapshot_id")?.as_deref().map(str::parse).transpose()
}
