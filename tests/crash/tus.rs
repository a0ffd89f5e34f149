//! Resumable uploads over HTTP, as clients of tus 1.0 make them.

use reqwest::{Client, Method, RequestBuilder, Response};

/// The path of resumable uploads.
const UPLOADS: &str = "/api/v1/uploads";

/// Makes the request that begins an upload of `length` bytes.
pub(crate) fn create(
    http: &Client,
    server: &str,
    organization: &str,
    length: usize,
) -> RequestBuilder {
    let url = format!("{server}{UPLOADS}?organization_id={organization}&sub_system=crash");
    speak(http.post(url)).header("upload-length", length.to_string())
}

/// Makes the request that sends `bytes` from `offset` on.
pub(crate) fn append(
    http: &Client,
    server: &str,
    upload: &str,
    offset: u64,
    bytes: &[u8],
) -> RequestBuilder {
    let request = about(http, server, upload, Method::PATCH);
    let request = request.header("upload-offset", offset.to_string());
    request.header("content-type", "application/offset+octet-stream").body(bytes.to_vec())
}

/// Makes a request without a body about an upload.
pub(crate) fn about(http: &Client, server: &str, upload: &str, method: Method) -> RequestBuilder {
    speak(http.request(method, format!("{server}{UPLOADS}/{upload}")))
}

fn speak(request: RequestBuilder) -> RequestBuilder {
    request.header("tus-resumable", "1.0.0")
}

/// Returns the address of the upload that a reply has begun, as in the log.
pub(crate) fn upload_of(reply: &Response) -> String {
    let location = header(reply, "location").expect("a creation names the upload");
    location.rsplit('/').next().expect("a path has parts").to_owned()
}

/// Returns the offset that a reply tells.
pub(crate) fn offset_of(reply: &Response) -> Option<u64> {
    header(reply, "upload-offset")?.parse().ok()
}

/// Returns the file that an upload has become.
pub(crate) fn file_of(reply: &Response) -> Option<String> {
    header(reply, "file-id").map(str::to_owned)
}

fn header<'r>(reply: &'r Response, name: &str) -> Option<&'r str> {
    reply.headers().get(name)?.to_str().ok()
}
