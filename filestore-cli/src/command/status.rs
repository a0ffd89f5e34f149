//! `status` and `health`.

use std::fmt::Write as _;

use filestore_core::api::{AdminProvider, StatusDisk, StatusEvents, StatusReply, StatusWebhooks};

use super::purge::waiting;
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, age, counted, plain, size, when};
use crate::store::Target;

/// `status`: shows the state of the service, with advice on each problem.
pub(super) async fn run(target: &dyn Target, out: Output) -> Result<Exit> {
    let status =
        target.status().await.map_err(|e| e.doing("cannot read the state of the service"))?;
    out.report(&status, text)?;
    Ok(Exit::Done)
}

/// `health`: checks that the target answers and can store files.
pub(super) async fn health(target: &dyn Target, out: Output) -> Result<Exit> {
    let reply = target.health().await.map_err(|e| e.doing("not healthy"))?;
    out.report(&reply, |reply| {
        format!(
            "{}: database {}, storage {}",
            plain(&reply.message),
            plain(&reply.database),
            plain(&reply.storage)
        )
    })?;

    Ok(Exit::Done)
}

fn text(status: &StatusReply) -> String {
    let store = &status.store;
    let mut text = String::new();
    let mut line = |label: &str, value: String| _ = writeln!(text, "{label:<10}  {value}");

    let up = age(store.uptime_secs);
    line("store", format!("{}, version {}, up {up}", plain(&store.id), plain(&store.version)));
    line("data", plain(&store.data_dir));
    line("database", plain(&status.database));
    line("storage", plain(&status.storage));
    line("disk", status.disk.as_ref().map_or_else(|| "cannot be read".to_owned(), disk));
    line("files", format!("{} ({})", status.files, size(status.bytes)));
    line("uploads", uploads(status));
    if let Some(log) = &status.events {
        line("events", events(log));
    }
    if let Some(all) = &status.webhooks {
        line("webhooks", webhooks(all));
    }
    line("sync", sync(status));
    line("purge", purge(status));
    line("migrations", migrations(status));
    line("checks", checks(status));
    line("variants", variants(status));

    text.push('\n');
    text.push_str(&providers(&status.providers));
    text.push_str(&advice(status));
    text
}

fn disk(disk: &StatusDisk) -> String {
    let refused = if disk.takes_uploads { "" } else { ", uploads are refused" };
    format!(
        "{} of {} free, {} reserved{refused}",
        size(disk.free_bytes),
        size(disk.total_bytes),
        size(disk.reserve_bytes)
    )
}

fn uploads(status: &StatusReply) -> String {
    let (unfinished, resumable) = (&status.unfinished, &status.resumable);
    let mut text = format!("{} unfinished ({})", unfinished.files, size(unfinished.bytes));
    if let (Some(open), Some(bytes)) = (resumable.open, resumable.open_bytes) {
        let _ = write!(text, ", {open} resumable ({})", size(bytes));
    }
    text
}

fn events(log: &StatusEvents) -> String {
    if !log.is_on {
        return "off".to_owned();
    }
    let Some(oldest) = &log.oldest_at else { return "none".to_owned() };
    let mut text = format!("{} kept, the oldest of {} UTC", log.kept, when(oldest));
    if let Some(gap) = &log.gap_at {
        let _ = write!(text, ", a gap until {} UTC", when(gap));
    }
    if log.held_back_secs > 0 {
        let _ = write!(text, ", {} held back for {}", log.held_back, age(log.held_back_secs));
    }
    text
}

fn webhooks(all: &StatusWebhooks) -> String {
    if all.ok + all.failing + all.disabled == 0 {
        return "none".to_owned();
    }
    let mut text = format!("{} ok, {} failing, {} disabled", all.ok, all.failing, all.disabled);
    if let Some(oldest) = &all.oldest_waiting_at {
        let _ = write!(text, ", the oldest waiting event of {} UTC", when(oldest));
    }
    text
}

fn sync(status: &StatusReply) -> String {
    let sync = &status.sync;
    format!(
        "{} pending, {} in progress, {} done, {} failed",
        sync.pending, sync.syncing, sync.synced, sync.failed
    )
}

fn purge(status: &StatusReply) -> String {
    let purge = &status.purge;
    format!(
        "{} due ({}), {} due, {}",
        counted(purge.due + purge.expired, "file"),
        size(purge.due_bytes),
        counted(purge.due_blobs, "replaced blob"),
        waiting(purge.waiting, purge.waiting_bytes, purge.next_due_at.as_deref())
    )
}

