//! The operation of S3 that a request asks for.

use http::Method;
use http::request::Parts;

/// The operations a store of files uses, by S3's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A whole object in one request.
    PutObject,
    /// An object's bytes, or a range of them.
    GetObject,
    /// Reads an object's headers.
    HeadObject,
    /// Removes one object.
    DeleteObject,
    /// Removes several objects.
    DeleteObjects,
    /// An object is copied within the store.
    CopyObject,
    /// A multipart upload begins.
    CreateMultipartUpload,
    /// One part of a multipart upload.
    UploadPart,
    /// A multipart upload becomes an object.
    CompleteMultipartUpload,
    /// A multipart upload is given up.
    AbortMultipartUpload,
    /// The keys of a bucket.
    ListObjects,
    /// The unfinished multipart uploads of a bucket.
    ListMultipartUploads,
    /// Any operation that the tests do not tell apart.
    Other,
}

impl Operation {
    /// Reads the operation off a request in path style, `/<bucket>/<key>?<query>`.
    pub(super) fn of(request: &Parts) -> Self {
        let path = request.uri.path().trim_start_matches('/');
        let of_object = path.split_once('/').is_some_and(|(_, key)| !key.is_empty());
        let query = request.uri.query().unwrap_or_default();
        let asks = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));

        if !of_object {
            return match request.method {
                Method::GET if asks("uploads") => Self::ListMultipartUploads,
                Method::GET if asks("list-type") || asks("prefix") => Self::ListObjects,
                Method::POST if asks("delete") => Self::DeleteObjects,
                _ => Self::Other,
            };
        }

        match request.method {
            Method::PUT if asks("partNumber") => Self::UploadPart,
            Method::PUT if request.headers.contains_key("x-amz-copy-source") => Self::CopyObject,
            Method::PUT => Self::PutObject,
            Method::GET if asks("uploadId") => Self::Other,
            Method::GET => Self::GetObject,
            Method::HEAD => Self::HeadObject,
            Method::DELETE if asks("uploadId") => Self::AbortMultipartUpload,
            Method::DELETE => Self::DeleteObject,
            Method::POST if asks("uploads") => Self::CreateMultipartUpload,
            Method::POST if asks("uploadId") => Self::CompleteMultipartUpload,
            _ => Self::Other,
        }
    }
}
