//! The metric families of the store and its listeners.

use std::time::Duration;

use filestore_core::admin::{
    BreakerState, DiskSpace, EventLogLoad, FsckSummary, LastBackup, Load, ProviderStatus,
    PurgeReport, ResumableLoad, VariantLoad, Waiting,
};
use filestore_core::webhooks::{Webhook, WebhookBacklog, WebhookCounts};
use filestore_core::{Timestamp, Usage};

use super::text::Text;
use crate::listen::{Traffic, Validity};
use crate::streams::Streams;

/// Writes the version and the start time.
pub(super) fn about(text: &mut Text, load: &Load) {
    text.gauges("filestore_build_info", "1, with the version as a label.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.gauge(
        "filestore_start_time_seconds",
        "Time at which the store was opened, in seconds since 1970.",
        seconds(load.opened_at),
    );
}

/// Writes the counters of the listeners.
pub(super) fn traffic(text: &mut Text, traffic: &Traffic) {
    text.gauge("filestore_http_connections", "Connections that are open.", traffic.connections());
    text.counter(
        "filestore_http_connections_accepted",
        "Connections that were accepted.",
        traffic.accepted(),
    );
    text.counter(
        "filestore_http_connections_timed_out",
        "Connections that ended because their client was too slow.",
        traffic.timed_out(),
    );
    text.gauge(
        "filestore_http_requests_running",
        "Requests with an unfinished reply.",
        traffic.requests(),
    );
    text.counter(
        "filestore_http_received_bytes",
        "Bytes that were received, heads included, without TLS.",
        traffic.received_bytes(),
    );
    text.counter(
        "filestore_http_sent_bytes",
        "Bytes that were sent, heads included, without TLS.",
        traffic.sent_bytes(),
    );
}

/// Writes the streams of events.
pub(super) fn streams(text: &mut Text, streams: &Streams) {
    text.gauge(
        "filestore_event_streams",
        "Streams of events that are open, and pages that wait for an event.",
        streams.count(),
    );
    text.counter(
        "filestore_event_streams_refused",
        "Streams of events that were refused because of a limit.",
        streams.refused(),
    );
}

/// Writes the deliveries of this server to webhooks.
pub(super) fn deliveries(text: &mut Text, counts: WebhookCounts) {
    let mut attempts =
        text.counters("filestore_webhook_deliveries", "Attempts to send an event to a webhook.");
    for (outcome, count) in [
        ("delivered", counts.delivered),
        ("refused", counts.refused),
        ("unreachable", counts.unreachable),
    ] {
        attempts.sample(&[("outcome", outcome)], count);
    }
    let mut reads = text.counters(
        "filestore_webhook_log_reads",
        "Reads of the log of events, for all webhooks together or for one that is behind.",
    );
    for (reader, count) in [("shared", counts.shared_reads), ("lane", counts.lane_reads)] {
        reads.sample(&[("reader", reader)], count);
    }
}

/// Writes the events that the lanes of this server still have to deliver.
pub(super) fn backlog(text: &mut Text, backlog: &WebhookBacklog, now: Timestamp) {
    let mut waiting = text.gauges(
        "filestore_webhook_waiting_events",
        "Events that this server has read and still has to send to webhooks.",
    );
    for (attempt, count) in [("first", backlog.first), ("again", backlog.again)] {
        waiting.sample(&[("attempt", attempt)], count);
    }
    let age = backlog.oldest_at.map_or(0.0, |oldest| (seconds(now) - seconds(oldest)).max(0.0));
    text.gauge(
        "filestore_webhook_waiting_oldest_seconds",
        "Age of the oldest event that waits for its first attempt. 0 if there is none.",
        age,
    );
}

