//! `webhook`: URLs to which the service sends events.

use filestore_core::api::{
    CreateWebhook, EditWebhook, EnableWebhook, NewWebhookReply, RedeliverWebhook, RotateWebhook,
    WebhookFailure, WebhookFailuresQuery, WebhookPingReply, WebhookReply,
};

use crate::args::{RedeliverArgs, WebhookCommand, WebhookEditArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Pages, Table, counted, plain, when};
use crate::store::Target;

/// Runs a command for webhooks.
pub(super) async fn run(command: WebhookCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        WebhookCommand::Create { url, types, org, name, from } => {
            let mut new = CreateWebhook::new(url);
            new.types = types;
            new.organization_id = org.as_ref().map(ToString::to_string);
            new.name = name;
            new.from = from;
            let made = target.create_webhook(&new).await;
            show_secret(&made.map_err(|e| e.doing("cannot create a webhook"))?, out)?;
        }
        WebhookCommand::List => {
            let all = target.webhooks().await.map_err(|e| e.doing("cannot list webhooks"))?;
            out.data(
                &all,
                |all| all.iter().map(|one| one.id.as_str()).collect(),
                |all| table(all),
            )?;
            if all.is_empty() {
                out.note("no webhooks: create one with `filestore webhook create`");
            }
        }
        WebhookCommand::Show(webhook) => {
            let shown = target.webhook(&webhook.id).await;
            show(&shown.map_err(|e| doing(e, "show", &webhook.id))?, out)?;
        }
        WebhookCommand::Edit(args) => return edit(args, target, out).await,
        WebhookCommand::Rotate { webhook, overlap } => {
            let mut rotation = RotateWebhook::default();
            rotation.overlap_s = Some(overlap.get());
            let made = target.rotate_webhook(&webhook.id, &rotation).await;
            show_secret(&made.map_err(|e| doing(e, "rotate", &webhook.id))?, out)?;
        }
        WebhookCommand::Ping(webhook) => {
            let report = target.ping_webhook(&webhook.id).await;
            return show_ping(&report.map_err(|e| doing(e, "ping", &webhook.id))?, out);
        }
        WebhookCommand::Failures { webhook, state } => {
            return failures(&webhook.id, state, target, out).await;
        }
        WebhookCommand::Redeliver(args) => return redeliver(args, target, out).await,
        WebhookCommand::Enable { webhook, from } => {
            let mut place = EnableWebhook::default();
            place.from = from;
            let shown = target.enable_webhook(&webhook.id, &place).await;
            show(&shown.map_err(|e| doing(e, "enable", &webhook.id))?, out)?;
        }
        WebhookCommand::Disable(webhook) => {
            let shown = target.disable_webhook(&webhook.id).await;
            show(&shown.map_err(|e| doing(e, "disable", &webhook.id))?, out)?;
        }
        WebhookCommand::Delete(webhook) => {
            let deleted = target.delete_webhook(&webhook.id).await;
            let deleted = deleted.map_err(|e| doing(e, "delete", &webhook.id))?;
            out.data(
                &deleted,
                |one| vec![one.id.as_str()],
                |one| format!("deleted the webhook {}", plain(&one.id)),
            )?;
        }
    }
    Ok(Exit::Done)
}

fn doing(failure: Failure, verb: &str, id: &str) -> Failure {
    failure.doing(format!("cannot {verb} the webhook {}", plain(id)))
}

async fn edit(args: WebhookEditArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let id = &args.webhook.id;
    let mut edit = EditWebhook::default();
    edit.url = args.url;
    edit.name = args.name;
    edit.types = args.types.map(|types| {
        types.split(',').filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
    });
    let shown = target.edit_webhook(id, &edit).await.map_err(|e| doing(e, "change", id))?;
    show(&shown, out)?;
    Ok(Exit::Done)
}

async fn redeliver(args: RedeliverArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let id = &args.webhook.id;
    let what = match (args.event, args.after, args.until) {
        (Some(event), _, _) => RedeliverWebhook::event(event),
        (None, Some(after), Some(until)) => RedeliverWebhook::range(after, until),
        _ => RedeliverWebhook::failed(),
    };
    let again = |e| doing(e, "send again to", id);
    let mut reply = target.redeliver(id, &what).await.map_err(again)?;
    while let (Some(next), Some(until)) = (reply.next.take(), what.until.as_deref()) {
        let range = RedeliverWebhook::range(next, until);
        let more = target.redeliver(id, &range).await.map_err(again)?;
        reply.queued += more.queued;
        reply.next = more.next;
    }
    out.report(&reply, |reply| format!("{} will be sent again", counted(reply.queued, "event")))?;
    Ok(Exit::Done)
}

