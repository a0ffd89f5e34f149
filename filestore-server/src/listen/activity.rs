//! The activity of a connection: reported by its socket and its service, read by its timeouts.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::Options;
use crate::deadline::Deadline;

/// The event that a connection waits for.
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
/// Phases and stalls are written without reading the clock. Each change makes another number.
/// [`PhaseTimeouts`] reads the clock at the end of a poll, if it finds a number it has not seen. So a
/// request that is read, served and answered within one poll reads the clock once.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// The phase and, above it, the number of phases so far.
    phase: AtomicU32,
    /// The number of times that writing stalled or went on; odd while it is stalled.
    stalls: AtomicU32,
    /// True while the body of the current request has bytes that the service has not read.
    body_unread: AtomicBool,
    /// True once the server stops.
    stopping: AtomicBool,
    waker: AtomicWaker,
}

impl Activity {
    /// Enters a phase, be it the same again: its time starts anew.
    pub(super) fn enter(&self, phase: Phase) {
        let count = self.phase.load(Relaxed) / Phase::COUNT;
        self.phase
            .store((count.wrapping_add(1) % (1 << 29)) * Phase::COUNT + phase as u32, Relaxed);
    }

    /// Records that bytes arrived: the start of a request, unless a request is running.
    pub(super) fn received(&self) {
        if matches!(Phase::of(self.phase.load(Relaxed)), Phase::New | Phase::Idle) {
            self.enter(Phase::Header);
        }
    }

    /// Records whether the client takes the bytes that are written: `written` is pending if not.
    pub(super) fn wrote<T>(&self, written: &Poll<T>) {
        let stalls = self.stalls.load(Relaxed);
        let was_stalled = stalls % 2 == 1;

        if was_stalled != written.is_pending() {
            self.stalls.store(stalls.wrapping_add(1), Relaxed);
        }
    }

    /// Records whether the current request has body bytes that the service has not read.
    pub(super) fn set_body_unread(&self, unread: bool) {
        self.body_unread.store(unread, Relaxed);
    }

    /// Tests whether the current request has body bytes that the service has not read.
    pub(super) fn body_unread(&self) -> bool {
        self.body_unread.load(Relaxed)
    }

    /// Tells the connection that the server stops.
    pub(super) fn stop(&self) {
        self.stopping.store(true, std::sync::atomic::Ordering::Release);
        self.waker.wake();
    }

    /// Tests whether the server stops, and wakes the task when it does.
    pub(super) fn poll_stopping(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.stopping.load(std::sync::atomic::Ordering::Acquire)
    }
}

/// The timeouts of a connection's phases, with one timer for all of them.
pub(super) struct PhaseTimeouts {
    /// The phase seen last, and when it was seen first.
    phase: (u32, Instant),
    /// The number of stalls seen last, and when it was seen first.
    stalls: (u32, Instant),
    timer: Deadline,
}

impl PhaseTimeouts {
    /// Starts the time of [`Phase::New`].
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { phase: (0, now), stalls: (0, now), timer: Deadline::default() }
    }

    /// Returns ready when the client has used up the time of the current phase. Must be polled after
    /// everything that changes `activity`.
    pub(super) fn poll_timed_out(
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

/// Returns the longest time of a phase. The service limits a running request itself.
fn limit(phase: Phase, options: &Options) -> Option<Duration> {
    match phase {
        Phase::New => Some(options.first_byte),
        Phase::Header => Some(options.header),
        Phase::Idle => Some(options.keep_alive_idle),
        Phase::Request => None,
    }
}
