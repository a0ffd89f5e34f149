//! Webhooks.

use std::time::Duration;

use crate::api;
use crate::domain::error::{Error, Result};
use crate::domain::event::{After, EventKind};
use crate::domain::time::clock::Timestamp;
use crate::domain::webhook::{
    DeliveryFault, FailurePage, FailureState, NewWebhook, PingReport, Redeliver, Redelivered,
    Webhook, WebhookEdit, WebhookFailure, WebhookSecret,
};

/// Seconds for which the former secret signs too, without another wish.
const OVERLAP_SECS: u64 = 86_400;

/// The number of failures in a page, unless the caller wants another one.
const DEFAULT_LIMIT: u32 = 100;

/// The maximum number of failures in a page.
const MOST: u32 = 1000;

impl TryFrom<&api::CreateWebhook> for NewWebhook {
    type Error = Error;

    /// Reads the request. `InvalidField` for an invalid URL, type, organization or place.
    fn try_from(request: &api::CreateWebhook) -> Result<Self> {
        let mut new = Self::new(request.url.parse()?);
        new.name = request.name.clone().unwrap_or_default();
        new.organization = request.organization_id.as_deref().map(str::parse).transpose()?;
        new.kinds = request.types.as_deref().map_or_else(|| Ok(Vec::new()), kinds)?;
        if let Some(from) = &request.from {
            new.from = place(from)?;
        }
        Ok(new)
    }
}

impl From<Redelivered> for api::RedeliverReply {
    fn from(again: Redelivered) -> Self {
        Self { queued: again.queued, next: again.next.map(|event| event.to_string()) }
    }
}

impl TryFrom<&api::EditWebhook> for WebhookEdit {
    type Error = Error;

    fn try_from(request: &api::EditWebhook) -> Result<Self> {
        Ok(Self {
            url: request.url.as_deref().map(str::parse).transpose()?,
            name: request.name.clone(),
            kinds: request.types.as_deref().map(kinds).transpose()?,
        })
    }
}

impl TryFrom<&api::RedeliverWebhook> for Redeliver {
    type Error = Error;

    /// Accepts one of the three forms.
    fn try_from(request: &api::RedeliverWebhook) -> Result<Self> {
        let api::RedeliverWebhook { event_id, after, until, failed } = request;
        match (event_id, after, until, failed) {
            (Some(event), None, None, None) => Ok(Self::Event(of_field(event, "event_id")?)),
            (None, Some(after), Some(until), None) => {
                let after = after.parse::<After>().map_err(|error| error.with_field("after"))?;
                Ok(Self::Range(after, of_field(until, "until")?))
            }
            (None, None, None, Some(true)) => Ok(Self::Failed),
            _ => Err(Error::invalid(
                "event_id",
                "give event_id, or after and until, or failed: true",
            )),
        }
    }
}

fn of_field<T: std::str::FromStr<Err = Error>>(text: &str, field: &str) -> Result<T> {
    text.parse().map_err(|error: Error| error.with_field(field))
}

fn place(text: &str) -> Result<After> {
    of_field(text, "from")
}

fn kinds(types: &[String]) -> Result<Vec<EventKind>> {
    if types.is_empty() { Ok(Vec::new()) } else { EventKind::parse_list(&types.join(",")) }
}

impl api::EnableWebhook {
    /// Reads the place.
    #[cfg(feature = "store")]
    pub fn place(&self) -> Result<Option<After>> {
        self.from.as_deref().map(place).transpose()
    }
}

impl api::WebhookFailuresQuery {
    /// Reads the state, the place and the number of failures of a page.
    #[cfg(feature = "store")]
    pub fn page(&self) -> Result<(Option<FailureState>, i64, usize)> {
        let state = match self.state.as_deref().map(str::parse::<FailureState>) {
            None => None,
            Some(Ok(state)) => Some(state),
            Some(Err(_)) => {
                let allowed = FailureState::ALL.iter().map(|state| state.as_str());
                let error = Error::invalid("state", "not a state of failures");
                return Err(error.with_allowed(allowed));
            }
        };
        let after = self.after.as_deref().map_or(Ok(0), |text| {
            let plain = text.parse().ok().filter(|place| *place >= 0);
            plain.ok_or_else(|| Error::invalid("after", "use next of the page before"))
        })?;
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MOST).contains(&limit) {
            let error = Error::invalid("limit", "limit is an integer from 1 to 1000");
            return Err(error.with_limit(MOST.into()));
        }
        Ok((state, after, limit as usize))
    }
}

impl api::RotateWebhook {
    /// Returns the time for which the former secret signs too.
    #[cfg(feature = "store")]
    pub fn overlap(&self) -> Duration {
        Duration::from_secs(self.overlap_s.unwrap_or(OVERLAP_SECS))
    }
}

