//! Schemas of the wire types: derived, then given the rules that a type of Rust does not say.

use filestore_core::api::{KEY_SCOPES, MAX_DELETED_AT_ONCE, VARIANT_SIZES};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};

/// A function that adds a type's schema and returns a reference to it.
pub(crate) type SchemaOf = fn(&mut Schemas) -> Value;

/// The schemas of a document, filled while its operations are described.
pub(crate) struct Schemas {
    replies: SchemaGenerator,
    requests: SchemaGenerator,
}

/// Returns the schema of a reply.
pub(crate) fn reply<T: JsonSchema>(schemas: &mut Schemas) -> Value {
    schemas.replies.subschema_for::<T>().to_value()
}

/// Returns the schema of a request.
pub(crate) fn request<T: JsonSchema>(schemas: &mut Schemas) -> Value {
    schemas.requests.subschema_for::<T>().to_value()
}

impl Schemas {
    pub(crate) fn new() -> Self {
        Self {
            replies: settings().for_serialize().into_generator(),
            requests: settings().for_deserialize().into_generator(),
        }
    }

    /// Returns all schemas by their names. Panics if a reply and a request give one name to different
    /// schemas.
    pub(crate) fn into_components(mut self) -> Value {
        let mut all = self.replies.take_definitions(true);
        all.values_mut().for_each(finish);

        for (name, mut schema) in self.requests.take_definitions(true) {
            close(&mut schema);
            finish(&mut schema);
            add_own_rules(&name, &mut schema);
            if let Some(other) = all.get(&name) {
                assert_eq!(*other, schema, "{name} is a reply and another request");
            }
            all.insert(name, schema);
        }
        Value::Object(all)
    }
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
    })
}

/// Makes the schema of a request as strict as the server: no unknown keys, and no null for absent fields.
fn close(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.contains_key("properties") {
        object.entry("additionalProperties").or_insert(json!(false));
    }

    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(serde_json::Map::values_mut) {
        refuse_null(property);
    }
}

fn refuse_null(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
    }
}

/// Adds the rules for field names to all properties, and removes details that only Rust needs.
fn finish(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        schema.as_array_mut().into_iter().flatten().for_each(finish);
        return;
    };

    // `uint64` and the like are no formats of JSON Schema or OpenAPI.
    if object.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) {
        object.remove("format");
    }
    object.remove("default");
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = without_example(text);
    }

    for (key, value) in object {
        let Some(properties) = value.as_object_mut().filter(|_| key == "properties") else {
            finish(value);
            continue;
        };
        for (name, property) in properties {
            add_rule(name, property);
            finish(property);
        }
    }
}

/// Cuts an example in Rust off.
fn without_example(text: &str) -> String {
    text.split("```").next().unwrap_or_default().trim().to_owned()
}

/// Adds the rules that every field of this name has, for example the pattern of an id.
fn add_rule(name: &str, property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    let is_text = property.get("type").is_some_and(|kind| {
        kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("string")))
    });

    if is_text && is_time(name) {
        property.insert("format".to_owned(), json!("date-time"));
    }
    let rules = match name {
        "organizationId" => json!({ "minimum": 1, "maximum": (1_i64 << 53) - 1 }),
        "organizationName" => json!({ "minLength": 1, "maxLength": 255, "pattern": NO_CONTROLS }),
        "storageProvider" | "provider_code" | "providerCode" => json!({ "pattern": PROVIDER_CODE }),
        "file_id" | "fileId" | "snapshot_id" | "destination_id" => json!({ "pattern": FILE_ID }),
        "sha256" => json!({ "pattern": SHA256 }),
        "organization_id" if is_text => json!({ "pattern": ORGANIZATION_ID }),
        "sub_system" => json!({ "pattern": SUB_SYSTEM }),
        "ids" => json!({ "minItems": 1, "maxItems": MAX_DELETED_AT_ONCE }),
        "size" => json!({ "enum": VARIANT_SIZES }),
        "expires_in_s" => json!({ "minimum": 1, "maximum": 604_800 }),
        "overlap_s" => json!({ "minimum": 0, "maximum": 2_592_000 }),
        "bytes_per_second" => json!({ "minimum": 1, "maximum": i64::MAX }),
        _ => return,
    };
    property.extend(rules.as_object().expect("an object").clone());
}

