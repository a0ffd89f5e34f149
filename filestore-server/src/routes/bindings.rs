//! Bindings: the provider for an organization's new files.
//!
//! The read-only keys of a binding (`id`, `effectiveFrom`, `effectiveTo`) are accepted and ignored, so that a
//! client can send back a binding that it has read.

use std::sync::Arc;

use filestore_core::api::{BindingReply, BindingUpdateReply};
use filestore_core::bindings::{BindingChange, NewBinding};
use filestore_core::{Error, ErrorKind, OrganizationNumber, ProviderCode, Result};
use warp::Filter;
use warp::reply::Response;

use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_json;
use crate::request::object::{Object, required};
use crate::routes::filters::{RouteFilter, any_of, get, post, put};

const KEYS: [&str; 8] = [
    "organizationId",
    "organizationName",
    "storageProvider",
    "syncEnabled",
    "isActive",
    "id",
    "effectiveFrom",
    "effectiveTo",
];

/// Builds `/organization-storage-bindings`, its `/create` and its `/update`.
pub(crate) fn routes() -> RouteFilter {
    let list = warp::path!("organization-storage-bindings").and(get(list));
    let create = warp::path!("organization-storage-bindings" / "create").and(post(create));
    let update = warp::path!("organization-storage-bindings" / "update").and(put(update));

    any_of([list.boxed(), create.boxed(), update.boxed()])
}

async fn list(call: Arc<Call>) -> Result<Response, Failure> {
    let query = call.query(&["organizationId"])?;
    let organization = query.get("organizationId").map(str::parse).transpose()?;
    let bindings = call.store().bindings().list(organization).await?;
    let shown: Vec<BindingReply> = bindings.iter().map(Into::into).collect();
    reply::ok(&shown)
}

async fn create(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let new = known_provider(&call, new_binding(&read_json(&call, body).await?))?;
    let binding =
        known_provider(&call, call.store().bindings().create(new).await.map_err(Into::into))?;
    reply::created(&BindingReply::from(&binding))
}

fn new_binding(json: &[u8]) -> error::Result<NewBinding> {
    let object = Object::parse(json, &KEYS)?;
    check_read_only(&object)?;
    let is_active = object.flag("isActive")?;
    let organization = object.integer("organizationId")?;
    let organization_name = object.text("organizationName")?;
    let provider = object.text("storageProvider")?;
    let sync_enabled = object.flag("syncEnabled")?;

    if is_active == Some(false) {
        return Err(Error::invalid(
            "isActive",
            "a new binding is active: isActive can only be true",
        )
        .into());
    }

    let organization = required("organizationId", organization)?;
    let organization_name = required("organizationName", organization_name)?;
    let provider = provider_code(&required("storageProvider", provider)?)?;
    let sync_enabled = required("syncEnabled", sync_enabled)?;

    let mut new = NewBinding::new(organization.try_into()?, organization_name, provider);
    new.sync_enabled = sync_enabled;
    new.check()?;
    Ok(new)
}

async fn update(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let json = read_json(&call, body).await?;
    let (organization, change) = known_provider(&call, binding_change(&json))?;
    let updated = call.store().bindings().update(organization, change).await;
    let binding = known_provider(&call, updated.map_err(Into::into))?;
    reply::ok(&BindingUpdateReply::from(&binding))
}

fn binding_change(json: &[u8]) -> error::Result<(OrganizationNumber, BindingChange)> {
    let object = Object::parse(json, &KEYS)?;
    check_read_only(&object)?;
    let organization = object.integer("organizationId")?;
    let mut change = BindingChange::default();
    change.organization_name = object.text("organizationName")?;
    change.provider =
        object.text("storageProvider")?.map(|code| provider_code(&code)).transpose()?;
    change.sync_enabled = object.flag("syncEnabled")?;
    change.is_active = object.flag("isActive")?;

    let organization = required("organizationId", organization)?.try_into()?;
    change.check()?;
    Ok((organization, change))
}

