//! How the deliveries of a lane go: pauses, trials, and the end of patience. Pure.

use std::time::Duration;

use crate::domain::event::EventId;
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{Answer, DisabledReason, Verdict, WebhookHealth, pause};

/// The number of different events in a row that an endpoint can refuse before it pauses as if it could not take
/// any.
const MOST_REFUSED: usize = 10;

/// The longest pause that can be stored. A later instant comes from a clock that was wrong.
const LONGEST: Duration = Duration::from_hours(2);

/// The age of the last attempt from which a lane counts as one that no server had.
const LONGEST_REST: Duration = Duration::from_hours(1);

/// The health of one endpoint, with the facts that are only in memory.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) stored: WebhookHealth,
    /// The refused events since the last accepted one, up to [`MOST_REFUSED`].
    refused: Vec<EventId>,
    /// True until the endpoint accepts an event. Until then, one event at a time is sent.
    is_unknown: bool,
}

impl Health {
    /// Begins with the stored health. Time in which no server tried does not count as time without success.
    pub(super) fn new(mut stored: WebhookHealth, now: Timestamp) -> Self {
        if stored.last_attempt_at.is_some_and(|at| now > at.plus(LONGEST_REST)) {
            stored.failing_since = None;
        }
        Self { stored, refused: Vec::new(), is_unknown: true }
    }

    /// Returns how many events can be under way now.
    pub(super) fn at_once(&self, most: usize, now: Timestamp) -> usize {
        if self.is_paused(now) {
            0
        } else if self.is_unknown || self.stored.pauses > 0 {
            1
        } else {
            most
        }
    }

    fn is_paused(&self, now: Timestamp) -> bool {
        let until = self.stored.paused_until;
        until.is_some_and(|until| now < until && until < now.plus(LONGEST))
    }

    /// Takes note of the answer to an event. `chance` (0 to 1) spreads the pauses. Returns the reason to disable the
    /// webhook, if there is one. `patience` is the longest time without success. It is `None` while the clock is not
    /// trusted: the time is then counted anew.
    pub(super) fn note(
        &mut self,
        event: EventId,
        answer: Answer,
        now: Timestamp,
        patience: Option<Duration>,
        chance: f64,
    ) -> Option<DisabledReason> {
        self.stored.last_status = answer.status();
        self.stored.last_fault = answer.fault();
        self.stored.last_attempt_at = Some(now);
        match answer.verdict() {
            Verdict::Delivered => {
                self.note_success(now);
                return None;
            }
            Verdict::Gone => return Some(DisabledReason::Gone),
            Verdict::EndpointFault(asked) => self.pause(asked, now, chance),
            Verdict::EventFault => {
                if self.refused.len() < MOST_REFUSED && !self.refused.contains(&event) {
                    self.refused.push(event);
                }
                if self.refused.len() == MOST_REFUSED {
                    self.pause(None, now, chance);
                }
            }
        }
        let Some(patience) = patience else {
            self.stored.failing_since = Some(now);
            return None;
        };
        let since = *self.stored.failing_since.get_or_insert(now);
        (now >= since.plus(patience)).then_some(DisabledReason::NoSuccess)
    }

    fn note_success(&mut self, now: Timestamp) {
        self.is_unknown = false;
        self.refused.clear();
        self.stored.failing_since = None;
        self.stored.paused_until = None;
        self.stored.pauses = 0;
        self.stored.last_success_at = Some(now);
    }

    /// Pauses. Answers of events that were under way together count as one.
    fn pause(&mut self, asked: Option<Duration>, now: Timestamp, chance: f64) {
        if self.is_paused(now) {
            return;
        }
        self.stored.paused_until = Some(now.plus(pause(self.stored.pauses, asked, chance)));
        self.stored.pauses = self.stored.pauses.saturating_add(1);
    }

