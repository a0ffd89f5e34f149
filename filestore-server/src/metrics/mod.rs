//! The text for a Prometheus server: counters of requests and connections, and the load of the store.
//!
//! # Purpose
//! Requests are counted by route template, never by path, so that a label has as many values as the table of
//! routes has rows. No metric names an organization, a file or a key.
//!
//! # Absent or 0
//! A family is absent if it does not apply (a certificate without TLS, backups without a destination) or if the
//! database does not answer. Otherwise it is there from the first scrape. A time that has not come yet is 0, as in
//! Prometheus' own programs: `time() - 0` is a large age, so that an alert on an old time also finds the work that
//! was never done.
//!
//! # Locking
//! A request increments atomic counters and takes no lock. Scrapes run one at a time, so that only one of
//! them queries the store.

mod exposition;
mod latency;
mod process;
mod text;
mod cached_totals;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use filestore_core::FileStore;
use tokio::sync::Mutex;

use crate::listen::{Tls, Traffic};
use crate::route_table::{ROUTES, Route};
use crate::streams::Streams;
use cached_totals::CachedTotals;
use latency::Latency;
pub(crate) use text::Format;

/// The counted statuses: all with three digits.
const STATUSES: std::ops::Range<u16> = 100..600;

/// The counters of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// The counters of all listeners.
    pub(crate) traffic: Arc<Traffic>,
    /// The counters for each row in the route table, and one more for requests without a route.
    routes: Vec<RouteCounters>,
    /// The listener's certificate, if it does TLS.
    tls: OnceLock<Tls>,
    /// Held by a scrape.
    scraping: Mutex<CachedTotals>,
}

/// The counters of one route.
#[derive(Debug)]
struct RouteCounters {
    /// Replies by status.
    replies: Vec<AtomicU64>,
    /// The times until the head of the reply.
    latency: Latency,
}

impl Default for RouteCounters {
    fn default() -> Self {
        Self { replies: STATUSES.map(|_| AtomicU64::new(0)).collect(), latency: Latency::default() }
    }
}

impl Metrics {
    /// Starts all counters at zero.
    pub(crate) fn new() -> Self {
        let routes =
            std::iter::repeat_with(RouteCounters::default).take(ROUTES.len() + 1).collect();
        Self { traffic: Arc::default(), routes, tls: OnceLock::new(), scraping: Mutex::default() }
    }

    /// Shows from now on when the certificate of `tls` ends, also after a renewal.
    pub(crate) fn show_certificate(&self, tls: Tls) {
        // A server has one listener with TLS.
        let _ = self.tls.set(tls);
    }

    /// Counts a reply. The head was ready after `took`.
    pub(crate) fn count(&self, route: Option<&Route>, status: u16, took: Duration) {
        let counters = &self.routes[route.map_or(ROUTES.len(), Route::index)];
        if let Some(count) = counters.replies.get(usize::from(status.wrapping_sub(STATUSES.start)))
        {
            count.fetch_add(1, Relaxed);
        }
        counters.latency.observe(took);
    }

    /// Returns all metrics as text.
    pub(crate) async fn expose(
        &self,
        store: &FileStore,
        streams: &Streams,
        format: Format,
    ) -> String {
        let mut totals = self.scraping.lock().await;
        let admin = store.admin();
        let (load, providers, purge, backups, stored, webhooks) = tokio::join!(
            admin.load(),
            admin.provider_status(),
            admin.purge_plan(),
            admin.last_backups(),
            totals.of(store),
            store.webhooks().list(),
        );

        let mut text = text::Text::new(format);
        exposition::about(&mut text, &load);
        self.requests(&mut text);
        exposition::traffic(&mut text, &self.traffic);
        if let Some(validity) = self.tls.get().and_then(Tls::validity) {
            exposition::certificate(&mut text, validity);
        }
        exposition::streams(&mut text, streams);
        exposition::deliveries(&mut text, store.webhooks().counts());
        exposition::backlog(&mut text, &store.webhooks().backlog(), load.at);
        if let Ok(webhooks) = webhooks {
            exposition::webhooks(&mut text, &webhooks, load.at);
        }
        exposition::store(&mut text, &load);
        exposition::variants(&mut text, &load.variants);
        exposition::providers(&mut text, providers.as_deref().ok(), load.at);
        if let Ok(purge) = purge {
            exposition::purge(&mut text, &purge);
        }
        if let Some(stored) = stored {
            exposition::stored(&mut text, &stored);
        }
        if providers.is_ok() {
            exposition::scrub(&mut text, store.config().scrub.period, load.scrub.as_ref());
        }
        if let Ok(backups) = backups {
            exposition::backups(&mut text, &backups);
        }
        process::write(&mut text);
        text.finish()
    }

