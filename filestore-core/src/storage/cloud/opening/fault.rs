//! Converts OpenDAL's errors to ours. The text for the log contains no credentials and no queries of URLs,
//! because queries contain signatures.

use std::error::Error as StdError;
use std::fmt;

use crate::domain::error::{Error, ErrorKind};
use crate::domain::provider::{OptionValue, PUBLIC_OPTIONS, ProviderCode, ProviderConfig};

/// The maximum length of an error text. This length fits a provider's own words and a log line.
const TEXT_CHARS: usize = 400;

/// Converts the errors of one provider.
pub(in crate::storage::cloud) struct Faults {
    code: ProviderCode,
    secrets: Vec<String>,
}

impl Faults {
    /// Reads from the configuration which texts to hide.
    pub(in crate::storage::cloud) fn new(config: &ProviderConfig) -> Self {
        let mut secrets: Vec<_> =
            config.options.iter().filter_map(hidden).filter(|s| s.len() > 3).collect();

        // The longer first: one secret may hold another.
        secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { code: config.code.clone(), secrets }
    }

    /// Converts an error: `NotFound` for a missing object, otherwise `ProviderUnavailable`.
    pub(in crate::storage::cloud) fn of(&self, doing: &str, error: &opendal::Error) -> Error {
        let ours = if is_missing_object(error) {
            Error::not_found("blob")
        } else {
            self.unavailable(doing)
        };
        ours.with_source(Fault(self.text(error)))
    }

    /// Returns the `ProviderUnavailable` error for an answer that cannot be right.
    pub(in crate::storage::cloud) fn broken(&self, doing: &str, problem: String) -> Error {
        self.unavailable(doing).with_source(Fault(problem))
    }

    fn unavailable(&self, doing: &str) -> Error {
        let message = format!("the provider failed while {doing}: {}", self.code);
        Error::new(ErrorKind::ProviderUnavailable, message)
    }

    /// Describes an error in one line without secrets.
    pub(in crate::storage::cloud) fn text(&self, error: &opendal::Error) -> String {
        let mut text = error.kind().to_string();
        if !error.message().is_empty() {
            text = text + ": " + error.message();
        }

        let mut cause = error.source();
        while let Some(error) = cause {
            text = text + ": " + &error.to_string();
            cause = error.source();
        }

        self.clean(&text)
    }

    /// Puts `text` into one line, and removes secrets and queries of URLs.
    fn clean(&self, text: &str) -> String {
        let mut text = without_queries(text);
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), "***");
        }

        let words: Vec<_> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
        words
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(TEXT_CHARS)
            .collect()
    }
}

/// Returns the value of an option if it must be hidden.
fn hidden((name, value): (&String, &OptionValue)) -> Option<String> {
    match value {
        OptionValue::Text(text) if !PUBLIC_OPTIONS.contains(&name.as_str()) => Some(text.clone()),
        _ => None,
    }
}

/// Returns true for a missing object. A missing bucket or container is different: the configuration is wrong,
/// and the object can still exist.
pub(in crate::storage::cloud) fn is_missing_object(error: &opendal::Error) -> bool {
    const MISSING_CONTAINERS: [&str; 3] =
        ["NoSuchBucket", "ContainerNotFound", "bucket does not exist"];

    error.kind() == opendal::ErrorKind::NotFound
        && !MISSING_CONTAINERS.iter().any(|code| error.message().contains(code))
}

/// Returns true for an outage, and false for an answer that refuses. The error's status does not tell,
/// because OpenDAL's retries mark all errors as persistent.
pub(in crate::storage::cloud) fn is_outage(error: &opendal::Error) -> bool {
    use opendal::ErrorKind as Theirs;
    !error.is_permanent()
        && matches!(error.kind(), Theirs::Unexpected | Theirs::RateLimited)
        && !is_damage(error)
}

/// Returns true if the provider refused bytes because of a wrong checksum.
fn is_damage(error: &opendal::Error) -> bool {
    const REFUSALS: [&str; 4] =
        ["BadDigest", "XAmzContentSHA256Mismatch", "Md5Mismatch", "Crc64Mismatch"];
    REFUSALS.iter().any(|code| error.message().contains(code))
}

/// Cuts every URL in `text` at its `?`.
fn without_queries(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;

    while let Some(at) = rest.find("://") {
        let end = rest[at..].find(|c: char| c.is_whitespace() || "\"'<>)},".contains(c));
        let (url, after) = rest.split_at(end.map_or(rest.len(), |end| at + end));
        kept.push_str(url[at..].find('?').map_or(url, |query| &url[..at + query]));
        rest = after;
    }

    kept + rest
}

/// The text of a provider's fault, as the source of an error.
#[derive(Debug)]
struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults() -> Faults {
        let config = ProviderConfig::new("eu".parse().unwrap(), "s3")
            .with_option("bucket", "files")
            .with_option("access_key_id", "AKIDAKID")
            .with_option("secret_access_key", "AKIDAKIDhush");
        Faults::new(&config)
    }

    #[test]
    fn no_secret_and_no_query_is_in_an_error() {
        let source = std::io::Error::other("AKIDAKIDhush is wrong for https://h/files/k?sig=abc");
        let error = opendal::Error::new(
            opendal::ErrorKind::Unexpected,
            "GET https://h/files?sv=1&sig=abc\n(AKIDAKID)",
        )
        .with_context("url", "https://h/files?sig=abc")
        .set_source(source);
        let ours = faults().of("reading a blob", &error);
        assert_eq!(ours.kind(), ErrorKind::ProviderUnavailable);
        let shown = format!("{ours} {ours:?} {ours:#?} {}", ours.chain());
        for hidden in ["AKID", "hush", "sig=", "?"] {
            assert!(!shown.contains(hidden), "{hidden} in {shown}");
        }
        assert!(shown.contains("https://h/files/k") && shown.contains("eu"), "{shown}");
    }

    #[test]
    fn a_missing_object_is_not_found() {
        let error = opendal::Error::new(opendal::ErrorKind::NotFound, "NoSuchKey");
        assert_eq!(faults().of("reading a blob", &error).kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_missing_bucket_is_no_missing_object() {
        for message in ["ContainerNotFound", "The specified bucket does not exist."] {
            let error = opendal::Error::new(opendal::ErrorKind::NotFound, message);
            assert_eq!(
                faults().of("reading a blob", &error).kind(),
                ErrorKind::ProviderUnavailable
            );
        }
    }

    #[test]
    fn a_long_page_of_html_becomes_one_short_line() {
        let error = opendal::Error::new(opendal::ErrorKind::Unexpected, "<html>\r\n".repeat(1000));
        let text = faults().text(&error);
        assert!(text.chars().count() <= TEXT_CHARS && !text.contains(['\r', '\n']), "{text}");
    }
}
