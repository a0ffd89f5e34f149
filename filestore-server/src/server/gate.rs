//! The gate: who is let in, and for what.
//!
//! # Open and closed
//! The gate is open until the first key is made: then everybody who can reach the server may do
//! everything. From then on it is closed for ever, also when no key is left. Whoever may open the admin
//! socket needs no key.
//!
//! # Order
//! A caller without a good key hears 401 whatever the path is. A caller with one hears 403 if the key
//! lacks the route's right. Foreign files are not decided here: the look-up itself knows the caller's
//! organizations, and does not find them.
//!
//! # Cost
//! One SHA-256 of a short text and one look-up in memory. No query.

use filestore_core::{ApiKey, Error, ErrorKind, KeyScope};
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::config::Auth;
use crate::listen::Peer;
use crate::reply::Failure;
use crate::request::call::{App, Caller};
use crate::routes::table::{Need, Route};

/// Lets a request in, or refuses it.
pub(super) fn admit(
    app: &App,
    peer: Option<&Peer>,
    headers: &HeaderMap,
    route: Option<&Route>,
) -> Result<Caller, Failure> {
    if matches!(peer, Some(Peer::Unix)) || !is_closed(app) {
        return Ok(Caller::anyone());
    }
    let need = route.map(|route| route.need);
    if need == Some(Need::Nothing) {
        return Ok(Caller::nobody());
    }

    let shown = bearer(headers)?;
    let key = app
        .store
        .keys()
        .authenticate(shown)
        .ok_or_else(|| unauthorized("the key is not known, is revoked or has expired"))?;

    // A request that no route serves is refused behind the gate, with 404 or 405.
    if let Some(need) = need {
        check(&key, need)?;
    }
    Ok(Caller::of(&key))
}

/// Tests whether callers need a key.
pub(super) fn is_closed(app: &App) -> bool {
    app.config.auth == Auth::Keys || app.store.keys().exist()
}

/// Returns the key that the request shows (RFC 6750 section 2.1). A key in a form or in the query is
/// none: both end up in logs.
fn bearer(headers: &HeaderMap) -> Result<&[u8], Error> {
    const FORM: &str = "show a key in one header: Authorization: Bearer <key>";
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(unauthorized(FORM));
    };

    let (scheme, key) = value.as_bytes().split_at_checked(7).ok_or_else(|| unauthorized(FORM))?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return Err(unauthorized(FORM));
    }
    Ok(key.trim_ascii())
}

fn unauthorized(message: &str) -> Error {
    Error::new(ErrorKind::Unauthorized, message)
}

fn check(key: &ApiKey, need: Need) -> Result<(), Error> {
    match need {
        Need::Nothing => Ok(()),
        Need::Scope(scope) if key.allows(scope) => Ok(()),
        Need::Scope(scope) => {
            let message = format!("the key lacks the scope {scope}");
            Err(Error::new(ErrorKind::Forbidden, message).with_allowed([scope.as_str()]))
        }
        Need::ServiceAdmin if key.administers_the_service() => Ok(()),
        Need::ServiceAdmin => {
            let message = "this needs a key with the scope admin for all organizations";
            let admin = KeyScope::Admin.as_str();
            Err(Error::new(ErrorKind::Forbidden, message).with_allowed([admin]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        bearer(&headers).ok().map(|key| String::from_utf8(key.to_vec()).unwrap())
    }

    #[test]
    fn a_key_is_shown_in_one_bearer_header() {
        for good in ["Bearer fsk_1", "bearer fsk_1", "BEARER   fsk_1"] {
            assert_eq!(shown(&[good]).as_deref(), Some("fsk_1"), "{good}");
        }
        for bad in [&[][..], &["fsk_1"], &["Basic fsk_1"], &["Bearer"], &["Bearer a", "Bearer a"]] {
            assert_eq!(shown(bad), None, "{bad:?}");
        }
    }
}
