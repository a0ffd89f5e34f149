//! Uploads, changes, reading, deleting.

use filestore_core::api::{
    ChangeReply, DeleteFilesReply, DeleteFilesRequest, DeleteReply, EditReply, Explanation,
    FileRecord, ListOrder, ListReply, MAX_LISTED_IDS, MAX_SHEET_FILES, OrganizationsReply,
    PurgeStatus, RestoreFilesReply, RestoreFilesRequest, RestoreReply, SheetMap, SignRequest,
    SignUploadRequest, SignedReceipt, SignedUrlReply, Status, SubSystemsReply, SyncStatus,
    UsageReply, VARIANT_SIZES,
};
use serde_json::{Value, json};

use super::forms;
use crate::operation::{DELETE, Group, Operation, READ, WRITE};
use crate::schemas::{FILE_ID, reply, request};
use crate::shared::{organization_id, query, required_query, sub_system};

pub(crate) fn group() -> Group {
    Group {
        name: "Files",
        description: "Upload, read, change and delete files. Make thumbnails and signed URLs.",
        operations: vec![
            upload(),
            change(),
            edit(),
            batch(),
            list(),
            content(),
            variant(),
            sheet(),
            info(),
            delete(),
            delete_many(),
            restore(),
            restore_many(),
            organizations(),
            usage(),
            sub_systems(),
            sign(),
            sign_upload(),
            explain(),
            receipt(),
        ],
    }
}

/// A media type without parameters.
const MEDIA_TYPE: &str = "^[!#$%&'+.^_`|~0-9A-Za-z-]+/[!#$%&'+.^_`|~0-9A-Za-z-]+$";

fn upload() -> Operation {
    Operation::post("/files/upload", "uploadFile", WRITE)
        .says("Upload a file", "The server replies when bytes and record are durable.")
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
            "Promotes the file to `THUMBNAIL` or `READY`, or replaces the bytes. Set only one of the two flags. You \
             can send a name, type and metadata only with new bytes. To change only these, use `editFile`. Readers \
             get either the complete old content or the complete new content.",
        )
        .takes(["IfMatch", "IfNoneMatch", "IfUnmodifiedSince"])
        .form(forms::change())
        .replies(200, "The file after the change.", reply::<ChangeReply>)
        .with(["ETag"])
        .refuses([404, 409, 412, 422, 502, 507])
}

fn edit() -> Operation {
    Operation::patch("/files/{file_id}", "editFile", WRITE)
        .says(
            "Change name, type or custom metadata",
            "The body is a JSON merge patch (RFC 7396). Absent members do not change. Bytes, version and ETag stay \
             the same. If the key does not have the scope `read`, the reply contains only id, sync status and time.",
        )
        .takes(["IfMatch", "IfNoneMatch", "IfUnmodifiedSince"])
        .merge_patch(forms::edit())
        .replies(200, "The record after the edit.", reply::<EditReply>)
        .with(["ETag"])
        .refuses([409, 412])
}

fn batch() -> Operation {
    Operation::post("/files/batch", "uploadBatch", WRITE)
        .says(
            "Upload several files: all or none",
            "The records come in the order of the item numbers. No reader ever sees an incomplete batch.",
        )
        .takes(["IdempotencyKey"])
        .form(forms::batch())
        .replies_all(201, "The records of the new files.", reply::<FileRecord>)
        .refuses([409, 422, 502, 507])
}

fn list() -> Operation {
    let statuses = words(Status::KNOWN.iter().map(Status::as_str));
    let syncs = words(SyncStatus::KNOWN.iter().map(SyncStatus::as_str));
    let marks = words(PurgeStatus::KNOWN.iter().map(PurgeStatus::as_str));

    let orders = words(ListOrder::ALL.iter().map(|order| order.as_str()));

    Operation::get("/files", "listFiles", READ)
        .says(
            "List records, newest first",
            "Pages do not shift when new files arrive. With `name_prefix` and an organization, files are sorted by \
             name. A page can be short or empty and still have a `next_cursor`, so continue until `next_cursor` is \
             null.",
        )
        .asks([
            query("organization_id", "Only files of this organization.", organization_id()),
            query("sub_system", "Only files of this sub-system.", sub_system()),
            query("status", "Only files with this status.", statuses),
            query("sync_status", "Only files with this sync status. `sync_error` has the reason of a failure.", syncs),
            query("purge_status", "Only deleted files. Without this parameter, only files that are not deleted.", marks),
            query("name_prefix", "Only files with a name that begins with this text.", json!({ "type": "string", "maxLength": 255 })),
            query(
                "mime_type",
                "Only files with this media type, for example `image/jpeg`. Parameters are ignored.",
                json!({ "type": "string", "maxLength": 255, "pattern": MEDIA_TYPE }),
            ),
            query("created_after", "Only files uploaded at this time or later (RFC 3339).", time()),
            query("created_before", "Only files uploaded before this time (RFC 3339).", time()),
            query(
                "name_contains",
                "Only files with a name that contains this text, in upper or lower case.",
                json!({ "type": "string", "maxLength": 255 }),
            ),
            query(
                "order",
                "`newest` first, `oldest` first, or with `purge_status` the latest deletion first (`deleted`).",
                orders,
            ),
            listed_ids(),
            json!({
                "name": "metadata",
                "in": "query",
                "description": "Only files with this value in their custom metadata: `metadata.<key>=<value>`, for \
                                example `metadata.customer=7`. Up to 16 times.",
                "style": "form",
                "explode": true,
                "schema": {
                    "type": "object",
                    "maxProperties": 16,
                    "propertyNames": { "pattern": "^metadata\\." },
                    "additionalProperties": { "type": "string" },
                },
            }),
            limit(),
            cursor(),
        ])
        .replies(200, "One page.", reply::<ListReply>)
}

