//! Unfinished uploads of S3. OpenDAL can neither list nor abort them after their writer was dropped.
//!
//! Source: Amazon S3 API Reference, `ListMultipartUploads` and `AbortMultipartUpload`.

use std::time::Duration;

use async_trait::async_trait;
use http::{Method, Request, StatusCode};
use opendal::raw::percent_encode_path;
use opendal::{Buffer, ErrorKind as Theirs, HttpTransporter, Operator};
use percent_encoding::utf8_percent_encode;
use reqsign_aws_v4::{
    Credential, DefaultCredentialProvider, RequestSigner, StaticCredentialProvider,
};
use reqsign_core::{Context, OsEnv, ProvideCredentialChain, Signer};
use reqsign_file_read_tokio::TokioFileRead;
use serde::Deserialize;

use super::uploads::PartUploads;
use crate::domain::time::clock::Timestamp;
use crate::storage::cloud::opening::options::{Options, QUERY, given, is_set};
use crate::storage::cloud_types::UploadsPage;
use crate::storage::{UnfinishedUpload, UploadsPlace};

/// Options for unsupported ways of signing: an assumed role, or requests without a signature.
const OTHER_SIGNERS: [&str; 3] = ["role_arn", "skip_signature", "allow_anonymous"];

/// A header that S3 requires to be signed. The requests have no body.
const CONTENT_SHA256: (&str, &str) = ("x-amz-content-sha256", "UNSIGNED-PAYLOAD");

/// An object name that is not used. The URL of the bucket is taken from its URL.
const ANY_NAME: &str = "any";

/// Requests to one bucket, signed like the operator's requests.
pub(in crate::storage::cloud) struct S3Uploads {
    signer: Signer<Credential>,
    transport: HttpTransporter,
}

impl S3Uploads {
    /// Reads the signing settings from the options. `None` if requests are not signed with keys or with
    /// credentials from the environment.
    pub(in crate::storage::cloud) fn from_options(
        options: &Options,
        transport: HttpTransporter,
    ) -> Option<Self> {
        let is_other = OTHER_SIGNERS.iter().any(|name| is_set(options, name));
        // S3 Express signs with sessions.
        let is_express = given(options, "bucket").is_some_and(|name| name.ends_with("--x-s3"));
        if is_other || is_express {
            return None;
        }

        let region = given(options, "region").map(str::to_owned).or_else(|| {
            ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| std::env::var(name).ok())
        })?;
        let context = Context::new()
            .with_file_read(TokioFileRead)
            .with_env(OsEnv)
            .with_http_send(transport.clone());
        let signer = RequestSigner::new("s3", &region);
        Some(Self { signer: Signer::new(context, credentials(options), signer), transport })
    }

    async fn send(&self, method: Method, url: String) -> opendal::Result<(StatusCode, Buffer)> {
        let (name, value) = CONTENT_SHA256;
        let request = Request::builder().method(method).uri(url).header(name, value).body(());
        let (mut head, ()) = request.map_err(|error| unexpected("a URL", error))?.into_parts();
        self.signer.sign(&mut head, None).await.map_err(|error| unexpected("signing", error))?;

        let request = Request::from_parts(head, Buffer::new());
        let reply = self.transport.send(request).await?;
        Ok((reply.status(), reply.into_body()))
    }
}

#[async_trait]
impl PartUploads for S3Uploads {
    async fn list(
        &self,
        operator: &Operator,
        after: Option<UploadsPlace>,
    ) -> opendal::Result<UploadsPage> {
        let place = BucketUrl::of(operator).await?;
        let (status, body) = self.send(Method::GET, place.uploads(after.as_ref())).await?;
        if status != StatusCode::OK {
            return Err(refusal(status, &body));
        }
        read_page(&body, &place.root)
    }

    async fn abort(&self, operator: &Operator, upload: &UnfinishedUpload) -> opendal::Result<()> {
        let place = BucketUrl::of(operator).await?;
        let (status, body) = self.send(Method::DELETE, place.upload(upload)).await?;

        match status {
            StatusCode::NO_CONTENT | StatusCode::OK => Ok(()),
            StatusCode::NOT_FOUND if error_code(&body).as_deref() != Some("NoSuchBucket") => Ok(()),
            _ => Err(refusal(status, &body)),
        }
    }
}

