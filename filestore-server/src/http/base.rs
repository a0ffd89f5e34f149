//! The path prefix under which a proxy publishes the server.

use thiserror::Error;

/// The public base of all paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Base {
    /// Scheme and authority. Empty without a public URL.
    origin: String,
    /// Empty, or a path that starts with a slash and has no trailing slash.
    prefix: String,
}

/// The error for an invalid public URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("public_url is an absolute http or https URL without query or fragment: {0}")]
pub struct BadPublicUrl(String);

/// The error for an invalid path prefix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("path_prefix is a path such as /storage, the path of public_url if both are set: {0}")]
pub struct BadPrefix(pub(crate) String);

/// Returns true if a text can be a path segment without encoding.
fn is_segment(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&b);
    !text.is_empty() && text != "." && text != ".." && text.bytes().all(is_plain)
}

impl Base {
    /// Parses the base of a public URL, for example `https://files.example.org/storage`. Without a URL, the
    /// base is the root.
    pub(crate) fn of(public_url: Option<&str>) -> Result<Self, BadPublicUrl> {
        let Some(url) = public_url else { return Ok(Self::default()) };
        let uri: http::Uri = url.parse().map_err(|_| BadPublicUrl(url.to_owned()))?;

        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        if !is_web || uri.host().is_none_or(str::is_empty) || url.contains(['?', '#']) {
            return Err(BadPublicUrl(url.to_owned()));
        }
        let authority = uri.authority().map_or("", http::uri::Authority::as_str);
        let origin = format!("{}://{authority}", uri.scheme_str().unwrap_or_default());
        Ok(Self { origin, prefix: uri.path().trim_end_matches('/').to_owned() })
    }

    /// Parses the base of a path prefix, for example `/storage`, for a service without a known public URL.
    pub(crate) fn below(prefix: &str) -> Result<Self, BadPrefix> {
        let prefix = prefix.trim_end_matches('/');
        let has_good_segments = prefix.split('/').skip(1).all(is_segment);
        if !(prefix.is_empty() || prefix.starts_with('/')) || !has_good_segments {
            return Err(BadPrefix(prefix.to_owned()));
        }
        Ok(Self { origin: String::new(), prefix: prefix.to_owned() })
    }

    /// Returns true if two bases have the same prefix.
    pub(crate) fn has_prefix_of(&self, other: &Self) -> bool {
        self.prefix == other.prefix
    }

    /// Converts a path of the server to a URL for clients. The URL is absolute if the public URL is
    /// configured. Otherwise it is the path (RFC 3986 section 4.2). The request's Host is not used, because
    /// its sender can choose it.
    pub(crate) fn client_url(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, self.prefix)
    }

    /// Converts a path of the server to the path that clients see.
    pub(crate) fn public(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Removes the prefix from a path. `None` if the path does not start with it.
    pub(crate) fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        if path == self.prefix {
            return Some("/");
        }
        let mut rest = path;
        for segment in self.segments() {
            rest = rest.strip_prefix('/')?.strip_prefix(segment)?;
            if !rest.starts_with('/') {
                return None;
            }
        }
        Some(rest)
    }

    /// Returns the segments of the prefix.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        self.prefix.split('/').filter(|segment| !segment.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_gives_the_prefix() {
        for (url, path) in [
            (None, "/x"),
            (Some("https://files.example.org"), "/x"),
            (Some("https://files.example.org/"), "/x"),
            (Some("http://localhost:8080/a/b/"), "/a/b/x"),
        ] {
            assert_eq!(Base::of(url).unwrap().public("/x"), path, "{url:?}");
        }
    }

    #[test]
    fn the_prefix_is_removed_by_whole_segments() {
        let base = Base::of(Some("https://x/a/b")).unwrap();
        assert_eq!(base.strip("/a/b/c"), Some("/c"));
        for root in ["/a/b", "/a/b/"] {
            assert_eq!(base.strip(root), Some("/"), "{root}");
        }
        for path in ["/a/bc", "/a", "/b/a/c", "a/b/c", "/c"] {
            assert_eq!(base.strip(path), None, "{path}");
        }
        assert_eq!(Base::default().strip("/c"), Some("/c"));
    }

    #[test]
    fn a_client_url_is_absolute_where_the_public_url_is_known() {
        for (public_url, expected) in [
            (None, "/x"),
            (Some("https://files.example.org:8443/"), "https://files.example.org:8443/x"),
            (Some("http://localhost/a/b"), "http://localhost/a/b/x"),
        ] {
            assert_eq!(Base::of(public_url).unwrap().client_url("/x"), expected, "{public_url:?}");
        }
    }

    #[test]
    fn a_prefix_alone_gives_paths() {
        for (prefix, expected) in
            [("", "/x"), ("/", "/x"), ("/storage", "/storage/x"), ("/a/b/", "/a/b/x")]
        {
            assert_eq!(Base::below(prefix).unwrap().client_url("/x"), expected, "{prefix}");
        }
        for bad in ["storage", "/a//b", "/a?b", "/a#b", "/a b", "/..", "/a/./b", "http://x"] {
            assert!(Base::below(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        for url in
            ["", "files.example.org", "/a", "ftp://x/", "https://", "https://x/?q", "https://x/#f"]
        {
            assert!(Base::of(Some(url)).is_err(), "{url}");
        }
    }
}
