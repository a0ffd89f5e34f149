//! The times of further attempts.

use std::time::Duration;

/// The waits between the attempts of one event: 75 hours and 35 minutes in all.
const WAITS: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

/// The pauses of an endpoint that cannot take events now.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
];

/// The longest pause that an endpoint can ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Returns the wait after `attempts` failed attempts of an event, or `None` after the last one. `chance` (0 to 1)
/// spreads the waits by a tenth in both directions.
pub(crate) fn wait_after(attempts: u32, chance: f64) -> Option<Duration> {
    let at = usize::try_from(attempts.checked_sub(1)?).ok()?;
    Some(spread(*WAITS.get(at)?, chance))
}

/// Returns the pause after an endpoint could not take events for the `pauses`th time in a row, beginning with 0.
/// An endpoint can ask for a longer pause, up to an hour, and for no shorter one.
pub(crate) fn pause(pauses: u32, asked: Option<Duration>, chance: f64) -> Duration {
    let at = usize::try_from(pauses).map_or(PAUSES.len() - 1, |at| at.min(PAUSES.len() - 1));
    spread(PAUSES[at], chance).max(asked.unwrap_or_default().min(LONGEST_PAUSE))
}

fn spread(wait: Duration, chance: f64) -> Duration {
    wait.mul_f64(0.2_f64.mul_add(chance.clamp(0.0, 1.0), 0.9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_tried_ten_times_in_75_hours() {
        let waits: Vec<_> = (1..).map_while(|attempts| wait_after(attempts, 0.5)).collect();
        assert_eq!(waits.len(), 9);
        let total: f64 = waits.iter().map(Duration::as_secs_f64).sum();
        assert!((total - 75.0 * 3600.0).abs() < 3600.0, "{total}");
        assert_eq!(wait_after(0, 0.5), None, "no attempt has failed");
        assert_eq!(wait_after(10, 0.5), None);
    }

    #[test]
    fn waits_are_spread_by_a_tenth() {
        for (attempts, wait) in (1..).zip(WAITS) {
            assert_eq!(wait_after(attempts, 0.0), Some(wait.mul_f64(0.9)));
            let most = wait_after(attempts, 1.0).unwrap();
            assert!(most > wait && most <= wait.mul_f64(1.101), "{most:?}");
        }
    }

    #[test]
    fn pauses_grow_to_ten_minutes_and_an_endpoint_can_ask_for_an_hour() {
        let pauses: Vec<_> = (0..8).map(|at| pause(at, None, 0.5).as_secs_f64().round()).collect();
        assert_eq!(pauses, [5.0, 30.0, 60.0, 120.0, 300.0, 600.0, 600.0, 600.0]);
        assert_eq!(pause(0, Some(Duration::from_secs(90)), 0.5), Duration::from_secs(90));
        assert_eq!(pause(0, Some(Duration::from_hours(9)), 0.5), LONGEST_PAUSE);
        assert!(pause(u32::MAX, None, 1.0) < Duration::from_mins(12));
    }

    #[test]
    fn an_endpoint_cannot_ask_for_a_tight_loop() {
        for asked in [0, 1, 4] {
            for pauses in 0..8 {
                let asked = Some(Duration::from_secs(asked));
                assert_eq!(pause(pauses, asked, 0.5), pause(pauses, None, 0.5));
            }
        }
    }
}
