//! The replies of refusals and failures: one for each status, with its codes from the reference's table.

use filestore_core::api::Problem;
use serde_json::{Map, Value, json};

use crate::schemas::{Schemas, reply};

const REFERENCE: &str = include_str!("../../docs/reference/errors.md");

/// The statuses of problem documents, and the names of their components.
const STATUSES: &[(u16, &str)] = &[
    (400, "BadRequest"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (408, "RequestTimeout"),
    (409, "Conflict"),
    (410, "Gone"),
    (411, "LengthRequired"),
    (412, "PreconditionFailed"),
    (413, "ContentTooLarge"),
    (415, "UnsupportedMediaType"),
    (416, "RangeNotSatisfiable"),
    (421, "MisdirectedRequest"),
    (422, "UnprocessableContent"),
    (429, "TooManyRequests"),
    (460, "ChecksumMismatch"),
    (500, "InternalServerError"),
    (502, "BadGateway"),
    (503, "ServiceUnavailable"),
    (507, "InsufficientStorage"),
];

/// Builds `components.responses`. Statuses without a code in the reference have none.
pub(crate) fn responses(schemas: &mut Schemas) -> Value {
    let schema = reply::<Problem>(schemas);
    let described = STATUSES.iter().filter_map(|(status, name)| {
        let codes = codes_of(*status);
        (!codes.is_empty()).then(|| ((*name).to_owned(), response(*status, &codes, &schema)))
    });
    Value::Object(described.collect())
}

/// Refers to the component of a status; `None` if no code of the reference has the status.
pub(crate) fn reference(status: u16) -> Option<Value> {
    let (_, name) = STATUSES
        .iter()
        .find(|(known, _)| *known == status)
        .unwrap_or_else(|| panic!("{status} is no status of a problem"));
    let exists = !codes_of(status).is_empty();
    exists.then(|| json!({ "$ref": format!("#/components/responses/{name}") }))
}

/// Reads the codes of a status and their meanings from the table of errors.
fn codes_of(status: u16) -> Vec<(String, String)> {
    let rows = REFERENCE.lines().filter_map(|line| line.strip_prefix(&format!("| {status} | `")));
    let columns = rows.map(|row| row.split(" | ").map(str::to_owned).collect::<Vec<_>>());
    columns.map(|row| (row[0].trim_end_matches('`').to_owned(), row[1].clone())).collect()
}

fn response(status: u16, codes: &[(String, String)], schema: &Value) -> Value {
    let meanings = codes.iter().map(|(code, meaning)| format!("- `{code}`: {meaning}"));
    json!({
        "description": meanings.collect::<Vec<_>>().join("\n"),
        "headers": headers(status),
        "content": { "application/problem+json": { "schema": schema } },
    })
}

fn headers(status: u16) -> Map<String, Value> {
    let own = match status {
        401 => Some("WWW-Authenticate"),
        416 => Some("Content-Range"),
        429 | 503 => Some("Retry-After"),
        _ => None,
    };
    let names = ["X-Request-Id"].into_iter().chain(own);
    names.map(|name| (name.to_owned(), header(name))).collect()
}

/// Refers to the component of a header.
pub(crate) fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{}", name.replace('-', "")) })
}
