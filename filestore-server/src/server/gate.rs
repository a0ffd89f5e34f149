//! The gate: who is let in, and for what.
//!
//! # Open and closed
//! The gate is open until the first key is made, unless `auth = "keys"` closes it from the first start:
//! everybody who can reach the server may do everything. From the first key on it is closed for ever, also
//! when no key is left. Whoever may open the admin socket needs no key.
//!
//! # Order
//! A caller without a good key hears 401 whatever the path is. A caller with one hears 403 if the key
//! lacks the route's right. Foreign files are not decided here: the look-up itself knows the caller's
//! organizations, and does not find them.
//!
//! # Afterwards
//! An upload may last for hours. Its right is looked at again before its commit: see [`Call::recheck`].
//!
//! # Cost
//! One SHA-256 of a short text and one look-up in memory. No query.

use filestore_core::keys::{ApiKey, KeyScope, Recency};
use filestore_core::{Error, ErrorKind};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::sync::Arc;

use crate::config::Auth;
use crate::listen::Peer;
use crate::reply::Failure;
use crate::request::call::{App, Call, Caller};
use crate::routes::table::Need;

/// Lets a request in, or refuses it. Who it is that asks is on the call also when he is refused, for the
/// audit log.
pub(super) fn admit(call: &mut Call) -> Result<(), Failure> {
    if call.peer == Peer::Unix || !is_closed(&call.app) {
        call.caller = Caller::anyone();
        return Ok(());
    }
    let need = call.route.map(|route| route.need);
    if need == Some(Need::Nothing) {
        return Ok(());
    }

    let key = key_of(call)?;
    call.caller = Caller::of(&key);
    // A request that no route serves is refused behind the gate, with 404 or 405.
    if let Some(need) = need {
        check(&key, need)?;
    }
    Ok(())
}

impl Call {
    /// Checks that the right by which the request was let in still holds: `Unauthorized` for a key that
    /// was revoked, rotated or has expired since, or where the first key was made since;
    /// `SignatureInvalid` for a signed URL whose secret was revoked. Call it immediately before the
    /// commit of bytes that took their time to arrive. Answered from memory, unless that is older than a second
    /// and another server may have changed it.
    ///
    /// The end of a signed URL is not looked at: the upload began in time.
    pub(crate) async fn recheck(&self) -> Result<(), Error> {
        self.store().refresh_secrets(Recency::Second).await?;
        if let Some(terms) = self.upload_terms() {
            return self.store().signing().expect_known(&terms.kid);
        }
        let needs_key = self.client.is_some() && is_closed(&self.app);
        if needs_key { key_of(self).map(drop) } else { Ok(()) }
    }
}

/// Returns the good key that the request shows.
fn key_of(call: &Call) -> Result<Arc<ApiKey>, Error> {
    let key = call.store().keys().authenticate(bearer(&call.headers)?);
    key.ok_or_else(|| unauthorized("the key is not known, is revoked or has expired"))
}

/// Tells whether the request shows a key or a signature, good or not.
pub(super) fn shows_a_right(call: &Call) -> bool {
    call.query.contains("sig") || bearer(&call.headers).is_ok()
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
