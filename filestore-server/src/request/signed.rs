//! The right of a signed URL.
//!
//! If a request has a signature, only the signature counts, even if there is also a key. Only reads and
//! uploads of a file can be signed. On other routes, `sig` is an unknown parameter.
//!
//! # How a signed request is handled
//! Four routes support signed URLs. For them, `service/access/signing.rs` of the core checks if one of its
//! secrets created this signature for the method, path and query as sent. The request then has only the right
//! of the URL. If a caller with a key created the URL, the URL names this key (`key`), and reaches no more
//! than the key reaches now. An upload uses a permit (`used_permits`) in the transaction that inserts the
//! record. Neither a race nor a restart can therefore use it twice.

use std::sync::Arc;

use filestore_core::signing::{SignedMethod, UploadPermit, VerifiedUrl};
use filestore_core::{Error, ErrorKind, FileStore, OrganizationId, Result, SubSystem, Timestamp};
use http::Method;

use super::call::{Call, Caller, Proof, Sight};
use super::fields;
use crate::http::query::Query;
use crate::route_table::{self, Route};
use crate::state::App;

/// The parameters of a signed upload.
const TERMS: [&str; 7] =
    ["organization_id", "sub_system", "max_size", "mime_type", "upload_temp", "nonce", "era"];

/// The parameters of every signature.
const SIGNATURE: [&str; 4] = ["exp", "kid", "key", "sig"];

/// The right to one request.
#[derive(Debug)]
pub(crate) struct Signed {
    /// The right of the URL.
    pub(crate) url: VerifiedUrl,
    /// The terms of the upload. `None` for reads.
    pub(crate) upload: Option<UploadTerms>,
}

/// The properties of an upload that the signer of the URL has fixed.
#[derive(Debug, Clone)]
pub(crate) struct UploadTerms {
    /// The file's organization.
    pub(crate) organization_id: OrganizationId,
    /// The file's sub-system.
    pub(crate) sub_system: SubSystem,
    /// The maximum size of the file, in bytes.
    pub(crate) max_size: Option<u64>,
    /// The media type of the file.
    pub(crate) mime_type: Option<String>,
    /// True for a TEMP file.
    pub(crate) temp: bool,
    /// The permit that the upload uses.
    pub(crate) permit: UploadPermit,
}

impl Call {
    /// Sets the right of a signed URL, if the request has one. From then on, the request has only this right.
    /// `path` is the path as sent.
    pub(crate) fn take_signature(&mut self, path: &str) -> Result<()> {
        self.signed = Signed::of(&self.app, self.route, path, &self.query)?;
        if let Some(signed) = &self.signed {
            self.caller = signed.caller();
        }
        Ok(())
    }
}

impl Signed {
    /// Verifies the signature of a request. `None` if it has no signature, or if its route does not support
    /// signed URLs.
    fn of(app: &App, route: Option<&Route>, path: &str, query: &str) -> Result<Option<Self>> {
        // Most requests are not signed, and need not find their path for it.
        if !query.contains("sig") {
            return Ok(None);
        }
        let Some(method) = route.and_then(signed_method) else { return Ok(None) };
        let path = route_table::without_prefix(&app.base, path);
        let Some(url) = app.store.signing().verify(method, path, query)? else {
            return Ok(None);
        };

        let upload = match method {
            SignedMethod::Get => None,
            SignedMethod::Post => Some(UploadTerms::parse(query, url.expires_at)?),
        };
        Ok(Some(Self { url, upload }))
    }

    /// Checks that the secret and the key of the URL still grant the right, and returns the organizations
    /// that it reaches now.
    pub(crate) fn recheck(&self, store: &FileStore) -> Result<Sight> {
        let method = if self.upload.is_some() { SignedMethod::Post } else { SignedMethod::Get };
        store.signing().verify_again(method, &self.url).map(Sight::Of)
    }

    /// Returns the caller of a request with this right.
    fn caller(&self) -> Caller {
        match &self.upload {
            // The path names the one file, and is signed. A key that asked for it must still reach it.
            None if self.url.key.is_none() => Caller::anyone(),
            None => {
                Caller { scope: Sight::Of(Arc::clone(&self.url.organizations)), proof: Proof::None }
            }
            // Each URL has idempotency keys of its own.
            Some(terms) => Caller::with_permit(terms.organization_id.clone(), &terms.permit.nonce),
        }
    }
}

/// Returns the method for which URLs to a route are signed, if the route supports them.
fn signed_method(route: &Route) -> Option<SignedMethod> {
    match (&route.method, route.template) {
        (&Method::GET, "/files/{file_id}" | "/files/{file_id}/{width}/{height}") => {
            Some(SignedMethod::Get)
        }
        (&Method::POST, "/files/upload" | "/uploads") => Some(SignedMethod::Post),
        _ => None,
    }
}

impl UploadTerms {
    /// Returns true if a query parameter of a signed upload is a term or belongs to the signature.
    pub(crate) fn has_parameter(name: &str) -> bool {
        TERMS.contains(&name) || SIGNATURE.contains(&name)
    }