/// Returns the credentials that OpenDAL would use for the same options.
fn credentials(options: &Options) -> ProvideCredentialChain<Credential> {
    let mut environment = DefaultCredentialProvider::builder();
    if is_set(options, "disable_config_load") {
        environment = environment.no_env().no_profile();
    } else if let Some(profile) = given(options, "profile") {
        environment = environment.with_profile(profile);
    }
    if is_set(options, "disable_ec2_metadata") {
        environment = environment.no_imds();
    }

    let chain = ProvideCredentialChain::new().push(environment.build());
    match (given(options, "access_key_id"), given(options, "secret_access_key")) {
        (Some(id), Some(secret)) => {
            let keys = StaticCredentialProvider::new(id, secret);
            chain.push_front(match given(options, "session_token") {
                Some(token) => keys.with_session_token(token),
                None => keys,
            })
        }
        _ => chain,
    }
}

/// A bucket's URL without a trailing slash, and the prefix of the operator's keys.
struct BucketUrl {
    url: String,
    /// Empty, or with a trailing slash.
    root: String,
}

impl BucketUrl {
    /// Extracts the URL from a URL that the operator presigns. The URL contains the host, the bucket and the
    /// root.
    async fn of(operator: &Operator) -> opendal::Result<Self> {
        let root = operator.info().root().trim_start_matches('/').to_owned();
        let presigned = operator.presign_stat(ANY_NAME, Duration::from_secs(1)).await?;
        let object = presigned.uri().to_string();

        let path = object.split('?').next().unwrap_or_default();
        let end = format!("/{}", percent_encode_path(&format!("{root}{ANY_NAME}")));
        match path.strip_suffix(&end) {
            Some(url) => Ok(Self { url: url.to_owned(), root }),
            None => {
                Err(opendal::Error::new(Theirs::Unsupported, "the URL of the bucket is unknown"))
            }
        }
    }

    fn uploads(&self, after: Option<&UploadsPlace>) -> String {
        let mut url = format!("{}/?uploads=&prefix={}", self.url, encoded(&self.root));
        if let Some(UploadsPlace { key, upload_id }) = after {
            url = format!(
                "{url}&key-marker={}&upload-id-marker={}",
                encoded(key),
                encoded(upload_id)
            );
        }
        url
    }

    fn upload(&self, upload: &UnfinishedUpload) -> String {
        let key = percent_encode_path(&format!("{}{}", self.root, upload.name));
        format!("{}/{key}?uploadId={}", self.url, encoded(&upload.upload_id))
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string()
}

/// `ListMultipartUploadsResult`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    #[serde(default)]
    is_truncated: bool,
    #[serde(default)]
    next_key_marker: String,
    #[serde(default)]
    next_upload_id_marker: String,
    #[serde(default)]
    upload: Vec<ListedUpload>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUpload {
    key: String,
    upload_id: String,
    initiated: String,
}

/// `Error`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    code: String,
}

/// Parses a page. Omits keys that do not begin with `root`.
fn read_page(body: &Buffer, root: &str) -> opendal::Result<UploadsPage> {
    let listed: Listed = quick_xml::de::from_reader(body.to_bytes().as_ref())
        .map_err(|error| unexpected("a listing of uploads", error))?;

    let uploads = listed.upload.iter().filter_map(|upload| read_upload(upload, root)).collect();
    let next =
        (listed.is_truncated && !listed.next_key_marker.is_empty()).then_some(UploadsPlace {
            key: listed.next_key_marker,
            upload_id: listed.next_upload_id_marker,
        });
    Ok(UploadsPage { uploads, next })
}

