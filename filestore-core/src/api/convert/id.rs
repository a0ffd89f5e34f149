//! Ids of the domain in JSON and in the paths and forms of an application: as their text, checked when read.
//!
//! An id is one text that never changes its form, so serde on it cannot change the API by accident.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use crate::domain::id::{FileId, OrganizationId, SubSystem};
use crate::domain::provider::ProviderCode;

macro_rules! as_text {
    ($($type:ty,)*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        /// Fails for a text that is not a valid id.
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(|error: crate::domain::error::Error| {
                    D::Error::custom(error.message())
                })
            }
        }
    )* };
}

as_text! {
    FileId,
    OrganizationId,
    SubSystem,
    ProviderCode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_text_in_json_and_a_text_that_is_none_is_refused() {
        let id: FileId = serde_json::from_str("\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"");
        let organization: OrganizationId = serde_json::from_str("\"a\\u0062\"").unwrap();
        assert_eq!(organization.as_str(), "ab", "also one that is written with an escape");

        for bad in ["\"01arz3ndektsv4rrffq69g5fav\"", "\"\"", "7", "null"] {
            assert!(serde_json::from_str::<FileId>(bad).is_err(), "{bad}");
        }
        let error = serde_json::from_str::<OrganizationId>("\"042\"").unwrap_err();
        assert!(error.to_string().contains("leading zero"), "{error}");
        assert!(serde_json::from_str::<SubSystem>("\"..\"").is_err());
        assert!(serde_json::from_str::<ProviderCode>("\"a b\"").is_err());
    }
}
