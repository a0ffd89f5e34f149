//! The activity of a connection. The connection's socket and service report the activity, and the timeouts
//! read the activity.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::Options;
use super::deadline::Deadline;
use super::least_rate::Slack;
use super::traffic::Traffic;

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
/// Phases and stalls are written without reading the clock. Each change increments a number.
/// [`PhaseTimeouts`] reads the clock at the end of a poll if it finds a new number. A request that is read,
/// served and answered within one poll therefore reads the clock once.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// The phase and, in the upper bits, the number of phases so far.
    phase: AtomicU32,
    /// The number of times that writing stalled or continued. Odd while it is stalled.
    stalls: AtomicU32,
    /// The bytes written since [`PhaseTimeouts`] last read them.
    written: AtomicU64,
    /// True while the body of the current request has bytes that the service has not read.
    body_unread: AtomicBool,
    /// True if the rest of the current request belongs to an unknown caller.
    brief_drain: AtomicBool,
    /// True while the service works on a reply without a head yet.
    answering: AtomicBool,
    /// True while the service sends a reply that has no end of its own.
    endless: AtomicBool,
    /// True once the client has closed its writing side while a request was running.
    half_closed: AtomicBool,
    /// True if bytes arrived behind the current request, so the next request has begun.
    ahead: AtomicBool,
    /// True once the server is stopping.
    stopping: AtomicBool,
    waker: AtomicWaker,
    traffic: Arc<Traffic>,
}

impl Activity {
    /// Begins with an unused connection, which is counted in `traffic`.
    pub(super) fn new(traffic: Arc<Traffic>) -> Self {
        Self { traffic, ..Self::default() }
    }

    /// Enters a phase. If the phase stays the same, its time starts again.
    pub(super) fn enter(&self, phase: Phase) {
        let count = self.phase.load(Relaxed) / Phase::COUNT;
        self.phase
            .store((count.wrapping_add(1) % (1 << 29)) * Phase::COUNT + phase as u32, Relaxed);
    }

    /// Tests whether the next bytes belong to the head of a request.
    pub(super) fn awaits_head(&self) -> bool {
        Phase::of(self.phase.load(Relaxed)) != Phase::Request
    }

    /// Records that `bytes` arrived: the start of a request, unless a request is running.
    pub(super) fn received(&self, bytes: usize) {
        self.traffic.received(bytes);
        match Phase::of(self.phase.load(Relaxed)) {
            Phase::New | Phase::Idle => self.enter(Phase::Header),
            Phase::Request => self.ahead.store(true, Relaxed),
            Phase::Header => {}
        }
    }

    /// Begins a request after its head has arrived.
    pub(super) fn begin(&self) {
        self.ahead.store(false, Relaxed);
        self.answering.store(true, Relaxed);
        self.traffic.request_began();
        self.enter(Phase::Request);
    }

    /// Records that the head of the reply is ready.
    pub(super) fn answered(&self) {
        self.answering.store(false, Relaxed);
    }

    /// Records whether the reply has no end of its own.
    pub(super) fn set_endless(&self, endless: bool) {
        self.endless.store(endless, Relaxed);
    }

    /// Ends the request after its reply. Bytes behind it start the next request.
    pub(super) fn finish(&self) {
        self.answered();
        self.set_endless(false);
        self.traffic.request_ended();
        let begun = self.ahead.swap(false, Relaxed);
        self.enter(if begun { Phase::Header } else { Phase::Idle });
    }

    /// Records the end of the client's data. Returns true if hyper must not see the end, because hyper would
    /// close the connection. The whole request has arrived, and the client can still wait for its reply.
    pub(super) fn client_closed(&self) -> bool {
        let is_running = Phase::of(self.phase.load(Relaxed)) == Phase::Request;
        let is_waiting = is_running && !self.body_unread();
        if is_waiting {
            self.half_closed.store(true, Relaxed);
        }
        is_waiting
    }

    /// Returns true if the client has closed its writing side. The client's last request is running.
    pub(super) fn is_half_closed(&self) -> bool {
        self.half_closed.load(Relaxed)
    }

    /// Returns true if the client has closed its writing side and waits for the head of a reply or for
    /// an endless reply, or has disconnected. The two cannot be distinguished.
    fn may_be_gone(&self) -> bool {
        let is_awaited = self.answering.load(Relaxed) || self.endless.load(Relaxed);
        self.is_half_closed() && is_awaited
    }

    /// Returns true if a stop waits for a client that does not take a reply without an end.
    fn holds_up_a_stop(&self) -> bool {
        let is_stopping = self.stopping.load(std::sync::atomic::Ordering::Acquire);
        is_stopping && self.endless.load(Relaxed) && self.is_stalled()
    }

    /// Records whether the client accepts written bytes, and how many. `written` is pending if it does not.
    pub(super) fn wrote(&self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.written.fetch_add(*bytes as u64, Relaxed);
            self.traffic.sent(*bytes);
        }

        let stalls = self.stalls.load(Relaxed);
        let was_stalled = stalls % 2 == 1;

