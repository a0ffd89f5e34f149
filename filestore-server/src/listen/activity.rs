//! What happens on a connection: told by its socket and its service, read by its timer.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::Options;
use crate::deadline::Deadline;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The first byte ever.
    New = 0,
    /// The rest of a header block.
    Header = 1,
    /// The service, or the end of its reply.
    Request = 2,
    /// The first byte of another request.
    Idle = 3,
}

impl Phase {
    const COUNT: u32 = 4;

    fn of(state: u32) -> Self {
        match state % Self::COUNT {
            0 => Self::New,
            1 => Self::Header,
            2 => Self::Request,
            _ => Self::Idle,
        }
    }
}

/// The shared state of one connection.
///
/// Phases and stalls are written without looking at the clock. Each change makes another number; the
/// timer looks at the clock when it finds one it has not seen, at the end of a poll. So a request that
/// is read, served and answered within one poll costs one look.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// The phase, and how many there were.
    phase: AtomicU32,
    /// How often writing has stalled or gone on; odd while it is stalled.
    stalls: AtomicU32,
    /// Whether the body of the current request has more to be read.
    body_unread: AtomicBool,
    /// Whether the server stops.
    stopping: AtomicBool,
    waker: AtomicWaker,
}

impl Activity {
    /// Enters a phase.
    pub(super) fn enter(&self, phase: Phase) {
        let count = self.phase.load(Relaxed) / Phase::COUNT;
        self.phase
            .store((count.wrapping_add(1) % (1 << 29)) * Phase::COUNT + phase as u32, Relaxed);
    }

    /// Bytes have come: they are the start of a request, unless one is running.
    pub(super) fn received(&self) {
        if matches!(Phase::of(self.phase.load(Relaxed)), Phase::New | Phase::Idle) {
            self.enter(Phase::Header);
        }
    }

    /// Says whether the client takes what is written.
    pub(super) fn writing(&self, stalled: bool) {
        let stalls = self.stalls.load(Relaxed);
        if (stalls % 2 == 1) != stalled {
            self.stalls.store(stalls.wrapping_add(1), Relaxed);
        }
    }

    /// Says whether the current request has body bytes that nobody has read.
    pub(super) fn set_body_unread(&self, unread: bool) {
        self.body_unread.store(unread, Relaxed);
    }

    /// See [`set_body_unread`](Self::set_body_unread).
    pub(super) fn body_unread(&self) -> bool {
        self.body_unread.load(Relaxed)
    }

    /// Tells the connection that the server stops.
    pub(super) fn stop(&self) {
        self.stopping.store(true, std::sync::atomic::Ordering::Release);
        self.waker.wake();
    }

    /// Whether the server stops. Wakes the task when that changes.
    pub(super) fn poll_stopping(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.stopping.load(std::sync::atomic::Ordering::Acquire)
    }
}

/// The one timer of a connection.
pub(super) struct Patience {
    phase: (u32, Instant),
    stalls: (u32, Instant),
    timer: Deadline,
}

impl Patience {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { phase: (0, now), stalls: (0, now), timer: Deadline::default() }
    }

    /// Ready when the client has used up the time of the current phase. To be polled after whatever
    /// changes `activity` has been.
    pub(super) fn poll_exhausted(
        &mut self,
        cx: &mut Context<'_>,
        activity: &Activity,
        options: &Options,
    ) -> Poll<()> {
        let (phase, stalls) = (activity.phase.load(Relaxed), activity.stalls.load(Relaxed));
        if (phase, stalls) != (self.phase.0, self.stalls.0) {
            let now = Instant::now();
            for (seen, current) in [(&mut self.phase, phase), (&mut self.stalls, stalls)] {
                if seen.0 != current {
                    *seen = (current, now);
                }
            }
        }
        match limit(Phase::of(phase), options) {
            _ if stalls % 2 == 1 => self.timer.poll_passed(cx, self.stalls.1 + options.write_idle),
            Some(limit) => self.timer.poll_passed(cx, self.phase.1 + limit),
            None => Poll::Pending,
        }
    }
}

/// How long a phase may last. A running request is the service's to limit.
fn limit(phase: Phase, options: &Options) -> Option<Duration> {
    match phase {
        Phase::New => Some(options.first_byte),
        Phase::Header => Some(options.header),
        Phase::Idle => Some(options.keep_alive_idle),
        Phase::Request => None,
    }
}
