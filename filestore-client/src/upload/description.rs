//! The properties of a file that the application sends with its bytes.

use filestore_core::api::Metadata;

/// Name, media type and custom metadata of a file.
#[derive(Clone, Default)]
pub(crate) struct Description {
    pub(crate) original_name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) metadata: Option<Metadata>,
}

impl Description {
    /// Returns the text fields of a form that contain the properties.
    pub(crate) fn fields(self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        fields.extend(self.original_name.map(|name| ("original_name", name)));
        fields.extend(self.mime_type.map(|kind| ("mime_type", kind)));
        fields.extend(self.metadata.as_ref().map(|object| ("metadata", text_of(object))));
        fields
    }
}

/// Defines the public setters of a [`Description`] for a type with a method `description_mut`, with
/// their documentation.
macro_rules! description_setters {
    (name: $name_doc:literal, mime_type: $type_doc:literal, metadata: $metadata_doc:literal,) => {
        #[doc = $name_doc]
        #[must_use]
        pub fn original_name(mut self, name: impl Into<String>) -> Self {
            self.description_mut().original_name = Some(name.into());
            self
        }

        #[doc = $type_doc]
        #[must_use]
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.description_mut().mime_type = Some(mime_type.into());
            self
        }

        #[doc = $metadata_doc]
        #[must_use]
        pub fn metadata<K, V>(mut self, members: impl IntoIterator<Item = (K, V)>) -> Self
        where
            K: Into<String>,
            V: Into<serde_json::Value>,
        {
            let members = $crate::upload::description::object(members);
            self.description_mut().metadata = Some(members);
            self
        }
    };
}
pub(super) use description_setters;

/// Builds a JSON object from its members.
pub(crate) fn object<K: Into<String>, V: Into<serde_json::Value>>(
    members: impl IntoIterator<Item = (K, V)>,
) -> Metadata {
    members.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

/// Writes custom metadata as the text of a form field.
fn text_of(metadata: &Metadata) -> String {
    serde_json::to_string(metadata).expect("an object has string keys and plain values")
}