/// Describes the ids of known files.
fn listed_ids() -> Value {
    let ids = json!({
        "type": "array", "minItems": 1, "maxItems": MAX_LISTED_IDS,
        "items": { "type": "string", "pattern": FILE_ID },
    });
    let mut parameter = query(
        "ids",
        "Only these files, deleted or not, in this order, separated by commas. Goes with no other parameter. The \
         reply leaves out unknown files and files of other organizations.",
        ids,
    );
    parameter["explode"] = json!(false);
    parameter
}

/// Describes the length of a page.
fn limit() -> Value {
    query(
        "limit",
        "Maximum number of items in a page.",
        json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
    )
}

/// Describes the position of a page.
fn cursor() -> Value {
    query(
        "cursor",
        "`next_cursor` of the previous page. Keep the filters the same.",
        json!({ "type": "string" }),
    )
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
            "Download a file",
            "If the file is at a provider with presigned URLs, the server redirects to the provider. Otherwise the \
             server sends the bytes. `Content-Disposition` is `inline` only for types that browsers cannot run.",
        )
        .asks([query(
            "redirect",
            "`false`: the server sends the bytes itself, also if a provider has them.",
            json!({ "type": "boolean", "default": true }),
        )])
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
        .replies_bytes(206, "The requested range.", &["*/*"])
        .with(["ETag", "Content-Range", "Cache-Control"])
        .replies_nothing(302, "The provider sends the bytes, at the address in `Location`.")
        .with(["Location", "Cache-Control"])
        .replies_nothing(304, "The client already has the current content.")
        .with(["ETag", "Cache-Control"])
        .refuses([412, 416, 502])
}

fn variant() -> Operation {
    Operation::get("/files/{file_id}/{width}/{height}", "getVariant", READ)
        .says(
            "Get a thumbnail (variant) of an image",
            "The server makes the WebP at the first request and caches it. If the image is not larger than the \
             variant, the server sends the original bytes. Width and height must be equal, for example `/400/400`.",
        )
        .takes(["Fit", "Animated", "V", "IfNoneMatch"])
        .replies_bytes(
            200,
            "The variant.",
            &["image/webp", "image/jpeg", "image/png", "image/gif", "image/bmp", "image/tiff"],
        )
        .with(["ETag", "Cache-Control"])
        .replies_nothing(304, "The client already has the current variant.")
        .with(["ETag", "Cache-Control"])
        .refuses([422, 502])
}

fn sheet() -> Operation {
    Operation::get("/sheets", "getSheet", READ)
        .says(
            "Get the thumbnails of many images in one image (contact sheet)",
            "The reply is a WebP with up to 100 cells, row by row in the order of the ids, and at most 16 \
             megapixels. With `Accept: application/json`, the reply is the map of the cells. If a file cannot be \
             shown, its cell is empty.",
        )
        .asks([
            sheet_ids(),
            query("size", "Cell side in pixels (default 200).", json!({ "type": "integer", "enum": VARIANT_SIZES })),
            query(
                "wait_ms",
                "Longest wait for images. Cells of other images are empty, and `Sheet-Pending` names them.",
                json!({ "type": "integer", "minimum": 0, "maximum": 10000 }),
            ),
        ])
        .takes(["Fit", "IfNoneMatch"])
        .replies_bytes_or_json(200, "The sheet, or its map.", "image/webp", reply::<SheetMap>)
        .with(["ETag", "Cache-Control"])
        .replies_nothing(304, "The client already has the current sheet.")
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
        .says(
            "Read a file's record",
            "Also works for a deleted file, until the purge removes the record.",
        )
        .replies(200, "The record.", reply::<FileRecord>)
        .with(["ETag"])
}

