//! `provider` and `binding`.

use std::fmt::Write as _;

use filestore_core::api::{
    AdminProvider, BindingReply, CreateBinding, ProviderCheckReport, ProviderReply, UpdateBinding,
};

use super::status;
use crate::args::{BindingCommand, ProviderCommand};
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, age, plain, when};
use crate::store::Target;

/// `provider list` and `check`.
pub(super) async fn provider(
    command: ProviderCommand,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    match command {
        ProviderCommand::List { all: false } => providers(target, out).await,
        ProviderCommand::List { all: true } => all_providers(target, out).await,
        ProviderCommand::Check { code } => check_provider(&code, target, out).await,
    }
}

/// `provider list`: lists the providers that accept new files.
async fn providers(target: &dyn Target, out: Output) -> Result<Exit> {
    let providers = target.providers().await.map_err(|e| e.doing("cannot list providers"))?;
    out.data(
        &providers,
        |all: &Vec<ProviderReply>| {
            all.iter().map(|provider| provider.provider_code.as_str()).collect()
        },
        |all| {
            let mut table = Table::new([("CODE", Align::Left), ("NAME", Align::Left)]);
            for provider in all {
                table.row([plain(&provider.provider_code), plain(&provider.provider_name)]);
            }
            table.render()
        },
    )?;

    Ok(Exit::Done)
}

/// `provider list --all`: lists all providers with their state.
async fn all_providers(target: &dyn Target, out: Output) -> Result<Exit> {
    let providers = target.all_providers().await.map_err(|e| e.doing("cannot list providers"))?;
    out.data(
        &providers,
        |all: &Vec<AdminProvider>| {
            all.iter().map(|provider| provider.provider_code.as_str()).collect()
        },
        |all| {
            let titles =
                ["CODE", "NAME", "LOCATION", "SCHEME", "ACTIVE", "STATE", "WAITING", "OLDEST"];
            let table = Table::new(titles.map(|title| (title, Align::Left)));
            let table = table.shortens(&["NAME", "STATE"]);
            let mut table = table.drops(&["SCHEME", "LOCATION", "OLDEST"]);
            for provider in all {
                let backlog = &provider.backlog;
                let untested = if provider.is_tested { "" } else { " (untested)" };
                table.row([
                    plain(&provider.provider_code),
                    plain(&provider.provider_name),
                    plain(provider.storage_location.as_str()),
                    format!("{}{untested}", plain(&provider.scheme)),
                    yes_no(provider.is_active).to_owned(),
                    status::state(provider),
                    (backlog.sync + backlog.purge + backlog.dropped).to_string(),
                    backlog.oldest_secs.map(age).unwrap_or_default(),
                ]);
            }
            table.render() + &last_errors(all)
        },
    )?;

    Ok(Exit::Done)
}

/// Shows the last error of each provider.
fn last_errors(all: &[AdminProvider]) -> String {
    let mut lines = String::new();
    for provider in all.iter().filter(|provider| provider.last_error.is_some()) {
        let code = plain(&provider.provider_code);
        let last = status::last_error(provider);
        writeln!(lines, "last error of {code}: {last}").expect("a string accepts everything");
    }
    lines
}

/// `provider check`: tests a provider with objects of its own.
async fn check_provider(code: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = format!("cannot check the provider {}", plain(code));
    let report = target.check_provider(code).await.map_err(|e| e.doing(doing))?;

    out.report(&report, check_text)?;
    Ok(if report.can_serve { Exit::Done } else { Exit::Refused })
}

fn check_text(report: &ProviderCheckReport) -> String {
    let mut table = Table::new(["STEP", "OUTCOME", "DETAIL"].map(|title| (title, Align::Left)));
    for step in &report.steps {
        table.row([plain(&step.name), plain(step.outcome.as_str()), plain(&step.detail)]);
    }
    let verdict = if report.can_serve { "can serve" } else { "cannot serve" };
    format!("{}{} {verdict}", table.render(), plain(&report.provider_code))
}

/// `binding create`, `update` and `list`: changes or lists bindings.
pub(super) async fn run(command: BindingCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        BindingCommand::Create { org, name, provider, sync } => {
            let mut new = CreateBinding::new(org, name, provider);
            new.sync_enabled = sync;

            let doing = format!("cannot bind organization {org}");
            let binding = target.create_binding(new).await.map_err(|e| e.doing(doing))?;
            out.report(&binding, |binding| table(std::slice::from_ref(binding)))?;
        }
        BindingCommand::Update { org, name, provider, sync, active } => {
            let mut update = UpdateBinding::new(org);
            update.organization_name = name;
            update.storage_provider = provider;
            update.sync_enabled = sync;
            update.is_active = active;

            let doing = format!("cannot change the binding of organization {org}");
            let reply = target.update_binding(update).await.map_err(|e| e.doing(doing))?;
            out.report(&reply, |reply| {
                let state = if reply.is_active { "active" } else { "terminated" };
                let sync = yes_no(reply.sync_enabled);
                let provider = plain(&reply.storage_provider);
                format!("organization {org} is bound to {provider}, sync {sync}, {state}")
            })?;
        }
        BindingCommand::List { org } => {
            let bindings =
                target.bindings(org).await.map_err(|e| e.doing("cannot list bindings"))?;
            out.report(&bindings, |all| table(all))?;
            if bindings.is_empty() {
                out.note("no bindings");
            }
        }
    }
    Ok(Exit::Done)
}

fn table(bindings: &[BindingReply]) -> String {
    if bindings.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("ID", Align::Right),
        ("ORG", Align::Right),
        ("NAME", Align::Left),
        ("PROVIDER", Align::Left),
        ("SYNC", Align::Left),
        ("ACTIVE", Align::Left),
        ("FROM (UTC)", Align::Left),
        ("TO (UTC)", Align::Left),
    ]);
    table = table.shortens(&["NAME"]).drops(&["ID", "FROM (UTC)", "TO (UTC)"]);

    for binding in bindings {
        table.row([
            binding.id.to_string(),
            binding.organization_id.to_string(),
            plain(&binding.organization_name),
            plain(&binding.storage_provider),
            yes_no(binding.sync_enabled).to_owned(),
            yes_no(binding.is_active).to_owned(),
            when(&binding.effective_from),
            binding.effective_to.as_deref().map(when).unwrap_or_default(),
        ]);
    }

    table.render()
}

pub(super) fn yes_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}
