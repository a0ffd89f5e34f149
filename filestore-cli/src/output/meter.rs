//! Progress bars on a terminal.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use filestore_core::admin::Progress;
use indicatif::style::ProgressTracker;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::show::{plain, size};

/// The share of one transfer in a progress bar. Clones belong to the same transfer. [`Meter::part`]
/// adds another transfer to the same bar. The bar disappears when the last meter is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    bar: Arc<Bar>,
    /// The amount that this transfer has added to the bar.
    share: Arc<AtomicU64>,
    /// Bytes transferred, for a bar that counts files.
    bytes: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Bar(ProgressBar);

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Meter {
    pub(super) fn bytes(target: ProgressDrawTarget, label: &str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => {
                "{prefix} [{bar:28}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {msg}"
            }
            None => "{prefix} {spinner} {binary_bytes} {binary_bytes_per_sec} {msg}",
        };
        Self::new(target, label, total, template)
    }

    /// Creates a hidden bar.
    pub(crate) fn hidden() -> Self {
        Self::bytes(ProgressDrawTarget::hidden(), "", Some(0))
    }

    pub(super) fn count(target: ProgressDrawTarget, label: &str) -> Self {
        Self::new(target, label, None, "{prefix} {spinner} {elapsed}")
    }

    fn new(target: ProgressDrawTarget, label: &str, total: Option<u64>, template: &str) -> Self {
        let hidden = target.is_hidden();
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style(template));
        bar.set_prefix(plain(label));
        if !hidden {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar: Arc::new(Bar(bar)), share: Arc::default(), bytes: Arc::default() }
    }

    /// Creates another transfer on the same bar.
    pub(crate) fn part(&self) -> Self {
        Self { bar: Arc::clone(&self.bar), share: Arc::default(), bytes: Arc::clone(&self.bytes) }
    }

    /// Sets the total amount of this transfer. The amount decreases if the transfer starts again.
    pub(crate) fn set(&self, done: u64) {
        let before = self.share.swap(done, Ordering::Relaxed);
        match done.checked_sub(before) {
            Some(more) => self.bar.0.inc(more),
            None => self.bar.0.dec(before - done),
        }
    }

    /// Sets the total number of bytes, for a bar that counts files.
    pub(crate) fn set_bytes(&self, done: u64) {
        self.bytes.store(done, Ordering::Relaxed);
    }

    /// Returns true if the bar is visible.
    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.0.is_hidden()
    }

    /// Adds an amount to this transfer.
    pub(crate) fn add(&self, more: u64) {
        self.share.fetch_add(more, Ordering::Relaxed);
        self.bar.0.inc(more);
    }

    /// Sets the total of the whole bar, if it is known.
    pub(crate) fn set_total(&self, total: Option<u64>) {
        if let Some(total) = total.filter(|total| self.bar.0.length() != Some(*total)) {
            self.bar.0.set_length(total);
        }
    }

    /// Sets the text at the end of the bar.
    pub(crate) fn set_message(&self, text: impl Into<String>) {
        self.bar.0.set_message(text.into());
    }

    /// Hides the bar while `print` runs.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.0.suspend(print)
    }

    #[cfg(test)]
    fn position(&self) -> u64 {
        self.bar.0.position()
    }
}

/// Receives the progress of the core's workers.
impl Progress for Meter {
    fn start(&self, total: Option<u64>) {
        if let Some(total) = total {
            let passing = style("{prefix} [{bar:28}] {human_pos}/{human_len} {passing} {eta}");
            self.bar.0.set_style(passing.with_key("passing", Passing::new(&self.bytes)));
            self.bar.0.set_length(total);
        }
    }

    fn advance(&self, units: u64) {
        self.add(units);
    }

    fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The weight of the past rate in milliseconds, compared with the time since the last measurement.
const PAST_MILLIS: u64 = 5000;

/// Bytes per second, for a bar that counts files. Empty before the first byte.
#[derive(Debug, Clone)]
struct Passing {
    bytes: Arc<AtomicU64>,
    seen: Option<(Instant, u64)>,
    per_second: u64,
}

impl Passing {
    fn new(bytes: &Arc<AtomicU64>) -> Self {
        Self { bytes: Arc::clone(bytes), seen: None, per_second: 0 }
    }

    fn look(&mut self, now: Instant) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let Some((then, before)) = self.seen else {
            self.seen = Some((now, bytes));
            return;
        };

        let millis =
            u64::try_from(now.saturating_duration_since(then).as_millis()).unwrap_or(u64::MAX);
        if millis < 100 {
            return;
        }

        let current = bytes.saturating_sub(before).saturating_mul(1000) / millis;
        self.per_second = match self.per_second {
            0 => current,
            past => {
                let weighed =
                    past.saturating_mul(PAST_MILLIS).saturating_add(current.saturating_mul(millis));
                weighed / PAST_MILLIS.saturating_add(millis)
            }
        };

        self.seen = Some((now, bytes));
    }
}

impl ProgressTracker for Passing {
    fn clone_box(&self) -> Box<dyn ProgressTracker> {
        Box::new(self.clone())
    }

    fn tick(&mut self, _state: &ProgressState, now: Instant) {
        self.look(now);
    }

    fn reset(&mut self, _state: &ProgressState, _now: Instant) {
        self.seen = None;
        self.per_second = 0;
    }

    fn write(&self, _state: &ProgressState, w: &mut dyn Write) {
        if self.bytes.load(Ordering::Relaxed) > 0 {
            // Writing to the line of the bar cannot fail.
            let _ = write!(w, "{}/s", size(self.per_second));
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the templates are constants")
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_is_shown_as_what_it_is() {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut passing = Passing::new(&bytes);

        let begin = Instant::now();
        passing.look(begin);

        for second in 1..=3 {
            bytes.fetch_add(1 << 20, Ordering::Relaxed);
            passing.look(begin + Duration::from_secs(second));
            assert_eq!(passing.per_second, 1 << 20);
        }

        bytes.fetch_add(7 << 20, Ordering::Relaxed);
        passing.look(begin + Duration::from_secs(4));
        assert_eq!(passing.per_second, 2 << 20, "a sixth of what is new");
    }

    #[test]
    fn an_upload_that_starts_again_takes_its_share_back() {
        let meter = Meter::bytes(ProgressDrawTarget::hidden(), "", Some(100));
        let (first, second) = (meter.part(), meter.part());
        first.set(40);
        second.set(10);
        first.set(0);
        first.set(50);
        assert_eq!(meter.position(), 60);
    }
}
