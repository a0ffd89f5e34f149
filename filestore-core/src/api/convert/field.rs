//! Names of fields in errors.

use crate::domain::error::{Error, ErrorKind};

/// Returns the name that the wire has for the field an error is about.
///
/// The library calls its fields by its own names; forms, headers and bindings have others. Errors
/// that arise on the wire carry the wire's names already and keep them.
pub fn field_name(error: &Error) -> Option<String> {
    let details = error.details();
    let field = details.field.as_deref()?;
    if matches!(error.kind(), ErrorKind::UnknownField | ErrorKind::RepeatedField) {
        // Fields only the wire has: as the client spelled them, whatever the library calls so.
        return Some(field.to_owned());
    }

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

        let unknown = Error::new(ErrorKind::UnknownField, "no such field").with_field("provider");
        assert_eq!(field_name(&unknown).as_deref(), Some("provider"), "as the client spelled it");
        assert_eq!(field_name(&Error::not_found("file")), None);
    }
}
