//! The text format for a Prometheus server: its own format 0.0.4, or OpenMetrics 1.0.
//!
//! The two differ in the names of counter families, and in the last line. No other features are used: no time
//! stamps and no exemplars.

use std::fmt::{Display, Write as _};

/// A format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus text, version 0.0.4.
    Prometheus,
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Chooses a format for the request's `Accept`. OpenMetrics is used only if it is named.
    pub(crate) fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// Returns the value of `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The text, family by family.
#[derive(Debug)]
pub(crate) struct Text {
    out: String,
    format: Format,
}

/// The labels of a sample.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Text {
    /// Starts an empty text.
    pub(crate) fn new(format: Format) -> Self {
        Self { out: String::with_capacity(16 << 10), format }
    }

    /// Begins a family of gauges, which go up and down.
    pub(crate) fn gauges(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.head(name, "gauge", help);
        Family { text: self, name, suffix: "" }
    }

    /// Begins a family of counters, which only grow. `name` is without `_total`.
    pub(crate) fn counters(&mut self, name: &'static str, help: &str) -> Family<'_> {
        match self.format {
            Format::OpenMetrics => self.head(name, "counter", help),
            Format::Prometheus => self.head(&format!("{name}_total"), "counter", help),
        }
        Family { text: self, name, suffix: "_total" }
    }

    /// Begins a family of distributions.
    pub(crate) fn histograms(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.head(name, "histogram", help);
        Family { text: self, name, suffix: "" }
    }

    /// Writes a gauge without labels.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.gauges(name, help).sample(&[], value);
    }

    /// Writes a counter without labels.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.counters(name, help).sample(&[], value);
    }

    /// Ends the text.
    pub(crate) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("a string takes everything");
    }

    fn line(&mut self, name: [&str; 2], labels: Labels<'_>, value: impl Display) {
        self.out.extend(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.out.push(if index == 0 { '{' } else { ',' });
            self.out.extend([label, "=\""]);
            self.escape(value);
            self.out.push('"');
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        writeln!(self.out, " {value}").expect("a string takes everything");
    }

    fn escape(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.out.push_str("\\\\"),
                '"' => self.out.push_str("\\\""),
                '\n' => self.out.push_str("\\n"),
                c => self.out.push(c),
            }
        }
    }
}

/// A family that receives its samples.
pub(crate) struct Family<'a> {
    text: &'a mut Text,
    name: &'static str,
    suffix: &'static str,
}

impl Family<'_> {
    /// Writes a sample.
    pub(crate) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.text.line([self.name, self.suffix], labels, value);
    }

    /// Writes the samples of a distribution. `buckets` are cumulative counts for each bound, and `sum` has
    /// the unit of the family's name.
    pub(crate) fn distribution(
        &mut self,
        labels: Labels<'_>,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        for (bound, below) in buckets {
            self.bucket(labels, &bound.to_string(), below);
        }
        self.bucket(labels, "+Inf", count);
        self.text.line([self.name, "_sum"], labels, sum);
        self.text.line([self.name, "_count"], labels, count);
    }

    fn bucket(&mut self, labels: Labels<'_>, bound: &str, below: u64) {
        let labels = [labels, &[("le", bound)]].concat();
        self.text.line([self.name, "_bucket"], &labels, below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format) -> String {
        let mut text = Text::new(format);
        text.gauge("disk_free_bytes", "Bytes.", 7);
        text.counters("requests", "Requests.").sample(&[("route", "/a\"b\\c\nd"), ("n", "")], 1);
        let mut times = text.histograms("time_seconds", "Times.");
        times.distribution(&[("m", "GET")], [(0.005, 1), (1.0, 3)], 4, 2.5);
        text.finish()
    }

    #[test]
    fn a_family_has_its_head_and_every_label_is_escaped() {
        assert_eq!(
            written(Format::Prometheus),
            "# HELP disk_free_bytes Bytes.\n# TYPE disk_free_bytes gauge\ndisk_free_bytes 7\n\
             # HELP requests_total Requests.\n# TYPE requests_total counter\n\
             requests_total{route=\"/a\\\"b\\\\c\\nd\",n=\"\"} 1\n\
             # HELP time_seconds Times.\n# TYPE time_seconds histogram\n\
             time_seconds_bucket{m=\"GET\",le=\"0.005\"} 1\n\
             time_seconds_bucket{m=\"GET\",le=\"1\"} 3\n\
             time_seconds_bucket{m=\"GET\",le=\"+Inf\"} 4\n\
             time_seconds_sum{m=\"GET\"} 2.5\ntime_seconds_count{m=\"GET\"} 4\n"
        );
    }

    #[test]
    fn openmetrics_names_a_counter_without_total_and_says_where_it_ends() {
        let text = written(Format::OpenMetrics);
        assert!(text.contains("# TYPE requests counter\nrequests_total{"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn openmetrics_is_for_those_who_ask() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        assert_eq!(Format::accepted("*/*"), Format::Prometheus);
    }
}
