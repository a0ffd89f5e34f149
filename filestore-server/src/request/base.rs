//! The path prefix under which a proxy publishes the server.

use thiserror::Error;

/// The public base of all paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Base {
    /// Scheme and authority; empty without a public URL.
    origin: String,
    /// Empty, or a path that starts with a slash and does not end in one.
    prefix: String,
}

/// The error of a public URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("public_url is an absolute http or https URL without query or fragment: {0}")]
pub struct BadPublicUrl(String);

impl Base {
    /// Reads the base of a public URL such as `https://files.example.org/storage`; without a URL, the
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

    /// Turns a path of the server into a URL to hand on: absolute if the public URL is configured, else
    /// the path (RFC 3986 section 4.2). The request's Host is not asked: whoever sends it chooses it.
    pub(crate) fn minted(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, self.prefix)
    }

    /// Turns a path of the server into the path that clients see.
    pub(crate) fn public(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Removes the prefix from a path; `None` if the path does not start with it.
    pub(crate) fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
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
        for path in ["/a/bc", "/a/b", "/b/a/c", "a/b/c", "/c"] {
            assert_eq!(base.strip(path), None, "{path}");
        }
        assert_eq!(Base::default().strip("/c"), Some("/c"));
    }

    #[test]
    fn a_minted_url_is_absolute_where_the_public_url_is_known() {
        for (url, minted) in [
            (None, "/x"),
            (Some("https://files.example.org:8443/"), "https://files.example.org:8443/x"),
            (Some("http://localhost/a/b"), "http://localhost/a/b/x"),
        ] {
            assert_eq!(Base::of(url).unwrap().minted("/x"), minted, "{url:?}");
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
