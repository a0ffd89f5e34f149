//! The text that a Prometheus server reads: counters of requests and connections, and the load of the store.
//!
//! # Purpose
//! Requests are counted by the template of their route, never by their path: a label has as many values
//! as the table of routes has rows. Nothing here names an organization, a file or a key.
//!
//! # Locking
//! A request adds to atomic counters and takes no lock. Scrapes run one after another, so that the store is
//! asked by one of them at a time.

mod exposition;
mod latency;
mod process;
mod text;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use filestore_core::FileStore;
use tokio::sync::Mutex;

use crate::listen::Traffic;
use crate::routes::table::{ROUTES, Route};
use latency::Latency;
pub(crate) use text::Format;

/// The statuses that are counted: those of three digits.
const STATUSES: std::ops::Range<u16> = 100..600;

/// The counters of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// The counters of all listeners.
    pub(crate) traffic: Arc<Traffic>,
    /// The counters of each row of the table of routes, and one more for requests without a route.
    routes: Vec<RouteCounters>,
    scraping: Mutex<()>,
}

/// The counters of one route.
#[derive(Debug)]
struct RouteCounters {
    /// Replies by status.
    replies: Vec<AtomicU64>,
    /// Times until the head of the reply.
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
        Self { traffic: Arc::default(), routes, scraping: Mutex::default() }
    }

    /// Counts a reply, whose head is there after `took`.
    pub(crate) fn count(&self, route: Option<&Route>, status: u16, took: Duration) {
        let counters = &self.routes[route.map_or(ROUTES.len(), Route::index)];
        if let Some(count) = counters.replies.get(usize::from(status.wrapping_sub(STATUSES.start)))
        {
            count.fetch_add(1, Relaxed);
        }
        counters.latency.observe(took);
    }

    /// Writes everything down.
    pub(crate) async fn expose(&self, store: &FileStore, format: Format) -> String {
        let _alone = self.scraping.lock().await;
        let (load, providers) = tokio::join!(store.admin().load(), store.admin().provider_status());

        let mut text = text::Text::new(format);
        exposition::about(&mut text, &load);
        self.requests(&mut text);
        exposition::traffic(&mut text, &self.traffic);
        exposition::store(&mut text, &load);
        exposition::variants(&mut text, &load.variants);
        exposition::providers(&mut text, providers.as_deref().ok(), load.at);
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

        let help = "Time until the head of the reply was there; the body follows.";
        let mut times = text.histograms("filestore_http_request_duration_seconds", help);
        for (counters, [method, route]) in self.routes.iter().zip(names()) {
            counters.latency.write(&[("method", method), ("route", route)], &mut times);
        }
    }
}

/// Names the routes in the order of their counters. HEAD counts as GET.
fn names() -> impl Iterator<Item = [&'static str; 2]> {
    let routes = ROUTES.iter().map(|route| [route.method.as_str(), route.template]);
    routes.chain([["any", "unmatched"]])
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn exposed(metrics: &Metrics) -> String {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let text = metrics.expose(&store, Format::Prometheus).await;
        store.close().await;
        text
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_dashboard_shows_what_there_is() {
        let metrics = Metrics::new();
        metrics.count(None, 200, Duration::ZERO);
        let text = exposed(&metrics).await;

        let dashboard = include_str!("../../deploy/grafana-dashboard.json");
        let words = dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: std::collections::BTreeSet<_> = words
            .filter(|word| word.starts_with("filestore_") || word.starts_with("process_"))
            .collect();
        assert!(named.len() > 25, "{named:?}");
        for name in named {
            let is_there = [' ', '{'].iter().any(|next| text.contains(&format!("\n{name}{next}")));
            assert!(is_there, "{name} is not exposed");
        }
    }
}
