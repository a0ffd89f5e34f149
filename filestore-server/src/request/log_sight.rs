//! The part of the log of events that a caller sees.

use filestore_core::events::{Event, EventFilter, EventKind};
use filestore_core::keys::KeyScope;
use filestore_core::{Error, ErrorKind, Scope};

use super::call::{Call, Proof, Sight};
use crate::error::Result;

/// The part of the log that a caller sees, at one moment.
///
/// Readers of an organization see what happens to its files. Keys, bindings, runs and erasures concern the whole
/// service, so only its administrators see them. Everybody sees gaps of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSight {
    organizations: Sight,
    is_of_service: bool,
}

impl LogSight {
    /// Returns what the caller of a request sees.
    pub(crate) fn of(call: &Call) -> Self {
        Self { organizations: call.caller.scope.clone(), is_of_service: administers(call) }
    }

    /// Narrows a filter to what the caller sees. An organization or a type that the caller does not see is refused.
    pub(crate) fn narrow(&self, filter: EventFilter) -> filestore_core::Result<EventFilter> {
        if let Some(organization) = &filter.organization {
            self.organizations.check(organization)?;
        }
        if self.is_of_service {
            return Ok(filter);
        }
        let is_of_service = |kind: &EventKind| !kind.is_of_file() && !kind.is_for_all();
        if let Some(kind) = filter.kinds.iter().find(|kind| is_of_service(kind)) {
            let message =
                format!("this type needs a key with the scope admin for all organizations: {kind}");
            let error = Error::new(ErrorKind::Forbidden, message).with_field("types");
            return Err(error.with_allowed([KeyScope::Admin.as_str()]));
        }
        if filter.kinds.is_empty() {
            let of_files = EventKind::ALL.iter().copied().filter(|kind| kind.is_of_file());
            return Ok(filter.kinds(of_files));
        }
        Ok(filter)
    }

    /// Returns true if the request would see the same now, by the keys in memory.
    pub(crate) fn is_current(&self, call: &Call) -> bool {
        let organizations = call.recheck_in_memory();
        organizations.is_ok_and(|now| now == self.organizations)
            && administers(call) == self.is_of_service
    }

    /// Checks that the request still sees the same, after it has waited.
    pub(crate) async fn recheck(&self, call: &Call) -> Result<()> {
        let organizations = call.recheck().await?;
        if organizations == self.organizations && administers(call) == self.is_of_service {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Forbidden, "the rights of the key have changed").into())
    }

    /// Returns true if callers with this scope see an event that passed a narrowed filter.
    pub(crate) fn shows(scope: &Scope, event: &Event) -> bool {
        match (scope, &event.organization_id) {
            (Scope::All, _) => true,
            (_, Some(organization)) => event.kind.is_of_file() && scope.covers(organization),
            (_, None) => event.kind.is_for_all(),
        }
    }
}

/// Returns true if the caller administers the whole service, or no keys tell callers apart.
fn administers(call: &Call) -> bool {
    match &call.caller.proof {
        Proof::None => true,
        Proof::Key(id) => {
            call.store().keys().get(*id).is_some_and(|key| key.administers_the_service())
        }
        Proof::Permit(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn reader(of: Scope, is_of_service: bool) -> LogSight {
        LogSight { organizations: Sight::Of(Arc::new(of)), is_of_service }
    }

    fn filter(types: &str) -> EventFilter {
        EventFilter::new().kinds(EventKind::parse_list(types).unwrap())
    }

    #[test]
    fn who_does_not_administer_the_service_sees_files_alone() {
        for scope in [Scope::All, Scope::Organizations(vec!["7".parse().unwrap()])] {
            let sight = reader(scope, false);
            let all = sight.narrow(EventFilter::new()).unwrap();
            assert_eq!(all, filter("file.*"));
            for types in ["file.ready", "file.ready,log.gap"] {
                assert_eq!(sight.narrow(filter(types)).unwrap(), filter(types));
            }

            let error = sight.narrow(filter("file.ready,key.created")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Forbidden);
            assert!(error.message().ends_with("key.created"), "{error}");
        }
        let admin = reader(Scope::All, true);
        assert_eq!(admin.narrow(EventFilter::new()).unwrap(), EventFilter::new());
        assert_eq!(admin.narrow(filter("key.*")).unwrap(), filter("key.*"));
    }

    #[test]
    fn a_foreign_organization_is_refused() {
        let sight = reader(Scope::Organizations(vec!["7".parse().unwrap()]), false);
        assert!(sight.narrow(EventFilter::new().organization("7".parse().unwrap())).is_ok());
        let error = sight.narrow(EventFilter::new().organization("8".parse().unwrap()));
        assert_eq!(error.unwrap_err().details().field.as_deref(), Some("organization_id"));
    }
}
