//! The terms of a resumable upload: all that its creation says, as text.
//!
//! # Compatibility
//! JSON. A later program reads what an earlier one wrote: every field but the target has a default. Two creations
//! under one idempotency key are the same if their texts are equal.

#[cfg(any(test, feature = "internals"))]
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::permit::{ResumablePermit, StoredPermit};
use super::request::{NewResumable, ResumableTarget};
use crate::domain::error::{Error, Result};
use crate::domain::file::custom_metadata::CustomMetadata;
use crate::domain::file::policy::FilePolicy;
use crate::domain::id::{FileId, OrganizationId, Sha256};
use crate::domain::time::clock::Timestamp;
use crate::service::request::{
    GivenName, IfMatch, NewUpload, PartHints, Preconditions, Replacement,
};

/// The terms as they are stored.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terms {
    /// The part of the application, for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sub_system: Option<String>,
    /// The file that gets new bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaces: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    temp: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    make_ready: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) original_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hinted_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hinted_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    conditions: Conditions,
    /// The length that the creation announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    /// The caller that chose the idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caller: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
    /// True for the part of another upload, which becomes no file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) is_partial: bool,
    /// The place of the upload in a concatenation, as the client gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) concat: Option<String>,
    /// The signed URL that grants the upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) permit: Option<StoredPermit>,
    /// The files that the caller accepts.
    #[serde(default, skip_serializing_if = "is_default")]
    policy: StoredPolicy,
}

/// A policy as the terms store it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StoredPolicy {
    max_bytes: Option<u64>,
    types: Vec<String>,
    extensions: Vec<String>,
}

/// Conditions: digests in hexadecimal, `*` for any content.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Conditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    if_match: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    if_none_match: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unmodified_since: Option<i64>,
}

/// The stored form of any content.
const ANY: &str = "*";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A commit to make.
pub(super) enum Planned {
    New(NewUpload),
    Replace(FileId, Replacement, Preconditions),
}

impl Terms {
    /// Notes the terms of a creation.
    pub(super) fn of(new: &NewResumable) -> Self {
        let mut terms = Self {
            length: new.length,
            caller: new.idempotency.as_ref().map(|key| key.caller().to_owned()),
            note: new.note.clone(),
            concat: new.concat.clone(),
            permit: new.permit.as_ref().map(StoredPermit::of),
            ..Self::default()
        };
        match &new.target {
            ResumableTarget::Partial { .. } => terms.is_partial = true,
            ResumableTarget::New(file) => {
                terms.sub_system = Some(file.sub_system.as_str().to_owned());
                terms.temp = file.temp;
                terms.sha256 = file.sha256.map(Sha256::to_hex);
                terms.policy = StoredPolicy::of(&file.policy);
                terms.put_given(&file.given);
                let metadata = Some(&file.metadata).filter(|metadata| !metadata.is_empty());
                terms.metadata = metadata.map(|metadata| metadata.as_json().to_owned());
            }
            ResumableTarget::Replace { file_id, new, conditions, .. } => {
                terms.replaces = Some(file_id.to_string());
                terms.make_ready = new.make_ready;
                terms.policy = StoredPolicy::of(&new.policy);
                terms.put_given(&new.given);
                terms.metadata =
                    new.metadata.as_ref().map(|metadata| metadata.as_json().to_owned());
                terms.conditions = Conditions::of(conditions);
            }
        }
        terms
    }

    fn put_given(&mut self, given: &GivenName) {
        self.original_name.clone_from(&given.name);
        self.mime_type.clone_from(&given.mime_type);
        self.hinted_name.clone_from(&given.hints.file_name);
        self.hinted_type.clone_from(&given.hints.content_type);
    }

