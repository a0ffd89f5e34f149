//! Commands on files that are stored already.

use filestore_core::api::{ChangeReply, FileRecord, ListQuery};

use crate::args::{DeleteArgs, ListArgs, ReadyArgs, ReplaceArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, files, more_files, plain, record};
use crate::target::{Change, Input, Item, Target};

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
    let item = input.map(|input| Item { input, name: args.name, mime_type: args.mime });
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
    let item = Item { input, name: args.name, mime_type: args.mime };
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

/// `delete`: deletes each file; stops only at a failure that the next would meet too.
pub(super) async fn delete(args: DeleteArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    if args.if_match.is_some() && args.ids.len() > 1 {
        return Err(Failure::failed("--if-match is for one file, not for several")
            .hint("delete the files with one command each"));
    }

    let (mut deleted, mut exit) = (Vec::new(), Exit::Done);
    for id in &args.ids {
        let outcome = target.delete(id, args.if_match.clone()).await;
        match outcome.map_err(|e| e.doing(format!("cannot delete {id}"))) {
            Ok(reply) => deleted.push(reply),
            Err(failure) => {
                out.failure(&failure);
                exit = exit.max(failure.exit());
                if failure.hits_all() {
                    break;
                }
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
