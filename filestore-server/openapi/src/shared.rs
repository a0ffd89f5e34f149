//! Parts that several operations share: parameters, headers, security.

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

/// Describes the position and the length of a page of resumable uploads.
pub(crate) fn upload_page() -> [Value; 2] {
    [
        query(
            "limit",
            "Maximum number of uploads.",
            json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
        ),
        query("cursor", "Cursor of the page.", json!({ "type": "string", "pattern": FILE_ID })),
    ]
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
        "FileId": in_path("file_id", "File id: a ULID of 26 upper-case characters.", json!({ "type": "string", "pattern": FILE_ID })),
        "Upload": in_path("upload", "Id and token of the upload, from the `Location` of its creation. A secret.", json!({ "type": "string" })),
        "Width": in_path("width", "Size of the variant, in pixels.", size.clone()),
        "Height": in_path("height", "The same number as `width`, because variants are square.", size),
        "OrganizationId": in_path("organization_id", "Organization id, as in the field `organization_id` of a file.", organization_id()),
        "Code": in_path("code", "Provider code.", json!({ "type": "string", "pattern": PROVIDER_CODE })),
        "Destination": in_path("destination", "Name of a configured destination.", json!({ "type": "string" })),
        "Kid": in_path("kid", "Secret name.", json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" })),
        "UploadId": in_path("upload_id", "Upload id: a ULID of 26 upper-case characters.", json!({ "type": "string", "pattern": FILE_ID })),
        "WebhookId": in_path("webhook_id", "Webhook id: a ULID of 26 upper-case characters.", json!({ "type": "string", "pattern": FILE_ID })),
        "KeyId": in_path("key_id", "Key id: a ULID of 26 upper-case characters.", json!({ "type": "string", "pattern": FILE_ID })),
        "Fit": query("fit", "`cover` fills the square and cuts off the rest. `inside` keeps the whole picture and \
                             the aspect ratio.", json!({ "type": "string", "enum": fits, "default": "cover" })),
        "Animated": query("animated", "`true` or `1` returns all frames of an animation as an animated WebP. If the \
                                       setting `variants.animated` is off, the server replies 400.", json!({ "type": "string", "enum": ["true", "false", "1", "0"], "default": "false" })),
        "V": query("v", "SHA-256 digest of the content. If the digest is current, caches can keep the reply for a \
                         year. Otherwise the server ignores this parameter.", json!({ "type": "string" })),
        "Disposition": query("disposition", "`attachment` saves the file. `inline` shows the file in the browser, if \
                                             its type is safe to show.", json!({ "type": "string", "enum": ["attachment", "inline"] })),
        "IdempotencyKey": in_header("Idempotency-Key", "A name for this request, for example a UUID. If you retry \
                                                        with the same name and content within 24 hours, you get the \
                                                        first reply again.", json!({ "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" })),
        "IfMatch": in_header("If-Match", "Entity tags. If the file's tag is not in the list, the server replies 412 \
                                          and changes nothing.", tags.clone()),
        "IfNoneMatch": in_header("If-None-Match", "Entity tags. If the file's tag is in the list, the server replies \
                                                   304.", tags.clone()),
        "IfModifiedSince": in_header("If-Modified-Since", "HTTP date. If the content is not newer, the server \
                                                           replies 304. Ignored together with `If-None-Match`.", json!({ "type": "string" })),
        "IfUnmodifiedSince": in_header("If-Unmodified-Since", "HTTP date. If the content is newer, the server \
                                                               replies 412. Ignored together with `If-Match`.", json!({ "type": "string" })),
        "IfRange": in_header("If-Range", "Entity tag or HTTP date of the content that `Range` refers to. If the \
                                          content has changed, the server sends all bytes.", json!({ "type": "string" })),
        "LastEventId": in_header("Last-Event-ID", "Id of the last event that a stream has sent. Takes precedence over \
                                                   `after`. Only for streams.", json!({ "type": "string" })),
        "Range": in_header("Range", "One range of bytes, for example `bytes=0-499`, `bytes=500-` or `bytes=-500`.", json!({ "type": "string", "examples": ["bytes=0-499"] })),
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
        "XRequestId": header("Request id, as in the log of the server.", json!({ "type": "string", "pattern": FILE_ID })),
        "ETag": header("Entity tag of the content.", json!({ "type": "string" })),
        "Location": header("Address of the created or requested resource.", json!({ "type": "string" })),
        "WWWAuthenticate": header("Authentication scheme.", json!({ "type": "string", "pattern": "^Bearer" })),
        "RetryAfter": optional_header("Seconds to wait before a retry.", json!({ "type": "integer", "minimum": 0 })),
        "ContentRange": header("Position of these bytes in the file, or the file size.", json!({ "type": "string", "pattern": "^bytes " })),
        "ContentDisposition": header("`inline` or `attachment`, with the file's name.", json!({ "type": "string" })),
        "CacheControl": header("Cache rules.", json!({ "type": "string" })),
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
            "description": "An API key. Create keys with `filestore key create`.",
        },
    })
}
