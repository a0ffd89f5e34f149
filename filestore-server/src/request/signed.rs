//! The right that a signed URL gives to its request.
//!
//! A request that shows a signature is judged by it alone: a key beside it changes nothing. Only reading
//! a file and uploading one can be signed for; elsewhere `sig` is a parameter like any other that is
//! not known.
//!
//! # The way of a signed request
//! Three routes have URLs that can be signed. For them `service/signing.rs` of the core is asked
//! if one of its secrets made this signature over method, path and query as they were sent. Such
//! a request acts with that right alone. An upload spends a permit (`used_permits`) in the
//! transaction that inserts the record, so that neither a race nor a restart gives it away twice.

use filestore_core::signing::{SignedMethod, UploadPermit};
use filestore_core::{Error, ErrorKind, OrganizationId, Result, SubSystem, Timestamp};
use http::Method;

use super::call::{App, Call, Caller};
use super::fields;
use crate::http::query::Query;
use crate::routes::table::{self, Route};

/// The parameters of a signed upload.
const TERMS: [&str; 6] =
    ["organization_id", "sub_system", "max_size", "mime_type", "upload_temp", "nonce"];

/// The right to one request.
#[derive(Debug)]
pub(crate) struct Signed {
    /// The end of the URL.
    pub(crate) expires_at: Timestamp,
    /// The terms of the upload; `None` for reading.
    pub(crate) upload: Option<UploadTerms>,
}

/// The properties of a file to upload that the signer of the URL has fixed.
#[derive(Debug, Clone)]
pub(crate) struct UploadTerms {
    /// The name of the secret that signed the URL.
    pub(crate) kid: String,
    /// The organization that the file will belong to.
    pub(crate) organization_id: OrganizationId,
    /// The part of the application that the file will belong to.
    pub(crate) sub_system: SubSystem,
    /// The most bytes of the file.
    pub(crate) max_size: Option<u64>,
    /// The media type of the file.
    pub(crate) mime_type: Option<String>,
    /// True for a TEMP file.
    pub(crate) temp: bool,
    /// The permit that the upload spends.
    pub(crate) permit: UploadPermit,
}

impl Call {
    /// Takes the right that a signed URL gives, if the request shows one: from then on the request acts
    /// with that right and no other. `path` is as it was sent.
    pub(crate) fn take_signature(&mut self, path: &str) -> Result<()> {
        self.signed = Signed::of(&self.app, self.route, path, &self.query)?;
        if let Some(signed) = &self.signed {
            self.caller = signed.caller();
        }
        Ok(())
    }
}

impl Signed {
    /// Verifies the signature that a request shows; `None` if it shows none, or if nothing can be signed
    /// for on its route.
    fn of(app: &App, route: Option<&Route>, path: &str, query: &str) -> Result<Option<Self>> {
        // Most requests are not signed, and need not find their path for it.
        if !query.contains("sig") {
            return Ok(None);
        }
        let Some(method) = route.and_then(signed_method) else { return Ok(None) };
        let path = table::without_prefix(&app.base, path);
        let Some(expires_at) = app.store.signing().verify(method, path, query)? else {
            return Ok(None);
        };

        let upload = match method {
            SignedMethod::Get => None,
            SignedMethod::Post => Some(UploadTerms::parse(query, expires_at)?),
        };
        Ok(Some(Self { expires_at, upload }))
    }

    /// Returns the caller that a request with this right acts for.
    fn caller(&self) -> Caller {
        match &self.upload {
            // The path names the one file, and is signed.
            None => Caller::anyone(),
            // Each URL has idempotency keys of its own.
            Some(terms) => Caller::with_permit(terms.organization_id.clone(), &terms.permit.nonce),
        }
    }
}

/// Returns the method that URLs to a route are signed for, if they can be.
fn signed_method(route: &Route) -> Option<SignedMethod> {
    match (&route.method, route.template) {
        (&Method::GET, "/files/{file_id}" | "/files/{file_id}/{width}/{height}") => {
            Some(SignedMethod::Get)
        }
        (&Method::POST, "/files/upload") => Some(SignedMethod::Post),
        _ => None,
    }
}

impl UploadTerms {
    /// Reads the terms from a query whose signature has been verified. An application that signs for
    /// itself may have left out what must be there: `SignatureInvalid`.
    fn parse(query: &str, expires_at: Timestamp) -> Result<Self> {
        let kid = query.split('&').find_map(|piece| piece.strip_prefix("kid="));
        let kid = kid.ok_or_else(|| incomplete("kid"))?.to_owned();

        let query = Query::parse(query, &TERMS)?;
        let required = |name: &str| query.get(name).ok_or_else(|| incomplete(name));

        Ok(Self {
            kid,
            organization_id: required("organization_id")?.parse()?,
            sub_system: required("sub_system")?.parse()?,
            max_size: query.get("max_size").map(fields::byte_count).transpose()?,
            mime_type: query.get("mime_type").map(fields::mime_type).transpose()?.flatten(),
            temp: query.get("upload_temp").map(fields::flag).transpose()?.unwrap_or(false),
            permit: UploadPermit::new(required("nonce")?, expires_at)?,
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
    use crate::routes::table::ROUTES;

    #[test]
    fn only_reading_and_uploading_can_be_signed_for() {
        let signed = ROUTES.iter().filter(|route| signed_method(route).is_some());
        let shown: Vec<_> =
            signed.map(|route| format!("{} {}", route.method, route.template)).collect();
        let expected =
            ["GET /files/{file_id}/{width}/{height}", "GET /files/{file_id}", "POST /files/upload"];
        assert_eq!(shown, expected);
    }

    const END: Timestamp = Timestamp::from_millis(1_795_248_930_000);

    #[test]
    fn the_vectors_of_the_reference_hold() {
        let reference = include_str!("../../docs/reference.md");
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
        assert_eq!(vectors, 6);
    }

    #[test]
    fn terms_are_what_the_signer_wrote() {
        let terms = UploadTerms::parse(
            "organization_id=42&sub_system=docs&max_size=7&mime_type=image%2Fpng&upload_temp=true&nonce=n&kid=k",
            END,
        )
        .unwrap();
        assert_eq!((terms.organization_id.as_str(), terms.sub_system.as_str()), ("42", "docs"));
        assert_eq!(terms.kid, "k");
        assert_eq!((terms.max_size, terms.temp), (Some(7), true));
        assert_eq!(terms.mime_type.as_deref(), Some("image/png"));
        assert_eq!(terms.permit, UploadPermit::new("n", END).unwrap());
    }

    #[test]
    fn terms_without_an_owner_or_a_nonce_are_none() {
        for (query, field) in [
            ("organization_id=42&sub_system=docs&nonce=n", "kid"),
            ("kid=k&sub_system=docs&nonce=n", "organization_id"),
            ("kid=k&organization_id=42&nonce=n", "sub_system"),
            ("kid=k&organization_id=42&sub_system=docs", "nonce"),
            ("kid=k&organization_id=42&sub_system=docs&nonce=", "nonce"),
        ] {
            let error = UploadTerms::parse(query, END).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SignatureInvalid, "{query}");
            assert_eq!(error.details().field.as_deref(), Some(field), "{query}");
        }
        for query in ["max_size=x", "max_size=-1", "upload_temp=maybe", "mime_type=no"] {
            let query = format!("kid=k&organization_id=42&sub_system=docs&nonce=n&{query}");
            assert!(UploadTerms::parse(&query, END).is_err(), "{query}");
        }
    }
}