fn migrations(status: &StatusReply) -> String {
    let all: Vec<_> = status
        .migrations
        .iter()
        .map(|one| {
            let (organization, to) = (plain(&one.organization_id), plain(&one.running.to));
            let moved = counted(one.running.files, "file");
            format!("organization {organization} to {to}: {moved} ({})", size(one.running.bytes))
        })
        .collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// Shows the last complete check and the running check.
fn checks(status: &StatusReply) -> String {
    let checks = &status.checks;
    let ended = [&checks.last, &checks.scrub].into_iter().flatten();
    let last = ended.filter(|one| one.ended_at.is_some()).max_by_key(|one| one.ended_at.clone());

    let mut text = match last {
        None => "none yet".to_owned(),
        Some(last) => {
            let at = when(last.ended_at.as_deref().unwrap_or_default());
            let found = match last.found {
                0 => "no findings".to_owned(),
                found => format!("{found} found, {} repaired or quarantined", last.repaired),
            };
            format!("{at}: {found}")
        }
    };
    if let Some(running) = &checks.running {
        let (part, files) = (plain(&running.part), counted(running.checked_files, "file"));
        let _ = write!(text, ", running at {part}: {files}, {} found", running.found);
    }
    text
}

fn variants(status: &StatusReply) -> String {
    let cache = &status.variants;
    format!(
        "{} on disk ({}), {} in memory ({})",
        cache.disk_entries,
        size(cache.disk_bytes),
        cache.memory_entries,
        size(cache.memory_bytes)
    )
}

fn providers(all: &[AdminProvider]) -> String {
    let mut table = Table::new([
        ("PROVIDER", Align::Left),
        ("STATE", Align::Left),
        ("TO COPY", Align::Right),
        ("TO PURGE", Align::Right),
        ("TO DROP", Align::Right),
        ("OLDEST", Align::Right),
        ("LAST ERROR (UTC)", Align::Left),
    ]);

    for provider in all {
        let backlog = &provider.backlog;
        table.row([
            plain(&provider.provider_code),
            state(provider),
            backlog.sync.to_string(),
            backlog.purge.to_string(),
            backlog.dropped.to_string(),
            backlog.oldest_secs.map(age).unwrap_or_default(),
            last_error(provider),
        ]);
    }
    table.render()
}

/// Describes the state of a provider in a word.
pub(super) fn state(provider: &AdminProvider) -> String {
    use filestore_core::api::BreakerState;

    match &provider.state {
        _ if !provider.is_configured => "gone".to_owned(),
        None | Some(BreakerState::Closed) if !provider.is_active => "inactive".to_owned(),
        None | Some(BreakerState::Closed) => "ok".to_owned(),
        Some(BreakerState::HalfOpen) => "on trial".to_owned(),
        Some(BreakerState::Open) => "down".to_owned(),
        Some(other) => plain(other.as_str()),
    }
}

/// Returns the last error of a provider with its time.
pub(super) fn last_error(provider: &AdminProvider) -> String {
    let Some(error) = &provider.last_error else { return String::new() };
    let at = provider.last_error_at.as_deref().map(when).unwrap_or_default();
    format!("{at} {}", plain(error))
}

fn advice(status: &StatusReply) -> String {
    let mut text = String::new();
    for advice in &status.advice {
        let (about, problem, next) =
            (plain(&advice.about), plain(&advice.problem), plain(&advice.next));
        let _ = write!(text, "\n! {about}: {problem}\n  next: {next}\n");
    }
    if text.is_empty() { "\nall is well\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use filestore_core::api::{BreakerState, StatusReply};

    use super::*;

    fn status(json: &str) -> StatusReply {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_is_not_well_stands_at_the_end_with_what_to_do() {
        let status = status(
            r#"{"providers":[{"provider_code":"eu","provider_name":"EU","storage_location":"CLOUD",
            "is_active":true,"scheme":"s3","is_tested":true,"state":"open",
            "last_error":"connection refused","last_error_at":"2026-11-22T04:00:00.000Z",
            "backlog":{"sync":3,"purge":1,"dropped":0,"oldest_secs":7300}}],
            "advice":[{"about":"eu","problem":"does not answer","next":"filestore provider check eu"}]}"#,
        );
        let shown = text(&status);
        assert!(shown.contains("eu        down"), "{shown}");
        assert!(shown.contains("2 h  2026-11-22 04:00:00 connection refused"), "{shown}");
        assert!(shown.ends_with("\n! eu: does not answer\n  next: filestore provider check eu\n"));
    }

    #[test]
    fn the_log_and_the_webhooks_have_a_line_each() {
        let status = status(
            r#"{"events":{"is_on":true,"kept":7,"oldest_at":"2026-11-21T04:00:00.000Z",
            "gap_at":"2026-11-22T04:00:00.000Z","held_back":3,"held_back_secs":90},
            "webhooks":{"ok":2,"failing":1,"oldest_waiting_at":"2026-11-23T04:00:00.000Z"}}"#,
        );
        let shown = text(&status);
        assert!(
            shown.contains(
                "events      7 kept, the oldest of 2026-11-21 04:00:00 UTC, a gap until \
                 2026-11-22 04:00:00 UTC, 3 held back for 1 min\n"
            ),
            "{shown}"
        );
        let line =
            "2 ok, 1 failing, 0 disabled, the oldest waiting event of 2026-11-23 04:00:00 UTC\n";
        assert!(shown.contains(&format!("webhooks    {line}")), "{shown}");
        assert_eq!(webhooks(&StatusWebhooks::default()), "none");
    }

    #[test]
    fn a_state_of_a_later_server_is_shown_as_it_is() {
        let mut status = status(
            r#"{"providers":[{"provider_code":"eu","provider_name":"EU","storage_location":"CLOUD",
            "is_active":true,"scheme":"s3","is_tested":true}]}"#,
        );
        assert_eq!(state(&status.providers[0]), "ok");
        status.providers[0].state = Some(BreakerState::Unknown("asleep".into()));
        assert_eq!(state(&status.providers[0]), "asleep");
        assert!(text(&status).ends_with("\nall is well\n"));
    }
}
