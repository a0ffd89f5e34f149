//! Service SAS of Azure Blob Storage: a URL that grants reading one blob.
//!
//! Source: Microsoft, "Create a service SAS", version 2020-12-06 and later. OpenDAL 0.59 always signs for an
//! hour with all permissions, and passes on a configured SAS token unchanged.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, utf8_percent_encode};

use crate::domain::time::clock::Timestamp;
use crate::storage::PresignRequest;
use crate::storage::cloud::opening::options::{Options, QUERY, given};

/// The service version that defines this string to sign.
const VERSION: &str = "2020-12-06";

/// The characters to encode in a path.
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// A signer for the blobs of one container.
pub(in crate::storage::cloud) struct AzureSas {
    account: String,
    key: Vec<u8>,
    /// The URL without a trailing slash. For an emulator, it includes the account.
    endpoint: String,
    container: String,
    /// The prefix of every path: empty, or with a trailing slash.
    root: String,
}

impl AzureSas {
    /// Creates a signer from the options. `Err` describes a wrong option.
    ///
    /// `None` without an account key, if requests are not signed, and with a customer's encryption key,
    /// because that key would have to be sent in headers.
    pub(in crate::storage::cloud) fn from_options(
        options: &Options,
    ) -> Result<Option<Self>, &'static str> {
        let Some(key) = given(options, "account_key") else { return Ok(None) };
        let key =
            BASE64_STANDARD.decode(key).map_err(|_| "the option account_key must be base64")?;

        let endpoint = given(options, "endpoint").unwrap_or_default().trim_end_matches('/');
        let endpoint = if endpoint.contains("://") {
            endpoint.to_owned()
        } else {
            format!("https://{endpoint}")
        };
        let account =
            given(options, "account_name").map(str::to_owned).or_else(|| account_of(&endpoint));
        let (Some(account), Some(container)) = (account, given(options, "container")) else {
            return Ok(None);
        };

        let root = match given(options, "root").unwrap_or_default().trim_matches('/') {
            "" => String::new(),
            root => format!("{root}/"),
        };
        let is_plain = given(options, "encryption_key").is_none()
            && given(options, "skip_signature") != Some("true");
        Ok(is_plain.then(|| Self { account, key, endpoint, container: container.to_owned(), root }))
    }

    /// Returns a URL of `path` for GET and HEAD. The URL is valid for the request's time from `now`, in whole
    /// seconds.
    pub(in crate::storage::cloud) fn url(
        &self,
        path: &str,
        request: &PresignRequest<'_>,
        now: Timestamp,
    ) -> String {
        let expiry = whole_seconds(now.plus(request.expires_in));
        let blob = format!("{}{path}", self.root);
        let protocol = if self.endpoint.starts_with("https://") { "https" } else { "https,http" };
        let disposition = request.disposition.unwrap_or_default();
        let signature = self.sign(&blob, &expiry, protocol, disposition, request.content_type);

        let pairs = [
            ("sv", VERSION),
            ("se", &expiry),
            ("sr", "b"),
            ("sp", "r"),
            ("spr", protocol),
            ("rscd", disposition),
            ("rsct", request.content_type),
            ("sig", &signature),
        ];
        let query: Vec<_> = pairs
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)))
            .collect();

        format!(
            "{}/{}/{}?{}",
            self.endpoint,
            utf8_percent_encode(&self.container, PATH),
            utf8_percent_encode(&blob, PATH),
            query.join("&")
        )
    }

    fn sign(
        &self,
        blob: &str,
        expiry: &str,
        protocol: &str,
        disposition: &str,
        content_type: &str,
    ) -> String {
        let resource = format!("/blob/{}/{}/{blob}", self.account, self.container);
        let string_to_sign = [
            "r", // permissions
            "",  // start: at once, whatever the difference of the clocks
            expiry,
            &resource,
            "", // stored access policy
            "", // IP range
            protocol,
            VERSION,
            "b", // resource: a blob
            "",  // snapshot
            "",  // encryption scope
            "",  // Cache-Control
            disposition,
            "", // Content-Encoding
            "", // Content-Language
            content_type,
        ]
        .join("\n");

        let mut mac =
            Hmac::<sha2::Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        mac.update(string_to_sign.as_bytes());
        BASE64_STANDARD.encode(mac.finalize().into_bytes())
    }
}

/// Extracts `account` from `https://account.blob.core.windows.net`.
fn account_of(endpoint: &str) -> Option<String> {
    let (account, rest) = endpoint.split_once("://")?.1.split_once('.')?;
    rest.starts_with("blob.").then(|| account.to_owned())
}

/// Formats a time as `2026-11-21T08:15:30Z`.
fn whole_seconds(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.split('.').next().unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::storage::PresignMethod;

    fn options(pairs: &[(&str, &str)]) -> Options {
        let azure =
            [("endpoint", "https://account.blob.core.windows.net/"), ("container", "container")];
        azure
            .iter()
            .chain(pairs)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn sas(pairs: &[(&str, &str)]) -> AzureSas {
        AzureSas::from_options(&options(pairs)).unwrap().unwrap()
    }

    #[test]
    fn the_signature_is_that_of_the_known_vector() {
        // reqsign-azure-storage 3.3.0, service_sas.rs:
        // test_can_generate_service_sas_token_for_blob.
        let sas = sas(&[("account_key", "a2V5")]);
        let signature = sas.sign("path/to/blob.txt", "2022-03-01T08:17:34Z", "", "", "");
        assert_eq!(signature, "CP9a2LIrR9zeG4I4jZjqPetJSXWJ77QeUA7c3GMypyM=");
    }

    #[test]
    fn a_url_grants_reading_one_blob_for_its_time() {
        let sas = sas(&[("account_key", "a2V5"), ("root", "/files/")]);
        let request = PresignRequest {
            method: PresignMethod::Get,
            expires_in: Duration::from_mins(5),
            content_type: "text/plain; charset=utf-8",
            disposition: Some("attachment; filename=\"a&b.txt\""),
        };
        let url = sas.url("42/docs/K", &request, Timestamp::from_millis(1_795_248_930_123));
        let (path, query) = url.split_once('?').unwrap();
        assert_eq!(path, "https://account.blob.core.windows.net/container/files/42/docs/K");
        for pair in [
            "se=2026-11-21T08%3A20%3A30Z",
            "sr=b",
            "sp=r",
            "spr=https",
            "rscd=attachment%3B%20filename%3D%22a%26b.txt%22",
            "rsct=text%2Fplain%3B%20charset%3Dutf-8",
        ] {
            assert!(query.split('&').any(|given| given == pair), "{pair} in {query}");
        }
        assert!(!url.contains("a2V5"));
    }

    #[test]
    fn nothing_is_signed_without_a_key_or_for_requests_that_need_headers() {
        for pairs in [
            &[("sas_token", "sv=1&sig=x")][..],
            &[("account_key", "a2V5"), ("encryption_key", "x")],
            &[("account_key", "a2V5"), ("skip_signature", "true")],
        ] {
            assert!(AzureSas::from_options(&options(pairs)).unwrap().is_none(), "{pairs:?}");
        }
        assert!(AzureSas::from_options(&options(&[("account_key", "no base64!")])).is_err());
    }
}
