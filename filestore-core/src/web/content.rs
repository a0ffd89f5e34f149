//! The reply with the content of a file.

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LAST_MODIFIED, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use super::conditional::{LastModified, Outcome, Validators, evaluate, if_range_holds};
use super::date;
use super::etag::{EntityTag, repr_digest};
use super::payload::{Payload, Span};
use super::range::ByteRange;
use super::read_request::{ReadRequest, Refusal};
use super::values::Values;
use crate::domain::error::{Error, ErrorKind};
use crate::domain::file::record::FileRecord;
use crate::domain::file::serving::{self, Serving};
use crate::service::ServedFiles;

/// The size of a reply's own header values, for a file name of usual length.
const VALUES_BYTES: usize = 512;

/// The number of headers of a reply, with those that a server adds: one growth of the map.
pub(super) const HEADERS: usize = 14;

/// The value that keeps browsers from guessing types.
pub(super) const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

impl ReadRequest<'_> {
    /// Creates the reply with the content of `record`, in the order of RFC 9110 section 13.2.2: 200, 206 or 304.
    /// `None` if the record changed in the meantime. Call this within
    /// [`with_record`](crate::ServedFiles::with_record), which looks the record up again.
    ///
    /// `PreconditionFailed` if a condition does not hold. Other errors as for
    /// [`ServedFiles::open`](crate::ServedFiles::open).
    pub async fn content(
        &self,
        files: ServedFiles<'_>,
        record: &FileRecord,
    ) -> Result<Option<Response<Payload>>, Refusal> {
        let asked = Asked { request: self, record };
        let size = record.blob.size_bytes;
        let current = Validators {
            etag: EntityTag::of(&record.blob.sha256),
            last_modified: Some(LastModified::new(record.blob.stored_at, files.now())),
        };
        match evaluate(self.headers, &current) {
            Outcome::Proceed => {}
            Outcome::NotModified => return Ok(Some(asked.not_modified(&current))),
            Outcome::PreconditionFailed => {
                let message = "the file's content is not the one the request is about";
                return Err(Error::new(ErrorKind::PreconditionFailed, message).into());
            }
        }

        let ranged = *self.method == Method::GET && if_range_holds(self.headers, &current);
        let range = if ranged { ByteRange::of(self.headers, size) } else { ByteRange::Whole };
        let Some(span) = Span::of(range, size) else {
            return Err(Refusal::RangeNotSatisfiable { size_bytes: size });
        };
        let Some(payload) = self.payload(files, record, span).await? else { return Ok(None) };

        let mut response = Response::new(payload);
        let mut values = Values::with_capacity(VALUES_BYTES);
        asked.describe(response.headers_mut(), &mut values, &current);
        if let Some(value) = range.content_range(size) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert(CONTENT_RANGE, value);
        }
        let length = values.format(format_args!("{}", span.len())).expect("digits are ASCII");
        response.headers_mut().insert(CONTENT_LENGTH, length);
        Ok(Some(response))
    }

    /// Opens the bytes of `span`. `None` if the record changed. HEAD opens no file.
    pub(super) async fn payload(
        &self,
        files: ServedFiles<'_>,
        record: &FileRecord,
        span: Span,
    ) -> Result<Option<Payload>, Error> {
        if *self.method == Method::HEAD {
            return Ok(Some(Payload::Empty));
        }
        Payload::open(files, record, span, self.sends).await
    }
}

/// A request for one record's content.
struct Asked<'a> {
    request: &'a ReadRequest<'a>,
    record: &'a FileRecord,
}

impl Asked<'_> {
    fn not_modified(&self, current: &Validators) -> Response<Payload> {
        let mut response = not_modified();
        let headers = response.headers_mut();
        let mut values = Values::with_capacity(VALUES_BYTES);
        self.add_validators(headers, &mut values, current);
        // An edit changes what a cache stored beside the bytes, and not their validators (RFC 9111
        // section 4.3.4). So did the first version that sends types in one form only.
        let how = self.serving();
        if self.record.edited_at.is_some() || !how.is_of_every_version(&self.record.mime_type) {
            self.add_handling(headers, &mut values, &how);
        }
        response
    }

    fn serving(&self) -> Serving<'_> {
        let sniffed = self.record.blob.sniffed_type.as_deref();
        serving::decide(&self.record.mime_type, sniffed, self.request.disposition)
    }

    /// Adds the headers that tell a browser how to handle the bytes.
    fn add_handling(&self, headers: &mut HeaderMap, values: &mut Values, how: &Serving<'_>) {
        let content_type = values.join(&[&how.content_type]).expect("it is ASCII");
        headers.insert(CONTENT_TYPE, content_type);
        let disposition = how.disposition.to_value(&self.record.original_name);
        let disposition = values.join(&[&disposition]).expect("it is ASCII");
        headers.insert(CONTENT_DISPOSITION, disposition);
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(how.csp));
    }

    /// Adds the headers that a 200 and a 304 have in common (section 15.4.5).
    fn add_validators(&self, headers: &mut HeaderMap, values: &mut Values, current: &Validators) {
        headers.insert(ETAG, current.etag.write(values));
        headers.insert(CACHE_CONTROL, self.request.caching.value(&self.record.blob.sha256));
        if let Some(date) = current.last_modified.and_then(LastModified::date) {
            let modified = values.format(format_args!("{}", date::format(date)));
            headers.insert(LAST_MODIFIED, modified.expect("a date is ASCII"));
        }
    }

    fn describe(&self, headers: &mut HeaderMap, values: &mut Values, current: &Validators) {
        headers.reserve(HEADERS);
        self.add_validators(headers, values, current);
        self.add_handling(headers, values, &self.serving());
        headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(REPR_DIGEST, repr_digest(&self.record.blob.sha256, values));
    }
}

/// Creates a 304. The caller adds the headers of a 200 (RFC 9110 section 15.4.5).
pub(super) fn not_modified() -> Response<Payload> {
    let mut response = Response::new(Payload::Empty);
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}
