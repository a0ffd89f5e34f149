//! `s3s-fs`, with what it lacks of S3.
//!
//! It stores and returns types and dispositions, serves ranges, and knows `If-None-Match: *`. Added
//! here: checksums are compared *before* an object or a part is there, on parts at all; unknown
//! uploads, foreign parts and small ones are refused before anything is changed; a suffix longer than
//! the object is the whole of it; a directory is no object; HEAD knows the overrides of presigned URLs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, Checksum, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CompletedPart, CopyObjectInput, CopyObjectOutput,
    CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput,
    DeleteObjectsInput, DeleteObjectsOutput, ETag, GetBucketLocationInput, GetBucketLocationOutput,
    GetObjectInput, GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput,
    HeadObjectOutput, ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectsInput,
    ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output, ListPartsInput, ListPartsOutput,
    MultipartUpload, PutObjectInput, PutObjectOutput, Range, StreamingBlob, UploadPartInput,
    UploadPartOutput,
};
use s3s::{S3, S3Error, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;

use super::intake::{Intake, Promised, Verdict};

/// The least size of every part but the last, bytes.
const LEAST_PART: u64 = 5 * 1024 * 1024;

/// Unfinished uploads listed at once; S3 gives 1,000 at most, and may give fewer.
const UPLOADS_PAGE: usize = 2;

/// The first part of the names of files that say what an upload is of.
const BEGUN: &str = ".begun-";

/// The type that S3 gives an object stored without one.
const UNTYPED: &str = "binary/octet-stream";

/// The gate's orders for a request, put among its extensions: headers cannot be taken away in front
/// of the check of the signature, which covers them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Orders {
    pub(super) ignore_checksums: bool,
    pub(super) store_half: bool,
}

/// The store behind the server.
#[derive(Debug)]
pub(super) struct Store {
    fs: FileSystem,
    root: PathBuf,
    /// By upload id and part number.
    parts: Mutex<HashMap<(String, i32), Part>>,
}

/// An upload that was neither completed nor aborted.
struct Begun {
    key: String,
    upload_id: String,
    at: SystemTime,
}

impl Begun {
    /// True behind a marker: a key, and an upload of that key.
    fn is_after(&self, (key, upload_id): &(String, Option<String>)) -> bool {
        match upload_id {
            None => self.key > *key,
            Some(id) => (&self.key, &self.upload_id) > (key, id),
        }
    }

    fn listed(self) -> MultipartUpload {
        MultipartUpload {
            initiated: Some(self.at.into()),
            key: Some(self.key),
            upload_id: Some(self.upload_id),
            ..MultipartUpload::default()
        }
    }
}

#[derive(Debug)]
struct Part {
    e_tag: Option<ETag>,
    size: u64,
}

impl Store {
    /// A store whose buckets are the directories of `root`.
    pub(super) fn new(root: &Path) -> Self {
        let fs = FileSystem::new(root).expect("a directory that is there");
        // As s3s-fs does: temporary directories may lie behind a symbolic link.
        let root = root.canonicalize().expect("a directory that is there");
        Self { fs, root, parts: Mutex::default() }
    }