/// Parses an upload. `None` if it is not below `root`, or if its time is invalid.
fn read_upload(listed: &ListedUpload, root: &str) -> Option<UnfinishedUpload> {
    Some(UnfinishedUpload {
        name: listed.key.strip_prefix(root)?.to_owned(),
        begun_at: listed.initiated.parse::<Timestamp>().ok()?,
        upload_id: listed.upload_id.clone(),
    })
}

fn error_code(body: &Buffer) -> Option<String> {
    let refused: Refused = quick_xml::de::from_reader(body.to_bytes().as_ref()).ok()?;
    Some(refused.code)
}

/// Returns the error for a status other than success: an outage, or an answer that refuses.
fn refusal(status: StatusCode, body: &Buffer) -> opendal::Error {
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Theirs::RateLimited,
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Theirs::PermissionDenied,
        _ if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
            Theirs::Unexpected
        }
        _ => Theirs::Unsupported,
    };
    let code = error_code(body).unwrap_or_default();
    opendal::Error::new(kind, format!("{status} {code}"))
}

fn unexpected(
    what: &'static str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> opendal::Error {
    opendal::Error::new(Theirs::Unexpected, what).set_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As AWS documents it, cut.
    const TWO: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
        <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
          <Bucket>bucket</Bucket><KeyMarker/><UploadIdMarker/>
          <NextKeyMarker>files/7/b</NextKeyMarker>
          <NextUploadIdMarker>YW55&amp;</NextUploadIdMarker>
          <MaxUploads>2</MaxUploads><IsTruncated>true</IsTruncated>
          <Upload><Key>files/7/a</Key><UploadId>XMgbGl</UploadId>
            <Initiator><ID>1</ID></Initiator><StorageClass>STANDARD</StorageClass>
            <Initiated>2026-11-10T20:48:33.000Z</Initiated></Upload>
          <Upload><Key>else/7/b</Key><UploadId>YW55&amp;</UploadId>
            <Initiated>2026-11-10T20:49:33.000Z</Initiated></Upload>
        </ListMultipartUploadsResult>"#;

    #[test]
    fn a_page_has_the_uploads_below_the_root_and_where_to_go_on() {
        let page = read_page(&Buffer::from(TWO), "files/").unwrap();
        let begun_at = "2026-11-10T20:48:33Z".parse().unwrap();
        let upload =
            UnfinishedUpload { name: "7/a".to_owned(), begun_at, upload_id: "XMgbGl".to_owned() };
        assert_eq!(page.uploads, [upload]);
        let next = UploadsPlace { key: "files/7/b".to_owned(), upload_id: "YW55&".to_owned() };
        assert_eq!(page.next, Some(next));
    }

    #[test]
    fn an_empty_listing_is_the_end() {
        let empty = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated><NextKeyMarker/>\
                     </ListMultipartUploadsResult>";
        let page = read_page(&Buffer::from(empty), "").unwrap();
        assert_eq!((page.uploads.len(), page.next), (0, None));
    }

    #[test]
    fn what_is_no_listing_is_an_error() {
        let html = Buffer::from("<html><body>Sign in</body>");
        assert!(read_page(&html, "").is_err());
    }

    #[test]
    fn markers_and_ids_are_encoded_in_queries() {
        let place = BucketUrl { url: "https://host/bucket".to_owned(), root: "a b/".to_owned() };
        let after = UploadsPlace { key: "a b/ü".to_owned(), upload_id: "x&y=z".to_owned() };
        assert_eq!(
            place.uploads(Some(&after)),
            "https://host/bucket/?uploads=&prefix=a%20b%2F&key-marker=a%20b%2F%C3%BC&upload-id-marker=x%26y%3Dz"
        );
    }

    #[test]
    fn a_provider_that_cannot_list_is_no_outage() {
        let refused = Buffer::from("<Error><Code>NotImplemented</Code></Error>");
        let error = refusal(StatusCode::NOT_IMPLEMENTED, &refused);
        assert_eq!(error.kind(), Theirs::Unsupported);
        assert!(error.message().contains("NotImplemented"), "{error}");
        assert_eq!(refusal(StatusCode::BAD_GATEWAY, &Buffer::new()).kind(), Theirs::Unexpected);
    }
}
