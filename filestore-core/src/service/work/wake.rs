//! A signal that tells workers to look for work.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A signal that reaches every listener. If a signal arrives while a listener is busy, the listener sees it
/// at its next wait. Several such signals count as one.
///
/// Listeners wake in the order in which they came. A `watch` channel would wake them in its own order, and no
/// seed of a simulation could control this order.
#[derive(Default)]
pub(crate) struct Wake(Mutex<Vec<Weak<Notify>>>);

impl Wake {
    /// Wakes all listeners.
    pub(crate) fn notify(&self) {
        for listener in self.0.lock().iter().filter_map(Weak::upgrade) {
            listener.notify_one();
        }
    }

    /// Returns true while there is a listener.
    #[cfg(test)]
    pub(crate) fn has_listeners(&self) -> bool {
        self.0.lock().iter().any(|listener| listener.strong_count() > 0)
    }

    /// Starts to listen. Earlier signals are not seen.
    pub(crate) fn listen(&self) -> Listener {
        let signal = Arc::new(Notify::new());
        let mut listeners = self.0.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&signal));

        Listener(signal)
    }
}

/// One listener to a [`Wake`].
pub(crate) struct Listener(Arc<Notify>);

impl Listener {
    /// Waits for the next signal.
    pub(crate) async fn notified(&mut self) {
        self.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_signal_reaches_every_listener_once() {
        let wake = Wake::default();
        wake.notify();
        let (mut one, mut two) = (wake.listen(), wake.listen());
        assert!(one.notified().now_or_never().is_none(), "given before it listened");

        wake.notify();
        wake.notify();
        for listener in [&mut one, &mut two] {
            assert!(listener.notified().now_or_never().is_some());
            assert!(listener.notified().now_or_never().is_none());
        }
    }
}
