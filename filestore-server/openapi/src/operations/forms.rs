//! Bodies that no wire type describes: multipart forms with fields of text and the bytes of files, and the merge
//! patch of a file.

use serde_json::{Value, json};

use crate::schemas::{FILE_ID, MIME_TYPE, NO_CONTROLS, SHA256};
use crate::shared::{organization_id, sub_system};

/// The fields of one upload.
pub(crate) fn upload() -> Value {
    json!({
        "type": "object",
        "required": ["organization_id", "sub_system", "file"],
        "additionalProperties": false,
        "properties": {
            "organization_id": described("Organization of the file. Send this field before the file.", organization_id()),
            "sub_system": described("Sub-system: an area of your application, for example `invoices`.", sub_system()),
            "original_name": original_name(),
            "mime_type": mime_type(),
            "upload_temp": flag("If true, the file is `TEMP` and expires (default: after 24 hours)."),
            "metadata": metadata(),
            "sha256": described("Expected SHA-256 digest. If the bytes do not match, the server refuses the upload.", json!({ "type": "string", "pattern": SHA256 })),
            "file": bytes("The bytes. Can be empty."),
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
            "make_as_thumbnail": flag("If true, a `TEMP` file becomes a `THUMBNAIL`. Do not send a file."),
            "make_as_ready": flag("If true, the file becomes `READY`."),
            "original_name": original_name(),
            "mime_type": mime_type(),
            "metadata": metadata(),
            "file": bytes("New bytes."),
        },
    })
}

/// The members of an edit. Each member can be null.
pub(crate) fn edit() -> Value {
    let or_null = |mut schema: Value, description: &str| {
        schema["type"] = json!(["string", "null"]);
        described(description, schema)
    };
    let mut name = original_name();
    name["minLength"] = 1.into();
    let mut kind = mime_type();
    kind["minLength"] = 1.into();

    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "original_name": or_null(name, "New name. If null, the name is the id."),
            "mime_type": or_null(kind, "New media type. If null, the server detects the type from the bytes, or else \
                                        from the name."),
            "metadata": {
                "type": ["object", "null"],
                "examples": [{ "customer": 7, "draft": null }],
                "description": "Members to set, also in nested objects. A member with the value null is removed. \
                                Absent members do not change. If the whole field is null, all members are removed. \
                                The result has at most 4 KiB and 100 members.",
            },
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
            "organization_id": described("Organization of all files in the batch.", organization_id()),
            "sub_system": described("Sub-system of all files in the batch.", sub_system()),
            "items[0].file": bytes("Bytes of one item. Numbers go from 0 to 9999. You can skip numbers."),
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
        "description": "File name (default: the file name of the part).",
    })
}

fn mime_type() -> Value {
    json!({
        "type": "string", "maxLength": 255, "examples": ["image/jpeg"],
        "pattern": format!("^$|{MIME_TYPE}"),
        "description": "Media type (default: detected from the bytes, or else from the part or the name).",
    })
}

fn metadata() -> Value {
    json!({
        "type": "string", "maxLength": 8192, "contentMediaType": "application/json",
        "examples": [r#"{"customer": 7}"#],
        "description": "Custom metadata: a JSON object that the server keeps with the file. At most 4 KiB and 100 \
                        members.",
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
