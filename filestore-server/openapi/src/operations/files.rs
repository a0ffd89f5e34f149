//! Uploads, changes, reading, deleting.

use filestore_core::api::{
    ChangeReply, DeleteFilesReply, DeleteFilesRequest, DeleteReply, FileRecord, ListReply,
    MAX_SHEET_FILES, PurgeStatus, SignRequest, SignUploadRequest, SignedReceipt, SignedUrlReply,
    Status, UsageReply, VARIANT_SIZES,
};
use serde_json::{Value, json};

use super::forms;
use crate::operation::{DELETE, Group, Operation, READ, WRITE};
use crate::schemas::{FILE_ID, reply, request};
use crate::shared::{organization_id, query, required_query, sub_system};

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
            sheet(),
            info(),
            delete(),
            delete_many(),
            restore(),
            usage(),
            sign(),
            sign_upload(),
            receipt(),
        ],
    }
}

/// A media type without parameters.
const MEDIA_TYPE: &str = "^[!#$%&'+.^_`|~0-9A-Za-z-]+/[!#$%&'+.^_`|~0-9A-Za-z-]+$";

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
            "Makes it a thumbnail or ready, or replaces its bytes; name, type or metadata alone are edited. The \
             two flags exclude each other. Readers see the whole old content or the whole new one.",
        )
        .takes(["IfMatch", "IfNoneMatch", "IfUnmodifiedSince"])
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
        .says(
            "List records, newest first",
            "Pages do not shift when files arrive. With `name_prefix` and an organization, files come by name. A \
             page may be short, or empty, and have a `next_cursor`.",
        )
        .asks([
            query("organization_id", "Only files of this organization.", organization_id()),
            query("sub_system", "Only files of this part of the application.", sub_system()),
            query("status", "Only files of this status.", statuses),
            query("purge_status", "Only deleted files; without it they are left out.", marks),
            query("name_prefix", "Only files whose name begins so.", json!({ "type": "string", "maxLength": 255 })),
            query(
                "mime_type",
                "Only files of this type, whatever its parameters.",
                json!({ "type": "string", "maxLength": 255, "pattern": MEDIA_TYPE }),
            ),
            query("created_after", "Only files created at this time or later.", time()),
            query("created_before", "Only files created before this time.", time()),
            json!({
                "name": "metadata",
                "in": "query",
                "description": "Only files whose metadata have this value under this key: `metadata.<key>=<value>`, \
                                up to 16 times. (Written out, as OpenAPI has no style with dots.)",
                "style": "form",
                "explode": true,
                "schema": {
                    "type": "object",
                    "maxProperties": 16,
                    "propertyNames": { "pattern": "^metadata\\." },
                    "additionalProperties": { "type": "string" },
                },
            }),
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

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
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
        .takes(["Fit", "Animated", "V", "IfNoneMatch"])
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

fn sheet() -> Operation {
    Operation::get("/sheets", "getSheet", READ)
        .says(
            "Read the variants of many pictures in one",
            "A grid of up to 100 cells, row by row in the order of the ids, as WebP; with `Accept: \
             application/json` the map of its cells. A file that cannot be shown leaves its cell empty. At most \
             16 megapixels.",
        )
        .asks([
            sheet_ids(),
            query("size", "Side of a cell, in pixels; 200 if not given.", json!({ "type": "integer", "enum": VARIANT_SIZES })),
        ])
        .takes(["Fit", "IfNoneMatch"])
        .replies_bytes(200, "The sheet, or its map.", &["image/webp", "application/json"])
        .with(["ETag", "Cache-Control"])
        .replies_nothing(304, "The client has the current sheet.")
        .with(["ETag", "Cache-Control"])
}

/// Describes a list that is separated by commas.
fn sheet_ids() -> Value {
    let ids = json!({
        "type": "array", "minItems": 1, "maxItems": MAX_SHEET_FILES,
        "items": { "type": "string", "pattern": FILE_ID },
    });
    let mut parameter = required_query("ids", "File ids, separated by commas.", ids);
    parameter["style"] = json!("form");
    parameter["explode"] = json!(false);
    parameter
}

fn info() -> Operation {
    Operation::get("/files/{file_id}/info", "getFileInfo", READ)
        .says("Read a file's record", "Also of a deleted file, until its record is gone.")
        .replies(200, "The record.", reply::<FileRecord>)
        .with(["ETag"])
}

fn receipt() -> Operation {
    Operation::get("/files/{file_id}/receipt", "getReceipt", READ)
        .says(
            "Read the receipt of a purge",
            "From the end of the purge on: who deleted the file, which bytes went from where, and which places \
             still have them, as things are now. Signed; see `/receipt-keys`.",
        )
        .replies(200, "The receipt with its signature.", reply::<SignedReceipt>)
}

fn delete() -> Operation {
    Operation::delete("/files/{file_id}", "deleteFile", DELETE)
        .says(
            "Delete a file",
            "It is unreadable from the reply on; its bytes are purged in the background. The same request again \
             gives the same reply while the record exists.",
        )
        .takes(["IfMatch", "IfNoneMatch", "IfUnmodifiedSince"])
        .replies(200, "The file is marked for purge.", reply::<DeleteReply>)
        .refuses([409, 412])
}

fn delete_many() -> Operation {
    Operation::post("/files/delete", "deleteFiles", DELETE)
        .says(
            "Delete up to 1000 files",
            "Each for itself: the reply has a result for each id, in their order, whatever becomes of the others.",
        )
        .json(request::<DeleteFilesRequest>)
        .replies(200, "What became of each file.", reply::<DeleteFilesReply>)
}

fn usage() -> Operation {
    Operation::get("/organizations/{organization_id}/usage", "getUsage", READ)
        .says(
            "Count what an organization stores",
            "Temporary and deleted files count until they are gone. An organization without files has zeros.",
        )
        .replies(200, "Files and bytes, by location, and the quotas.", reply::<UsageReply>)
}

fn restore() -> Operation {
    Operation::post("/files/{file_id}/restore", "restoreFile", WRITE)
        .says("Take a deletion back", "Works until the purge has claimed the file.")
        .replies(200, "The record.", reply::<FileRecord>)
        .with(["ETag"])
        .refuses([409])
}

fn sign() -> Operation {
    Operation::post("/files/{file_id}/sign", "signFile", READ)
        .says(
            "Sign a URL to read a file",
            "Whoever has the URL can read the content, or one variant, without a key until it expires. Equal \
             requests within a few minutes give equal URLs.",
        )
        .optional_json(request::<SignRequest>)
        .replies(200, "The URL.", reply::<SignedUrlReply>)
}

fn sign_upload() -> Operation {
    Operation::post("/files/sign-upload", "signUpload", WRITE)
        .says(
            "Sign a URL to upload one file",
            "Whoever has the URL can upload one file without a key until it expires. Owner, type and largest \
             size are fixed.",
        )
        .json(request::<SignUploadRequest>)
        .replies(200, "The URL.", reply::<SignedUrlReply>)
}