    /// Writes the terms down.
    pub(super) fn to_text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::internal("noting an upload", error))
    }

    /// Reads stored terms.
    pub(super) fn read(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::internal("reading an upload", error))
    }

    /// Tests whether the bytes come from other uploads, and not from a client.
    pub(super) fn is_final(&self) -> bool {
        self.concat.is_some() && !self.is_partial
    }

    /// Returns the signed URL that grants the upload, if any.
    pub(super) fn permit(&self) -> Result<Option<ResumablePermit>> {
        self.permit.as_ref().map(StoredPermit::read).transpose()
    }

    /// Returns the files that the caller accepts.
    pub(super) fn policy(&self) -> FilePolicy {
        let StoredPolicy { max_bytes, types, extensions } = &self.policy;
        let policy = FilePolicy::new().types(types).extensions(extensions);
        max_bytes.iter().fold(policy, |policy, bytes| policy.max_bytes(*bytes))
    }

    /// Returns the file that gets new bytes, if any.
    pub(super) fn replaces(&self) -> Result<Option<FileId>> {
        self.replaces.as_deref().map(str::parse).transpose()
    }

    /// Returns the caller that chose the idempotency key.
    pub(super) fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// Returns what the commit has to do for a file of `organization`.
    pub(super) fn plan(self, organization: &OrganizationId) -> Result<Planned> {
        let (replaces, policy) = (self.replaces()?, self.policy());
        let hints = PartHints { file_name: self.hinted_name, content_type: self.hinted_type };
        let given = GivenName { name: self.original_name, mime_type: self.mime_type, hints };
        let metadata = self.metadata.as_deref().map(CustomMetadata::stored);
        let damaged = || Error::internal("reading an upload", "it has no target");

        if let Some(file_id) = replaces {
            let mut new = Replacement::new().with_given(given).with_policy(policy);
            (new.metadata, new.make_ready) = (metadata, self.make_ready);
            return Ok(Planned::Replace(file_id, new, self.conditions.read()?));
        }
        let sub_system = self.sub_system.as_deref().ok_or_else(damaged)?.parse()?;
        let mut new =
            NewUpload::new(organization.clone(), sub_system).with_given(given).with_policy(policy);
        new.temp = self.temp;
        new.sha256 = self.sha256.as_deref().map(str::parse::<Sha256>).transpose()?;
        new.metadata = metadata.unwrap_or_default();
        Ok(Planned::New(new))
    }
}

impl StoredPolicy {
    fn of(policy: &FilePolicy) -> Self {
        Self {
            max_bytes: policy.most_bytes(),
            types: policy.accepted_types().to_vec(),
            extensions: policy.accepted_extensions().to_vec(),
        }
    }
}

impl Conditions {
    fn of(conditions: &Preconditions) -> Self {
        let list = |wanted: &IfMatch| match wanted {
            IfMatch::Any => vec![ANY.to_owned()],
            IfMatch::OneOf(sums) => sums.iter().map(|sum| sum.to_hex()).collect(),
        };
        Self {
            if_match: conditions.if_match.as_ref().map(list),
            if_none_match: conditions.if_none_match.as_ref().map(list),
            unmodified_since: conditions.unmodified_since.map(Timestamp::as_millis),
        }
    }

    fn read(&self) -> Result<Preconditions> {
        let list = |words: &Vec<String>| -> Result<IfMatch> {
            if words.iter().any(|word| word == ANY) {
                return Ok(IfMatch::Any);
            }
            Ok(IfMatch::OneOf(words.iter().map(|word| word.parse()).collect::<Result<_>>()?))
        };
        Ok(Preconditions {
            if_match: self.if_match.as_ref().map(list).transpose()?,
            if_none_match: self.if_none_match.as_ref().map(list).transpose()?,
            unmodified_since: self.unmodified_since.map(Timestamp::from_millis),
        })
    }
}

/// Returns the terms as far as they are shown. Damaged terms show nothing.
pub(super) fn shown(text: &str) -> Terms {
    Terms::read(text).unwrap_or_default()
}