    /// The multipart uploads under `root` that were neither completed nor aborted.
    pub(super) fn unfinished_uploads(root: &Path) -> usize {
        let entries = std::fs::read_dir(root).expect("the store's directory");
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(".upload-"))
            .count()
    }

    fn object_path(&self, bucket: &str, key: &str) -> PathBuf {
        self.root.join(bucket).join(key)
    }

    /// A prefix of other keys, which the file system has and S3 does not.
    fn is_directory(&self, bucket: &str, key: &str) -> bool {
        !key.ends_with('/') && self.object_path(bucket, key).is_dir()
    }

    fn check_upload(&self, upload_id: &str) -> S3Result<()> {
        let is_plain = upload_id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if is_plain && self.root.join(format!(".upload-{upload_id}.json")).exists() {
            return Ok(());
        }
        Err(s3_error!(NoSuchUpload, "The specified upload does not exist."))
    }

    fn check_parts(&self, upload_id: &str, listed: &[CompletedPart]) -> S3Result<()> {
        let parts = self.parts();
        let last = listed.len();
        for (number, part) in (1..).zip(listed) {
            if part.part_number != i32::try_from(number).ok() {
                return Err(s3_error!(InvalidPartOrder));
            }
            let key = (upload_id.to_owned(), part.part_number.unwrap_or_default());
            let stored = parts.get(&key).filter(|stored| stored.e_tag == part.e_tag);
            match stored {
                None => return Err(s3_error!(InvalidPart)),
                Some(stored) if number < last && stored.size < LEAST_PART => {
                    return Err(s3_error!(EntityTooSmall));
                }
                Some(_) => {}
            }
        }

        Ok(())
    }

    fn forget(&self, upload_id: &str) {
        self.parts().retain(|(id, _), _| id != upload_id);
        // An upload may be completed and aborted at once.
        _ = std::fs::remove_file(self.begun_path(upload_id));
    }

    /// The file that says what an upload is of; its age is the upload's.
    fn begun_path(&self, upload_id: &str) -> PathBuf {
        self.root.join(format!("{BEGUN}{upload_id}"))
    }

    /// The unfinished uploads of a bucket, in no order.
    fn begun(&self, bucket: &str) -> std::io::Result<Vec<Begun>> {
        let mut begun = Vec::new();
        for entry in std::fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(upload_id) = name.to_str().and_then(|name| name.strip_prefix(BEGUN)) else {
                continue;
            };

            let text = std::fs::read_to_string(entry.path())?;
            if let Some((of, key)) = text.split_once('\n')
                && of == bucket
            {
                let (key, upload_id) = (key.to_owned(), upload_id.to_owned());
                begun.push(Begun { key, upload_id, at: entry.metadata()?.modified()? });
            }
        }
        Ok(begun)
    }

    fn parts(&self) -> MutexGuard<'_, HashMap<(String, i32), Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the orders for this request.
fn orders<T>(req: &S3Request<T>) -> Orders {
    req.extensions.get().copied().unwrap_or_default()
}

/// The body as it is to be stored: checked, unchecked, or half of it.
fn take_in(
    body: Option<StreamingBlob>,
    length: Option<i64>,
    promised: Promised,
    orders: Orders,
) -> S3Result<(StreamingBlob, Verdict)> {
    let body = body.ok_or_else(|| s3_error!(IncompleteBody))?;
    if !orders.store_half {
        return Ok(Intake::checked(body, promised));
    }
    let length = length.and_then(|length| u64::try_from(length).ok());
    let length = length.ok_or_else(|| s3_error!(MissingContentLength))?;
    Ok(Intake::shortened(body, length / 2))
}

/// The refusal of a body that broke its promise, in place of the failure it caused.
fn judged<T>(result: S3Result<T>, verdict: &Verdict) -> S3Result<T> {
    result.map_err(|err| if verdict.is_broken_promise() { bad_digest() } else { err })
}

fn bad_digest() -> S3Error {
    s3_error!(BadDigest, "The checksum you specified did not match what we received.")
}

/// The checksums of an input. Where they do not count they are taken away, or s3s-fs would compare
/// and keep them.
macro_rules! promised {
    ($input:expr, $orders:expr) => {{
        if $orders.ignore_checksums || $orders.store_half {
            $input.checksum_algorithm = None;
            $input.checksum_crc32 = None;
            $input.checksum_crc32c = None;
            $input.checksum_crc64nvme = None;
            $input.checksum_sha1 = None;
            $input.checksum_sha256 = None;
            $input.content_md5 = None;
        }
        Promised {
            checksum: Checksum {
                checksum_crc32: $input.checksum_crc32.clone(),
                checksum_crc32c: $input.checksum_crc32c.clone(),
                checksum_crc64nvme: $input.checksum_crc64nvme.clone(),
                checksum_sha1: $input.checksum_sha1.clone(),
                checksum_sha256: $input.checksum_sha256.clone(),
                checksum_type: None,
            },
            md5: $input.content_md5.clone(),
        }
    }};
}

