//! The gate: checks the rights of callers.
//!
//! # Open and closed
//! The gate is open until the first key is created. With `auth = "keys"`, it is closed from the first start.
//! While it is open, anyone who can reach the server has all rights. After the first key, it is closed
//! forever, even if all keys are removed. A process with access to the admin socket needs no key.
//!
//! # Order
//! A caller without a valid key gets 401 for every path. A caller with a key that lacks the route's right
//! gets 403. Access to files of other organizations is checked elsewhere: the look-up knows the caller's
//! organizations, and does not find such files.
//!
//! # Second check
//! An upload can take hours, and other bodies can take as long as their time limits allow. The right is
//! checked again before the commit, with the current scopes and organizations of the key. See
//! [`Call::recheck`].
//!
//! # Cost
//! One SHA-256 of a short text, and one look-up in memory. No query.

use std::sync::Arc;

use filestore_core::keys::{ApiKey, KeyScope, Recency};
use filestore_core::uploads::UploadAddress;
use filestore_core::{ErrorKind, Scope};
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::call::{Call, Caller, Sight};
use crate::config::Auth;
use crate::error::{Error, Refusal, RefusalKind, Result};
use crate::listen::Peer;
use crate::reply::Failure;
use crate::route_table::{Need, Route};
use crate::state::App;

/// The way to show a key, as errors explain it.
const FORM: &str = "show a key in one header: Authorization: Bearer <key>";

/// Admits a request, or refuses it. The call names the caller even after a refusal, for the audit log.
pub(crate) fn admit(call: &mut Call) -> Result<(), Failure> {
    if call.peer == Some(Peer::Unix) || !is_closed(&call.app) {
        call.caller = Caller::anyone();
        return Ok(());
    }
    let need = call.route.map(|route| route.need);
    if need == Some(Need::Nothing) {
        return Ok(());
    }
    if call.route.is_some_and(Route::has_address) && !call.headers.contains_key(AUTHORIZATION) {
        // The address can be a right of its own. The handler asks the store.
        call.caller = Caller::nobody();
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
    /// Returns the organizations with resumable uploads that the request can continue at `address`. The address alone
    /// is enough if a signed URL created the upload. Otherwise, a request without a key gets `Unauthorized`, also
    /// for an unknown upload.
    pub(crate) async fn reach_of(&self, address: Option<&UploadAddress>) -> Result<Scope> {
        if !self.caller.is_nobody() {
            return Ok((*self.caller.scope).clone());
        }
        let Some(address) = address else { return Err(unauthorized(FORM)) };
        match self.store().resumable().scope_of_address(address).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(unauthorized(FORM)),
            outcome => Ok(outcome?),
        }
    }

    /// Checks that the request's right still holds, and returns the organizations that it reaches now. Call
    /// it immediately before the commit of data that took time to arrive, and compare the written
    /// organization with the result. The answer comes from memory, unless memory is older than one second and
    /// another server may have changed the right.
    ///
    /// Returns `Unauthorized` if a key was revoked, rotated or has expired since, or if the first key was
    /// created since. Returns `Forbidden` if a key no longer has the route's right. Returns
    /// `SignatureInvalid` if the secret of a signed URL was revoked, or if its key no longer grants the
    /// right. The expiry of a signed URL is not checked, because the upload began in time.
    pub(crate) async fn recheck(&self) -> Result<Sight> {
        self.store().shared().refresh_secrets(Recency::Second).await?;
        self.recheck_in_memory()
    }

    /// Checks like [`recheck`](Self::recheck), by the keys and secrets in memory.
    pub(crate) fn recheck_in_memory(&self) -> Result<Sight> {
        if let Some(signed) = &self.signed {
            return Ok(signed.recheck(self.store())?);
        }

        let need = self.route.map_or(Need::Nothing, |route| route.need);
        if self.client.is_none() || need == Need::Nothing || !is_closed(&self.app) {
            return Ok(self.caller.scope.clone());
        }
        let key = key_of(self)?;
        check(&key, need)?;
        Ok(Sight::Of(Arc::clone(&key.organizations)))
    }
}

/// Returns the valid key in the request.
fn key_of(call: &Call) -> Result<Arc<ApiKey>> {
    let key = call.store().keys().authenticate(bearer(&call.headers)?);
    key.ok_or_else(|| unauthorized("the key is not known, is revoked or has expired"))
}

/// Returns true if the request contains a key or a signature, valid or not.
pub(crate) fn shows_a_right(call: &Call) -> bool {
    call.query.contains("sig") || bearer(&call.headers).is_ok()
}

/// Returns true if callers need a key.
pub(crate) fn is_closed(app: &App) -> bool {
    app.options.auth == Auth::Keys || app.store.keys().exist()
}

/// Returns the key in the request (RFC 6750 section 2.1). Keys in forms and queries are not accepted, because
/// both are logged.
fn bearer(headers: &HeaderMap) -> Result<&[u8]> {
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
    Refusal::new(RefusalKind::Unauthorized, message).into()
}

fn check(key: &ApiKey, need: Need) -> filestore_core::Result<()> {
    match need {
        Need::Nothing | Need::Key => Ok(()),
        Need::Scope(scope) if key.allows(scope) => Ok(()),
        Need::Scope(scope) => {
            let message = format!("the key lacks the scope {scope}");
            Err(filestore_core::Error::new(ErrorKind::Forbidden, message)
                .with_allowed([scope.as_str()]))
        }
        Need::ServiceAdmin if key.administers_the_service() => Ok(()),
        Need::ServiceAdmin => {
            let message = "this needs a key with the scope admin for all organizations";
            let admin = KeyScope::Admin.as_str();
            Err(filestore_core::Error::new(ErrorKind::Forbidden, message).with_allowed([admin]))
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