/// Reads the stored terms of an upload as its commit does. Panics if terms that it accepts change when they are written
/// again. Only tests and fuzz targets call this.
#[cfg(any(test, feature = "internals"))]
pub fn judge(text: &str) {
    let shown = shown(text);
    let Ok(terms) = Terms::read(text) else {
        assert_eq!(shown, Terms::default(), "damaged terms show something: {text:?}");
        return;
    };
    assert_eq!(shown, terms);
    let written = terms.to_text().expect("terms can be written");
    assert_eq!(Terms::read(&written).expect("what was written is read"), terms, "{text:?}");

    if let Ok(Some(permit)) = terms.permit() {
        let nonce = &permit.permit.nonce;
        assert!((1..=64).contains(&nonce.len()), "a permit without a name: {text:?}");
    }
    let replaces = terms.replaces.clone();
    let organization = OrganizationId::from_str("42").expect("a number is an id");
    match terms.plan(&organization) {
        Ok(Planned::Replace(file_id, ..)) => assert_eq!(Some(file_id.to_string()), replaces),
        Ok(Planned::New(new)) => {
            assert!(replaces.is_none(), "a new file for a replacement: {text:?}");
            assert_eq!(new.organization_id, organization);
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::scope::Scope;
    use crate::domain::id::FileId;

    #[test]
    fn the_terms_of_a_new_file_read_back() {
        let mut new = NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap())
            .with_name("grüße.txt")
            .with_metadata(r#"{"a":1}"#.parse().unwrap())
            .with_sha256(Sha256([7; 32]))
            .temp();
        new.given.hints.file_name = Some("hint".into());
        let text = Terms::of(&NewResumable::new(new)).to_text().unwrap();

        let Planned::New(read) = Terms::read(&text).unwrap().plan(&"42".parse().unwrap()).unwrap()
        else {
            panic!("a new file")
        };
        assert_eq!(read.given.name.as_deref(), Some("grüße.txt"));
        assert_eq!(read.given.hints.file_name.as_deref(), Some("hint"));
        assert_eq!((read.temp, read.sha256), (true, Some(Sha256([7; 32]))));
        assert_eq!(read.metadata.as_json(), r#"{"a":1}"#);
    }

    #[test]
    fn the_conditions_of_a_replacement_read_back() {
        let file = FileId::generate(Timestamp::from_millis(5));
        let conditions = Preconditions {
            if_match: Some(IfMatch::OneOf(vec![Sha256([1; 32])])),
            if_none_match: Some(IfMatch::Any),
            unmodified_since: Some(Timestamp::from_millis(9)),
        };
        let target = ResumableTarget::Replace {
            file_id: file,
            new: Replacement::new().make_ready(),
            conditions: conditions.clone(),
            scope: Scope::All,
        };
        let text = Terms::of(&NewResumable::of(target)).to_text().unwrap();
        let planned = Terms::read(&text).unwrap().plan(&"42".parse().unwrap()).unwrap();
        let Planned::Replace(id, new, read) = planned else { panic!("a replacement") };
        assert_eq!((id, new.make_ready, read), (file, true, conditions));
    }

    #[test]
    fn terms_of_an_earlier_program_read_with_defaults() {
        let terms = Terms::read(r#"{"sub_system":"docs"}"#).unwrap();
        assert!(terms.plan(&"42".parse().unwrap()).is_ok());
        assert!(Terms::read("{}").unwrap().plan(&"42".parse().unwrap()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn stored_terms_of_any_text_are_refused_or_read_in_one_way(
            parts in proptest::collection::vec(
                "\"(sub_system|replaces|original_name|metadata|sha256|note|concat|caller)\":\"[a-z0-9{}]{0,9}\"|\
                 \"(temp|make_ready|is_partial)\":(true|false|0)|\"length\":[0-9]{1,20}|\
                 \"conditions\":[{]\"if_match\":\\[\"[*]\"\\][}]|\
                 \"permit\":[{]\"nonce\":\"[a-z]{0,3}\",\"expires_at\":[0-9]{1,4},\"era\":0,\"kid\":\"k\"[}]",
                0..5,
            ),
            cut in 0_usize..60,
        ) {
            let text = format!("{{{}}}", parts.join(","));
            judge(&text);
            judge(text.get(..cut).unwrap_or_default());
        }
    }
}
