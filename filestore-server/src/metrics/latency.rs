//! Distributions of durations, counted without a lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::text::{Family, Labels};

/// Upper bounds of the buckets, in microseconds. A reply from memory takes tens of microseconds, a durable
/// upload milliseconds, and a large variant hundreds of milliseconds.
const BOUNDS_MICROS: [u64; 12] = [
    100, 250, 1_000, 2_500, 10_000, 25_000, 100_000, 250_000, 1_000_000, 2_500_000, 10_000_000,
    60_000_000,
];

/// A distribution of durations.
#[derive(Debug, Default)]
pub(super) struct Latency {
    /// The counts of the buckets, without lower buckets. The last bucket is above all bounds.
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Latency {
    /// Counts a duration.
    pub(super) fn observe(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Relaxed);

        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum_nanos.fetch_add(nanos, Relaxed);
    }

    /// Writes the distribution, if it is not empty.
    pub(super) fn write(&self, labels: Labels<'_>, family: &mut Family<'_>) {
        let counts = self.buckets.each_ref().map(|count| count.load(Relaxed));
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return;
        }

        let mut below = 0;
        let buckets = BOUNDS_MICROS.iter().zip(counts).map(|(bound, count)| {
            below += count;
            (Duration::from_micros(*bound).as_secs_f64(), below)
        });
        let sum = Duration::from_nanos(self.sum_nanos.load(Relaxed)).as_secs_f64();
        family.distribution(labels, buckets, total, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::{Format, Text};
    use super::*;

    #[test]
    fn a_duration_counts_in_its_bucket_and_all_above() {
        let latency = Latency::default();
        for micros in [0, 100, 101, 70_000_000] {
            latency.observe(Duration::from_micros(micros));
        }

        let mut text = Text::new(Format::Prometheus);
        latency.write(&[], &mut text.histograms("t", "h"));
        let text = text.finish();
        for line in [
            "t_bucket{le=\"0.0001\"} 2\n",
            "t_bucket{le=\"0.00025\"} 3\n",
            "t_bucket{le=\"60\"} 3\n",
            "t_bucket{le=\"+Inf\"} 4\n",
            "t_sum 70.000201\n",
            "t_count 4\n",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
    }
}
