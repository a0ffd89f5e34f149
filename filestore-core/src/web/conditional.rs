//! Conditional requests (RFC 9110 section 13).

use crate::domain::time::clock::Timestamp;
use http::HeaderMap;
use http::header::{
    AsHeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};

use super::etag::{EntityTag, EntityTags};
use super::{date, single};

/// The validators for the conditions of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    /// The current entity tag.
    pub etag: EntityTag,
    /// The time of the representation's last change.
    pub last_modified: Option<LastModified>,
}

impl Validators {
    /// Returns true if the content is newer than a date. `None` if either is unknown.
    fn changed_since(&self, date: Option<Timestamp>) -> Option<bool> {
        Some(self.last_modified?.is_after(date?))
    }
}

/// The time of a representation's last change, in whole seconds like in HTTP.
///
/// Until the second of the change has passed, another change can have the same date. The date is therefore
/// withheld until then, so that two contents never share a date (RFC 9110 section 8.8.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastModified {
    at: Timestamp,
    is_over: bool,
}

impl LastModified {
    /// Combines the change time and the current time.
    pub fn new(at: Timestamp, now: Timestamp) -> Self {
        Self { at, is_over: now.as_secs() > at.as_secs() }
    }

    /// Returns the date to show. `None` until its second has passed.
    pub fn date(self) -> Option<Timestamp> {
        self.is_over.then_some(self.at)
    }

    fn is_after(self, date: Timestamp) -> bool {
        let (own, other) = (self.at.as_secs(), date.as_secs());
        own > other || (own == other && !self.is_over)
    }

    fn is_exactly(self, date: Timestamp) -> bool {
        self.is_over && self.at.as_secs() == date.as_secs()
    }
}

/// The result of the conditions in a GET or HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answer the request as if it had no conditions.
    Proceed,
    /// Answer 304: the client has the current representation.
    NotModified,
    /// Answer 412: a condition does not hold.
    PreconditionFailed,
}

/// Evaluates the conditions of a GET or HEAD in the order of section 13.2.2. [`if_range_holds`] evaluates
/// If-Range, the last condition.
///
/// A malformed If-Match fails, so that no change depends on a misunderstood condition. A malformed
/// If-None-Match or date counts as absent. Dates count only if there are no tags.
pub fn evaluate(headers: &HeaderMap, current: &Validators) -> Outcome {
    if headers.contains_key(IF_MATCH) {
        if !if_match_holds(headers, Some(&current.etag)) {
            return Outcome::PreconditionFailed;
        }
    } else if current.changed_since(date_of(headers, IF_UNMODIFIED_SINCE)) == Some(true) {
        return Outcome::PreconditionFailed;
    }

    let unmodified = if headers.contains_key(IF_NONE_MATCH) {
        tags(headers, IF_NONE_MATCH).is_some_and(|tags| tags.match_weakly(&current.etag))
    } else {
        current.changed_since(date_of(headers, IF_MODIFIED_SINCE)) == Some(false)
    };
    if unmodified { Outcome::NotModified } else { Outcome::Proceed }
}

/// Returns true if If-Match holds (section 13.1.1) or is absent, for requests that make changes. `current` is
/// `None` if there is no representation. False means 412.
pub fn if_match_holds(headers: &HeaderMap, current: Option<&EntityTag>) -> bool {
    if !headers.contains_key(IF_MATCH) {
        return true;
    }
    let (Some(tags), Some(current)) = (tags(headers, IF_MATCH), current) else {
        return false;
    };
    tags.match_strongly(current)
}

/// Returns true if Range counts (section 13.1.5): If-Range is absent, or contains the current strong tag or
/// exactly the current date. False means: send the whole representation.
pub fn if_range_holds(headers: &HeaderMap, current: &Validators) -> bool {
    if !headers.contains_key(IF_RANGE) {
        return true;
    }
    let Some(value) = single(headers, IF_RANGE) else {
        return false;
    };
    if let Some(tag) = EntityTag::parse(value) {
        return tag.strong_eq(&current.etag);
    }
    match (date::parse(value), current.last_modified) {
        (Some(date), Some(modified)) => modified.is_exactly(date),
        _ => false,
    }
}

/// Reads all values of a list header as one list (section 5.3).
pub fn tags(headers: &HeaderMap, name: impl AsHeaderName) -> Option<EntityTags> {
    let mut lines = headers.get_all(name).iter();
    let mut list = lines.next()?.to_str().ok()?.to_owned();
    for line in lines {
        list.push_str(", ");
        list.push_str(line.to_str().ok()?);
    }
    EntityTags::parse(&list)
}