/// Parses a provider's code. An invalid code is an unknown provider.
fn provider_code(text: &str) -> Result<ProviderCode> {
    text.parse().map_err(|_| {
        Error::new(ErrorKind::UnknownProvider, "the provider is unknown")
            .with_field("storageProvider")
    })
}

/// Adds the valid codes to the error of an unknown provider.
fn known_provider<T>(call: &Call, done: error::Result<T>) -> error::Result<T> {
    done.map_err(|error| match error {
        error::Error::Core(error)
            if error.kind() == ErrorKind::UnknownProvider && error.details().allowed.is_empty() =>
        {
            let providers = call.store().providers();
            let codes = providers.active().into_iter().map(|provider| provider.code.to_string());
            error.with_allowed(codes).into()
        }
        other => other,
    })
}

fn check_read_only(object: &Object) -> Result<()> {
    object.integer("id")?;
    object.text("effectiveFrom")?;
    object.text_or_null("effectiveTo")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use filestore_core::api::ErrorCode;

    use super::*;

    const CREATE: &str = r#"{"organizationId":7,"organizationName":"Acme","storageProvider":"LOCAL","syncEnabled":true}"#;

    fn with(extra: &str) -> String {
        format!("{},{extra}}}", CREATE.trim_end_matches('}'))
    }

    fn refused<T: std::fmt::Debug>(read: error::Result<T>) -> (ErrorCode, Option<String>) {
        let error = read.unwrap_err();
        (error.code(), error.details().field.clone())
    }

    #[test]
    fn a_binding_can_be_sent_back_as_it_was_read() {
        let read_only = with(
            r#""id":3,"isActive":true,"effectiveFrom":"2026-01-01T00:00:00.000Z","effectiveTo":null"#,
        );
        assert_eq!(
            new_binding(read_only.as_bytes()).unwrap(),
            new_binding(CREATE.as_bytes()).unwrap()
        );

        let (organization, change) = binding_change(read_only.as_bytes()).unwrap();
        assert_eq!((organization.get(), change.is_active), (7, Some(true)));
    }

    #[test]
    fn all_four_fields_are_required_to_create_and_one_to_update() {
        for key in ["organizationId", "organizationName", "storageProvider", "syncEnabled"] {
            let mut object: serde_json::Value = serde_json::from_str(CREATE).unwrap();
            object.as_object_mut().unwrap().remove(key);
            let json = object.to_string();
            assert_eq!(
                refused(new_binding(json.as_bytes())),
                (ErrorCode::MissingField, Some(key.into()))
            );
        }

        let (_, change) = binding_change(br#"{"organizationId":7}"#).unwrap();
        assert_eq!(change, BindingChange::default());
        assert_eq!(refused(binding_change(b"{}")).0, ErrorCode::MissingField);
    }

    #[test]
    fn wrong_types_ranges_and_keys_are_named() {
        use ErrorCode::{InvalidField, RepeatedField, UnknownField};
        for (extra, kind, key) in [
            (r#""isActive":false"#, InvalidField, "isActive"),
            (r#""isActive":null"#, InvalidField, "isActive"),
            (r#""id":"3""#, InvalidField, "id"),
            (r#""effectiveFrom":null"#, InvalidField, "effectiveFrom"),
            (r#""effectiveTo":1"#, InvalidField, "effectiveTo"),
            (r#""organizationId":7"#, RepeatedField, "organizationId"),
            (r#""sync_enabled":true"#, UnknownField, "sync_enabled"),
        ] {
            let json = with(extra);
            assert_eq!(refused(new_binding(json.as_bytes())), (kind, Some(key.into())), "{extra}");
        }

        for bad in ["0", "-1", "7.0", "\"7\"", "9007199254740992", "null", "1e400"] {
            let json = CREATE.replace(":7,", &format!(":{bad},"));
            assert!(new_binding(json.as_bytes()).is_err(), "{bad}");
        }
    }
}
