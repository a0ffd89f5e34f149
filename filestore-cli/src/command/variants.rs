//! `variants`.

use std::fmt::Write as _;

use filestore_core::api::VariantCacheReport;

use crate::args::VariantsCommand;
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, counted, size};
use crate::store::Target;

/// `variants status` and `prune`.
pub(super) async fn run(
    command: VariantsCommand,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    match command {
        VariantsCommand::Status => status(target, out).await,
        VariantsCommand::Prune => prune(target, out).await,
    }
}

/// `variants status`: shows the content of the cache.
async fn status(target: &dyn Target, out: Output) -> Result<Exit> {
    let report = target
        .variants_status()
        .await
        .map_err(|e| e.doing("cannot read the state of the cache"))?;
    out.report(&report, cache_text)?;
    Ok(Exit::Done)
}

fn cache_text(report: &VariantCacheReport) -> String {
    let mut table =
        Table::new([("WHERE", Align::Left), ("VARIANTS", Align::Right), ("SIZE", Align::Right)]);
    table.row(["disk".to_owned(), report.disk_entries.to_string(), size(report.disk_bytes)]);
    table.row(["memory".to_owned(), report.memory_entries.to_string(), size(report.memory_bytes)]);

    let mut text = table.render();
    if report.intermediate_bytes > 0 {
        let _ = write!(
            text,
            "\n{} of decoded images in memory for more sizes",
            size(report.intermediate_bytes)
        );
    }

    let VariantCacheReport { eager_waiting, eager_made, eager_dropped, .. } = report;
    if eager_waiting + eager_made + eager_dropped > 0 {
        let made = counted(*eager_made, "variant");
        let _ = write!(
            text,
            "\nmade in advance: {made}, {} waiting, {} dropped",
            counted(*eager_waiting, "file"),
            counted(*eager_dropped, "file")
        );
    }

    text
}

/// `variants prune`: empties the cache.
async fn prune(target: &dyn Target, out: Output) -> Result<Exit> {
    let report = target.variants_prune().await.map_err(|e| e.doing("cannot empty the cache"))?;
    out.report(&report, |report| format!("removed {}", counted(report.removed, "variant")))?;
    Ok(Exit::Done)
}
