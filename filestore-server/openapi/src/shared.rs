//! What several operations share: parameters, headers, security.

use filestore_core::api::{Fit, VARIANT_SIZES};
use serde_json::{Map, Value, json};

use crate::schemas::{FILE_ID, ORGANIZATION_ID, PROVIDER_CODE, SUB_SYSTEM};

/// Builds the components that are no schemas and no replies.
pub(crate) fn components() -> Map<String, Value> {
    let mut components = Map::new();
    components.insert("parameters".to_owned(), parameters());
    components.insert("headers".to_owned(), headers());
    components.insert("securitySchemes".to_owned(), security_schemes());
    components
}

/// Refers to a parameter of this file.
pub(crate) fn parameter(name: &str) -> Value {
    let known = parameters();
    assert!(known.get(name).is_some(), "{name} is no shared parameter");
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

/// Returns the parameter of a segment of a path, such as `{file_id}`.
pub(crate) fn path_parameter(segment: &str) -> Value {
    let name: String =
        segment.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    parameter(&name)
}

/// Describes a query parameter that one operation has.
pub(crate) fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

/// Describes a query parameter that must be there.
pub(crate) fn required_query(name: &str, description: &str, schema: Value) -> Value {
    let mut parameter = query(name, description, schema);
    parameter["required"] = json!(true);
    parameter
}

/// Describes the id of an organization, as files carry it.
pub(crate) fn organization_id() -> Value {
    json!({ "type": "string", "pattern": ORGANIZATION_ID })
}

/// Describes the name of a part of an application.
pub(crate) fn sub_system() -> Value {
    json!({ "type": "string", "pattern": SUB_SYSTEM })
}

/// Describes the number of an organization, as bindings carry it.
pub(crate) fn organization_number() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": (1_i64 << 53) - 1 })
}

fn parameters() -> Value {
    let size = json!({ "type": "integer", "enum": VARIANT_SIZES });
    let fits: Vec<_> = Fit::ALL.iter().map(|fit| fit.as_str()).collect();
    let tags = json!({ "type": "string", "examples": ["\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\""] });

    json!({
        "FileId": in_path("file_id", "Id of the file: an upper-case ULID.", json!({ "type": "string", "pattern": FILE_ID })),
        "Width": in_path("width", "Side of the variant in pixels.", size.clone()),
        "Height": in_path("height", "The same number again: variants are square.", size),
        "OrganizationId": in_path("organization_id", "Id of the organization, as files carry it.", organization_id()),
        "Code": in_path("code", "Code of the provider.", json!({ "type": "string", "pattern": PROVIDER_CODE })),
        "Destination": in_path("destination", "Name of the destination, as the configuration has it.", json!({ "type": "string" })),
        "Kid": in_path("kid", "Name of the secret.", json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" })),
        "KeyId": in_path("key_id", "Id of the key: an upper-case ULID.", json!({ "type": "string", "pattern": FILE_ID })),
        "Fit": query("fit", "`cover` fills the square and cuts the overhang off; `inside` keeps the whole picture within it.", json!({ "type": "string", "enum": fits, "default": "cover" })),
        "Animated": query("animated", "`true` or `1` shows all frames of an animation, in an animated WebP, where `variants.animated` is set; 400 where it is not.", json!({ "type": "string", "enum": ["true", "false", "1", "0"], "default": "false" })),
        "V": query("v", "SHA-256 of the content. If it is the current one, the reply may be cached for a year; otherwise it is ignored.", json!({ "type": "string" })),
        "Disposition": query("disposition", "`attachment` saves the file; `inline` shows it, if its type is safe to show.", json!({ "type": "string", "enum": ["attachment", "inline"] })),
        "IdempotencyKey": in_header("Idempotency-Key", "Name of this request, remembered for 24 hours: a retry with the same content returns the stored reply.", json!({ "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" })),
        "IfMatch": in_header("If-Match", "Entity tags, of which the file's must be one; otherwise 412 and nothing changes.", tags.clone()),
        "IfNoneMatch": in_header("If-None-Match", "Entity tags; if the current one is among them, the reply is 304.", tags.clone()),
        "IfModifiedSince": in_header("If-Modified-Since", "HTTP date; the reply is 304 if the content is not newer. Ignored beside `If-None-Match`.", json!({ "type": "string" })),
        "IfUnmodifiedSince": in_header("If-Unmodified-Since", "HTTP date; the reply is 412 if the content is newer. Ignored beside `If-Match`.", json!({ "type": "string" })),
        "IfRange": in_header("If-Range", "Entity tag or HTTP date of the content to which `Range` refers; for another content the whole is sent.", json!({ "type": "string" })),
        "Range": in_header("Range", "One range of bytes, such as `bytes=0-499`, `bytes=500-` or `bytes=-500`.", json!({ "type": "string", "examples": ["bytes=0-499"] })),
    })
}

fn in_path(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}

fn in_header(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

fn headers() -> Value {
    json!({
        "XRequestId": header("Id of this request, under which the server logs it.", json!({ "type": "string", "pattern": FILE_ID })),
        "ETag": header("Entity tag of the content.", json!({ "type": "string" })),
        "Location": header("Address of what the reply is about.", json!({ "type": "string" })),
        "WWWAuthenticate": header("Scheme of authentication.", json!({ "type": "string", "pattern": "^Bearer" })),
        "RetryAfter": optional_header("Seconds after which a retry may help.", json!({ "type": "integer", "minimum": 0 })),
        "ContentRange": header("Place of these bytes in the file, or the size of the file.", json!({ "type": "string", "pattern": "^bytes " })),
        "ContentDisposition": header("`inline` or `attachment`, with the file's name.", json!({ "type": "string" })),
        "CacheControl": header("Rules for caches.", json!({ "type": "string" })),
    })
}

fn header(description: &str, schema: Value) -> Value {
    json!({ "description": description, "required": true, "schema": schema })
}

fn optional_header(description: &str, schema: Value) -> Value {
    json!({ "description": description, "schema": schema })
}

fn security_schemes() -> Value {
    json!({
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key, made by `filestore key create`.",
        },
    })
}