fn explain() -> Operation {
    Operation::get("/files/{file_id}/explain", "explainFile", READ)
        .says(
            "Explain a file",
            "Says where the bytes are and why, what comes next and when, which attempts failed, and which events the \
             log has of the file. Also explains a deleted file, and a purged file until its purge receipt expires. \
             Each fact has a stable code. The sentences can change.",
        )
        .replies(200, "The explanation.", reply::<Explanation>)
}

fn receipt() -> Operation {
    Operation::get("/files/{file_id}/receipt", "getReceipt", READ)
        .says(
            "Read the purge receipt of a file",
            "Available after the purge. The receipt names the caller that deleted the file, the removed blobs, and \
             the places that still contain the bytes now. The public keys of the signature are at `/receipt-keys`.",
        )
        .replies(200, "The receipt with its signature.", reply::<SignedReceipt>)
}

fn delete() -> Operation {
    Operation::delete("/files/{file_id}", "deleteFile", DELETE)
        .says(
            "Delete a file",
            "After the reply, the file is no longer readable. You can restore the file until its grace period ends \
             (default: one day). Then the server purges the bytes in the background. While the record exists, the \
             same request returns the same reply.",
        )
        .takes(["IfMatch", "IfNoneMatch", "IfUnmodifiedSince"])
        .replies(200, "The file is deleted.", reply::<DeleteReply>)
        .refuses([409, 412])
}

fn delete_many() -> Operation {
    Operation::post("/files/delete", "deleteFiles", DELETE)
        .says(
            "Delete up to 1000 files",
            "Each deletion is independent. The reply contains a result for each id, in the same order.",
        )
        .json(request::<DeleteFilesRequest>)
        .replies(200, "A result for each file.", reply::<DeleteFilesReply>)
}

fn usage() -> Operation {
    Operation::get("/organizations/{organization_id}/usage", "getUsage", READ)
        .says(
            "Count the files and bytes of an organization",
            "Temporary files count until they expire, and deleted files until the purge. For an organization without \
             files, all counts are 0.",
        )
        .replies(200, "Files and bytes for each location, and the quotas.", reply::<UsageReply>)
}

fn organizations() -> Operation {
    Operation::get("/organizations", "listOrganizations", READ)
        .says(
            "List organizations with their storage usage",
            "Lists the organizations of the key that have files or an active binding, in the order of their ids. A \
             key for `*` sees all of them.",
        )
        .asks([limit(), cursor()])
        .replies(200, "One page.", reply::<OrganizationsReply>)
}

fn sub_systems() -> Operation {
    Operation::get("/organizations/{organization_id}/sub-systems", "listSubSystems", READ)
        .says(
            "List the sub-systems of an organization with their storage usage",
            "Lists the sub-systems with files, in the order of their names.",
        )
        .asks([limit(), cursor()])
        .replies(200, "One page.", reply::<SubSystemsReply>)
}

fn restore_many() -> Operation {
    Operation::post("/files/restore", "restoreFiles", WRITE)
        .says(
            "Restore up to 1000 deleted files",
            "Each restoration is independent. The reply contains a result for each id, in the same order.",
        )
        .json(request::<RestoreFilesRequest>)
        .replies(200, "A result for each file.", reply::<RestoreFilesReply>)
}

fn restore() -> Operation {
    Operation::post("/files/{file_id}/restore", "restoreFile", WRITE)
        .says(
            "Restore a deleted file",
            "Works until the purge claims the file, at least until `purge_due_at` in the record. If the key does not \
             have the scope `read`, the reply contains only the id, without `ETag`.",
        )
        .replies(200, "The record, or only the id.", reply::<RestoreReply>)
        .with(["ETag"])
        .refuses([409])
}

fn sign() -> Operation {
    Operation::post("/files/{file_id}/sign", "signFile", READ)
        .says(
            "Sign a URL to read a file",
            "Anyone with the URL can read the content (or the variant) without a key, until the URL expires. If you \
             request the URL with a key and the key is revoked, the URL stops working too. Equal requests within a \
             few minutes return the same URL.",
        )
        .optional_json(request::<SignRequest>)
        .replies(200, "The URL.", reply::<SignedUrlReply>)
}

fn sign_upload() -> Operation {
    Operation::post("/files/sign-upload", "signUpload", WRITE)
        .says(
            "Sign a URL to upload one file",
            "Anyone with the URL can upload one file without a key, until the URL expires. If you request the URL \
             with a key and the key is revoked, the URL stops working too. Organization, sub-system, type and \
             maximum size are fixed.",
        )
        .json(request::<SignUploadRequest>)
        .replies(200, "The URL.", reply::<SignedUrlReply>)
}