#[async_trait::async_trait]
impl S3 for Store {
    async fn put_object(
        &self,
        mut req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let orders = orders(&req);
        let input = &mut req.input;
        let promised = promised!(input, orders);
        let (body, verdict) = take_in(input.body.take(), input.content_length, promised, orders)?;
        input.body = Some(body);
        judged(self.fs.put_object(req).await, &verdict)
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
        let created = self.fs.create_multipart_upload(req).await?;
        if let Some(upload_id) = &created.output.upload_id {
            std::fs::write(self.begun_path(upload_id), format!("{bucket}\n{key}"))
                .map_err(S3Error::internal_error)?;
        }
        Ok(created)
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = req.input;
        let prefix = input.prefix.unwrap_or_default();
        let after = (input.key_marker.unwrap_or_default(), input.upload_id_marker);

        let mut begun = self.begun(&input.bucket).map_err(S3Error::internal_error)?;
        begun.retain(|upload| upload.key.starts_with(&prefix) && upload.is_after(&after));
        begun.sort_by(|a, b| (&a.key, &a.upload_id).cmp(&(&b.key, &b.upload_id)));

        let is_truncated = begun.len() > UPLOADS_PAGE;
        begun.truncate(UPLOADS_PAGE);
        let last = begun.last().filter(|_| is_truncated);
        Ok(S3Response::new(ListMultipartUploadsOutput {
            is_truncated: Some(is_truncated),
            next_key_marker: last.map(|last| last.key.clone()),
            next_upload_id_marker: last.map(|last| last.upload_id.clone()),
            uploads: Some(begun.into_iter().map(Begun::listed).collect()),
            ..ListMultipartUploadsOutput::default()
        }))
    }

