//! Commands for stored files.

pub(super) mod restore;
mod delete_plan;

use filestore_core::api::{
    ChangeReply, DeleteFileResult, DeleteReply, EditReply, FileRecord, ListQuery,
    MAX_DELETED_AT_ONCE,
};

use super::ids;
use crate::args::{DeleteArgs, DescriptionArgs, EditArgs, ListArgs, ReadyArgs, ReplaceArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{FilePages, Organizations, Output, plain, record};
use crate::store::{Change, Edit, IfMatch, Input, Item, MetadataEdit, Target};

/// `info`: shows a record.
pub(super) async fn info(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let found = target.info(id).await.map_err(|e| e.doing(format!("cannot show {id}")))?;
    show(&found, out)
}

fn show(file: &FileRecord, out: Output) -> Result<Exit> {
    out.data(file, |file| vec![file.file_id.as_str()], record)?;
    Ok(Exit::Done)
}

/// `list`: shows one page of files, or all files.
pub(super) async fn list(args: ListArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let organizations =
        if args.org.is_some() { Organizations::One } else { Organizations::Several };
    let pages = FilePages::new(organizations);

    let mut query = ListQuery::new();
    query.organization_id = args.org;
    query.sub_system = args.sub;
    query.status = args.status.map(Into::into);
    query.sync_status = args.sync_status.map(Into::into);
    query.purge_status = args.purge_status.map(Into::into);
    query.name_prefix = args.name_prefix;
    query.mime_type = args.mime;
    query.created_after = args.created_after;
    query.created_before = args.created_before;
    query.name_contains = args.name_contains;
    query.order = args.order.map(Into::into);
    if !args.ids.is_empty() {
        query = query.ids(&args.ids);
    }
    query.metadata = args.metadata.into_iter().collect();
    query.limit = args.limit;
    query.cursor = args.cursor;

    let listed = if args.all {
        list_all(query, pages, target, out).await
    } else {
        list_page(&query, pages, target, out).await
    };
    listed.map_err(|e| e.doing("cannot list files"))
}

async fn list_page(
    query: &ListQuery,
    mut pages: FilePages,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let page = target.list(query).await?;
    out.data(
        &page,
        |page| page.items.iter().map(|file| file.file_id.as_str()).collect(),
        |page| pages.page(&page.items),
    )?;
    note_more(&page.items, page.next_cursor.as_deref(), out);
    Ok(Exit::Done)
}

async fn list_all(
    mut query: ListQuery,
    mut pages: FilePages,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    // The largest page: fewer round trips for the same rows.
    query.limit = query.limit.or(Some(1000));

    loop {
        let page = target.list(&query).await?;
        out.each(&page.items, |file| &file.file_id, |items| pages.page(items))?;
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(Exit::Done);
        }
    }
}

fn note_more(shown: &[FileRecord], next: Option<&str>, out: Output) {
    if shown.is_empty() {
        out.note("no files");
    } else if let Some(cursor) = next {
        out.note(format!(
            "there are more files: use --all, or --cursor {cursor} for the next page"
        ));
    }
}

/// `thumbnail`: keeps a temporary file as a thumbnail.
pub(super) async fn thumbnail(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let meter = out.bytes_meter(id, None);
    let changed = target.change(id, Change::Thumbnail, None, &meter).await;
    drop(meter);
    show_change(
        "a thumbnail",
        &changed.map_err(|e| e.doing(format!("cannot make {id} a thumbnail")))?,
        out,
    )
}

/// `ready`: makes a file ready, with new bytes or without.
pub(super) async fn ready(args: ReadyArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = format!("cannot make {} ready", args.id);
    let reply = make_ready(args, target, out).await.map_err(|e| e.doing(doing))?;
    show_change("ready", &reply, out)
}

async fn make_ready(args: ReadyArgs, target: &dyn Target, out: Output) -> Result<ChangeReply> {
    let input = args.file.map(|path| Input::find(&path)).transpose()?;
    let meter = out.bytes_meter(&args.id, input.as_ref().and_then(Input::size_bytes));
    let item = input.map(|input| Item {
        input,
        name: args.description.name,
        mime_type: args.description.mime,
        metadata: args.description.metadata,
    });
    target.change(&args.id, Change::Ready(item), args.condition.if_match, &meter).await
}

