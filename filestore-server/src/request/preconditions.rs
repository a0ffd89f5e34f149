//! The conditions of requests that change a file (RFC 9110 section 13). The store checks them at the time of
//! the change. Conditions of reads are in [`crate::http::conditional`].
//!
//! A misunderstood condition fails, because a guard of a write must fail closed.

use filestore_core::{IfMatch, Preconditions, Sha256};
use http::header::{IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, HeaderName};

use crate::http::etag::{EntityTag, EntityTags};
use crate::http::{conditional, date, single};

/// Reads the conditions of a change. An invalid date counts as absent (section 13.1.4).
pub(crate) fn preconditions(headers: &HeaderMap) -> Preconditions {
    let mut conditions = Preconditions::default();
    let nothing = IfMatch::OneOf(Vec::new());
    conditions.if_match = named(headers, IF_MATCH, |tag| digest_of(&tag.to_string()), nothing);
    conditions.unmodified_since = single(headers, IF_UNMODIFIED_SINCE).and_then(date::parse);
    conditions.if_none_match = named(headers, IF_NONE_MATCH, weak_digest_of, IfMatch::Any);
    conditions
}

/// Reads the contents that a list of tags names. `None` without the header, and `otherwise` for text that is
/// not a list. Tags without a `digest` match no content.
fn named(
    headers: &HeaderMap,
    name: HeaderName,
    digest: impl Fn(&EntityTag) -> Option<Sha256>,
    otherwise: IfMatch,
) -> Option<IfMatch> {
    headers.get(&name)?;
    Some(match conditional::tags(headers, name) {
        Some(EntityTags::Any) => IfMatch::Any,
        Some(EntityTags::List(tags)) => IfMatch::OneOf(tags.iter().filter_map(digest).collect()),
        None => otherwise,
    })
}

/// Parses a strong tag of this server. If-Match compares strongly (section 13.1.1).
fn digest_of(tag: &str) -> Option<Sha256> {
    let text = tag.strip_prefix('"')?.strip_suffix('"')?;
    text.parse().ok().filter(|sum: &Sha256| sum.to_hex() == text)
}

/// Parses a tag of this server, weak or not. If-None-Match compares weakly (section 13.1.2).
fn weak_digest_of(tag: &EntityTag) -> Option<Sha256> {
    let text = tag.to_string();
    digest_of(text.strip_prefix("W/").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestore_core::Timestamp;

    const SUM: Sha256 = Sha256([0xAB; 32]);

    fn read(lines: &[(HeaderName, &str)]) -> Preconditions {
        let mut headers = HeaderMap::new();
        for (name, line) in lines {
            headers.append(name, line.parse().unwrap());
        }
        preconditions(&headers)
    }

    #[test]
    fn if_match_takes_strong_digests_only() {
        let of = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| (IF_MATCH, *line)).collect();
            read(&lines).if_match
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["*"]), Some(IfMatch::Any));
        assert_eq!(of(&["\"x\"", &format!("\"{SUM}\"")]), Some(IfMatch::OneOf(vec![SUM])));

        let upper = SUM.to_hex().to_uppercase();
        for nothing in [format!("W/\"{SUM}\""), format!("\"{upper}\""), SUM.to_hex(), String::new()]
        {
            assert_eq!(of(&[&nothing]), Some(IfMatch::OneOf(vec![])), "{nothing}");
        }
    }

    #[test]
    fn if_none_match_takes_weak_digests_too_and_fails_closed() {
        let of = |line: &str| read(&[(IF_NONE_MATCH, line)]).if_none_match;
        assert_eq!(read(&[]).if_none_match, None);
        assert_eq!(of("*"), Some(IfMatch::Any));
        for tag in [format!("\"{SUM}\""), format!("W/\"{SUM}\"")] {
            assert_eq!(of(&tag), Some(IfMatch::OneOf(vec![SUM])), "{tag}");
        }

        assert_eq!(of("\"another\""), Some(IfMatch::OneOf(vec![])));
        assert_eq!(
            of("not a tag"),
            Some(IfMatch::Any),
            "nothing happens on what was not understood"
        );
    }

    #[test]
    fn a_date_is_read_if_it_is_one() {
        let of = |line: &str| read(&[(IF_UNMODIFIED_SINCE, line)]).unmodified_since;
        let at = Timestamp::from_millis(784_111_777_000);
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(at));
        assert_eq!(of("yesterday"), None);
    }
}