    async fn upload_part(
        &self,
        mut req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let orders = orders(&req);
        let input = &mut req.input;
        self.check_upload(&input.upload_id)?;
        let (upload_id, number) = (input.upload_id.clone(), input.part_number);
        let promised = promised!(input, orders);
        let checksum = promised.checksum.clone();

        let (body, verdict) = take_in(input.body.take(), input.content_length, promised, orders)?;
        input.body = Some(body);

        let mut stored = judged(self.fs.upload_part(req).await, &verdict)?;
        let path = self.root.join(format!(".upload_id-{upload_id}.part-{number}"));
        let size = std::fs::metadata(path).map_err(S3Error::internal_error)?.len();

        let part = Part { e_tag: stored.output.e_tag.clone(), size };
        self.parts().insert((upload_id, number), part);
        stored.output.checksum_crc32 = checksum.checksum_crc32;
        stored.output.checksum_crc32c = checksum.checksum_crc32c;
        stored.output.checksum_crc64nvme = checksum.checksum_crc64nvme;
        stored.output.checksum_sha1 = checksum.checksum_sha1;

        stored.output.checksum_sha256 = checksum.checksum_sha256;
        Ok(stored)
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let upload_id = req.input.upload_id.clone();
        self.check_upload(&upload_id)?;
        let listed = req.input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_deref());
        self.check_parts(&upload_id, listed.unwrap_or_default())?;
        let completed = self.fs.complete_multipart_upload(req).await?;
        self.forget(&upload_id);
        Ok(completed)
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let upload_id = req.input.upload_id.clone();
        self.check_upload(&upload_id)?;
        let aborted = self.fs.abort_multipart_upload(req).await?;
        self.forget(&upload_id);
        Ok(aborted)
    }

    async fn list_parts(
        &self,
        req: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        self.check_upload(&req.input.upload_id)?;
        self.fs.list_parts(req).await
    }

    async fn get_object(
        &self,
        mut req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = &mut req.input;
        if self.is_directory(&input.bucket, &input.key) {
            return Err(s3_error!(NoSuchKey));
        }
        if let Some(Range::Suffix { length }) = input.range
            && let Ok(found) = std::fs::metadata(self.object_path(&input.bucket, &input.key))
            && length > found.len()
        {
            input.range = Some(Range::Suffix { length: found.len() });
        }

        let mut found = self.fs.get_object(req).await?;
        found.output.content_type.get_or_insert_with(|| UNTYPED.to_owned());
        Ok(found)
    }

    async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = &req.input;
        if self.is_directory(&input.bucket, &input.key) {
            return Err(s3_error!(NoSuchKey));
        }
        let content_type = input.response_content_type.clone();
        let content_disposition = input.response_content_disposition.clone();
        let mut found = self.fs.head_object(req).await?;

        let output = &mut found.output;
        output.content_type =
            content_type.or(output.content_type.take()).or(Some(UNTYPED.to_owned()));
        output.content_disposition = content_disposition.or(output.content_disposition.take());

        Ok(found)
    }

    async fn copy_object(
        &self,
        req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        self.fs.copy_object(req).await
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        if self.is_directory(&req.input.bucket, &req.input.key) {
            return Ok(S3Response::new(DeleteObjectOutput::default()));
        }
        self.fs.delete_object(req).await
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        self.fs.delete_objects(req).await
    }

    async fn list_objects(
        &self,
        req: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        self.fs.list_objects(req).await
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.fs.list_objects_v2(req).await
    }

    async fn head_bucket(
        &self,
        req: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.fs.head_bucket(req).await
    }

    async fn get_bucket_location(
        &self,
        req: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.fs.get_bucket_location(req).await
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use s3s::dto::CompletedMultipartUpload;

    use super::*;

    fn request<T>(input: T) -> S3Request<T> {
        S3Request {
            input,
            method: Method::POST,
            uri: http::Uri::default(),
            headers: http::HeaderMap::default(),
            extensions: http::Extensions::default(),
            credentials: None,
            region: None,
            service: None,
            trailing_headers: None,
        }
    }

    async fn begin(store: &Store) -> String {
        let input = CreateMultipartUploadInput {
            bucket: "files".to_owned(),
            key: "a".to_owned(),
            ..CreateMultipartUploadInput::default()
        };
        let created = store.create_multipart_upload(request(input)).await.unwrap();
        created.output.upload_id.unwrap()
    }

    async fn upload(store: &Store, upload_id: &str, number: i32) -> CompletedPart {
        let input = UploadPartInput {
            bucket: "files".to_owned(),
            key: "a".to_owned(),
            upload_id: upload_id.to_owned(),
            part_number: number,
            body: Some(s3s::Body::from(format!("part {number}")).into()),
            ..UploadPartInput::default()
        };

        let stored = store.upload_part(request(input)).await.unwrap();
        CompletedPart {
            e_tag: stored.output.e_tag,
            part_number: Some(number),
            ..CompletedPart::default()
        }
    }

    /// The code of the refusal, or none.
    async fn complete(store: &Store, upload_id: &str, parts: &[&CompletedPart]) -> Option<String> {
        let parts = parts.iter().copied().cloned().collect();
        let input = CompleteMultipartUploadInput {
            bucket: "files".to_owned(),
            key: "a".to_owned(),
            upload_id: upload_id.to_owned(),
            multipart_upload: Some(CompletedMultipartUpload { parts: Some(parts) }),
            ..CompleteMultipartUploadInput::default()
        };
        let refused = store.complete_multipart_upload(request(input)).await.err()?;
        Some(refused.code().as_str().to_owned())
    }

    #[tokio::test]
    async fn a_refused_completion_changes_nothing_and_a_second_one_finds_no_upload() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        let store = Store::new(dir.path());
        let upload_id = begin(&store).await;
        let first = upload(&store, &upload_id, 1).await;
        let second = upload(&store, &upload_id, 2).await;
        let foreign = CompletedPart { part_number: Some(1), ..second.clone() };

        for (parts, code) in [
            (vec![&first, &second], "EntityTooSmall"),
            (vec![&second, &first], "InvalidPartOrder"),
            (vec![&foreign], "InvalidPart"),
            (vec![], "InvalidPart"),
        ] {
            assert_eq!(complete(&store, &upload_id, &parts).await.as_deref(), Some(code));
            assert_eq!(Store::unfinished_uploads(dir.path()), 1, "{code}");
        }

        assert_eq!(complete(&store, &upload_id, &[&first]).await, None);
        assert_eq!(std::fs::read(dir.path().join("files/a")).unwrap(), b"part 1");
        assert_eq!(Store::unfinished_uploads(dir.path()), 0);
        assert_eq!(complete(&store, &upload_id, &[&first]).await.as_deref(), Some("NoSuchUpload"));
    }
}
