//! Field names in errors.

use crate::domain::error::Error;

/// Returns the JSON name of the field that an error is about.
///
/// The library has names of its own for some fields. For example, forms, headers and bindings use
/// other names. If an error comes from JSON, its field name stays the same.
pub fn field_name(error: &Error) -> Option<String> {
    let details = error.details();
    let field = details.field.as_deref()?;
    let name = match (field, details.item) {
        ("items", _) => "items[0].file".to_owned(),
        ("original_name" | "mime_type" | "metadata", Some(item)) => {
            format!("items[{item}].{field}")
        }
        ("organization", _) => "organizationId".to_owned(),
        ("organization_name", _) => "organizationName".to_owned(),
        ("provider", _) => "storageProvider".to_owned(),
        ("idempotency_key", _) => "Idempotency-Key".to_owned(),
        ("if_match", _) => "If-Match".to_owned(),
        ("if_none_match", _) => "If-None-Match".to_owned(),
        ("if_unmodified_since", _) => "If-Unmodified-Since".to_owned(),
        _ => field.to_owned(),
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_library_have_the_names_of_the_wire() {
        for (field, item, shown) in [
            ("original_name", None, "original_name"),
            ("original_name", Some(3), "items[3].original_name"),
            ("items[3].file", Some(3), "items[3].file"),
            ("items", None, "items[0].file"),
            ("organization", None, "organizationId"),
            ("organization_id", None, "organization_id"),
            ("provider", None, "storageProvider"),
            ("if_match", None, "If-Match"),
        ] {
            let mut error = Error::invalid(field, "as it may be");
            if let Some(item) = item {
                error = error.with_item(item);
            }
            assert_eq!(field_name(&error).as_deref(), Some(shown));
        }

        assert_eq!(field_name(&Error::not_found("file")), None);
    }
}
