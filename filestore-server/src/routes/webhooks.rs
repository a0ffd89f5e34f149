//! `/webhooks`: URLs to which the service sends events.

use std::sync::Arc;

use filestore_core::api::{
    CreateWebhook, DeletedWebhookReply, EditWebhook, EnableWebhook, NewWebhookReply,
    RedeliverReply, RedeliverWebhook, RotateWebhook, WebhookFailures, WebhookFailuresQuery,
    WebhookPingReply, WebhookReply,
};
use filestore_core::webhooks::{NewWebhook, Redeliver, WebhookEdit};
use filestore_core::{Error, ErrorKind, Result};
use warp::Filter;
use warp::reply::Response;

use super::admin::expect_nothing;
use super::files::limit;
use super::path::Segment;
use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::{Body, body};
use crate::request::json::{read_json, read_optional_json};
use crate::request::object::{Object, required};
use crate::routes::filters::{
    RouteFilter, any_of, call, get_at, get_or_head, not_allowed, post_at, reply_of, with_body,
};

/// The maximum number of types in a request. There are fewer types.
const MOST_TYPES: usize = 100;

/// Builds `/webhooks`, `/webhooks/{webhook_id}` and the paths below.
pub(crate) fn routes() -> RouteFilter {
    let list =
        get_or_head().and(call()).then(|call: Arc<Call>| reply_of(Arc::clone(&call), list(call)));
    let create = warp::post().and(with_body(create));
    let all = list.or(create).unify().or(not_allowed("GET, HEAD, POST")).unify();
    let all = warp::path!("webhooks").and(all);

    any_of([
        all.boxed(),
        one(),
        post_at(warp::path!("webhooks" / Segment / "rotate"), rotate),
        post_at(warp::path!("webhooks" / Segment / "ping"), ping),
        post_at(warp::path!("webhooks" / Segment / "redeliver"), redeliver),
        post_at(warp::path!("webhooks" / Segment / "enable"), enable),
        post_at(warp::path!("webhooks" / Segment / "disable"), disable),
        get_at(warp::path!("webhooks" / Segment / "failures"), failures),
    ])
}

fn one() -> RouteFilter {
    let path = warp::path!("webhooks" / Segment).boxed();
    let read = path
        .clone()
        .and(get_or_head())
        .and(call())
        .then(|at, call: Arc<Call>| reply_of(Arc::clone(&call), show(call, at)));
    let edit = path
        .clone()
        .and(warp::patch())
        .and(call())
        .and(body())
        .then(|at, call: Arc<Call>, body| reply_of(Arc::clone(&call), edit(call, at, body)));
    let delete = path
        .clone()
        .and(warp::delete())
        .and(call())
        .then(|at, call: Arc<Call>| reply_of(Arc::clone(&call), delete(call, at)));
    let rest = path.and(not_allowed("GET, HEAD, PATCH, DELETE")).map(|_, reply| reply);
    read.or(edit).unify().or(delete).unify().or(rest).unify().boxed()
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let webhooks = call.store().webhooks().list().await?;
    let shown: Vec<WebhookReply> = webhooks.iter().map(Into::into).collect();
    reply::ok(&shown)
}

async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let new = NewWebhook::try_from(&to_create(&read_json(&call, body).await?)?)?;
    let made = call.store().webhooks().create(new).await?;
    reply::created(&NewWebhookReply::from(&made))
}

fn to_create(json: &[u8]) -> error::Result<CreateWebhook> {
    let object = Object::parse(json, &["url", "name", "organization_id", "types", "from"])?;
    let mut request = CreateWebhook::new(required("url", object.text("url")?)?);
    request.name = object.text("name")?;
    request.organization_id = object.text("organization_id")?;
    request.types = types(&object)?;
    request.from = object.text("from")?;
    Ok(request)
}

fn types(object: &Object) -> Result<Option<Vec<String>>> {
    let types = object.texts("types")?;
    if types.as_ref().is_some_and(|types| types.len() > MOST_TYPES) {
        let error = Error::invalid("types", format!("at most {MOST_TYPES} types"));
        return Err(error.with_limit(MOST_TYPES as u64));
    }
    Ok(types)
}

