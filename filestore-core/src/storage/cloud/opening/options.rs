//! Options of providers by name.

use std::collections::BTreeMap;

#[cfg(any(feature = "s3", feature = "azblob"))]
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// The directory below the root where the `fs` service writes files before it renames them.
pub(in crate::storage::cloud) const FS_STAGING: &str = ".filestore-staging";

/// The characters to encode in a query: all except the unreserved characters of RFC 3986.
#[cfg(any(feature = "s3", feature = "azblob"))]
pub(in crate::storage::cloud) const QUERY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Options by name, in OpenDAL's form.
pub(in crate::storage::cloud) type Options = BTreeMap<String, String>;

/// Returns an option. An empty value counts as absent.
#[cfg(any(feature = "s3", feature = "azblob", feature = "gcs"))]
pub(in crate::storage::cloud) fn given<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// Returns the value of a boolean option.
#[cfg(any(feature = "s3", feature = "gcs"))]
pub(in crate::storage::cloud) fn is_set(options: &Options, name: &str) -> bool {
    given(options, name).is_some_and(|value| !matches!(value, "false" | "off" | "0"))
}