/// `replace`: gives a file new bytes.
pub(super) async fn replace(args: ReplaceArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = format!("cannot replace {}", args.id);
    let reply = send_replacement(args, target, out).await.map_err(|e| e.doing(doing))?;
    show_change("replaced", &reply, out)
}

async fn send_replacement(
    args: ReplaceArgs,
    target: &dyn Target,
    out: Output,
) -> Result<ChangeReply> {
    let input = Input::find(&args.file)?;
    let meter = out.bytes_meter(&args.id, input.size_bytes());
    let DescriptionArgs { name, mime, metadata } = args.description;
    let item = Item { input, name, mime_type: mime, metadata };
    target.change(&args.id, Change::Replace(item), args.condition.if_match, &meter).await
}

fn show_change(what: &str, reply: &ChangeReply, out: Output) -> Result<Exit> {
    out.data(
        reply,
        |reply| vec![reply.file_id.as_str()],
        |reply| {
            format!(
                "{} is {what}, sync status {}",
                plain(&reply.file_id),
                plain(reply.sync_status.as_str())
            )
        },
    )?;
    Ok(Exit::Done)
}

/// `edit`: changes the name, type or custom metadata of a file.
pub(super) async fn edit(args: EditArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let metadata = if args.clear_metadata {
        Some(MetadataEdit::Clear)
    } else {
        args.metadata.map(MetadataEdit::Merge)
    };
    if args.name.is_none() && args.mime.is_none() && metadata.is_none() {
        let options = "--name, --type, --metadata or --clear-metadata";
        return Err(Failure::failed(format!("nothing to change: use {options}")));
    }

    let edit = Edit { name: args.name, mime_type: args.mime, metadata };
    let edited = target.edit(&args.id, edit, args.condition.if_match).await;
    match edited.map_err(|e| e.doing(format!("cannot edit {}", args.id)))? {
        EditReply::Record(file) => show(&file, out),
        EditReply::Change(reply) => show_change("edited", &reply, out),
    }
}

/// `delete`: deletes files, and prints an error for each file that stays.
pub(super) async fn delete(args: DeleteArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let ids = ids::read(args.ids).await?;
    if args.if_match.is_some() && ids.len() > 1 {
        return Err(
            Failure::failed("--if-match needs a single file").hint("run one command for each file")
        );
    }
    if args.dry_run {
        return delete_plan::show(&ids, args.if_match.as_ref(), target, out).await;
    }

    let (mut deleted, mut exit) = (Vec::new(), Exit::Done);
    for outcome in outcomes(&ids, args.if_match, target).await {
        match outcome {
            Ok(reply) => deleted.push(reply),
            Err(failure) => {
                out.failure(&failure);
                exit = exit.max(failure.exit());
            }
        }
    }

    out.data(
        &deleted,
        |all| all.iter().map(|reply| reply.file_id.as_str()).collect(),
        |all| {
            let lines: Vec<_> =
                all.iter().map(|reply| format!("{} is deleted", plain(&reply.file_id))).collect();
            lines.join("\n")
        },
    )?;

    Ok(exit)
}

/// Deletes the files, up to 1000 with one request. Returns the result for each file.
async fn outcomes(
    ids: &[String],
    if_match: Option<IfMatch>,
    target: &dyn Target,
) -> Vec<Result<DeleteReply>> {
    if let [id] = ids {
        let outcome = target.delete(id, if_match).await;
        return vec![outcome.map_err(|e| e.doing(format!("cannot delete {id}")))];
    }

    let mut outcomes = Vec::with_capacity(ids.len());
    for ids in ids.chunks(MAX_DELETED_AT_ONCE) {
        match target.delete_many(ids).await {
            Ok(results) => outcomes.extend(results.into_iter().map(reply_of)),
            Err(failure) => {
                let first = &ids[0];
                outcomes.push(Err(
                    failure.doing(format!("cannot delete {first} and the files after it"))
                ));
                break;
            }
        }
    }
    outcomes
}

/// Converts one result of several into the reply to a single deletion.
fn reply_of(result: DeleteFileResult) -> Result<DeleteReply> {
    match (result.error, result.storage_location) {
        (None, Some(location)) => Ok(DeleteReply::pending(result.id, location)),
        (Some(error), _) => {
            let failure = Failure::told(error.code, error.detail);
            Err(failure.doing(format!("cannot delete {}", result.id)))
        }
        (None, None) => Err(Failure::failed("the server reported no result")
            .doing(format!("cannot delete {}", result.id))),
    }
}
