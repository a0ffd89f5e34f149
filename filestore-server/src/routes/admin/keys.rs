//! `/admin/keys`: creates, lists, rotates and revokes API keys.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::api::{CreateKey, KeyReply, NewKeyReply};
use filestore_core::keys::{KeyId, KeyScope, NewKey};
use filestore_core::{Error, Result};
use warp::Filter;
use warp::reply::Response;

use super::expect_nothing;
use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::{read_json, read_optional_json};
use crate::request::object::{Object, required};
use crate::routes::filters::{
    RouteFilter, any_of, call, get_or_head, not_allowed, post_at, reply_of, with_body,
};
use crate::routes::path::Segment;

/// Builds `/keys`, `/keys/{key_id}/rotate` and `/keys/{key_id}/revoke`.
pub(super) fn routes() -> RouteFilter {
    let list =
        get_or_head().and(call()).then(|call: Arc<Call>| reply_of(Arc::clone(&call), list(call)));
    let create = warp::post().and(with_body(create));
    let all = list.or(create).unify().or(not_allowed("GET, HEAD, POST")).unify();
    let all = warp::path!("keys").and(all);

    let rotate = post_at(warp::path!("keys" / Segment / "rotate"), rotate);
    let revoke = post_at(warp::path!("keys" / Segment / "revoke"), revoke);

    any_of([all.boxed(), rotate, revoke])
}

#[expect(clippy::unused_async, reason = "the filters take handlers that may wait")]
async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let keys = call.store().keys().list();
    let shown: Vec<KeyReply> = keys.iter().map(Into::into).collect();
    reply::ok(&shown)
}

async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let new = NewKey::try_from(&requested(&read_json(&call, body).await?)?)?;
    let made = call.store().keys().create(new).await?;
    reply::created(&NewKeyReply::from(&made))
}

fn requested(json: &[u8]) -> error::Result<CreateKey> {
    let object = Object::parse(json, &["name", "organizations", "scopes", "expires_in_s"])?;
    let organizations = required("organizations", object.texts("organizations")?)?;
    let scopes = required("scopes", object.texts("scopes")?)?;
    if scopes.len() > KeyScope::ALL.len() {
        let most = KeyScope::ALL.len();
        let error = Error::invalid("scopes", format!("a key has at most {most} scopes"));
        return Err(error.with_limit(most as u64).into());
    }

    let mut request = CreateKey::new(organizations, scopes);
    request.name = object.text("name")?;
    request.expires_in_s = object.count("expires_in_s")?;
    Ok(request)
}

async fn rotate(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    let id = KeyId::from_str(&id.plain())?;
    let json = read_optional_json(&call, body).await?;
    let overlap = json.as_deref().map_or(Ok(Duration::ZERO), overlap)?;
    let rotated = call.store().keys().rotate(id, overlap).await?;
    reply::ok(&NewKeyReply::from(&rotated))
}

fn overlap(json: &[u8]) -> error::Result<Duration> {
    let object = Object::parse(json, &["overlap_s"])?;
    Ok(Duration::from_secs(object.count("overlap_s")?.unwrap_or(0)))
}

async fn revoke(call: Arc<Call>, id: Segment, body: Body) -> Result<Response, Failure> {
    expect_nothing(&call, body).await?;
    let key = call.store().keys().revoke(id.plain().parse()?).await?;
    reply::ok(&KeyReply::from(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_list_of_texts_or_no_number_is_named() {
        for (json, field) in [
            (r#"{"scopes":["read"]}"#, "organizations"),
            (r#"{"organizations":["7"]}"#, "scopes"),
            (r#"{"organizations":"7","scopes":["read"]}"#, "organizations"),
            (r#"{"organizations":[7],"scopes":["read"]}"#, "organizations"),
            (r#"{"organizations":["7"],"scopes":["read"],"expires_in_s":-1}"#, "expires_in_s"),
            (r#"{"organizations":["7"],"scopes":["read","read","read","read","read"]}"#, "scopes"),
            (r#"{"organizations":["7"],"scopes":["read"],"name":null}"#, "name"),
            (r#"{"organizations":["7"],"scopes":["read"],"scope":[]}"#, "scope"),
        ] {
            let error = requested(json.as_bytes()).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some(field), "{json}");
        }
        assert_eq!(overlap(b"{}").unwrap(), Duration::ZERO);
        assert_eq!(overlap(br#"{"overlap_s":60}"#).unwrap(), Duration::from_mins(1));
    }
}