/// Prints all failures, page by page.
async fn failures(
    id: &str,
    state: Option<String>,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let mut query = WebhookFailuresQuery::default();
    query.state = state;
    query.limit = Some(1000);
    let (mut pages, mut is_empty) = (Pages::default(), true);
    loop {
        let page = target.webhook_failures(id, &query).await;
        let page = page.map_err(|e| doing(e, "list the failures of", id))?;
        if !page.failures.is_empty() {
            is_empty = false;
            out.each(
                &page.failures,
                |one| one.event_id.as_str(),
                |all| pages.page(&failure_table(all)),
            )?;
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    if is_empty {
        out.note("no failures");
    }
    Ok(Exit::Done)
}

/// Prints only the secret to stdout, for scripts. The rest is a note.
fn show_secret(made: &NewWebhookReply, out: Output) -> Result<()> {
    out.text(made, &made.secret)?;
    let about = &made.about;
    out.note(format!(
        "webhook {}: copy the secret now, because it is not shown again",
        plain(&about.id)
    ));
    if let Some(until) = &about.former_secret_until {
        out.note(format!("the former secret signs too until {} UTC", when(until)));
    }
    Ok(())
}

fn show(webhook: &WebhookReply, out: Output) -> Result<()> {
    out.data(webhook, |one| vec![one.id.as_str()], details)
}

fn details(webhook: &WebhookReply) -> String {
    let mut lines = vec![
        format!("id        {}", plain(&webhook.id)),
        format!("url       {}", plain(&webhook.url)),
    ];
    let mut line = |label: &str, text: Option<String>| {
        lines.extend(text.map(|text| format!("{label:<9} {text}")));
    };
    let given = |text: &str| (!text.is_empty()).then(|| plain(text));
    line("name", given(&webhook.name));
    line("org", Some(webhook.organization_id.as_deref().map_or("all".to_owned(), plain)));
    line("types", Some(given(&webhook.types.join(", ")).unwrap_or_else(|| "all".to_owned())));
    line("state", Some(state(webhook)));
    line("retry", webhook.paused_until.as_deref().map(when));
    line("answer", answer(webhook));
    line("success", webhook.last_success_at.as_deref().map(when));
    line("waiting", webhook.oldest_waiting_at.as_deref().map(|at| format!("since {}", when(at))));
    line("gaps", (webhook.gaps > 0).then(|| webhook.gaps.to_string()));
    lines.join("\n")
}

fn state(webhook: &WebhookReply) -> String {
    match (&webhook.disabled_reason, &webhook.disabled_at, &webhook.failing_since) {
        (Some(reason), Some(at), _) => format!("disabled ({}) since {}", plain(reason), when(at)),
        (_, _, Some(since)) => format!("failing since {}", when(since)),
        _ => plain(&webhook.state),
    }
}

fn answer(webhook: &WebhookReply) -> Option<String> {
    let status = webhook.last_status.map(|status| status.to_string());
    status.or_else(|| webhook.last_error.as_deref().map(plain))
}

fn show_ping(report: &WebhookPingReply, out: Output) -> Result<Exit> {
    out.report(report, |report| {
        let took = report.took_ms;
        match (report.status, &report.error) {
            (Some(status), _) => format!("the endpoint answered {status} in {took} ms"),
            (None, Some(error)) => format!("no answer ({}) after {took} ms", plain(error)),
            (None, None) => format!("no answer after {took} ms"),
        }
    })?;
    if report.delivered {
        return Ok(Exit::Done);
    }
    Err(Failure::refused("the endpoint did not accept the ping"))
}

fn table(webhooks: &[WebhookReply]) -> String {
    if webhooks.is_empty() {
        return String::new();
    }
    let columns = ["ID", "STATE", "URL", "ORG", "TYPES", "LAST", "NAME"];
    let table = Table::new(columns.map(|name| (name, Align::Left)));
    let table = table.shortens(&["URL", "TYPES", "NAME", "STATE"]);
    let mut table = table.drops(&["NAME", "LAST", "TYPES", "ORG"]);
    for webhook in webhooks {
        let types = if webhook.types.is_empty() { "all".into() } else { webhook.types.join(",") };
        table.row([
            plain(&webhook.id),
            state(webhook),
            plain(&webhook.url),
            webhook.organization_id.as_deref().map_or_else(|| "all".to_owned(), plain),
            plain(&types),
            answer(webhook).unwrap_or_else(|| "-".to_owned()),
            plain(&webhook.name),
        ]);
    }
    table.render()
}

fn failure_table(failures: &[WebhookFailure]) -> Table {
    let columns = ["EVENT", "TYPE", "FILE", "STATE", "ATTEMPTS", "AT (UTC)", "LAST"];
    let mut table = Table::new(columns.map(|name| (name, Align::Left)));
    for failure in failures {
        table.row([
            plain(&failure.event_id),
            plain(&failure.kind),
            failure.file_id.as_deref().map_or_else(|| "-".to_owned(), plain),
            plain(&failure.state),
            failure.attempts.to_string(),
            when(&failure.at),
            failure.last_status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
        ]);
    }
    table
}
