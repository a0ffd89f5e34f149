//! `/admin/migrate`: moves an organization's files to its provider.

use std::sync::Arc;

use filestore_core::admin::MigrateOptions;
use filestore_core::api::{MigratePlan, MigrateReport, MigrateStatus, MigrateVerifyReport};
use filestore_core::{Error, FileStore, OrganizationNumber, ProviderCode, Result};
use warp::Filter;
use warp::reply::Response;

use super::long_run::{self, Acceptance, Departure, Stop};
use super::organization;
use crate::http::query::Query;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_json;
use crate::request::object::{Object, required};
use crate::routes::filters::{RouteFilter, any_of, get, post};
use crate::state::detached::AtStop;

/// Builds `/migrate/plan`, `/run`, `/stop`, `/status` and `/verify`.
pub(super) fn routes() -> RouteFilter {
    let plan = warp::path!("migrate" / "plan").and(get(plan));
    let run = warp::path!("migrate" / "run").and(post(run));
    let stop = warp::path!("migrate" / "stop").and(post(stop));
    let status = warp::path!("migrate" / "status").and(get(status));
    let verify = warp::path!("migrate" / "verify").and(post(verify));

    any_of([plan.boxed(), run.boxed(), stop.boxed(), status.boxed(), verify.boxed()])
}

async fn plan(call: Arc<Call>) -> Result<Response, Failure> {
    let query = call.query(&["organizationId", "to"])?;
    let organization = asked_organization(&query)?;
    let to = target(call.store(), &required("to", query.get("to").map(str::to_owned))?)?;
    let plan = call.store().admin().migrate_plan(organization, &to).await?;
    reply::ok(&MigratePlan::from(plan))
}

async fn run(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_json(&call, body).await?;
    let keys = ["organizationId", "to", "bytes_per_second", "detach"];
    let object = Object::parse(&json, &keys)?;
    let (organization, to) = move_of(call.store(), &object)?;
    let mut options = MigrateOptions::default();
    options.bytes_per_second = rate(&object)?;

    let store = call.store().clone();
    let work = |stop: Stop, acceptance: Arc<Acceptance>| async move {
        store
            .admin()
            .migrate(organization, &to, options, &|| stop.is_wanted(), acceptance)
            .await
            .map(MigrateReport::from)
    };
    if object.flag("detach")?.unwrap_or(false) {
        let admin = call.store().admin();
        let shown = async { admin.migrate_status(organization).await.map(MigrateStatus::from) };
        return long_run::reply_detached(&call, AtStop::Wait, work, shown).await;
    }
    long_run::reply_with(&call, Departure::Stop, work).await
}

async fn stop(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_json(&call, body).await?;
    let organization = organization(&Object::parse(&json, &["organizationId"])?)?;
    call.store().admin().migrate_stop(organization).await?;
    let status = call.store().admin().migrate_status(organization).await?;
    reply::ok(&MigrateStatus::from(status))
}

async fn status(call: Arc<Call>) -> Result<Response, Failure> {
    let organization = asked_organization(&call.query(&["organizationId"])?)?;
    let status = call.store().admin().migrate_status(organization).await?;
    reply::ok(&MigrateStatus::from(status))
}

async fn verify(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_json(&call, body).await?;
    let object = Object::parse(&json, &["organizationId", "to"])?;
    let (organization, to) = move_of(call.store(), &object)?;
    let store = call.store().clone();
    long_run::reply_with(&call, Departure::Abort, |_, acceptance| async move {
        store
            .admin()
            .migrate_verify(organization, &to, acceptance)
            .await
            .map(MigrateVerifyReport::from)
    })
    .await
}

fn asked_organization(query: &Query) -> Result<OrganizationNumber> {
    required("organizationId", query.get("organizationId"))?.parse()
}

fn move_of(store: &FileStore, object: &Object) -> Result<(OrganizationNumber, ProviderCode)> {
    let organization = organization(object)?;
    let to = required("to", object.text("to")?)?;
    Ok((organization, target(store, &to)?))
}

fn target(store: &FileStore, code: &str) -> Result<ProviderCode> {
    store.admin().provider_code(code).map_err(|error| error.with_field("to"))
}

pub(super) fn rate(object: &Object) -> Result<Option<u64>> {
    let rate = object.integer("bytes_per_second")?;
    rate.map(positive).transpose()
}

fn positive(rate: i64) -> Result<u64> {
    u64::try_from(rate)
        .ok()
        .filter(|rate| *rate > 0)
        .ok_or_else(|| Error::invalid("bytes_per_second", "bytes_per_second must be at least 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_positive_number_of_bytes() {
        let read =
            |json: &str| rate(&Object::parse(json.as_bytes(), &["bytes_per_second"]).unwrap());
        assert_eq!(read("{}").unwrap(), None);
        assert_eq!(read(r#"{"bytes_per_second":20971520}"#).unwrap(), Some(20 << 20));

        for bad in ["0", "-1", "1.5", "\"20MiB\"", "null"] {
            let error = read(&format!(r#"{{"bytes_per_second":{bad}}}"#)).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("bytes_per_second"), "{bad}");
        }
    }
}