impl From<&Webhook> for api::WebhookReply {
    fn from(webhook: &Webhook) -> Self {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let health = &webhook.health;
        let state = match (webhook.disabled, health.failing_since) {
            (Some(_), _) => "disabled",
            (None, Some(_)) => "failing",
            (None, None) => "ok",
        };
        Self {
            id: webhook.id.to_string(),
            url: webhook.url.as_str().to_owned(),
            name: webhook.name.clone(),
            organization_id: webhook.organization.as_ref().map(ToString::to_string),
            types: webhook.kinds.iter().map(ToString::to_string).collect(),
            created_at: webhook.created_at.to_string(),
            changed_at: webhook.changed_at.to_string(),
            former_secret_until: time(webhook.former_secret_until),
            state: state.to_owned(),
            disabled_reason: webhook.disabled.map(|disabled| disabled.reason.to_string()),
            disabled_at: time(webhook.disabled.map(|disabled| disabled.at)),
            failing_since: time(health.failing_since),
            paused_until: time(health.paused_until),
            last_status: health.last_status,
            last_error: health.last_fault.map(|fault| fault.to_string()),
            last_attempt_at: time(health.last_attempt_at),
            last_success_at: time(health.last_success_at),
            gaps: health.gaps,
            oldest_waiting_at: None,
        }
    }
}

impl From<&(Webhook, WebhookSecret)> for api::NewWebhookReply {
    fn from((webhook, secret): &(Webhook, WebhookSecret)) -> Self {
        Self::new(secret.to_string(), webhook.into())
    }
}

impl From<PingReport> for api::WebhookPingReply {
    fn from(report: PingReport) -> Self {
        Self {
            delivered: report.delivered,
            status: report.status,
            error: report.fault.map(DeliveryFault::as_str).map(ToOwned::to_owned),
            took_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl From<&WebhookFailure> for api::WebhookFailure {
    fn from(failure: &WebhookFailure) -> Self {
        Self {
            event_id: failure.event_id.to_string(),
            kind: failure.kind.to_string(),
            organization_id: failure.organization.as_ref().map(ToString::to_string),
            file_id: failure.file_id.map(|id| id.to_string()),
            state: failure.state.to_string(),
            attempts: failure.attempts,
            at: failure.at.to_string(),
            last_status: failure.last_status,
        }
    }
}

impl From<&FailurePage> for api::WebhookFailures {
    fn from(page: &FailurePage) -> Self {
        Self {
            failures: page.failures.iter().map(Into::into).collect(),
            next: page.next.map(|place| place.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_send_again_has_one_form() {
        let id = "BwcHBwcHBwcAAAAAAAAwOQ";
        let read = |request: &api::RedeliverWebhook| Redeliver::try_from(request);
        let event = id.parse().unwrap();
        assert_eq!(read(&api::RedeliverWebhook::event(id)).unwrap(), Redeliver::Event(event));
        let range = Redeliver::Range(After::Start, event);
        assert_eq!(read(&api::RedeliverWebhook::range("start", id)).unwrap(), range);
        assert_eq!(read(&api::RedeliverWebhook::failed()).unwrap(), Redeliver::Failed);

        let mut both = api::RedeliverWebhook::event(id);
        both.failed = Some(true);
        let half = api::RedeliverWebhook { after: Some(id.into()), ..Default::default() };
        let none = api::RedeliverWebhook::default();
        for request in [both, half, none, api::RedeliverWebhook::event("?")] {
            let error = read(&request).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("event_id"), "{request:?}");
        }
    }

    #[test]
    fn a_page_of_failures_has_bounds() {
        type Fields<'f> = (Option<&'f str>, Option<&'f str>, Option<u32>);
        let read = |(state, after, limit): Fields<'_>| {
            let (state, after) = (state.map(Into::into), after.map(Into::into));
            api::WebhookFailuresQuery { state, after, limit }.page()
        };
        assert_eq!(read((None, None, None)).unwrap(), (None, 0, 100));
        let all = (Some(FailureState::Failed), 7, 1000);
        assert_eq!(read((Some("failed"), Some("7"), Some(1000))).unwrap(), all);
        for (fields, field) in [
            ((Some("done"), None, None), "state"),
            ((None, Some("-1"), None), "after"),
            ((None, Some("x"), None), "after"),
            ((None, None, Some(0)), "limit"),
            ((None, None, Some(1001)), "limit"),
        ] {
            let error = read(fields).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some(field), "{fields:?}");
        }
    }

    #[test]
    fn a_wish_for_a_webhook_is_checked_field_by_field() {
        let read = |request: api::CreateWebhook| NewWebhook::try_from(&request);
        let url = "https://example.org/hook";
        let new = api::CreateWebhook::new(url)
            .types(["file.*"])
            .organization_id("42")
            .starting_at("start");
        let new = read(new).unwrap();
        assert!(new.kinds.iter().all(|kind| kind.is_of_file()) && new.from == After::Start);
        for (request, field) in [
            (api::CreateWebhook::new("ftp://example.org/"), "url"),
            (api::CreateWebhook::new(url).types(["file.nothing"]), "types"),
            (api::CreateWebhook::new(url).organization_id("a b"), "organization_id"),
            (api::CreateWebhook::new(url).starting_at("middle"), "from"),
        ] {
            let error = read(request).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some(field));
        }
    }
}