    fn requests(&self, text: &mut text::Text) {
        let mut replies = text.counters("filestore_http_requests", "Requests that were answered.");
        for (counters, [method, route]) in self.routes.iter().zip(names()) {
            for (status, count) in STATUSES.zip(&counters.replies) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let status = status.to_string();
                    let labels = [("method", method), ("route", route), ("status", &status)];
                    replies.sample(&labels, count);
                }
            }
        }

        let help = "Time until the head of the reply was ready, without the body.";
        let mut times = text.histograms("filestore_http_request_duration_seconds", help);
        for (counters, [method, route]) in self.routes.iter().zip(names()) {
            counters.latency.write(&[("method", method), ("route", route)], &mut times);
        }
    }
}

/// Lists the routes in the order of their counters. HEAD counts as GET.
fn names() -> impl Iterator<Item = [&'static str; 2]> {
    let routes = ROUTES.iter().map(|route| [route.method.as_str(), route.template]);
    routes.chain([["any", "unmatched"]])
}

#[cfg(test)]
mod tests {
    use filestore_core::StoreConfig;
    use filestore_core::config::BackupDestination;

    use super::*;
    use crate::listen::TlsFiles;

    /// Exposes the metrics of a store with a backup destination.
    async fn exposed(metrics: &Metrics) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut config = StoreConfig::default();
        config.backup_destinations.push(BackupDestination::new("nightly", "/nowhere"));
        let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
        let text = metrics.expose(&store, &Streams::new(1), Format::Prometheus).await;
        store.close().await;
        text
    }

    /// Makes metrics of a server with a certificate until the start of 2049.
    fn with_certificate() -> Metrics {
        let dir = tempfile::tempdir().unwrap();
        let mut wanted = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        wanted.not_after = rcgen::date_time_ymd(2049, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let files = TlsFiles::new(dir.path().join("cert.pem"), dir.path().join("key.pem"));
        std::fs::write(&files.cert, wanted.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();

        let metrics = Metrics::new();
        metrics.show_certificate(Tls::open(&files).unwrap());
        metrics
    }

    #[tokio::test]
    async fn a_reply_counts_under_the_template_of_its_route() {
        let metrics = Metrics::new();
        let route = ROUTES.iter().find(|route| route.template == "/files/{file_id}/info").unwrap();
        metrics.count(Some(route), 200, Duration::from_millis(2));
        metrics.count(Some(route), 404, Duration::from_micros(1));
        metrics.count(None, 404, Duration::ZERO);
        metrics.count(None, 65_535, Duration::ZERO);

        let text = exposed(&metrics).await;
        let labels = "method=\"GET\",route=\"/files/{file_id}/info\"";
        for line in [
            format!("filestore_http_requests_total{{{labels},status=\"200\"}} 1\n"),
            format!("filestore_http_requests_total{{{labels},status=\"404\"}} 1\n"),
            format!("filestore_http_request_duration_seconds_count{{{labels}}} 2\n"),
            "filestore_http_requests_total{method=\"any\",route=\"unmatched\",status=\"404\"} 1\n"
                .to_owned(),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
    }

    #[tokio::test]
    async fn every_family_is_described_once_and_its_samples_follow() {
        let text = exposed(&Metrics::new()).await;
        let mut described = Vec::new();
        let mut family = "";
        for line in text.lines() {
            if let Some(described_line) = line.strip_prefix("# HELP ") {
                let (name, help) = described_line.split_once(' ').expect("a name and a help");
                assert!(!described.contains(&name) && help.ends_with('.'), "{line}");
                described.push(name);
                family = name;
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                assert!(name.starts_with(family), "{line} is not of {family}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(described.len() > 25, "{described:?}");
    }

    #[tokio::test]
    async fn what_never_happened_is_0_from_the_first_scrape_and_what_does_not_apply_is_absent() {
        let text = exposed(&with_certificate()).await;
        for line in [
            "filestore_scrub_period_seconds 604800\n",
            "filestore_scrub_start_time_seconds 0\n",
            "filestore_scrub_end_time_seconds 0\n",
            "filestore_scrub_findings 0\n",
            "filestore_backup_last_success_time_seconds{destination=\"nightly\"} 0\n",
            "filestore_stored_files{location=\"LOCAL\"} 0\n",
            "filestore_stored_bytes{location=\"CLOUD\"} 0\n",
            "filestore_tls_certificate_end_time_seconds 2493072000\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!exposed(&Metrics::new()).await.contains("filestore_tls_"));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_dashboard_and_the_alerts_name_metrics_that_exist() {
        let metrics = with_certificate();
        metrics.count(None, 200, Duration::ZERO);
        let text = exposed(&metrics).await;

        for (file, least) in [
            (include_str!("../../deploy/grafana-dashboard.json"), 25),
            (include_str!("../../deploy/prometheus/alerts.yaml"), 15),
        ] {
            let words = file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let named: std::collections::BTreeSet<_> = words
                .filter(|word| word.starts_with("filestore_") || word.starts_with("process_"))
                .collect();
            assert!(named.len() >= least, "{named:?}");
            for name in named {
                let is_there =
                    [' ', '{'].iter().any(|next| text.contains(&format!("\n{name}{next}")));
                assert!(is_there, "{name} is not exposed");
            }
        }
    }
}
