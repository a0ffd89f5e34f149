//! A signal for workers: there is something to do.

use tokio::sync::watch;

/// A signal that reaches every listener. A signal given while a listener is at work is seen when the
/// listener next waits; several such signals are one.
pub(crate) struct Wake(watch::Sender<u64>);

impl Wake {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Wakes all listeners.
    pub(crate) fn notify(&self) {
        self.0.send_modify(|calls| *calls = calls.wrapping_add(1));
    }

    /// Begins to listen. Signals given before are not seen.
    pub(crate) fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// One listener to a [`Wake`].
pub(crate) struct Listener(watch::Receiver<u64>);

impl Listener {
    /// Waits for the next signal.
    pub(crate) async fn notified(&mut self) {
        if self.0.changed().await.is_err() {
            // The store is gone, and with it whatever could be wanted.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_signal_reaches_every_listener_once() {
        let wake = Wake::new();
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
