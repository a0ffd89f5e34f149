//! POST /files/{fileId}/sign and POST /files/sign-upload: create URLs that work without a key.

use std::sync::Arc;

use filestore_core::Error;
use filestore_core::api::{SignRequest, SignUploadRequest, SignedUrlReply};
use filestore_core::signing::{SignFile, SignUpload, SignedUrl};
use warp::Filter;
use warp::reply::Response;

use super::super::path::IdSegment;
use crate::error;
use crate::reply::{self, Failure};
use crate::request::call::Call;
use crate::request::incoming::Body;
use crate::request::json::{read_json, read_optional_json};
use crate::request::object::{Object, required};
use crate::routes::filters::{RouteFilter, any_of, post, post_at};

const FILE_KEYS: [&str; 7] =
    ["size", "fit", "animated", "disposition", "cache", "redirect", "expires_in_s"];

const UPLOAD_KEYS: [&str; 8] = [
    "organization_id",
    "sub_system",
    "max_size",
    "mime_type",
    "upload_temp",
    "resumable",
    "expires_in_s",
    "count",
];

/// Builds `/files/{fileId}/sign` and `/files/sign-upload`.
pub(crate) fn routes() -> RouteFilter {
    let file = post_at(warp::path!("files" / IdSegment / "sign"), sign);
    let upload = warp::path!("files" / "sign-upload").and(post(sign_upload));
    any_of([file, upload.boxed()])
}

async fn sign(call: Arc<Call>, id: IdSegment, body: Body) -> Result<Response, Failure> {
    let json = read_optional_json(&call, body).await?;
    let request = json.as_deref().map_or(Ok(SignRequest::default()), file_request)?;
    let mut request = SignFile::try_from(&request)?;
    request.key = call.caller.key();
    let scope = call.recheck().await?;
    let url = call.store().scoped(&scope).sign(id.id()?, &request).await?;
    reply_with_url(&call, &url)
}

fn file_request(json: &[u8]) -> error::Result<SignRequest> {
    let object = Object::parse(json, &FILE_KEYS)?;
    let mut request = SignRequest::default();
    request.size = object.count("size")?.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    request.fit = object.word("fit", filestore_core::api::Fit::ALL, |fit| fit.as_str())?;
    request.animated = object.flag("animated")?;
    request.disposition =
        object.word("disposition", filestore_core::api::Disposition::ALL, |how| how.as_str())?;
    request.cache = object.word("cache", filestore_core::api::UrlCache::ALL, |how| how.as_str())?;
    request.redirect = object.flag("redirect")?;
    request.expires_in_s = object.count("expires_in_s")?;
    Ok(request)
}

async fn sign_upload(call: Arc<Call>, body: Body) -> Result<Response, Failure> {
    let asked = upload_request(&read_json(&call, body).await?)?;
    let mut request = SignUpload::try_from(&asked)?;
    request.key = call.caller.key();
    call.recheck().await?.check(&request.organization_id)?;
    let Some(count) = asked.count else {
        let url = call.store().signing().upload(&request).await?;
        return reply_with_url(&call, &url);
    };
    let urls = call.store().signing().uploads(&request, count as usize).await?;
    call.report("count", count);
    reply_with_urls(&call, &urls)
}

fn upload_request(json: &[u8]) -> error::Result<SignUploadRequest> {
    let object = Object::parse(json, &UPLOAD_KEYS)?;
    let organization_id = required("organization_id", object.text("organization_id")?)?;
    let sub_system = required("sub_system", object.text("sub_system")?)?;

    let mut request = SignUploadRequest::new(organization_id, sub_system);
    request.max_size = object.count("max_size")?;
    request.mime_type = object.text("mime_type")?;
    request.upload_temp = object.flag("upload_temp")?;
    request.resumable = object.flag("resumable")?;
    request.expires_in_s = object.count("expires_in_s")?;
    request.count = object.count("count")?.map(|urls| u32::try_from(urls).unwrap_or(u32::MAX));
    Ok(request)
}

