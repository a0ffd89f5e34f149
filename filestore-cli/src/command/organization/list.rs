//! `organization list` and `organization sub-systems`.

use filestore_core::api::{OrganizationId, OrganizationReply, PageQuery, SubSystemReply};

use crate::args::PageArgs;
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Pages, Table, plain, size};
use crate::store::Target;

/// The largest page: fewer round trips for the same rows.
const LARGEST_PAGE: u32 = 1000;

/// `organization list`: lists organizations with their files and bytes.
pub(super) async fn list(args: PageArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let (mut query, all) = (query_of(&args), args.all);
    let mut pages = Pages::default();
    loop {
        let page =
            target.organizations(&query).await.map_err(|e| e.doing("cannot list organizations"))?;
        if all {
            out.each(&page.items, |one| &one.organization_id, |items| pages.page(&table(items)))?;
        } else {
            out.data(
                &page,
                |page| page.items.iter().map(|one| one.organization_id.as_str()).collect(),
                |page| pages.page(&table(&page.items)),
            )?;
        }

        match next(page.items.len(), page.next_cursor, all, "organizations", out) {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(Exit::Done),
        }
    }
}

/// `organization sub-systems`: lists an organization's sub-systems with their files and bytes.
pub(super) async fn sub_systems(
    organization: &OrganizationId,
    args: PageArgs,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let (mut query, all) = (query_of(&args), args.all);
    let mut pages = Pages::default();
    loop {
        let doing = || format!("cannot list the sub-systems of {}", plain(organization.as_str()));
        let page = target.sub_systems(organization, &query).await.map_err(|e| e.doing(doing()))?;
        if all {
            out.each(&page.items, |one| &one.sub_system, |items| pages.page(&parts(items)))?;
        } else {
            out.data(
                &page,
                |page| page.items.iter().map(|one| one.sub_system.as_str()).collect(),
                |page| pages.page(&parts(&page.items)),
            )?;
        }

        match next(page.items.len(), page.next_cursor, all, "sub-systems", out) {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(Exit::Done),
        }
    }
}

fn query_of(args: &PageArgs) -> PageQuery {
    let mut query = PageQuery::new();
    query.limit = args.limit.or(args.all.then_some(LARGEST_PAGE));
    query.cursor.clone_from(&args.cursor);
    query
}

/// Returns the cursor of the next page if all pages are wanted. Otherwise notes that there is more.
fn next(
    shown: usize,
    cursor: Option<String>,
    all: bool,
    what: &str,
    out: Output,
) -> Option<String> {
    match cursor {
        Some(cursor) if all => return Some(cursor),
        Some(cursor) => out.note(format!(
            "there are more {what}: use --all, or --cursor {cursor} for the next page"
        )),
        None if shown == 0 && !all => out.note(format!("no {what}")),
        None => {}
    }
    None
}

fn table(organizations: &[OrganizationReply]) -> Table {
    let mut table = Table::new([
        ("ID", Align::Left),
        ("FILES", Align::Right),
        ("SIZE", Align::Right),
        ("QUOTA", Align::Right),
        ("PROVIDER", Align::Left),
        ("NAME", Align::Left),
    ]);
    for one in organizations {
        let binding = one.binding.as_ref();
        let provider = binding.map(|binding| {
            let sync = if binding.sync_enabled { " (sync)" } else { "" };
            plain(&format!("{}{sync}", binding.storage_provider))
        });
        table.row([
            plain(&one.organization_id),
            one.files.to_string(),
            size(one.bytes),
            one.quota_bytes.map_or_else(|| "none".to_owned(), size),
            provider.unwrap_or_else(|| "LOCAL".to_owned()),
            binding.map(|binding| plain(&binding.organization_name)).unwrap_or_default(),
        ]);
    }
    table
}

fn parts(sub_systems: &[SubSystemReply]) -> Table {
    let mut table = Table::new([
        ("SUB-SYSTEM", Align::Left),
        ("FILES", Align::Right),
        ("SIZE", Align::Right),
        ("TEMPORARY", Align::Right),
        ("DELETED", Align::Right),
    ]);
    for one in sub_systems {
        table.row([
            plain(&one.sub_system),
            one.files.to_string(),
            size(one.bytes),
            one.temp.files.to_string(),
            one.deleted.files.to_string(),
        ]);
    }
    table
}