    /// Parses the terms from a query with a verified signature. An application that signs its own URLs may
    /// have omitted required terms: `SignatureInvalid`.
    fn parse(query: &str, expires_at: Timestamp) -> Result<Self> {
        let query = Query::parse(query, &TERMS)?;
        let required = |name: &str| query.get(name).ok_or_else(|| incomplete(name));

        let era = query.get("era").map(str::parse).transpose()?.unwrap_or_default();
        Ok(Self {
            organization_id: required("organization_id")?.parse()?,
            sub_system: required("sub_system")?.parse()?,
            max_size: query.get("max_size").map(fields::byte_count).transpose()?,
            mime_type: query.get("mime_type").map(fields::mime_type).transpose()?.flatten(),
            temp: query.get("upload_temp").map(fields::flag).transpose()?.unwrap_or(false),
            permit: UploadPermit::new(required("nonce")?, expires_at)?.signed_in(era),
        })
    }
}

fn incomplete(name: &str) -> Error {
    let message = format!("a signed upload has the parameter: {name}");
    Error::new(ErrorKind::SignatureInvalid, message).with_field(name)
}

#[cfg(test)]
mod tests {
    use filestore_core::signing::SigningSecret;

    use super::*;
    use crate::route_table::ROUTES;

    #[test]
    fn only_reading_and_uploading_can_be_signed_for() {
        let signed = ROUTES.iter().filter(|route| signed_method(route).is_some());
        let shown: Vec<_> =
            signed.map(|route| format!("{} {}", route.method, route.template)).collect();
        let expected = [
            "GET /files/{file_id}/{width}/{height}",
            "GET /files/{file_id}",
            "POST /files/upload",
            "POST /uploads",
        ];
        assert_eq!(shown, expected);
    }

    const END: Timestamp = Timestamp::from_millis(1_795_248_930_000);

    #[test]
    fn the_vectors_of_the_reference_hold() {
        let reference = include_str!("../../docs/reference/http/signed-urls.md");
        let secret = SigningSecret::new("2026-11", *b"0123456789abcdef0123456789abcdef").unwrap();
        assert!(reference.contains("secret `0123456789abcdef0123456789abcdef` named `2026-11`"));

        let mut vectors = 0;
        for row in reference.lines().filter(|row| row.contains("exp=1795249200&kid=2026-11` |")) {
            let cells: Vec<_> = row.split('`').skip(1).step_by(2).collect();
            let [method, path, query, sig] = cells[..] else { panic!("{row}") };
            let method = match method {
                "GET" => SignedMethod::Get,
                "POST" => SignedMethod::Post,
                other => panic!("{other}"),
            };

            let own =
                query.strip_suffix("exp=1795249200&kid=2026-11").unwrap().trim_end_matches('&');
            let end = Timestamp::from_millis(1_795_249_200_000);
            assert_eq!(secret.sign(method, path, own, end), format!("{path}?{query}&sig={sig}"));
            vectors += 1;
        }
        assert_eq!(vectors, 8);
    }

    #[test]
    fn terms_are_what_the_signer_wrote() {
        let terms = UploadTerms::parse(
            "organization_id=42&sub_system=docs&max_size=7&mime_type=image%2Fpng&upload_temp=true&nonce=n&era=5&kid=k",
            END,
        )
        .unwrap();
        assert_eq!((terms.organization_id.as_str(), terms.sub_system.as_str()), ("42", "docs"));
        assert_eq!((terms.max_size, terms.temp), (Some(7), true));
        assert_eq!(terms.mime_type.as_deref(), Some("image/png"));
        let permit = UploadPermit::new("n", END).unwrap();
        assert_eq!(terms.permit, permit.clone().signed_in("5".parse().unwrap()));

        // One that earlier versions or an application signed.
        let old = UploadTerms::parse("organization_id=42&sub_system=docs&nonce=n&kid=k", END);
        assert_eq!(old.unwrap().permit, permit);
    }

    #[test]
    fn terms_without_an_owner_or_a_nonce_are_none() {
        for (query, field) in [
            ("kid=k&sub_system=docs&nonce=n", "organization_id"),
            ("kid=k&organization_id=42&nonce=n", "sub_system"),
            ("kid=k&organization_id=42&sub_system=docs", "nonce"),
            ("kid=k&organization_id=42&sub_system=docs&nonce=", "nonce"),
        ] {
            let error = UploadTerms::parse(query, END).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SignatureInvalid, "{query}");
            assert_eq!(error.details().field.as_deref(), Some(field), "{query}");
        }
        for query in ["max_size=x", "max_size=-1", "upload_temp=maybe", "mime_type=no", "era=-1"] {
            let query = format!("kid=k&organization_id=42&sub_system=docs&nonce=n&{query}");
            assert!(UploadTerms::parse(&query, END).is_err(), "{query}");
        }
    }
}