fn reply_with_urls(call: &Call, urls: &[SignedUrl]) -> Result<Response, Failure> {
    let shown = urls.iter().map(|url| call.app.base.client_url(&url.path_and_query)).collect();
    let first = urls.first().ok_or_else(|| Error::internal("signing URLs", "no URL"))?;
    call.report("expires_at", first.expires_at.to_string());
    let url = call.app.base.client_url(&first.path_and_query);
    reply::ok(&SignedUrlReply::new(url, first.expires_at.to_string()).with_urls(shown))
}

fn reply_with_url(call: &Call, url: &SignedUrl) -> Result<Response, Failure> {
    call.report("expires_at", url.expires_at.to_string());
    let shown = call.app.base.client_url(&url.path_and_query);
    reply::ok(&SignedUrlReply::new(shown, url.expires_at.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_of(outcome: error::Result<impl std::fmt::Debug>) -> Option<String> {
        outcome.unwrap_err().details().field.clone()
    }

    #[test]
    fn a_file_request_is_read_strictly() {
        let full = br#"{"size": 200, "fit": "inside", "expires_in_s": 60}"#;
        let request = SignFile::try_from(&file_request(full).unwrap()).unwrap();
        assert_eq!(request.expires_in.unwrap().as_secs(), 60);
        assert!(SignFile::try_from(&file_request(b"{}").unwrap()).unwrap().variant.is_none());

        for (json, field) in [
            (r#"{"size": "200"}"#, "size"),
            (r#"{"size": -1}"#, "size"),
            (r#"{"size": 201}"#, "size"),
            (r#"{"size": 99999999999}"#, "size"),
            (r#"{"fit": "both"}"#, "fit"),
            (r#"{"fit": "cover"}"#, "fit"),
            (r#"{"animated": true}"#, "animated"),
            (r#"{"size": 200, "animated": "true"}"#, "animated"),
            (r#"{"disposition": "save"}"#, "disposition"),
            (r#"{"cache": "none"}"#, "cache"),
            (r#"{"redirect": "false"}"#, "redirect"),
            (r#"{"size": 200, "redirect": false}"#, "redirect"),
            (r#"{"expires_in_s": 1.5}"#, "expires_in_s"),
            (r#"{"expires_in": 1}"#, "expires_in"),
        ] {
            let read =
                file_request(json.as_bytes()).and_then(|read| Ok(SignFile::try_from(&read)?));
            assert_eq!(field_of(read).as_deref(), Some(field), "{json}");
        }
    }

    #[test]
    fn an_upload_request_is_read_strictly() {
        let full = br#"{"organization_id": "42", "sub_system": "docs", "max_size": 7, "mime_type": "image/png",
            "upload_temp": true, "expires_in_s": 60}"#;
        let request = SignUpload::try_from(&upload_request(full).unwrap()).unwrap();
        assert_eq!((request.max_size, request.temp), (Some(7), true));

        for (json, field) in [
            (r#"{"sub_system": "docs"}"#, "organization_id"),
            (r#"{"organization_id": "42"}"#, "sub_system"),
            (r#"{"organization_id": 42, "sub_system": "docs"}"#, "organization_id"),
            (r#"{"organization_id": "042", "sub_system": "docs"}"#, "organization_id"),
            (r#"{"organization_id": "42", "sub_system": ".."}"#, "sub_system"),
            (r#"{"organization_id": "42", "sub_system": "docs", "max_size": -1}"#, "max_size"),
            (r#"{"organization_id": "42", "sub_system": "docs", "upload_temp": 1}"#, "upload_temp"),
            (r#"{"organization_id": "42", "sub_system": "docs", "resumable": 1}"#, "resumable"),
        ] {
            let read =
                upload_request(json.as_bytes()).and_then(|read| Ok(SignUpload::try_from(&read)?));
            assert_eq!(field_of(read).as_deref(), Some(field), "{json}");
        }
    }
}