/// Writes the webhooks of the store. Left out while the database does not answer.
pub(super) fn webhooks(text: &mut Text, webhooks: &[Webhook], now: Timestamp) {
    let (mut ok, mut failing, mut disabled, mut longest) = (0_u64, 0_u64, 0_u64, Duration::ZERO);
    for webhook in webhooks {
        match (webhook.disabled, webhook.health.failing_since) {
            (Some(_), _) => disabled += 1,
            (None, None) => ok += 1,
            (None, Some(since)) => {
                failing += 1;
                let millis = now.as_millis().saturating_sub(since.as_millis());
                longest = longest.max(Duration::from_millis(u64::try_from(millis).unwrap_or(0)));
            }
        }
    }
    let mut states = text.gauges("filestore_webhooks", "Webhooks by their state.");
    for (state, count) in [("ok", ok), ("failing", failing), ("disabled", disabled)] {
        states.sample(&[("state", state)], count);
    }
    text.gauge(
        "filestore_webhooks_given_up",
        "Webhooks that were disabled because they answered 410 or accepted no event for days.",
        webhooks.iter().filter(|webhook| webhook.is_given_up()).count(),
    );
    text.gauge(
        "filestore_webhook_gaps",
        "Times that webhooks can have missed events.",
        webhooks.iter().map(|webhook| webhook.health.gaps).sum::<u64>(),
    );
    text.gauge(
        "filestore_webhook_failing_seconds",
        "Time for which the worst enabled webhook has accepted no event, although some wait.",
        longest.as_secs(),
    );
}

/// Writes the state of the disk, the uploads and the database.
pub(super) fn store(text: &mut Text, load: &Load) {
    if let Some(disk) = &load.disk {
        disk_space(text, disk);
    }

    let staged = &load.unfinished;
    text.gauge(
        "filestore_uploads_unfinished",
        "Files that are being received or wait for their commit.",
        staged.files,
    );
    text.gauge("filestore_uploads_unfinished_bytes", "Bytes of these files so far.", staged.bytes);
    text.gauge(
        "filestore_uploads_unfinished_max",
        "Limit of unfinished uploads.",
        staged.max_files,
    );

    resumable(text, &load.resumable);
    if let Some(events) = &load.events {
        event_log(text, events, load.at);
    }

    text.gauge(
        "filestore_database_writes_waiting",
        "Changes that wait for the database.",
        load.writes.waiting,
    );
    text.gauge(
        "filestore_database_writes_waiting_max",
        "Limit of waiting changes. Further requests wait.",
        load.writes.max,
    );
    text.gauge("filestore_damaged_rows", "Stored rows that cannot be read.", load.damaged_rows);
    text.gauge(
        "filestore_missing_blobs",
        "Files without their bytes on the disk.",
        load.missing_blobs,
    );

    text.counter(
        "filestore_copied_files",
        "Files that were copied to or between providers.",
        load.copied_files,
    );
    text.counter(
        "filestore_copied_bytes",
        "Bytes that were read for such copies.",
        load.copied_bytes,
    );
}

/// Writes the resumable uploads. The open ones are left out while the database does not answer.
fn resumable(text: &mut Text, load: &ResumableLoad) {
    if let (Some(open), Some(bytes)) = (load.open, load.open_bytes) {
        text.gauge("filestore_resumable_uploads_open", "Resumable uploads that are open.", open);
        text.gauge(
            "filestore_resumable_uploads_open_bytes",
            "Bytes that open resumable uploads hold: announced or received.",
            bytes,
        );
    }
    text.gauge(
        "filestore_resumable_uploads_receiving",
        "Resumable uploads that receive bytes from a request now.",
        load.transfers,
    );
    let ends = [
        ("finished", load.finished),
        ("failed", load.failed),
        ("expired", load.expired),
        ("cancelled", load.cancelled),
    ];
    let mut ended =
        text.counters("filestore_resumable_uploads_ended", "Resumable uploads that have ended.");
    for (end, count) in ends {
        ended.sample(&[("end", end)], count);
    }
}