        if was_stalled != written.is_pending() {
            self.stalls.store(stalls.wrapping_add(1), Relaxed);
        }
    }

    /// Returns true if the client accepts no more bytes now.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalls.load(Relaxed) % 2 == 1
    }

    /// Records whether the current request has body bytes that the service has not read.
    ///
    /// Bytes before the end of a body belonged to that body. Some bytes of the next request may have arrived
    /// with them. The next request then has the time limit of an idle connection until more of its bytes
    /// arrive.
    pub(super) fn set_body_unread(&self, unread: bool) {
        self.body_unread.store(unread, Relaxed);
        if !unread {
            self.ahead.store(false, Relaxed);
        }
    }

    /// Returns true if the current request has body bytes that the service has not read.
    pub(super) fn body_unread(&self) -> bool {
        self.body_unread.load(Relaxed)
    }

    /// Records whether the rest of the current request belongs to an unknown caller.
    pub(super) fn set_brief_drain(&self, brief: bool) {
        self.brief_drain.store(brief, Relaxed);
    }

    /// Returns true if the rest of the current request belongs to an unknown caller.
    pub(super) fn is_drain_brief(&self) -> bool {
        self.brief_drain.load(Relaxed)
    }

    /// Tells the connection that the server is stopping.
    pub(super) fn stop(&self) {
        self.stopping.store(true, std::sync::atomic::Ordering::Release);
        self.waker.wake();
    }

    /// Returns true if the server is stopping. Wakes the task when it does.
    pub(super) fn poll_stopping(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.stopping.load(std::sync::atomic::Ordering::Acquire)
    }
}

/// The timeouts of a connection's phases, with one timer for all of them.
pub(super) struct PhaseTimeouts {
    /// The last phase, and the time at which it was first seen.
    phase: (u32, Instant),
    /// The last number of stalls, and the time at which it was first seen.
    stalls: (u32, Instant),
    /// The time that the client has left to accept its replies.
    slack: Slack,
    /// The time since which the client may have disconnected.
    half_closed: Option<Instant>,
    timer: Deadline,
}

impl PhaseTimeouts {
    /// Starts the time of [`Phase::New`].
    pub(super) fn new(options: &Options) -> Self {
        let now = Instant::now();
        Self {
            phase: (0, now),
            stalls: (0, now),
            slack: Slack::new(options.least_rate, options.write_idle),
            half_closed: None,
            timer: Deadline::default(),
        }
    }

    /// Returns ready when the client has used up the time of the current phase. Poll it after all code that
    /// changes `activity`.
    pub(super) fn poll_timed_out(
        &mut self,
        cx: &mut Context<'_>,
        activity: &Activity,
        options: &Options,
    ) -> Poll<()> {
        let (phase, stalls) = (activity.phase.load(Relaxed), activity.stalls.load(Relaxed));
        if (phase, stalls) != (self.phase.0, self.stalls.0) {
            let now = Instant::now();
            if self.stalls.0 != stalls {
                self.count_stall(now, activity);
            }
            for (seen, current) in [(&mut self.phase, phase), (&mut self.stalls, stalls)] {
                if seen.0 != current {
                    *seen = (current, now);
                }
            }
        }

        if activity.holds_up_a_stop() {
            return Poll::Ready(());
        }
        if activity.may_be_gone() {
            let since = *self.half_closed.get_or_insert_with(Instant::now);
            return self.timer.poll_passed(cx, since + options.half_closed);
        }

        match limit(Phase::of(phase), options) {
            _ if activity.is_stalled() => {
                let patience = options.write_idle.min(self.slack.left());
                self.timer.poll_passed(cx, self.stalls.1 + patience)
            }
            Some(limit) => self.timer.poll_passed(cx, self.phase.1 + limit),
            None => Poll::Pending,
        }
    }

    /// Returns ready when the client has its whole reply and has sent no bytes for [`Options::rest`]. Poll it
    /// after [`Self::poll_timed_out`].
    pub(super) fn poll_rested(
        &mut self,
        cx: &mut Context<'_>,
        activity: &Activity,
        options: &Options,
    ) -> Poll<()> {
        if Phase::of(self.phase.0) != Phase::Idle || activity.is_stalled() {
            return Poll::Pending;
        }
        self.timer.poll_passed(cx, self.phase.1 + options.rest)
    }

    /// Counts the stall that has ended, if any, and the bytes that were written during it.
    fn count_stall(&mut self, now: Instant, activity: &Activity) {
        if self.stalls.0 % 2 == 1 {
            self.slack.waited(now - self.stalls.1);
        }
        self.slack.moved(activity.written.swap(0, Relaxed));
    }
}

/// Returns the time limit of a phase. The service limits a running request itself.
fn limit(phase: Phase, options: &Options) -> Option<Duration> {
    match phase {
        Phase::New => Some(options.first_byte),
        Phase::Header => Some(options.header),
        Phase::Idle => Some(options.keep_alive_idle),
        Phase::Request => None,
    }
}
