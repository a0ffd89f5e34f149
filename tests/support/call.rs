//! Requests and their whole replies.

use bytes::Bytes;
use filestore_core::api::{ErrorCode, FileRecord, Problem};
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::form::Form;

/// A request that is not sent yet.
#[derive(Debug)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call {
    request: reqwest::RequestBuilder,
}

impl Call {
    pub(crate) fn new(request: reqwest::RequestBuilder) -> Self {
        Self { request }
    }

    /// A request to any server, that follows no redirect and says nothing but what it is told to.
    pub fn bare(method: reqwest::Method, url: &str) -> Self {
        let client = crate::http_client().redirect(reqwest::redirect::Policy::none()).build();
        Self::new(client.expect("an HTTP client").request(method, url))
    }

    /// Adds a header to the request.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    /// Sends `value` as the JSON body.
    pub fn json(mut self, value: &Value) -> Self {
        self.request = self.request.json(value);
        self
    }

    /// Sends `form` as the body.
    pub fn form(self, form: Form) -> Self {
        let content_type = form.content_type();
        self.body(&content_type, form.finish())
    }

    /// Sends `body` with exactly this Content-Type.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.request = self.request.header("content-type", content_type).body(body.into());
        self
    }

    /// Sends it and reads the whole reply.
    pub async fn send(self) -> Reply {
        self.try_send().await.expect("the server answers")
    }

    /// Like [`Call::send`], for servers that may go away meanwhile.
    pub async fn try_send(self) -> reqwest::Result<Reply> {
        let response = self.request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Reply { status, headers, body: response.bytes().await? })
    }

    /// Sends it and leaves the body to be read by the caller.
    pub async fn open(self) -> reqwest::Response {
        self.request.send().await.expect("the server answers")
    }
}

/// A reply with its whole body.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// All headers, in the order received.
    pub headers: HeaderMap,
    /// All of the body.
    pub body: Bytes,
}

impl Reply {
    /// Insists on a status, showing the body if it is another one.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "often the check is all that is wanted")]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "body: {}", self.text());
        self
    }

    /// A header's value, if it is there.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header of printable ASCII"))
    }

    /// A header's value; it must be there exactly once.
    #[track_caller]
    pub fn only(&self, name: &str) -> &str {
        assert_eq!(self.headers.get_all(name).iter().count(), 1, "{name} in {:?}", self.headers);
        self.header(name).expect("counted just now")
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {}", self.text()))
    }

    /// The body as a file record.
    #[track_caller]
    pub fn record(&self) -> FileRecord {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {}", self.text()))
    }

    /// The body as an array of file records.
    #[track_caller]
    pub fn records(&self) -> Vec<FileRecord> {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {}", self.text()))
    }

    /// The file id of the body, whatever else is in it.
    #[track_caller]
    pub fn file_id(&self) -> String {
        self.json()["file_id"].as_str().expect("a file_id").to_owned()
    }

    /// Insists on a problem document (reference §6) with this status and code, whole and consistent
    /// with the headers, and returns it.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Problem {
        let problem = self.any_problem(status);
        assert_eq!(problem.code, code, "{problem:?}");
        problem
    }

    /// Like [`Reply::problem`], whatever the code.
    #[track_caller]
    pub fn any_problem(&self, status: u16) -> Problem {
        assert_eq!(self.status, status, "body: {}", self.text());

        let kind = self.only("content-type");
        assert!(kind.starts_with("application/problem+json"), "{kind}");

        let problem: Problem =
            serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {}", self.text()));
        assert_eq!(problem.status, status, "{problem:?}");
        assert_eq!(problem.request_id, self.only("x-request-id"), "{problem:?}");
        assert_eq!(problem.instance, format!("urn:request:{}", problem.request_id), "{problem:?}");
        assert!(!problem.kind.is_empty() && !problem.title.is_empty(), "{problem:?}");
        assert!(
            !problem.detail.is_empty() && ErrorCode::KNOWN.contains(&problem.code),
            "{problem:?}"
        );

        problem
    }
}
