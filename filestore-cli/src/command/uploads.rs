//! `uploads`: resumable uploads of all clients.

use std::fmt::Write as _;

use filestore_core::api::{ErrorCode, OrganizationId, PageQuery, ResumableUpload};

use crate::args::{PageArgs, UploadsCommand};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Pages, Table, plain, size, when};
use crate::store::Target;

/// The largest page: fewer round trips for the same rows.
const LARGEST_PAGE: u32 = 1000;

/// Lists, shows or cancels resumable uploads.
pub(super) async fn run(command: UploadsCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        UploadsCommand::List { org, page } => list(org.as_ref(), page, target, out).await,
        UploadsCommand::Show { id } => show(&id, target, out).await,
        UploadsCommand::Cancel { id } => cancel(&id, target, out).await,
    }
}

/// `uploads list`: lists uploads in pages.
async fn list(
    organization: Option<&OrganizationId>,
    args: PageArgs,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let mut query = PageQuery::new();
    query.limit = args.limit.or(args.all.then_some(LARGEST_PAGE));
    query.cursor = args.cursor;

    let mut pages = Pages::default();
    loop {
        let page = target.uploads(organization, &query).await;
        let page = page.map_err(|e| e.doing("cannot list uploads"))?;
        if args.all {
            out.each(&page.items, |one| &one.upload_id, |items| pages.page(&table(items)))?;
        } else {
            out.data(
                &page,
                |page| page.items.iter().map(|one| one.upload_id.as_str()).collect(),
                |page| pages.page(&table(&page.items)),
            )?;
        }

        match page.next_cursor {
            Some(cursor) if args.all => query.cursor = Some(cursor),
            Some(cursor) => {
                out.note(format!(
                    "there are more uploads: use --all, or --cursor {cursor} for the next page"
                ));
                return Ok(Exit::Done);
            }
            None => {
                if page.items.is_empty() && !args.all {
                    out.note("no uploads");
                }
                return Ok(Exit::Done);
            }
        }
    }
}

/// `uploads show`: shows one upload.
async fn show(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = || format!("cannot show the upload {}", plain(id));
    let upload = target.upload_state(id).await.map_err(|e| unknown(e).doing(doing()))?;
    out.data(&upload, |one| vec![one.upload_id.as_str()], text)?;
    Ok(Exit::Done)
}

/// `uploads cancel`: cancels an upload, and shows its last state.
async fn cancel(id: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = || format!("cannot cancel the upload {}", plain(id));
    let last = target.cancel_upload(id).await.map_err(|e| unknown(e).doing(doing()))?;
    out.data(&last, |one| vec![one.upload_id.as_str()], cancelled)?;
    Ok(Exit::Done)
}

/// Names the command that lists the known ids.
fn unknown(failure: Failure) -> Failure {
    match failure.code() {
        Some(ErrorCode::NotFound | ErrorCode::InvalidField) => {
            failure.hint("check the id with `filestore uploads list`")
        }
        _ => failure,
    }
}

fn cancelled(last: &ResumableUpload) -> String {
    let id = plain(&last.upload_id);
    match &last.file_id {
        Some(file) => format!("forgot upload {id}. The file {} stays", plain(file)),
        None => format!("cancelled upload {id} ({} received)", size(last.offset)),
    }
}

fn text(upload: &ResumableUpload) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| _ = writeln!(text, "{label:<13}  {}", plain(value));

    line("id", &upload.upload_id);
    line("state", &state(upload));
    line("received", &received(upload));
    line("organization", &upload.organization_id);
    line("name", upload.original_name.as_deref().unwrap_or("-"));
    line("created", &format!("{} UTC", when(&upload.created_at)));
    line("expires", &format!("{} UTC", when(&upload.expires_at)));
    line("file", upload.file_id.as_deref().unwrap_or("-"));
    text
}

/// Names the state, and the reason of a failure.
fn state(upload: &ResumableUpload) -> String {
    match &upload.error {
        Some(error) => format!("{}: {error}", upload.state),
        None => upload.state.clone(),
    }
}

fn received(upload: &ResumableUpload) -> String {
    let offset = size(upload.offset);
    match upload.length {
        Some(length) => format!("{offset} of {}", size(length)),
        None => offset,
    }
}

fn table(uploads: &[ResumableUpload]) -> Table {
    let table = Table::new([
        ("ID", Align::Left),
        ("ORG", Align::Left),
        ("STATE", Align::Left),
        ("RECEIVED", Align::Right),
        ("CREATED (UTC)", Align::Left),
        ("EXPIRES (UTC)", Align::Left),
        ("FILE", Align::Left),
        ("NAME", Align::Left),
    ]);
    let table = table.shortens(&["NAME", "ORG", "STATE"]);
    let mut table = table.drops(&["CREATED (UTC)", "EXPIRES (UTC)", "FILE"]);
    for one in uploads {
        table.row([
            plain(&one.upload_id),
            plain(&one.organization_id),
            plain(&state(one)),
            received(one),
            when(&one.created_at),
            when(&one.expires_at),
            one.file_id.as_deref().map_or_else(|| "-".to_owned(), plain),
            one.original_name.as_deref().map_or_else(|| "-".to_owned(), plain),
        ]);
    }
    table
}
