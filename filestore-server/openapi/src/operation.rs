//! One operation: a method on a path, with its parameters, body and replies.

use serde_json::{Map, Value, json};

use crate::problems::{self, header};
use crate::schemas::{SchemaOf, Schemas};
use crate::shared;

/// The operations of one kind of resource.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) operations: Vec<Operation>,
}

/// The right that a caller must have. The server's tests compare it with the table of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// None, even where there are keys.
    Nothing,
    /// A key, whatever its scopes are.
    Key,
    /// A key with this scope.
    Scope(&'static str),
    /// A key with the scope `admin` for all organizations.
    ServiceAdmin,
}

/// A key with the scope `read`.
pub(crate) const READ: Need = Need::Scope("read");
/// A key with the scope `write`.
pub(crate) const WRITE: Need = Need::Scope("write");
/// A key with the scope `delete`.
pub(crate) const DELETE: Need = Need::Scope("delete");

/// An operation under description.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    id: &'static str,
    need: Need,
    summary: &'static str,
    description: &'static str,
    parameters: Vec<Value>,
    body: Option<Body>,
    replies: Vec<Reply>,
    refusals: Vec<u16>,
}

enum Body {
    Form(Value),
    Json {
        schema: SchemaOf,
        required: bool,
    },
    /// A JSON merge patch, which may come as plain JSON.
    MergePatch(Value),
    /// Bytes of a resumable upload.
    Bytes,
}

struct Reply {
    status: u16,
    description: &'static str,
    headers: Vec<&'static str>,
    content: Content,
}

enum Content {
    Nothing,
    Json(SchemaOf),
    JsonArray(SchemaOf),
    /// Bytes of one of these media types.
    Bytes(&'static [&'static str]),
    /// Bytes of this media type, or a JSON document for a client that asks for JSON.
    BytesOrJson(&'static str, SchemaOf),
}

impl Operation {
    pub(crate) fn get(path: &'static str, id: &'static str, need: Need) -> Self {
        Self::new("get", path, id, need)
    }

    pub(crate) fn post(path: &'static str, id: &'static str, need: Need) -> Self {
        Self::new("post", path, id, need)
    }

    pub(crate) fn put(path: &'static str, id: &'static str, need: Need) -> Self {
        Self::new("put", path, id, need)
    }

    pub(crate) fn patch(path: &'static str, id: &'static str, need: Need) -> Self {
        Self::new("patch", path, id, need)
    }

    pub(crate) fn delete(path: &'static str, id: &'static str, need: Need) -> Self {
        Self::new("delete", path, id, need)
    }

    fn new(method: &'static str, path: &'static str, id: &'static str, need: Need) -> Self {
        let parameters: Vec<_> = segments(path).map(shared::path_parameter).collect();
        // Every request may have no single Host, a Host of others, or come too early or too often.
        let mut refusals = vec![400, 421, 429, 500, 503];
        if need != Need::Nothing {
            refusals.extend([401, 403]);
        }
        if !parameters.is_empty() {
            refusals.push(404);
        }

        Self {
            method,
            path,
            id,
            need,
            summary: "",
            description: "",
            parameters,
            body: None,
            replies: Vec::new(),
            refusals,
        }
    }

    /// Sets the summary and the description.
    pub(crate) fn says(mut self, summary: &'static str, description: &'static str) -> Self {
        (self.summary, self.description) = (summary, description);
        self
    }

