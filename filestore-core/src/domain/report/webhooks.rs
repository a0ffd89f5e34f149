//! The webhooks of a store, as its overview shows them.

use std::time::Duration;

use super::overview::{Advice, AdviceCode};
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{DisabledReason, Webhook};

/// Time without an accepted event from which an administrator should act.
const LONG: Duration = Duration::from_hours(1);

/// Number of webhooks that get advice of their own.
const MOST_ADVICE: usize = 5;

/// The webhooks of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhooksOverview {
    /// Enabled webhooks that accept events, or that no event waits for.
    pub ok: u64,
    /// Enabled webhooks that accept no event, although some wait.
    pub failing: u64,
    /// Disabled webhooks.
    pub disabled: u64,
    /// Number of times that a webhook can have missed events.
    pub gaps: u64,
    /// Since when the worst enabled webhook has accepted no event.
    pub failing_since: Option<Timestamp>,
    /// Time of the oldest event that waits for a failing webhook.
    pub oldest_waiting_at: Option<Timestamp>,
    /// Webhooks that fail, or that the server has disabled.
    pub(crate) troubled: Vec<Webhook>,
}

impl WebhooksOverview {
    /// Counts webhooks by their state. The oldest waiting event stays unknown.
    pub(crate) fn of(webhooks: impl IntoIterator<Item = Webhook>) -> Self {
        let mut all = Self::default();
        for webhook in webhooks {
            all.gaps += webhook.health.gaps;
            let since = webhook.health.failing_since;
            match (webhook.disabled, since) {
                (Some(_), _) => all.disabled += 1,
                (None, None) => all.ok += 1,
                (None, Some(since)) => {
                    all.failing += 1;
                    let worst = all.failing_since.map_or(since, |worst| worst.min(since));
                    all.failing_since = Some(worst);
                }
            }
            let is_failing = webhook.disabled.is_none() && since.is_some();
            if is_failing || webhook.is_given_up() {
                all.troubled.push(webhook);
            }
        }
        all
    }

    /// Lists the webhooks that need an administrator at `now`.
    pub(crate) fn advice(&self, now: Timestamp) -> Vec<Advice> {
        let mut all: Vec<_> =
            self.troubled.iter().filter_map(|webhook| advice(webhook, now)).collect();
        let more = all.len().saturating_sub(MOST_ADVICE);
        all.truncate(MOST_ADVICE);
        if more > 0 {
            let problem = format!("further webhooks that need attention: {more}");
            let more = Advice::new("webhooks", problem, "run `filestore webhook list`");
            all.push(more.coded(AdviceCode::WebhookFailing).with_command("filestore webhook list"));
        }
        all
    }
}

/// Says what to do about a webhook that fails or that the server has disabled.
fn advice(webhook: &Webhook, now: Timestamp) -> Option<Advice> {
    let (id, about) = (webhook.id, format!("webhook {}", webhook.id));
    if let Some(disabled) = webhook.disabled {
        let why = match disabled.reason {
            DisabledReason::Gone => "the endpoint answered 410",
            DisabledReason::NoSuccess => "the endpoint accepted no event for days",
            DisabledReason::Requested | DisabledReason::Copied => return None,
        };
        let problem = format!("disabled since {}: {why}", disabled.at);
        let next = format!(
            "if the endpoint works again, run `filestore webhook enable {id}`, otherwise `filestore webhook delete {id}`"
        );
        let command = format!("filestore webhook enable {id}");
        let advice = Advice::new(&about, problem, next).coded(AdviceCode::WebhookDisabled);
        return Some(advice.with_command(command));
    }

    let since = webhook.health.failing_since.filter(|since| since.plus(LONG) <= now)?;
    let last = match (webhook.health.last_status, webhook.health.last_fault) {
        (Some(status), _) => format!(", last answer: {status}"),
        (None, Some(fault)) => format!(", last fault: {fault}"),
        (None, None) => String::new(),
    };
    let problem = format!("accepts no event since {since}{last}");
    let next = format!(
        "run `filestore webhook ping {id}`, and repair the endpoint. Then the waiting events follow"
    );
    let advice = Advice::new(&about, problem, next).coded(AdviceCode::WebhookFailing);
    Some(advice.with_command(format!("filestore webhook ping {id}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::WebhookId;
    use crate::domain::webhook::{Disabled, WebhookHealth};

    const NOW: Timestamp = Timestamp::from_millis(1_795_249_200_000);

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId::generate(NOW),
            url: "https://example.org/hook".parse().unwrap(),
            name: String::new(),
            organization: None,
            kinds: Vec::new(),
            created_at: NOW,
            changed_at: NOW,
            former_secret_until: None,
            disabled: None,
            health: WebhookHealth::default(),
        }
    }

    fn failing(since: Timestamp) -> Webhook {
        let mut webhook = webhook();
        webhook.health.failing_since = Some(since);
        webhook.health.last_status = Some(503);
        webhook
    }

    fn disabled(reason: DisabledReason) -> Webhook {
        Webhook { disabled: Some(Disabled::new(reason, NOW)), ..webhook() }
    }

    #[test]
    fn webhooks_are_counted_by_their_state() {
        let (old, new) = (NOW.minus(LONG), NOW.minus(Duration::from_secs(1)));
        let mut missed = webhook();
        missed.health.gaps = 2;
        let all = [failing(new), failing(old), disabled(DisabledReason::Gone), missed];
        let shown = WebhooksOverview::of(all);
        assert_eq!((shown.ok, shown.failing, shown.disabled, shown.gaps), (1, 2, 1, 2));
        assert_eq!(shown.failing_since, Some(old));
    }

    #[test]
    fn only_long_failures_and_webhooks_that_were_given_up_get_advice() {
        let advised = |webhook: Webhook| WebhooksOverview::of([webhook]).advice(NOW);
        let since = NOW.minus(LONG);
        let advice = advised(failing(since));
        assert!(advice[0].problem.ends_with("last answer: 503"), "{advice:?}");
        assert!(advice[0].next.contains("filestore webhook ping"), "{advice:?}");
        assert_eq!(advised(failing(since.plus(Duration::from_millis(1)))), []);
        assert_eq!(advised(webhook()), []);

        for reason in [DisabledReason::Gone, DisabledReason::NoSuccess] {
            let advice = advised(disabled(reason));
            assert!(advice[0].next.contains("filestore webhook enable"), "{advice:?}");
        }
        for reason in [DisabledReason::Requested, DisabledReason::Copied] {
            assert_eq!(advised(disabled(reason)), []);
        }
    }

    #[test]
    fn many_webhooks_in_trouble_fit_on_a_screen() {
        let all = std::iter::repeat_with(|| disabled(DisabledReason::Gone)).take(MOST_ADVICE + 2);
        let advice = WebhooksOverview::of(all).advice(NOW);
        assert_eq!(advice.len(), MOST_ADVICE + 1);
        assert!(advice[MOST_ADVICE].problem.ends_with(": 2"), "{advice:?}");
    }
}
