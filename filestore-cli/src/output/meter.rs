//! Progress on a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use filestore_core::worker::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One transfer's share of a bar. Clones are the same transfer; [`Meter::part`] is another one on
/// the same bar. The bar is removed when the last of them is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    bar: Arc<Bar>,
    /// What this transfer has added to the bar.
    share: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Bar(ProgressBar);

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Meter {
    pub(super) fn bytes(target: ProgressDrawTarget, label: String, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => {
                "{prefix} [{bar:28}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {msg}"
            }
            None => "{prefix} {spinner} {binary_bytes} {binary_bytes_per_sec} {msg}",
        };
        Self::new(target, label, total, template)
    }

    pub(super) fn count(target: ProgressDrawTarget, label: String) -> Self {
        Self::new(target, label, None, "{prefix} {spinner} {elapsed}")
    }

    fn new(target: ProgressDrawTarget, label: String, total: Option<u64>, template: &str) -> Self {
        let hidden = target.is_hidden();
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style(template));
        bar.set_prefix(label);
        if !hidden {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar: Arc::new(Bar(bar)), share: Arc::default() }
    }

    /// Another transfer on the same bar.
    pub(crate) fn part(&self) -> Self {
        Self { bar: Arc::clone(&self.bar), share: Arc::default() }
    }

    /// This transfer has moved so many bytes in all: fewer than before if it started again.
    pub(crate) fn set(&self, done: u64) {
        let before = self.share.swap(done, Ordering::Relaxed);
        match done.checked_sub(before) {
            Some(more) => self.bar.0.inc(more),
            None => self.bar.0.dec(before - done),
        }
    }

    /// So many bytes more.
    pub(crate) fn add(&self, more: u64) {
        self.share.fetch_add(more, Ordering::Relaxed);
        self.bar.0.inc(more);
    }

    /// The whole bar's total, once it is known.
    pub(crate) fn expect(&self, total: Option<u64>) {
        if let Some(total) = total.filter(|total| self.bar.0.length() != Some(*total)) {
            self.bar.0.set_length(total);
        }
    }

    /// A word at the end of the bar.
    pub(crate) fn message(&self, text: impl Into<String>) {
        self.bar.0.set_message(text.into());
    }

    /// Runs `print` with the bar out of the way.
    pub(crate) fn aside<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.0.suspend(print)
    }

    #[cfg(test)]
    fn position(&self) -> u64 {
        self.bar.0.position()
    }
}

/// The core's workers report here.
impl Progress for Meter {
    fn start(&self, total: Option<u64>) {
        if let Some(total) = total {
            self.bar.0.set_style(style("{prefix} [{bar:28}] {human_pos}/{human_len} {eta}"));
            self.bar.0.set_length(total);
        }
    }

    fn advance(&self, units: u64) {
        self.add(units);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are constants").progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_that_starts_again_takes_its_share_back() {
        let meter = Meter::bytes(ProgressDrawTarget::hidden(), String::new(), Some(100));
        let (first, second) = (meter.part(), meter.part());
        first.set(40);
        second.set(10);
        first.set(0);
        first.set(50);
        assert_eq!(meter.position(), 60);
    }
}