fn event_log(text: &mut Text, log: &EventLogLoad, now: Timestamp) {
    text.gauge("filestore_events_enabled", "1 while changes write events.", u8::from(log.is_on));
    text.gauge("filestore_events_kept", "Events that the log keeps, about.", log.kept);
    let age = log.oldest_at.map_or(0.0, |oldest| (seconds(now) - seconds(oldest)).max(0.0));
    text.gauge(
        "filestore_events_oldest_seconds",
        "Age of the oldest event. 0 if there is none.",
        age,
    );
    text.gauge(
        "filestore_events_gap_time_seconds",
        "Time at which the log was switched on after a gap, in seconds since 1970. 0 if there is no gap.",
        log.gap_at.map_or(0.0, seconds),
    );
    text.gauge(
        "filestore_events_held_back",
        "Events that readers cannot see yet because an earlier write is open, about.",
        log.held_back,
    );
    text.gauge(
        "filestore_events_held_back_seconds",
        "Time for which an open write has held events back from readers.",
        log.held_back_for.as_secs_f64(),
    );
}

fn disk_space(text: &mut Text, disk: &DiskSpace) {
    let [free, total, reserve] = [
        "Bytes that may still be written to the disk of the data directory.",
        "Bytes of the disk of the data directory.",
        "Bytes that are kept back from uploads.",
    ];
    text.gauge("filestore_disk_free_bytes", free, disk.free_bytes);
    text.gauge("filestore_disk_size_bytes", total, disk.total_bytes);
    text.gauge("filestore_disk_reserve_bytes", reserve, disk.reserve_bytes);
    text.gauge(
        "filestore_disk_takes_uploads",
        "1 while there is room for uploads.",
        u8::from(disk.takes_uploads),
    );
}

/// Writes the last scrub, which can be running. All is 0 before the first one.
pub(super) fn scrub(text: &mut Text, period: Duration, last: Option<&FsckSummary>) {
    text.gauge(
        "filestore_scrub_period_seconds",
        "Time from the start of a scrub to the start of the next, in seconds; 0 for never.",
        period.as_secs(),
    );
    text.gauge(
        "filestore_scrub_start_time_seconds",
        "Time at which the last scrub began, in seconds since 1970; 0 if there was none.",
        last.map_or(0.0, |scrub| seconds(scrub.started_at)),
    );
    text.gauge(
        "filestore_scrub_end_time_seconds",
        "Time at which the last scrub ended. 0 before the first end.",
        last.and_then(|scrub| scrub.ended_at).map_or(0.0, seconds),
    );
    let [files, bytes, found] =
        last.map_or([0; 3], |scrub| [scrub.checked_files, scrub.checked_bytes, scrub.found]);
    text.gauge("filestore_scrub_files", "Records that the last scrub has looked at.", files);
    text.gauge("filestore_scrub_bytes", "Bytes that the last scrub has read.", bytes);
    text.gauge(
        "filestore_scrub_findings",
        "Things that the last scrub has found not to be as they should be.",
        found,
    );
}

/// Writes the end of the certificate that new connections get.
pub(super) fn certificate(text: &mut Text, validity: Validity) {
    text.gauge(
        "filestore_tls_certificate_end_time_seconds",
        "Time at which the certificate of the listener expires, in seconds since 1970.",
        seconds(validity.end),
    );
}

/// Writes the files and bytes of all organizations.
pub(super) fn stored(text: &mut Text, usage: &Usage) {
    let locations = [("LOCAL", usage.local), ("CLOUD", usage.cloud)];
    let help = "Files of all organizations; deleted ones count until the purge removes them.";
    let mut files = text.gauges("filestore_stored_files", help);
    for (location, stored) in locations {
        files.sample(&[("location", location)], stored.files);
    }
    let mut bytes = text.gauges("filestore_stored_bytes", "Bytes of these files.");
    for (location, stored) in locations {
        bytes.sample(&[("location", location)], stored.bytes);
    }
}

/// Writes the newest complete snapshot of each configured destination.
pub(super) fn backups(text: &mut Text, last: &[LastBackup]) {
    if last.is_empty() {
        return;
    }
    let mut times = text.gauges(
        "filestore_backup_last_success_time_seconds",
        "Time of the newest complete snapshot in the destination, in seconds since 1970; 0 if there is none.",
    );
    for last in last {
        let labels = [("destination", last.destination.as_str())];
        times.sample(&labels, last.taken_at.map_or(0.0, seconds));
    }
}

