//! Uploads, batches and changes, spelled as sentences.
//!
//! ```no_run
//! # async fn run() {
//! use filestore_workspace::TestServer;
//!
//! let server = TestServer::start().await;
//! let record = server.upload(b"hello").name("hello.txt").org("acme").ok().await;
//! server.change(&record.file_id).file(b"hello again").send().await.expect(200);
//! # }
//! ```

use filestore_core::api::FileRecord;
use reqwest::Method;
use serde_json::Value;

use crate::call::{Call, Reply};
use crate::form::Form;
use crate::server::TestServer;

/// An upload that is not sent yet. Organization `acme` and sub system `gallery` unless said.
#[derive(Debug, Clone)]
#[must_use = "an upload does nothing until it is sent"]
pub struct UploadCall<'a> {
    server: &'a TestServer,
    bytes: Vec<u8>,
    organization_id: String,
    sub_system: String,
    file_name: String,
    content_type: String,
    fields: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl TestServer {
    /// An upload of `bytes`.
    pub fn upload(&self, bytes: impl AsRef<[u8]>) -> UploadCall<'_> {
        UploadCall {
            server: self,
            bytes: bytes.as_ref().to_vec(),
            organization_id: "acme".into(),
            sub_system: "gallery".into(),
            file_name: String::new(),
            content_type: "application/octet-stream".into(),
            fields: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// A batch without items yet.
    pub fn batch(&self) -> BatchCall<'_> {
        self.batch_of("acme")
    }

    /// A batch of that organization.
    pub fn batch_of(&self, organization_id: &str) -> BatchCall<'_> {
        BatchCall {
            server: self,
            form: Form::new()
                .text("organization_id", organization_id)
                .text("sub_system", "gallery"),
            items: 0,
            headers: Vec::new(),
        }
    }

    /// A change of a file (PUT `/files/upload`).
    pub fn change(&self, file_id: &str) -> ChangeCall<'_> {
        ChangeCall { server: self, form: Form::new().text("file_id", file_id), headers: Vec::new() }
    }

    /// An edit of a file by a merge patch (PATCH `/files/{fileId}`).
    pub fn edit(&self, file_id: &str, patch: &Value) -> Call {
        let call = self.call(Method::PATCH, &format!("/api/v1/files/{file_id}"));
        call.body("application/merge-patch+json", patch.to_string())
    }
}

impl UploadCall<'_> {
    /// Names the organization.
    pub fn org(mut self, organization_id: &str) -> Self {
        self.organization_id = organization_id.into();
        self
    }

    /// Gives the sub system.
    pub fn sub_system(mut self, sub_system: &str) -> Self {
        self.sub_system = sub_system.into();
        self
    }

    /// Sets the `original_name` field.
    pub fn name(self, name: &str) -> Self {
        self.field("original_name", name)
    }

    /// Sets the `mime_type` field.
    pub fn mime(self, mime: &str) -> Self {
        self.field("mime_type", mime)
    }

    /// Makes it a TEMP file.
    pub fn temp(self) -> Self {
        self.field("upload_temp", "true")
    }

    /// Says what the bytes must hash to.
    pub fn sha256(self, hex: &str) -> Self {
        self.field("sha256", hex)
    }

    /// Names the part's file, as a browser does.
    pub fn part_name(mut self, file_name: &str) -> Self {
        self.file_name = file_name.into();
        self
    }

    /// Gives the part's Content-Type.
    pub fn part_type(mut self, content_type: &str) -> Self {
        self.content_type = content_type.into();
        self
    }

    /// Sets the `Idempotency-Key` header.
    pub fn key(mut self, key: &str) -> Self {
        self.headers.push(("idempotency-key".into(), key.into()));
        self
    }

    /// Adds any other field.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Sends the upload, and returns the whole reply.
    pub async fn send(self) -> Reply {
        self.call().send().await
    }

    /// The request it makes.
    pub fn call(self) -> Call {
        let mut form = Form::new()
            .text("organization_id", &self.organization_id)
            .text("sub_system", &self.sub_system);
        for (name, value) in &self.fields {
            form = form.text(name, value);
        }
        let form = form.file("file", &self.file_name, &self.content_type, &self.bytes);
        with_headers(self.server.post("/api/v1/files/upload").form(form), &self.headers)
    }

    /// Sends it, insists on 201 and returns the record.
    pub async fn ok(self) -> FileRecord {
        self.send().await.expect(201).record()
    }
}

/// A batch that is not sent yet, of sub system `gallery`.
#[derive(Debug, Clone)]
#[must_use = "a batch does nothing until it is sent"]
pub struct BatchCall<'a> {
    server: &'a TestServer,
    form: Form,
    items: usize,
    headers: Vec<(String, String)>,
}

impl BatchCall<'_> {
    /// Adds the next item, numbered from 0.
    pub fn item(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.form = self.form.bytes(&format!("items[{}].file", self.items), bytes.as_ref());
        self.items += 1;
        self
    }

    /// Adds the next item with an `original_name`.
    pub fn named(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.form = self.form.text(&format!("items[{}].original_name", self.items), name);
        self.item(bytes)
    }

    /// Adds a text field of any name.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.form = self.form.text(name, value);
        self
    }

    /// Adds a file field of any name.
    pub fn file(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.form = self.form.bytes(name, bytes.as_ref());
        self
    }

    /// Sets the `Idempotency-Key` header.
    pub fn key(mut self, key: &str) -> Self {
        self.headers.push(("idempotency-key".into(), key.into()));
        self
    }

    /// Sends the batch, and returns the whole reply.
    pub async fn send(self) -> Reply {
        with_headers(self.server.post("/api/v1/files/batch").form(self.form), &self.headers)
            .send()
            .await
    }

    /// Sends it, insists on 201 and returns the records.
    pub async fn ok(self) -> Vec<FileRecord> {
        self.send().await.expect(201).records()
    }
}

/// A change that is not sent yet.
#[derive(Debug, Clone)]
#[must_use = "a change does nothing until it is sent"]
pub struct ChangeCall<'a> {
    server: &'a TestServer,
    form: Form,
    headers: Vec<(String, String)>,
}

impl ChangeCall<'_> {
    /// Sets `make_as_thumbnail=true`.
    pub fn make_thumbnail(self) -> Self {
        self.field("make_as_thumbnail", "true")
    }

    /// Sets `make_as_ready=true`.
    pub fn make_ready(self) -> Self {
        self.field("make_as_ready", "true")
    }

    /// Adds the new bytes.
    pub fn file(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.form = self.form.bytes("file", bytes.as_ref());
        self
    }

    /// New bytes whose part has a file name.
    pub fn named_file(mut self, file_name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.form = self.form.file("file", file_name, "application/octet-stream", bytes.as_ref());
        self
    }

    /// Adds any other field.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.form = self.form.text(name, value);
        self
    }

    /// Sets the `If-Match` header.
    pub fn if_match(mut self, etag: &str) -> Self {
        self.headers.push(("if-match".into(), etag.into()));
        self
    }

    /// Sends the change, and returns the whole reply.
    pub async fn send(self) -> Reply {
        self.call().send().await
    }

    /// The request it makes.
    pub fn call(self) -> Call {
        with_headers(self.server.put("/api/v1/files/upload").form(self.form), &self.headers)
    }
}

fn with_headers(mut call: Call, headers: &[(String, String)]) -> Call {
    for (name, value) in headers {
        call = call.header(name, value);
    }
    call
}
