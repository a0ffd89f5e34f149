//! `migrate`.

use std::fmt::Write as _;

use filestore_core::api::{
    MigrateHolding, MigratePlan, MigrateReport, MigrateStatus, MigrateVerifyReport,
    OrganizationNumber,
};
use tokio::sync::watch;

use crate::args::{MigrateCommand, MigrateTarget};
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, counted, plain, size};
use crate::store::{DetachedRun, Migration, Target};

/// `migrate plan`, `run`, `status` and `verify`.
pub(super) async fn run(
    command: MigrateCommand,
    target: &dyn Target,
    out: Output,
    stop: &watch::Sender<bool>,
) -> Result<Exit> {
    match command {
        MigrateCommand::Plan(asked) | MigrateCommand::Run { target: asked, dry_run: true, .. } => {
            plan(&asked, target, out).await
        }

        MigrateCommand::Run { target: MigrateTarget { org, to }, rate, dry_run: false, detach } => {
            let migration =
                Migration { organization: org, to, bytes_per_second: rate.map(|rate| rate.0) };
            if detach {
                let doing = format!("cannot start the migration of organization {org}");
                let run = DetachedRun::Migration(&migration);
                target.start(run).await.map_err(|e| e.doing(doing))?;
                return status(org, target, out).await;
            }
            migrate(&migration, target, out, stop).await
        }

        MigrateCommand::Status { org } => status(org, target, out).await,

        MigrateCommand::Verify(asked) => verify(&asked, target, out).await,
    }
}

async fn status(org: OrganizationNumber, target: &dyn Target, out: Output) -> Result<Exit> {
    let doing = format!("cannot read the state of organization {org}");
    let status = target.migrate_status(org).await.map_err(|e| e.doing(doing))?;
    out.report(&status, status_text)?;
    Ok(Exit::Done)
}

async fn plan(asked: &MigrateTarget, target: &dyn Target, out: Output) -> Result<Exit> {
    let MigrateTarget { org, to } = asked;
    let doing = format!("cannot plan a migration of organization {org}");
    let plan = target.migrate_plan(*org, to).await.map_err(|e| e.doing(doing))?;
    out.report(&plan, plan_text)?;
    Ok(if plan.refused.is_some() { Exit::Refused } else { Exit::Done })
}

fn plan_text(plan: &MigratePlan) -> String {
    let mut text = String::new();
    if !plan.from.is_empty() {
        text = holdings(&plan.from);
    }

    let _ = write!(
        text,
        "would move {} ({}) to {}, {} already there, {} on the local disk",
        counted(plan.move_files, "file"),
        size(plan.move_bytes),
        plain(&plan.to),
        plan.there_files,
        plan.stay_files,
    );

    if let Some(why) = &plan.refused {
        let _ = write!(text, "\nthe migration would be refused: {}", plain(why));
    }
    text
}

async fn migrate(
    migration: &Migration,
    target: &dyn Target,
    out: Output,
    stop: &watch::Sender<bool>,
) -> Result<Exit> {
    let meter = out.count_meter("moving");
    let doing = format!("cannot move the files of organization {}", migration.organization);
    let moved = target.migrate_run(migration, stop.subscribe(), &meter).await;
    drop(meter);

    let report = moved.map_err(|e| e.doing(doing))?;
    out.report(&report, report_text)?;

    let left = if report.left_files > 0 { Exit::Refused } else { Exit::Done };
    Ok(left.max(out.failures("move", &report.failures, report.failed)))
}

fn report_text(report: &MigrateReport) -> String {
    format!(
        "{}moved {} ({}), {} left ({}), {} failed",
        if report.stopped { "stopped: " } else { "" },
        counted(report.moved_files, "file"),
        size(report.moved_bytes),
        report.left_files,
        size(report.left_bytes),
        report.failed
    )
}

fn status_text(status: &MigrateStatus) -> String {
    let mut text =
        if status.holdings.is_empty() { String::new() } else { holdings(&status.holdings) };
    let organization = status.organization_id;
    let _ = match &status.bound_to {
        Some(provider) => {
            write!(text, "organization {organization} is bound to {}", plain(provider))
        }
        None => write!(text, "organization {organization} has no active binding"),
    };

    if let Some(running) = &status.running {
        let moved = counted(running.files, "file");
        let (to, bytes) = (plain(&running.to), size(running.bytes));
        let of = running.planned_files.map_or(String::new(), |planned| format!(" of {planned}"));
        let _ = write!(text, "\na migration to {to} is running: {moved}{of} moved ({bytes})");
    }

    text
}

fn holdings(holdings: &[MigrateHolding]) -> String {
    let columns = [
        ("PROVIDER", Align::Left),
        ("STATUS", Align::Left),
        ("FILES", Align::Right),
        ("SIZE", Align::Right),
        ("NOTE", Align::Left),
    ];

    let mut table = Table::new(columns);
    for holding in holdings {
        let note = if holding.available { "" } else { "not configured: cannot be moved" };
        table.row([
            plain(&holding.provider_code),
            plain(holding.status.as_str()),
            holding.files.to_string(),
            size(holding.bytes),
            note.to_owned(),
        ]);
    }

    table.render()
}

async fn verify(asked: &MigrateTarget, target: &dyn Target, out: Output) -> Result<Exit> {
    let MigrateTarget { org, to } = asked;
    let meter = out.count_meter("verifying");
    let verified = target.migrate_verify(*org, to, &meter).await;
    drop(meter);
    let report =
        verified.map_err(|e| e.doing(format!("cannot verify the files of organization {org}")))?;
    out.report(&report, verify_text)?;
    Ok(out.failures("verify", &report.failures, report.failed))
}

fn verify_text(report: &MigrateVerifyReport) -> String {
    format!(
        "verified {} ({}), {} at other providers, {} failed",
        counted(report.checked_files, "file"),
        size(report.checked_bytes),
        report.elsewhere,
        report.failed
    )
}