/// Gives requests and their fields the rules that hold in one request only.
fn add_own_rules(request: &str, schema: &mut Value) {
    let organization = json!({ "type": "string", "pattern": "^([*]|[A-Za-z0-9_-]{1,64})$" });
    let scope = json!({ "type": "string", "enum": KEY_SCOPES });
    let list =
        |items: Value, most: usize| json!({ "items": items, "minItems": 1, "maxItems": most });
    let rules = [
        ("CreateKey", "name", json!({ "minLength": 1, "maxLength": 255, "pattern": NO_CONTROLS })),
        ("CreateKey", "organizations", list(organization, 100)),
        ("CreateKey", "scopes", list(scope, KEY_SCOPES.len())),
        ("CreateKey", "expires_in_s", json!({ "minimum": 1, "maximum": 3_153_600_000_u64 })),
        ("CreateWebhook", "url", json!({ "minLength": 1, "maxLength": 2048 })),
        ("CreateWebhook", "types", json!({ "maxItems": 100 })),
        ("EditWebhook", "url", json!({ "minLength": 1, "maxLength": 2048 })),
        ("EditWebhook", "types", json!({ "maxItems": 100 })),
        ("EraseRequest", "confirm", json!({ "pattern": ORGANIZATION_ID })),
        ("PruneBackups", "keep", json!({ "minimum": 1, "maximum": u64::MAX })),
        ("SignUploadRequest", "mime_type", json!({ "maxLength": 255, "pattern": MIME_TYPE })),
        ("SignUploadRequest", "count", json!({ "minimum": 1, "maximum": 100 })),
    ];

    for (_, name, rule) in rules.iter().filter(|(of, _, _)| *of == request) {
        let property = schema["properties"][name].as_object_mut().expect("a field of the request");
        property.extend(rule.as_object().expect("an object").clone());
    }
    if request == "RestoreBackup" {
        schema["oneOf"] = json!([{ "required": ["organization_id"] }, { "required": ["file_id"] }]);
    }
}

/// Tests whether a field of this name holds a time.
fn is_time(name: &str) -> bool {
    name.ends_with("_at")
        || matches!(
            name,
            "effectiveFrom" | "effectiveTo" | "state_since" | "valid_until" | "old_valid_until"
        )
}

/// A ULID in upper case.
pub(crate) const FILE_ID: &str = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$";
/// The decimal number of an organization, or another name.
pub(crate) const ORGANIZATION_ID: &str =
    "^(0|[1-9][0-9]{0,63}|(?=.*[A-Za-z_-])[A-Za-z0-9_-]{1,64})$";
/// A part of an organization's application.
pub(crate) const SUB_SYSTEM: &str = "^(?!.*\\.\\.)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
/// The code of a provider.
pub(crate) const PROVIDER_CODE: &str = "^[A-Za-z0-9._-]{1,64}$";
/// A digest in hexadecimal digits.
pub(crate) const SHA256: &str = "^[0-9a-f]{64}$";
/// A media type, with or without parameters.
pub(crate) const MIME_TYPE: &str = "^(?!\\*/)[!#$%&'*+.^_`|~0-9A-Za-z-]+/(?!\\*( *;|$))[!#$%&'*+.^_`|~0-9A-Za-z-]+( *;( *[!#$%&'*+.^_`|~0-9A-Za-z-]+=([!#$%&'*+.^_`|~0-9A-Za-z-]+|\"([ !#-\\[\\]-~]|\\\\[ -~])*\"))?)*$";
/// A text without control characters.
pub(crate) const NO_CONTROLS: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
