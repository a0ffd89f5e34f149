//! Multipart bodies, byte by byte (RFC 7578).
//!
//! Written out by hand rather than by an HTTP library, so that the tests decide about field order,
//! quoting and headers.

/// The boundary between parts. Long enough not to occur in any fixture.
const BOUNDARY: &str = "----filestore-test-9f2c4b7e1d";

/// A multipart/form-data body under construction. Parts keep the order they are added in.
#[derive(Debug, Clone, Default)]
pub struct Form {
    body: Vec<u8>,
}

impl Form {
    /// A form without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text field.
    #[must_use]
    pub fn text(self, name: &str, value: &str) -> Self {
        self.part(&format!("Content-Disposition: form-data; name=\"{name}\""), value.as_bytes())
    }

    /// Adds a file without a name and without a type.
    #[must_use]
    pub fn bytes(self, name: &str, bytes: &[u8]) -> Self {
        self.file(name, "", "application/octet-stream", bytes)
    }

    /// Adds a file as a browser sends it: `"`, CR and LF of the name percent-encoded, everything
    /// else as it is (WHATWG HTML, multipart/form-data encoding).
    #[must_use]
    pub fn file(self, name: &str, file_name: &str, content_type: &str, bytes: &[u8]) -> Self {
        let file_name = file_name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let disposition =
            format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"");
        self.part(&format!("{disposition}\r\nContent-Type: {content_type}"), bytes)
    }

    /// Adds a part with exactly this header block (lines joined by CRLF, none at the end).
    #[must_use]
    pub fn part(mut self, headers: &str, body: &[u8]) -> Self {
        self.body.extend_from_slice(format!("--{BOUNDARY}\r\n{headers}\r\n\r\n").as_bytes());
        self.body.extend_from_slice(body);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    /// The Content-Type header that goes with the body.
    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }

    /// The whole body with its closing boundary.
    pub fn finish(self) -> Vec<u8> {
        let mut body = self.body;
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        body
    }

    /// The body as it is so far, without the closing boundary: what arrives when a client is cut off.
    pub fn cut_off(self) -> Vec<u8> {
        self.body
    }
}