fn date_of(headers: &HeaderMap, name: impl AsHeaderName) -> Option<Timestamp> {
    single(headers, name).and_then(date::parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{NotModified, PreconditionFailed, Proceed};
    use http::HeaderValue;

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    const CHANGED: Timestamp = Timestamp::from_millis(784_111_777_500);

    fn current(etag: EntityTag) -> Validators {
        let now = Timestamp::from_millis(784_111_778_000);
        Validators { etag, last_modified: Some(LastModified::new(CHANGED, now)) }
    }

    fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_section_13_2_2() {
        let strong = current(EntityTag::strong("a"));
        for (pairs, expected) in [
            (vec![], Proceed),
            // 1. If-Match, compared strongly (13.1.1)
            (vec![(IF_MATCH, "\"a\"")], Proceed),
            (vec![(IF_MATCH, "*")], Proceed),
            (vec![(IF_MATCH, "\"b\", \"a\"")], Proceed),
            (vec![(IF_MATCH, "\"b\""), (IF_MATCH, "\"a\"")], Proceed),
            (vec![(IF_MATCH, "\"b\"")], PreconditionFailed),
            (vec![(IF_MATCH, "W/\"a\"")], PreconditionFailed),
            (vec![(IF_MATCH, "a")], PreconditionFailed),
            // 2. If-Unmodified-Since, only without If-Match (13.1.4)
            (vec![(IF_UNMODIFIED_SINCE, BEFORE)], PreconditionFailed),
            (vec![(IF_UNMODIFIED_SINCE, AT)], Proceed),
            (vec![(IF_UNMODIFIED_SINCE, "yesterday")], Proceed),
            (vec![(IF_MATCH, "\"a\""), (IF_UNMODIFIED_SINCE, BEFORE)], Proceed),
            // 3. If-None-Match, compared weakly (13.1.2)
            (vec![(IF_NONE_MATCH, "\"a\"")], NotModified),
            (vec![(IF_NONE_MATCH, "W/\"a\"")], NotModified),
            (vec![(IF_NONE_MATCH, "*")], NotModified),
            (vec![(IF_NONE_MATCH, "\"b\"")], Proceed),
            (vec![(IF_NONE_MATCH, "b")], Proceed),
            // 4. If-Modified-Since, only without If-None-Match (13.1.3)
            (vec![(IF_MODIFIED_SINCE, BEFORE)], Proceed),
            (vec![(IF_MODIFIED_SINCE, AT)], NotModified),
            (vec![(IF_MODIFIED_SINCE, AFTER)], NotModified),
            (vec![(IF_MODIFIED_SINCE, "Sunday, 06-Nov-94 08:49:37 GMT")], NotModified),
            (vec![(IF_MODIFIED_SINCE, "tomorrow")], Proceed),
            (vec![(IF_MODIFIED_SINCE, AT), (IF_MODIFIED_SINCE, AT)], Proceed),
            (vec![(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, AFTER)], Proceed),
            // 412 comes before 304
            (vec![(IF_MATCH, "\"b\""), (IF_NONE_MATCH, "\"a\"")], PreconditionFailed),
            (vec![(IF_MATCH, "\"a\""), (IF_NONE_MATCH, "\"a\"")], NotModified),
            (vec![(IF_UNMODIFIED_SINCE, BEFORE), (IF_NONE_MATCH, "\"a\"")], PreconditionFailed),
        ] {
            assert_eq!(evaluate(&headers(&pairs), &strong), expected, "{pairs:?}");
        }
    }

    #[test]
    fn within_its_second_a_change_is_after_its_date() {
        let now = Timestamp::from_millis(784_111_777_999);
        let modified = LastModified::new(CHANGED, now);
        let fresh = Validators { etag: EntityTag::strong("a"), last_modified: Some(modified) };

        assert_eq!(modified.date(), None);
        assert_eq!(
            LastModified::new(CHANGED, CHANGED.plus(std::time::Duration::from_millis(500))).date(),
            Some(CHANGED)
        );
        assert_eq!(evaluate(&headers(&[(IF_MODIFIED_SINCE, AT)]), &fresh), Proceed);
        assert_eq!(evaluate(&headers(&[(IF_UNMODIFIED_SINCE, AT)]), &fresh), PreconditionFailed);
        assert!(!if_range_holds(&headers(&[(IF_RANGE, AT)]), &fresh));
        assert!(if_range_holds(&headers(&[(IF_RANGE, "\"a\"")]), &fresh));
    }

    #[test]
    fn a_weak_tag_matches_weakly_only() {
        let weak = current(EntityTag::weak("a"));
        assert_eq!(evaluate(&headers(&[(IF_NONE_MATCH, "W/\"a\"")]), &weak), NotModified);
        assert_eq!(evaluate(&headers(&[(IF_NONE_MATCH, "\"a\"")]), &weak), NotModified);
        assert_eq!(evaluate(&headers(&[(IF_MATCH, "W/\"a\"")]), &weak), PreconditionFailed);
        assert!(!if_range_holds(&headers(&[(IF_RANGE, "W/\"a\"")]), &weak));
    }

    #[test]
    fn without_a_date_conditions_on_dates_are_ignored() {
        let undated = Validators { etag: EntityTag::strong("a"), last_modified: None };
        for name in [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
            assert_eq!(evaluate(&headers(&[(name, AT)]), &undated), Proceed);
        }
        assert!(!if_range_holds(&headers(&[(IF_RANGE, AT)]), &undated));
    }

    #[test]
    fn if_match_guards_changes_to_what_is_there() {
        let tag = EntityTag::strong("a");
        assert!(if_match_holds(&headers(&[]), None));
        assert!(if_match_holds(&headers(&[(IF_MATCH, "*")]), Some(&tag)));
        assert!(!if_match_holds(&headers(&[(IF_MATCH, "*")]), None));
        assert!(!if_match_holds(&headers(&[(IF_MATCH, "\"b\"")]), Some(&tag)));
    }

    #[test]
    fn if_range_wants_the_strong_tag_or_the_exact_date() {
        let strong = current(EntityTag::strong("a"));
        for (value, holds) in [
            ("\"a\"", true),
            ("\"b\"", false),
            ("W/\"a\"", false),
            (AT, true),
            (BEFORE, false),
            (AFTER, false),
            ("a", false),
        ] {
            assert_eq!(if_range_holds(&headers(&[(IF_RANGE, value)]), &strong), holds, "{value}");
        }

        assert!(if_range_holds(&headers(&[]), &strong));
        assert!(!if_range_holds(&headers(&[(IF_RANGE, "\"a\""), (IF_RANGE, "\"a\"")]), &strong));
    }
}
