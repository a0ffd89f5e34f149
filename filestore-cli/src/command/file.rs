//! Commands on files that are stored already.

use filestore_core::api::{
    ChangeReply, DeleteFileResult, DeleteReply, FileRecord, ListQuery, MAX_DELETED_AT_ONCE,
};

use crate::args::{DeleteArgs, EditArgs, ListArgs, ReadyArgs, ReplaceArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, files, more_files, plain, record};
use crate::target::{Change, Edit, Input, Item, Target};

/// `info`: shows a record.
pub(super) async fn info(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let found = target.info(id).await.map_err(|e| e.doing(format!("cannot show {id}")))?;
    show(&found, out)
}

/// `restore`: takes a deletion back.
pub(super) async fn restore(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let restored = target.restore(id).await.map_err(|e| e.doing(format!("cannot restore {id}")))?;
    show(&restored, out)
}

fn show(file: &FileRecord, out: Output) -> Result<Exit> {
    out.data(file, |file| vec![file.file_id.as_str()], record)?;
    Ok(Exit::Done)
}

/// `list`: shows one page of files, or all files.
pub(super) async fn list(args: ListArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut query = ListQuery::new();
    query.organization_id = args.org;
    query.sub_system = args.sub;
    query.status = args.status.map(Into::into);
    query.purge_status = args.purge_status.map(Into::into);
    query.name_prefix = args.name_prefix;
    query.mime_type = args.mime;
    query.created_after = args.created_after;
    query.created_before = args.created_before;
    query.metadata = args.metadata.into_iter().collect();
    query.limit = args.limit;
    query.cursor = args.cursor;

    let listed = if args.all {
        list_all(query, target, out).await
    } else {
        list_page(&query, target, out).await
    };
    listed.map_err(|e| e.doing("cannot list files"))
}

async fn list_page(query: &ListQuery, target: &dyn Target, out: Output) -> Result<Exit> {
    let page = target.list(query).await?;
    out.data(
        &page,
        |page| page.items.iter().map(|file| file.file_id.as_str()).collect(),
        |page| files(&page.items),
    )?;
    note_more(&page.items, page.next_cursor.as_deref(), out);
    Ok(Exit::Done)
}

async fn list_all(mut query: ListQuery, target: &dyn Target, out: Output) -> Result<Exit> {
    // The largest page: fewer round trips for the same rows.
    query.limit = query.limit.or(Some(1000));
    let mut lay_out: fn(&[FileRecord]) -> String = files;

    loop {
        let page = target.list(&query).await?;
        out.each(&page.items, |file| &file.file_id, lay_out)?;
        // Only the first page has the table's head.
        lay_out = more_files;
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
        out.note(format!("there are more: --all shows them, --cursor {cursor} goes on here"));
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
        name: args.name,
        mime_type: args.mime,
        metadata: args.metadata,
    });
    target.change(&args.id, Change::Ready(item), args.if_match, &meter).await
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
    let item = Item { input, name: args.name, mime_type: args.mime, metadata: args.metadata };
    target.change(&args.id, Change::Replace(item), args.if_match, &meter).await
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

/// `edit`: gives a file another name, type or metadata.
pub(super) async fn edit(args: EditArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    if args.name.is_none() && args.mime.is_none() && args.metadata.is_none() {
        return Err(Failure::failed("nothing to change: give --name, --type or --metadata"));
    }

    let edit = Edit { name: args.name, mime_type: args.mime, metadata: args.metadata };
    let meter = out.bytes_meter(&args.id, None);
    let changed = target.change(&args.id, Change::Edit(edit), args.if_match, &meter).await;
    drop(meter);
    show_change("edited", &changed.map_err(|e| e.doing(format!("cannot edit {}", args.id)))?, out)
}

/// `delete`: deletes each file, and tells of each that stays.
pub(super) async fn delete(args: DeleteArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let (mut deleted, mut exit) = (Vec::new(), Exit::Done);
    for outcome in outcomes(args, target).await? {
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

/// Deletes the files, many with one request; returns what became of each that was tried.
async fn outcomes(args: DeleteArgs, target: &dyn Target) -> Result<Vec<Result<DeleteReply>>> {
    if let [id] = &args.ids[..] {
        let outcome = target.delete(id, args.if_match).await;
        return Ok(vec![outcome.map_err(|e| e.doing(format!("cannot delete {id}")))]);
    }
    if args.if_match.is_some() {
        return Err(Failure::failed("--if-match is for one file, not for several")
            .hint("delete the files with one command each"));
    }

    let mut outcomes = Vec::with_capacity(args.ids.len());
    for ids in args.ids.chunks(MAX_DELETED_AT_ONCE) {
        match target.delete_many(ids).await {
            Ok(results) => outcomes.extend(results.into_iter().map(reply_of)),
            Err(failure) => {
                let first = &ids[0];
                outcomes
                    .push(Err(failure.doing(format!("cannot delete {first} and those after it"))));
                break;
            }
        }
    }
    Ok(outcomes)
}

/// Turns one result among several into what the deletion of one file answers.
fn reply_of(result: DeleteFileResult) -> Result<DeleteReply> {
    match (result.error, result.storage_location) {
        (None, Some(location)) => Ok(DeleteReply::pending(result.id, location)),
        (Some(error), _) => {
            let failure = Failure::told(error.code, error.detail);
            Err(failure.doing(format!("cannot delete {}", result.id)))
        }
        (None, None) => Err(Failure::failed("the server tells neither success nor failure")
            .doing(format!("cannot delete {}", result.id))),
    }
}
