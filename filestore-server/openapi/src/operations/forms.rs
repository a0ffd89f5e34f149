//! Multipart forms: fields of text, and the bytes of files.

use serde_json::{Value, json};

use crate::schemas::{FILE_ID, NO_CONTROLS, SHA256};
use crate::shared::{organization_id, sub_system};

/// The fields of one upload.
pub(crate) fn upload() -> Value {
    json!({
        "type": "object",
        "required": ["organization_id", "sub_system", "file"],
        "additionalProperties": false,
        "properties": {
            "organization_id": described("Organization that the file belongs to. Send it before the file.", organization_id()),
            "sub_system": described("Part of the organization's application.", sub_system()),
            "original_name": original_name(),
            "mime_type": mime_type(),
            "upload_temp": flag("True makes a `TEMP` file, which expires after 24 hours."),
            "metadata": metadata(),
            "sha256": described("Digest of the bytes; another one is refused.", json!({ "type": "string", "pattern": SHA256 })),
            "file": bytes("The bytes, streamed; may be empty."),
        },
    })
}

/// The fields of a change.
pub(crate) fn change() -> Value {
    json!({
        "type": "object",
        "required": ["file_id"],
        "additionalProperties": false,
        "properties": {
            "file_id": described("The file to change.", json!({ "type": "string", "pattern": FILE_ID })),
            "make_as_thumbnail": flag("True turns a `TEMP` file into a `THUMBNAIL`; takes no file."),
            "make_as_ready": flag("True makes the file `READY`."),
            "original_name": original_name(),
            "mime_type": mime_type(),
            "metadata": metadata(),
            "file": bytes("New bytes."),
        },
    })
}

/// The fields of a batch. Generated clients know the first item; others have the same form.
pub(crate) fn batch() -> Value {
    let number = r"items\[(0|[1-9][0-9]{0,3})\]";
    let any_of = |field: &str| format!("^{number}\\.{field}$");

    json!({
        "type": "object",
        "required": ["organization_id", "sub_system", "items[0].file"],
        "additionalProperties": false,
        "properties": {
            "organization_id": described("Organization of all items.", organization_id()),
            "sub_system": described("Part of the application, for all items.", sub_system()),
            "items[0].file": bytes("Bytes of one item. Numbers run from 0 to 9999 and may be skipped."),
            "items[0].original_name": original_name(),
            "items[0].mime_type": mime_type(),
            "items[0].metadata": metadata(),
        },
        "patternProperties": {
            any_of("file"): bytes("Bytes of an item."),
            any_of("original_name"): original_name(),
            any_of("mime_type"): mime_type(),
            any_of("metadata"): metadata(),
        },
    })
}

fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = description.into();
    schema
}

fn original_name() -> Value {
    json!({
        "type": "string", "maxLength": 255, "pattern": NO_CONTROLS,
        "description": "Name of the file; else that of the part.",
    })
}

fn mime_type() -> Value {
    json!({
        "type": "string", "maxLength": 255, "examples": ["image/jpeg"],
        "pattern": "^$|^(?!\\*/)[!#$%&'*+.^_`|~0-9A-Za-z-]+/(?!\\*(;|$))[!#$%&'*+.^_`|~0-9A-Za-z-]+( *;[ -~]*[!-~])?$",
        "description": "Media type; else the one that the bytes show, or that of the part, or by the name.",
    })
}

fn metadata() -> Value {
    json!({
        "type": "string", "maxLength": 8192, "contentMediaType": "application/json",
        "examples": [r#"{"customer": 7}"#],
        "description": "JSON object to keep with the file, of at most 4 KiB and 100 members.",
    })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn bytes(description: &str) -> Value {
    json!({
        "type": "string", "format": "binary", "contentMediaType": "application/octet-stream",
        "description": description,
    })
}
