//! Uploads, changes, reading, deleting.

use filestore_core::api::{ChangeReply, DeleteReply, FileRecord, ListReply, PurgeStatus, Status};
use serde_json::{Value, json};

use super::forms;
use crate::operation::{DELETE, Group, Operation, READ, WRITE};
use crate::schemas::reply;
use crate::shared::{organization_id, query, sub_system};

pub(crate) fn group() -> Group {
    Group {
        name: "Files",
        description: "Uploads, changes, content, gallery variants, records, deletion.",
        operations: vec![
            upload(),
            change(),
            batch(),
            list(),
            content(),
            variant(),
            info(),
            delete(),
            restore(),
        ],
    }
}

fn upload() -> Operation {
    Operation::post("/files/upload", "uploadFile", WRITE)
        .says("Upload a file", "The reply comes when bytes and record are durable.")
        .takes(["IdempotencyKey"])
        .form(forms::upload())
        .replies(201, "The record of the new file.", reply::<FileRecord>)
        .with(["Location", "ETag"])
        .refuses([409, 422, 502, 507])
}

fn change() -> Operation {
    Operation::put("/files/upload", "changeFile", WRITE)
        .says(
            "Change a file",
            "Makes it a thumbnail or ready, or replaces its bytes. The two flags exclude each other, and one \
             of them or a file is needed. Readers see the whole old content or the whole new one.",
        )
        .takes(["IfMatch"])
        .form(forms::change())
        .replies(200, "What the change made of the file.", reply::<ChangeReply>)
        .with(["ETag"])
        .refuses([404, 409, 412, 422, 502, 507])
}

fn batch() -> Operation {
    Operation::post("/files/batch", "uploadBatch", WRITE)
        .says(
            "Upload several files, all or none",
            "Items are answered in ascending number. No reader ever sees a part of a batch.",
        )
        .takes(["IdempotencyKey"])
        .form(forms::batch())
        .replies_all(201, "The records of the new files.", reply::<FileRecord>)
        .refuses([409, 422, 502, 507])
}

fn list() -> Operation {
    let statuses = words(Status::KNOWN.iter().map(Status::as_str));
    let marks = words(PurgeStatus::KNOWN.iter().map(PurgeStatus::as_str));

    Operation::get("/files", "listFiles", READ)
        .says("List records, newest first", "Pages do not shift when files arrive.")
        .asks([
            query("organization_id", "Only files of this organization.", organization_id()),
            query("sub_system", "Only files of this part of the application.", sub_system()),
            query("status", "Only files of this status.", statuses),
            query("purge_status", "Only deleted files; without it they are left out.", marks),
            query(
                "limit",
                "Records of one page.",
                json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
            ),
            query(
                "cursor",
                "`next_cursor` of the page before, with the same filters.",
                json!({ "type": "string" }),
            ),
        ])
        .replies(200, "One page.", reply::<ListReply>)
}

fn words<'a>(words: impl Iterator<Item = &'a str>) -> Value {
    json!({ "type": "string", "enum": words.collect::<Vec<_>>() })
}

fn content() -> Operation {
    Operation::get("/files/{file_id}", "getFile", READ)
        .says(
            "Read a file's bytes",
            "A file at a provider is answered with a redirect, where the provider has URLs that grant this \
             object and nothing else. Only types that browsers cannot run are shown inline.",
        )
        .takes([
            "Disposition",
            "V",
            "Range",
            "IfMatch",
            "IfNoneMatch",
            "IfModifiedSince",
            "IfUnmodifiedSince",
            "IfRange",
        ])
        .replies_bytes(200, "The bytes.", &["*/*"])
        .with(["ETag", "Content-Disposition", "Cache-Control"])
        .replies_bytes(206, "The range that was asked for.", &["*/*"])
        .with(["ETag", "Content-Range", "Cache-Control"])
        .replies_nothing(302, "The provider serves the bytes, at this address.")
        .with(["Location", "Cache-Control"])
        .replies_nothing(304, "The client has the current content.")
        .with(["ETag", "Cache-Control"])
        .refuses([412, 416, 502])
}

fn variant() -> Operation {
    Operation::get("/files/{file_id}/{width}/{height}", "getVariant", READ)
        .says(
            "Read a gallery variant of a picture",
            "WebP, made on the first request. A picture that is not larger passes through as it is. Width and \
             height must be equal.",
        )
        .takes(["Fit", "V", "IfNoneMatch"])
        .replies_bytes(
            200,
            "The variant.",
            &["image/webp", "image/jpeg", "image/png", "image/gif", "image/bmp", "image/tiff"],
        )
        .with(["ETag", "Cache-Control"])
        .replies_nothing(304, "The client has the current variant.")
        .with(["ETag", "Cache-Control"])
        .refuses([422, 502])
}

fn info() -> Operation {
    Operation::get("/files/{file_id}/info", "getFileInfo", READ)
        .says("Read a file's record", "Also of a deleted file, until its record is gone.")
        .replies(200, "The record.", reply::<FileRecord>)
        .with(["ETag"])
}

fn delete() -> Operation {
    Operation::delete("/files/{file_id}", "deleteFile", DELETE)
        .says(
            "Delete a file",
            "It is unreadable from the reply on; its bytes are purged in the background. The same request again \
             gives the same reply while the record exists.",
        )
        .replies(200, "The file is marked for purge.", reply::<DeleteReply>)
        .refuses([409])
}

fn restore() -> Operation {
    Operation::post("/files/{file_id}/restore", "restoreFile", WRITE)
        .says("Take a deletion back", "Works until the purge has claimed the file.")
        .replies(200, "The record.", reply::<FileRecord>)
        .with(["ETag"])
        .refuses([409])
}