/// Writes where variants come from, and what their caches hold.
pub(super) fn variants(text: &mut Text, load: &VariantLoad) {
    let mut sources = text
        .counters("filestore_variants", "Variants that were asked for, by where they came from.");
    for (source, count) in [
        ("memory", load.from_memory),
        ("disk", load.from_disk),
        ("made", load.made),
        ("failed", load.failed),
    ] {
        sources.sample(&[("source", source)], count);
    }

    text.gauge(
        "filestore_variant_tasks_waiting",
        "Pictures that wait for a thread.",
        load.tasks.waiting,
    );
    text.gauge(
        "filestore_variant_tasks_waiting_max",
        "Limit of waiting pictures. Further requests are rejected.",
        load.tasks.max,
    );
    text.gauge("filestore_variant_threads_busy", "Threads that make variants.", load.busy_threads);
    text.gauge("filestore_variant_threads", "Threads that may make variants.", load.threads);
    text.gauge(
        "filestore_variant_files_ahead",
        "Files that wait for their variants to be made in advance.",
        load.eager_waiting,
    );

    let caches = [
        ("disk", load.disk_entries, load.disk_bytes),
        ("memory", load.memory_entries, load.memory_bytes),
    ];
    let mut entries = text.gauges("filestore_variant_cache_entries", "Variants in the cache.");
    for (place, count, _) in caches {
        entries.sample(&[("place", place)], count);
    }
    let mut bytes = text.gauges("filestore_variant_cache_bytes", "Bytes of the cache.");
    for (place, _, count) in caches {
        bytes.sample(&[("place", place)], count);
    }
    text.gauge(
        "filestore_variant_retained_bytes",
        "Bytes of decoded pictures kept for further sizes.",
        load.retained_bytes,
    );
}

/// Writes the health and the waiting work of each provider. `None` if the database does not answer.
pub(super) fn providers(text: &mut Text, all: Option<&[ProviderStatus]>, now: Timestamp) {
    text.gauge("filestore_database_up", "1 while the database answers.", u8::from(all.is_some()));
    let Some(all) = all else { return };

    let mut up = text.gauges("filestore_provider_up", "1 while the provider answers.");
    for provider in all {
        let is_up = provider.is_configured
            && provider.state().is_none_or(|state| state == BreakerState::Closed);
        up.sample(&[("provider", provider.info.code.as_str())], u8::from(is_up));
    }

    let mut waiting = text
        .gauges("filestore_backlog", "Files or blobs that wait for a provider, by the work to do.");
    for (code, work, backlog) in backlogs(all) {
        waiting.sample(&[("provider", code), ("work", work)], backlog.count);
    }
    let help = "Age of the oldest waiting file or blob. 0 if none waits.";
    let mut oldest = text.gauges("filestore_backlog_oldest_seconds", help);
    for (code, work, backlog) in backlogs(all) {
        let age = backlog.oldest.map_or(0.0, |oldest| (seconds(now) - seconds(oldest)).max(0.0));
        oldest.sample(&[("provider", code), ("work", work)], age);
    }
}

/// Writes the deleted files that can still be restored. These files are not a backlog, because they are not
/// due.
pub(super) fn purge(text: &mut Text, purge: &PurgeReport) {
    text.gauge(
        "filestore_purge_waiting_files",
        "Deleted files within their grace period.",
        purge.waiting,
    );
    text.gauge("filestore_purge_waiting_bytes", "Bytes of these files.", purge.waiting_bytes);
    text.gauge(
        "filestore_purge_next_due_time_seconds",
        "Time at which the first deleted file is due, in seconds since 1970. 0 if none waits.",
        purge.next_due_at.map_or(0.0, seconds),
    );
}

/// Lists the waiting work of each provider, by kind.
fn backlogs(all: &[ProviderStatus]) -> impl Iterator<Item = (&str, &'static str, Waiting)> {
    all.iter().flat_map(|provider| {
        let (code, backlog) = (provider.info.code.as_str(), &provider.backlog);
        [("sync", backlog.sync), ("purge", backlog.purge), ("dropped", backlog.dropped)]
            .map(|(work, waiting)| (code, work, waiting))
    })
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit for 285,000 years")]
fn seconds(at: Timestamp) -> f64 {
    at.as_millis() as f64 / 1000.0
}
