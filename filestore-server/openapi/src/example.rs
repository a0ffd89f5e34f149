//! The call of an operation with curl.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::page::{escaped, members, resolved, text};

/// The address in the examples. The script of the page shows the address of the page instead.
const BASE: &str = "http://127.0.0.1:8080/api/v1";

/// The length up to which an example stays on one line.
const LINE: usize = 76;

/// The optional parameters and fields without which a call changes nothing, or is refused.
const ALSO: [(&str, &[&str]); 7] = [
    ("appendUpload", &["Tus-Resumable", "Upload-Offset"]),
    ("changeFile", &["make_as_ready"]),
    ("createUpload", &["Tus-Resumable", "Upload-Length", "organization_id", "sub_system"]),
    ("editFile", &["original_name"]),
    ("overrideUpload", &["X-HTTP-Method-Override"]),
    ("restoreFromSnapshot", &["file_id"]),
    ("updateBinding", &["storageProvider"]),
];

/// Writes the example of an operation as HTML.
pub(crate) fn of(document: &Value, method: &str, path: &str, operation: &Value) -> String {
    let also = ALSO.iter().find(|(id, _)| operation["operationId"] == *id);
    let call = Call {
        document,
        method,
        operation,
        also: also.map_or(&[] as &[&str], |(_, names)| *names),
    };
    let words = call.words(path);
    let line = words.join(" ");
    let shown = if line.len() > LINE { words.join(" \\\n    ") } else { line };
    let base = format!("<span class=\"base\">{BASE}</span>");
    format!("<pre><code>{}</code></pre>\n", escaped(&shown).replace(BASE, &base))
}

struct Call<'a> {
    document: &'a Value,
    method: &'a str,
    operation: &'a Value,
    /// The names of the optional parameters and fields to show.
    also: &'static [&'static str],
}

impl Call<'_> {
    /// Returns the command, an option with its value as one word.
    fn words(&self, path: &str) -> Vec<String> {
        let body = self.body();
        let mut words = vec!["curl".to_owned()];
        if self.method != "get" && (self.method != "post" || body.is_empty()) {
            words.push(format!("-X {}", self.method.to_uppercase()));
        }
        if self.operation["responses"].get("302").is_some() {
            words.push("-L".to_owned());
        }
        if self.returns_bytes() {
            words.push("-o FILE".to_owned());
        }
        if self.operation["security"].as_array().is_some_and(|needs| !needs.is_empty()) {
            words.push("-H \"Authorization: Bearer $KEY\"".to_owned());
        }

        let headers = self.parameters("header").into_iter();
        words.extend(headers.map(|(name, value)| header(&name, &value)));
        words.extend(body);
        words.push(self.address(path));
        words
    }

    fn returns_bytes(&self) -> bool {
        let mut content = members(&self.operation["responses"]["200"]["content"]);
        let is_binary = |media: &str| media == "*/*" || media.starts_with("image/");
        content.any(|(media, _)| is_binary(media))
    }

    /// Returns the parameters to show in one place of the request, with their values.
    fn parameters(&self, place: &str) -> Vec<(String, String)> {
        let all = self.operation["parameters"].as_array().into_iter().flatten();
        let all = all.map(|parameter| resolved(self.document, parameter));
        let here = all.filter(|parameter| parameter["in"] == place);
        let shown = here.filter(|parameter| {
            parameter["required"] == true || self.also.iter().any(|also| parameter["name"] == *also)
        });
        let named = shown.map(|parameter| (text(&parameter["name"]), &parameter["schema"]));
        named.map(|(name, schema)| (name.to_owned(), plain(&value(name, schema)))).collect()
    }

    fn address(&self, path: &str) -> String {
        let mut address = format!("{BASE}{path}");
        for (name, value) in self.parameters("path") {
            address = address.replace(&format!("{{{name}}}"), &value);
        }
        for (number, (name, value)) in self.parameters("query").into_iter().enumerate() {
            let mark = if number == 0 { '?' } else { '&' };
            let _ = write!(address, "{mark}{name}={value}");
        }
        quoted(&address)
    }

    /// Returns the options that send the body. Leaves out a body that says nothing.
    fn body(&self) -> Vec<String> {
        let body = &self.operation["requestBody"];
        let content = &body["content"];
        if let Some(form) = content.get("multipart/form-data") {
            let fields = self.fields(&form["schema"]);
            let fields =
                fields.into_iter().map(|(name, value)| format!("{name}={}", plain(&value)));
            return fields.map(|field| format!("-F {}", quoted(&field))).collect();
        }
        if let Some(json) = content.get("application/json") {
            let fields = self.fields(&json["schema"]);
            if fields.is_empty() && body["required"] != true {
                return Vec::new();
            }
            let json = Value::Object(fields.into_iter().collect()).to_string();
            return vec![
                header("Content-Type", "application/json"),
                format!("-d {}", quoted(&json)),
            ];
        }
        // Only an appending request cannot do without bytes.
        match members(content).next().filter(|_| self.method == "patch") {
            Some((media, _)) => {
                vec![header("Content-Type", media), "--data-binary @FILE".to_owned()]
            }
            None => Vec::new(),
        }
    }

    /// Returns the fields of a body to show, in the order in which to send them.
    fn fields(&self, schema: &Value) -> Vec<(String, Value)> {
        let schema = resolved(self.document, schema);
        let required = schema["required"].as_array().into_iter().flatten().map(text);
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let parts: Vec<_> =
            parts.map(|part| resolved(self.document, part)).chain([schema]).collect();
        let of_name = |name: &str| parts.iter().find_map(|part| part["properties"].get(name));

        let names = required.chain(self.also.iter().copied());
        let fields = names.filter_map(|name| Some((name.to_owned(), value(name, of_name(name)?))));
        fields.collect()
    }
}

/// Chooses a value: a usual one for names that many operations share, otherwise one that the schema allows, otherwise
/// the name in capital letters, for the reader to replace.
fn value(name: &str, schema: &Value) -> Value {
    match name {
        // Not the organization of the path: a pasted example must erase nothing.
        "confirm" => return json!("ORGANIZATION_ID"),
        "organization_id" => return json!("42"),
        "organizationId" => return json!(42),
        "organizationName" => return json!("Example"),
        "organizations" => return json!(["42"]),
        "sub_system" => return json!("docs"),
        "code" | "storageProvider" | "to" => return json!("s3-eu"),
        "original_name" => return json!("invoice.pdf"),
        "keep" => return json!(7),
        "ids" => return json!(["FILE_ID"]),
        "Upload-Length" => return json!("SIZE"),
        "X-HTTP-Method-Override" => return json!("DELETE"),
        _ => {}
    }

    if let Some(first) = ["examples", "enum"].iter().find_map(|key| schema[key].get(0)) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("array") => json!([value(name, &schema["items"])]),
        _ if schema["format"] == "binary" => json!("@FILE"),
        _ => json!(name.to_uppercase()),
    }
}

/// Writes a value as it is in a form, a query or a header.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn header(name: &str, value: &str) -> String {
    format!("-H {}", quoted(&format!("{name}: {value}")))
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._=@-".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