    /// Takes shared parameters, by their names.
    pub(crate) fn takes<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.parameters.extend(names.map(shared::parameter));
        self
    }

    /// Takes parameters of its own.
    pub(crate) fn asks<const N: usize>(mut self, parameters: [Value; N]) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// Takes a multipart form.
    pub(crate) fn form(self, schema: Value) -> Self {
        self.with_body(Body::Form(schema))
    }

    /// Takes a JSON document.
    pub(crate) fn json(self, schema: SchemaOf) -> Self {
        self.with_body(Body::Json { schema, required: true })
    }

    /// Takes a JSON document, which may be left out.
    pub(crate) fn optional_json(self, schema: SchemaOf) -> Self {
        self.with_body(Body::Json { schema, required: false })
    }

    /// Takes a JSON merge patch (RFC 7396).
    pub(crate) fn merge_patch(self, schema: Value) -> Self {
        self.with_body(Body::MergePatch(schema))
    }

    /// Takes bytes of a resumable upload.
    pub(crate) fn bytes(self) -> Self {
        self.with_body(Body::Bytes)
    }

    fn with_body(mut self, body: Body) -> Self {
        self.body = Some(body);
        self.refusals.extend([408, 413, 415]);
        self
    }

    /// Replies with a JSON document.
    pub(crate) fn replies(self, status: u16, description: &'static str, schema: SchemaOf) -> Self {
        self.with_reply(status, description, Content::Json(schema))
    }

    /// Replies with an array of JSON documents.
    pub(crate) fn replies_all(
        self,
        status: u16,
        description: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.with_reply(status, description, Content::JsonArray(schema))
    }

    /// Replies with bytes.
    pub(crate) fn replies_bytes(
        self,
        status: u16,
        description: &'static str,
        types: &'static [&'static str],
    ) -> Self {
        self.with_reply(status, description, Content::Bytes(types))
    }

    /// Replies with bytes, or with a JSON document for a client that asks for JSON.
    pub(crate) fn replies_bytes_or_json(
        self,
        status: u16,
        description: &'static str,
        kind: &'static str,
        schema: SchemaOf,
    ) -> Self {
        self.with_reply(status, description, Content::BytesOrJson(kind, schema))
    }

    /// Replies without a body.
    pub(crate) fn replies_nothing(self, status: u16, description: &'static str) -> Self {
        self.with_reply(status, description, Content::Nothing)
    }

    fn with_reply(mut self, status: u16, description: &'static str, content: Content) -> Self {
        self.replies.push(Reply { status, description, headers: vec!["X-Request-Id"], content });
        self
    }

    /// Adds headers to the reply that was described last.
    pub(crate) fn with<const N: usize>(mut self, headers: [&'static str; N]) -> Self {
        self.replies.last_mut().expect("a reply before its headers").headers.extend(headers);
        self
    }

    /// Adds statuses of refusals to those that every such operation has.
    pub(crate) fn refuses<const N: usize>(mut self, statuses: [u16; N]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// Builds the operation's object.
    pub(crate) fn into_value(self, tag: &str, schemas: &mut Schemas) -> Value {
        assert!(!self.summary.is_empty(), "{} says nothing", self.id);
        let mut value = json!({
            "operationId": self.id,
            "tags": [tag],
            "summary": self.summary,
            "description": with_need(self.description, self.need),
            "security": security(self.need),
            "responses": responses(self.replies, self.refusals, schemas),
        });

        if !self.parameters.is_empty() {
            value["parameters"] = self.parameters.into();
        }
        if let Some(body) = self.body {
            value["requestBody"] = body.into_value(schemas);
        }
        value
    }
}

/// Returns the names in braces.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn with_need(description: &str, need: Need) -> String {
    let needs = match need {
        Need::Nothing => "Needs no key.".to_owned(),
        Need::Key => "Needs a key.".to_owned(),
        Need::Scope(scope) => format!("Needs the scope `{scope}`."),
        Need::ServiceAdmin => "Needs the scope `admin` for all organizations.".to_owned(),
    };
    format!("{description}\n\n{needs}").trim().to_owned()
}

/// Names the scope as a role (OpenAPI 3.1, Security Requirement Object).
fn security(need: Need) -> Value {
    match need {
        Need::Nothing => json!([]),
        Need::Key => json!([{ "key": [] }]),
        Need::Scope(scope) => json!([{ "key": [scope] }]),
        Need::ServiceAdmin => json!([{ "key": ["admin:*"] }]),
    }
}

fn responses(replies: Vec<Reply>, mut refusals: Vec<u16>, schemas: &mut Schemas) -> Value {
    let mut all = Map::new();
    for reply in replies {
        all.insert(reply.status.to_string(), reply.into_value(schemas));
    }

    refusals.sort_unstable();
    refusals.dedup();
    for status in refusals {
        if let Some(problem) = problems::reference(status) {
            all.entry(status.to_string()).or_insert(problem);
        }
    }
    Value::Object(all)
}

impl Reply {
    fn into_value(self, schemas: &mut Schemas) -> Value {
        let headers: Map<_, _> =
            self.headers.iter().map(|name| ((*name).to_owned(), header(name))).collect();
        let mut value = json!({ "description": self.description, "headers": headers });

        match self.content {
            Content::Nothing => {}
            Content::Json(schema) => value["content"] = json_of(schema(schemas)),
            Content::JsonArray(schema) => {
                value["content"] = json_of(json!({ "type": "array", "items": schema(schemas) }));
            }
            Content::Bytes(types) => {
                let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
                let types = types.iter().map(|kind| ((*kind).to_owned(), bytes.clone()));
                value["content"] = Value::Object(types.collect());
            }
            Content::BytesOrJson(kind, schema) => {
                value["content"] = json_of(schema(schemas));
                value["content"][kind] =
                    json!({ "schema": { "type": "string", "format": "binary" } });
            }
        }
        value
    }
}

impl Body {
    fn into_value(self, schemas: &mut Schemas) -> Value {
        match self {
            Self::Form(schema) => {
                json!({ "required": true, "content": { "multipart/form-data": { "schema": schema } } })
            }
            Self::Json { schema, required } => {
                json!({ "required": required, "content": json_of(schema(schemas)) })
            }
            Self::Bytes => {
                let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
                json!({
                    "required": false,
                    "content": {
                        "application/offset+octet-stream": bytes,
                        "application/partial-upload": bytes,
                    },
                })
            }
            Self::MergePatch(schema) => {
                let media = json!({ "schema": schema });
                json!({
                    "required": true,
                    "content": { "application/merge-patch+json": media, "application/json": media },
                })
            }
        }
    }
}

fn json_of(schema: Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}