async fn show(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let (id, webhooks) = (id.plain().parse()?, call.store().webhooks());
    let mut shown = WebhookReply::from(&webhooks.get(id).await?);
    shown.oldest_waiting_at = match webhooks.oldest_waiting(id).await {
        Ok(oldest) => oldest.map(|at| at.to_string()),
        // The webhook is as good as it is, although nothing is told.
        Err(error) if error.kind() == ErrorKind::EventsOff => None,
        Err(error) => return Err(error.into()),
    };
    reply::ok(&shown)
}

async fn edit(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    let edit = WebhookEdit::try_from(&to_edit(&read_json(&call, body).await?)?)?;
    let webhook = call.store().webhooks().edit(id.plain().parse()?, edit).await?;
    reply::ok(&WebhookReply::from(&webhook))
}

fn to_edit(json: &[u8]) -> error::Result<EditWebhook> {
    let object = Object::parse(json, &["url", "name", "types"])?;
    let mut request = EditWebhook::default();
    request.url = object.text("url")?;
    request.name = object.text("name")?;
    request.types = types(&object)?;
    Ok(request)
}

async fn delete(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let id = id.plain().parse()?;
    call.store().webhooks().delete(id).await?;
    reply::ok(&DeletedWebhookReply::new(id.to_string()))
}

async fn rotate(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    let mut request = RotateWebhook::default();
    if let Some(json) = read_optional_json(&call, body).await? {
        request.overlap_s = Object::parse(&json, &["overlap_s"])?.count("overlap_s")?;
    }
    let id = id.plain().parse()?;
    let rotated = call.store().webhooks().rotate(id, request.overlap()).await?;
    reply::ok(&NewWebhookReply::from(&rotated))
}

async fn ping(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let report = call.store().webhooks().ping(id.plain().parse()?).await?;
    reply::ok(&WebhookPingReply::from(report))
}

async fn redeliver(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    let request = to_redeliver(&read_json(&call, body).await?)?;
    let what = Redeliver::try_from(&request)?;
    let again = call.store().webhooks().redeliver(id.plain().parse()?, what).await?;
    reply::ok(&RedeliverReply::from(again))
}

fn to_redeliver(json: &[u8]) -> error::Result<RedeliverWebhook> {
    let object = Object::parse(json, &["event_id", "after", "until", "failed"])?;
    let mut request = RedeliverWebhook::default();
    request.event_id = object.text("event_id")?;
    request.after = object.text("after")?;
    request.until = object.text("until")?;
    request.failed = object.flag("failed")?;
    Ok(request)
}

async fn enable(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    let mut request = EnableWebhook::default();
    if let Some(json) = read_optional_json(&call, body).await? {
        request.from = Object::parse(&json, &["from"])?.text("from")?;
    }
    let id = id.plain().parse()?;
    let webhook = call.store().webhooks().enable(id, request.place()?).await?;
    reply::ok(&WebhookReply::from(&webhook))
}

async fn disable(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let webhook = call.store().webhooks().disable(id.plain().parse()?).await?;
    reply::ok(&WebhookReply::from(&webhook))
}

async fn failures(call: Arc<Call>, id: Segment) -> Result<Response, Failure> {
    let query = call.query(&["state", "after", "limit"])?;
    let mut request = WebhookFailuresQuery::default();
    request.state = query.get("state").map(str::to_owned);
    request.after = query.get("after").map(str::to_owned);
    request.limit = query.get("limit").map(limit).transpose()?;
    let (state, after, limit) = request.page()?;
    let id = id.plain().parse()?;
    let page = call.store().webhooks().failures(id, state, after, limit).await?;
    reply::ok(&WebhookFailures::from(&page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_type_is_named() {
        for (json, field) in [
            (r#"{"name":"shop"}"#, "url"),
            (r#"{"url":7}"#, "url"),
            (r#"{"url":"https://example.org","types":"file.ready"}"#, "types"),
            (r#"{"url":"https://example.org","name":null}"#, "name"),
            (r#"{"url":"https://example.org","secret":"a"}"#, "secret"),
        ] {
            let error = to_create(json.as_bytes()).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some(field), "{json}");
        }
        let many = format!(r#"{{"types":[{}]}}"#, vec![r#""file.ready""#; 101].join(","));
        let error = to_edit(many.as_bytes()).unwrap_err();
        assert_eq!(error.details().limit, Some(100));
        let error = to_redeliver(br#"{"failed":"yes"}"#).unwrap_err();
        assert_eq!(error.details().field.as_deref(), Some("failed"));
    }
}
