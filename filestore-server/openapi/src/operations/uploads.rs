//! Resumable uploads.

use filestore_core::api::{FileRecord, ResumableUpload, ResumableUploadList};
use serde_json::{Value, json};

use crate::operation::{Group, Operation, READ, WRITE};
use crate::schemas::{FILE_ID, reply};
use crate::shared::{organization_id, query, required_query, sub_system, upload_page};

pub(crate) fn group() -> Group {
    Group {
        name: "Resumable uploads",
        description: "Upload in pieces that survive a broken connection, by tus 1.0 or by the drafts of the IETF.",
        operations: vec![create(), list(), show(), append(), stand_in(), cancel()],
    }
}

/// A request header.
fn in_header(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

fn bytes(name: &str, description: &str) -> Value {
    in_header(name, description, json!({ "type": "integer", "minimum": 0 }))
}

fn tus() -> Value {
    in_header("Tus-Resumable", "Version of tus.", json!({ "type": "string", "enum": ["1.0.0"] }))
}

fn draft() -> Value {
    let versions = json!({ "type": "string", "enum": ["3", "4", "5", "6", "7", "8"] });
    in_header("Upload-Draft-Interop-Version", "Version of a draft of the IETF.", versions)
}

fn complete() -> Value {
    let values = json!({ "type": "string", "enum": ["?0", "?1"] });
    in_header("Upload-Complete", "Draft: `?1` if the request has the last byte.", values)
}

fn prefer() -> Value {
    let values = json!({ "type": "string", "enum": ["return=representation"] });
    in_header("Prefer", "tus: the reply to the last byte contains the record (RFC 7240).", values)
}

fn create() -> Operation {
    Operation::post("/uploads", "createUpload", WRITE)
        .says(
            "Create a resumable upload",
            "The fields are in the query, or for tus in `Upload-Metadata`. The body can have the first bytes. A \
             request without a header of tus or of a draft uploads the whole body as one file.",
        )
        .takes(["IdempotencyKey"])
        .asks([
            tus(),
            draft(),
            complete(),
            prefer(),
            bytes("Upload-Length", "File size in bytes."),
            in_header(
                "Upload-Defer-Length",
                "tus: the size is not known yet.",
                json!({ "type": "string", "enum": ["1"] }),
            ),
            in_header("Upload-Metadata", "tus: keys with values in base64.", json!({ "type": "string" })),
            query("organization_id", "Organization of a new file.", organization_id()),
            query("sub_system", "Sub-system of a new file.", sub_system()),
            query("original_name", "File name.", json!({ "type": "string", "maxLength": 255 })),
            query("mime_type", "Media type.", json!({ "type": "string", "maxLength": 255 })),
            query("metadata", "Custom metadata: a JSON object.", json!({ "type": "string" })),
            query("upload_temp", "If true, the file is `TEMP` and expires.", json!({ "type": "boolean" })),
            query(
                "sha256",
                "Expected SHA-256 digest of the file.",
                json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
            ),
            query("file_id", "The file that gets the new bytes.", json!({ "type": "string", "pattern": FILE_ID })),
            query("make_as_ready", "If true, the replaced file becomes `READY`.", json!({ "type": "boolean" })),
        ])
        .bytes()
        .replies(201, "The upload is there. A whole file returns its record.", reply::<FileRecord>)
        .with(["Location"])
        .refuses([409, 411, 412, 422, 460, 502, 507])
}

fn list() -> Operation {
    Operation::get("/uploads", "listUploads", READ)
        .says("List resumable uploads, oldest first", "The list does not contain the secret URLs.")
        .asks([required_query(
            "organization_id",
            "Organization of the uploads.",
            organization_id(),
        )])
        .asks(upload_page())
        .replies(200, "A page of uploads.", reply::<ResumableUploadList>)
}

fn show() -> Operation {
    Operation::get("/uploads/{upload}", "showUpload", WRITE)
        .says(
            "Show a resumable upload",
            "`HEAD` returns the offset in `Upload-Offset`. A finished upload redirects to its file, unless the \
             request accepts only JSON. A transfer of the upload that runs ends.",
        )
        .asks([tus(), draft()])
        .replies(200, "The upload.", reply::<ResumableUpload>)
        .replies_nothing(303, "The upload is finished: the address of the file.")
        .with(["Location"])
        .refuses([410, 412])
}

fn append() -> Operation {
    Operation::patch("/uploads/{upload}", "appendUpload", WRITE)
        .says(
            "Append bytes to a resumable upload",
            "The request starts at the offset of the upload. After the last byte, the file exists.",
        )
        .asks([
            tus(),
            draft(),
            complete(),
            prefer(),
            bytes("Upload-Offset", "Offset of the first byte."),
            bytes("Upload-Length", "File size in bytes, if the creation did not name the size."),
            in_header(
                "Upload-Checksum",
                "tus: `sha1` or `sha256`, and the digest of the body in base64.",
                json!({ "type": "string" }),
            ),
        ])
        .bytes()
        .replies(200, "tus with `Prefer`: the record of the finished file.", reply::<FileRecord>)
        .replies(201, "Draft: the record of the finished file.", reply::<FileRecord>)
        .replies_nothing(204, "The bytes are stored.")
        .refuses([409, 410, 412, 422, 460, 502, 507])
}

fn stand_in() -> Operation {
    let methods = json!({ "type": "string", "enum": ["PATCH", "DELETE", "HEAD"] });
    Operation::post("/uploads/{upload}", "overrideUpload", WRITE)
        .says("Send another method as POST", "For proxies that block `PATCH` and `DELETE`.")
        .asks([in_header("X-HTTP-Method-Override", "The method.", methods)])
        .bytes()
        .replies_nothing(204, "As the method replies.")
        .refuses([409, 410, 412, 422, 460, 502, 507])
}

fn cancel() -> Operation {
    Operation::delete("/uploads/{upload}", "cancelUpload", WRITE)
        .says("Cancel a resumable upload", "A file that the upload has made stays.")
        .asks([tus(), draft()])
        .replies_nothing(204, "The upload is gone.")
        .refuses([412])
}