    /// Takes note that no event waits for the endpoint.
    pub(super) fn note_idle(&mut self) {
        self.stored.failing_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::webhook::{DeliveryFault, retry_after};

    const NOW: Timestamp = Timestamp::from_millis(1_795_249_200_000);
    const FIVE_DAYS: Duration = Duration::from_hours(120);
    const DAYS: Option<Duration> = Some(FIVE_DAYS);

    fn event(number: u8) -> EventId {
        EventId::from_bytes([number; 16])
    }

    fn status(status: u16) -> Answer {
        Answer::Status(status, None)
    }

    fn known() -> Health {
        let mut health = Health::new(WebhookHealth::default(), NOW);
        assert_eq!(health.at_once(8, NOW), 1, "the first event is a trial");
        assert_eq!(health.note(event(1), status(200), NOW, DAYS, 0.5), None);
        assert_eq!(health.at_once(8, NOW), 8);
        health
    }

    #[test]
    fn answers_of_events_that_were_under_way_together_are_one_pause() {
        let mut health = known();
        for _ in 0..8 {
            health.note(event(1), status(503), NOW, DAYS, 0.5);
        }
        assert_eq!(health.stored.pauses, 1);
        assert_eq!(health.at_once(8, NOW), 0);
        let then = NOW.plus(Duration::from_secs(6));
        assert_eq!(health.at_once(8, then), 1, "one event is the trial");
        health.note(event(1), status(204), then, DAYS, 0.5);
        assert_eq!((health.at_once(8, then), health.stored.failing_since), (8, None));
    }

    #[test]
    fn an_endpoint_that_asks_for_a_pause_gets_it() {
        let mut health = known();
        health.note(event(1), Answer::Status(429, Some(Duration::from_secs(90))), NOW, DAYS, 0.5);
        assert_eq!(health.at_once(8, NOW.plus(Duration::from_secs(89))), 0);
        assert_eq!(health.at_once(8, NOW.plus(Duration::from_secs(90))), 1);
    }

    #[test]
    fn no_retry_after_makes_a_tight_loop() {
        let past = retry_after("Sun, 06 Nov 1994 08:49:37 GMT", NOW);
        // The clock of the endpoint is a second behind.
        let skewed = retry_after("Sat, 21 Nov 2026 08:19:59 GMT", NOW);
        for asked in [retry_after("0", NOW), past, skewed] {
            assert_eq!(asked, Some(Duration::ZERO));
            let (mut health, mut now) = (known(), NOW);
            for (pauses, seconds) in (1..).zip([4, 26, 53, 107, 269, 539]) {
                health.note(event(1), Answer::Status(503, asked), now, DAYS, 0.5);
                assert_eq!(health.stored.pauses, pauses);
                now = now.plus(Duration::from_secs(seconds));
                assert_eq!(health.at_once(8, now), 0, "after {seconds} s");
                now = now.plus(Duration::from_secs(seconds));
                assert_eq!(health.at_once(8, now), 1);
            }
        }
    }

    #[test]
    fn ten_refused_events_in_a_row_are_the_fault_of_the_endpoint() {
        let mut health = known();
        for number in 1..=9 {
            health.note(event(number), status(500), NOW, DAYS, 0.5);
        }
        assert_eq!(health.at_once(8, NOW), 8);
        health.note(event(10), status(500), NOW, DAYS, 0.5);
        assert_eq!(health.at_once(8, NOW), 0);
    }

    #[test]
    fn one_event_that_is_refused_again_and_again_is_no_fault_of_the_endpoint() {
        let mut health = known();
        for number in (1..=9).chain([3; 99]) {
            health.note(event(number), status(500), NOW, DAYS, 0.5);
        }
        assert_eq!(health.at_once(8, NOW), 8);
    }

    #[test]
    fn days_without_success_disable_and_410_does_at_once() {
        let mut health = known();
        let timeout = Answer::Fault(DeliveryFault::Timeout);
        assert_eq!(health.note(event(1), timeout, NOW, DAYS, 0.5), None);
        assert_eq!(health.stored.failing_since, Some(NOW));
        let almost = NOW.plus(FIVE_DAYS).minus(Duration::from_millis(1));
        assert_eq!(health.note(event(1), timeout, almost, DAYS, 0.5), None);
        let then = NOW.plus(FIVE_DAYS);
        assert_eq!(
            health.note(event(1), timeout, then, DAYS, 0.5),
            Some(DisabledReason::NoSuccess)
        );
        assert_eq!(known().note(event(1), status(410), NOW, DAYS, 0.5), Some(DisabledReason::Gone));
    }

    #[test]
    fn time_in_which_no_server_tried_does_not_count() {
        let timeout = Answer::Fault(DeliveryFault::Timeout);
        let mut health = known();
        health.note(event(1), timeout, NOW, DAYS, 0.5);
        let hour = NOW.plus(Duration::from_hours(1));
        let soon = Health::new(health.stored, hour);
        assert_eq!(soon.stored.failing_since, Some(NOW));

        let later = NOW.plus(FIVE_DAYS);
        let mut health = Health::new(health.stored, later);
        assert_eq!(health.note(event(1), timeout, later, DAYS, 0.5), None);
        assert_eq!(health.stored.failing_since, Some(later));
    }

    #[test]
    fn a_clock_that_leapt_disables_nothing() {
        let timeout = Answer::Fault(DeliveryFault::Timeout);
        let mut health = known();
        health.note(event(1), timeout, NOW, DAYS, 0.5);
        let leapt = NOW.plus(FIVE_DAYS);
        assert_eq!(health.note(event(1), timeout, leapt, None, 0.5), None);
        let settled = leapt.plus(Duration::from_hours(24));
        assert_eq!(health.note(event(1), timeout, settled, DAYS, 0.5), None);
        let then = leapt.plus(FIVE_DAYS);
        let disabled = health.note(event(1), timeout, then, DAYS, 0.5);
        assert_eq!(disabled, Some(DisabledReason::NoSuccess));
    }

    #[test]
    fn a_pause_of_a_clock_that_was_wrong_is_over() {
        let far = Some(NOW.plus(Duration::from_hours(24 * 365)));
        let stored = WebhookHealth { paused_until: far, ..WebhookHealth::default() };
        let health = Health::new(stored, NOW);
        assert_eq!(health.at_once(8, NOW), 1);
    }
}
