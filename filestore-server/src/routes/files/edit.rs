//! PATCH /files/{fileId}: changes name, type or custom metadata, as a JSON merge patch (RFC 7396). The route
//! is in [`super::content`].

use std::sync::Arc;

use filestore_core::{Change, Edit, MetadataPatch, Patch, Result};
use serde::Deserialize;
use serde_json::value::RawValue;
use warp::reply::Response;

use super::record;
use crate::error;
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::read_merge_patch;
use crate::request::object::Object;
use crate::request::preconditions::preconditions;
use crate::routes::path::IdSegment;

const KEYS: [&str; 3] = ["original_name", "mime_type", "metadata"];

/// Answers PATCH on `/files/{fileId}`.
pub(super) async fn edit(call: Arc<Call>, id: IdSegment, body: Body) -> Result<Response, Failure> {
    let id = id.id()?;
    let conditions = preconditions(&call.headers);
    let change = Change::Edit(edit_of(&read_merge_patch(&call, body).await?)?);

    let scope = call.recheck().await?;
    let changed = call.store().scoped(&scope).change(id, change, conditions).await?;
    call.report_file(&changed.record);
    record::changed_to(&call, &changed.record).await
}

fn edit_of(json: &[u8]) -> error::Result<Edit> {
    let object = Object::parse(json, &KEYS)?;
    let mut edit = Edit::default();
    for (key, property) in [("original_name", &mut edit.name), ("mime_type", &mut edit.mime_type)] {
        *property = object.patch(key, "a string", |value| value.as_str().map(str::to_owned))?;
    }
    edit.metadata =
        match object.patch("metadata", "an object", |value| value.is_object().then_some(()))? {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(()) => Patch::Set(metadata_of(json)?),
        };
    Ok(edit)
}

/// Reads the member `metadata` from its text, because a parsed value no longer shows repeated keys.
fn metadata_of(json: &[u8]) -> Result<MetadataPatch> {
    #[derive(Default, Deserialize)]
    struct Members<'a> {
        #[serde(borrow)]
        metadata: Option<&'a RawValue>,
    }

    let members: Members<'_> = serde_json::from_slice(json).unwrap_or_default();
    members.metadata.map(RawValue::get).unwrap_or_default().parse()
}

#[cfg(test)]
mod tests {
    use filestore_core::api::ErrorCode;

    use super::*;

    fn read(json: &str) -> error::Result<Edit> {
        edit_of(json.as_bytes())
    }

    #[test]
    fn absent_keeps_null_clears_and_a_value_sets() {
        assert_eq!(read(" {} ").unwrap(), Edit::default());

        let edit = read(r#"{"original_name":null,"mime_type":null,"metadata":null}"#).unwrap();
        assert_eq!(
            (edit.name, edit.mime_type, edit.metadata),
            (Patch::Clear, Patch::Clear, Patch::Clear)
        );

        let edit = read(r#"{"metadata":{"a":{"b":null}},"original_name":"\u00e9.txt"}"#).unwrap();
        let metadata = r#"{"a":{"b":null}}"#.parse().unwrap();
        assert_eq!(edit, Edit::default().with_name("é.txt").with_metadata(metadata));
    }

    #[test]
    fn what_cannot_be_read_one_way_is_refused_and_named() {
        use ErrorCode::{InvalidField, MalformedBody, RepeatedField, UnknownField};
        for (json, kind, field) in [
            ("", MalformedBody, None),
            ("null", MalformedBody, None),
            ("[]", MalformedBody, None),
            (r#"{"name":"a"}"#, UnknownField, Some("name")),
            (r#"{"sha256":null}"#, UnknownField, Some("sha256")),
            (r#"{"mime_type":"a/b","mime_type":"a/b"}"#, RepeatedField, Some("mime_type")),
            (r#"{"metadata":{},"metadata":null}"#, RepeatedField, Some("metadata")),
            (r#"{"metadata":{"a":1,"a":1}}"#, InvalidField, Some("metadata")),
            (r#"{"metadata":{"a":{"b":1,"\u0062":1}}}"#, InvalidField, Some("metadata")),
            (r#"{"metadata":"{}"}"#, InvalidField, Some("metadata")),
            (r#"{"metadata":[]}"#, InvalidField, Some("metadata")),
            (r#"{"original_name":7}"#, InvalidField, Some("original_name")),
            (r#"{"mime_type":["a/b"]}"#, InvalidField, Some("mime_type")),
        ] {
            let error = read(json).unwrap_err();
            assert_eq!((error.code(), error.details().field.as_deref()), (kind, field), "{json}");
        }
    }
}
