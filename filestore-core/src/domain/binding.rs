//! Bindings: the provider for an organization's new files.

use super::clock::Timestamp;
use super::error::{Error, Result};
use super::id::OrganizationNumber;
use super::provider::ProviderCode;

/// The binding of an organization to a provider. At most one per organization is active.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Binding {
    /// The binding's id: a later binding has a larger one.
    pub id: i64,
    /// The organization whose files the binding places.
    pub organization: OrganizationNumber,
    /// The organization's name: 1 to 255 characters without control characters.
    pub organization_name: String,
    /// The provider for the organization's new files.
    pub provider: ProviderCode,
    /// `true`: files go LOCAL first and follow in the background. `false`: they are written
    /// through.
    pub sync_enabled: bool,
    /// `true` while the binding is in force.
    pub is_active: bool,
    /// The instant from which the binding is in force.
    pub effective_from: Timestamp,
    /// The instant of its termination.
    pub effective_to: Option<Timestamp>,
}

impl Binding {
    /// Takes over what `change` has of name, provider and sync flag.
    pub(crate) fn apply(&mut self, change: &BindingChange) {
        if let Some(name) = &change.organization_name {
            self.organization_name.clone_from(name);
        }
        if let Some(provider) = &change.provider {
            self.provider.clone_from(provider);
        }
        if let Some(sync_enabled) = change.sync_enabled {
            self.sync_enabled = sync_enabled;
        }
    }
}

/// A binding to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewBinding {
    /// The organization whose files the binding places.
    pub organization: OrganizationNumber,
    /// The organization's name: 1 to 255 characters without control characters.
    pub organization_name: String,
    /// The provider for the organization's new files.
    pub provider: ProviderCode,
    /// The sync flag, as [`Binding::sync_enabled`].
    pub sync_enabled: bool,
}

impl NewBinding {
    /// Binds `organization` to `provider`. New files are written through, unless
    /// [`with_sync`](Self::with_sync) says otherwise.
    pub fn new(
        organization: OrganizationNumber,
        organization_name: impl Into<String>,
        provider: ProviderCode,
    ) -> Self {
        Self {
            organization,
            organization_name: organization_name.into(),
            provider,
            sync_enabled: false,
        }
    }

    /// Lets new files go LOCAL first and follow to the provider in the background.
    #[must_use]
    pub fn with_sync(mut self) -> Self {
        self.sync_enabled = true;
        self
    }

    /// Checks the name; the provider is checked by the registry.
    pub fn check(&self) -> Result<()> {
        check_name(&self.organization_name)
    }
}

/// Changes to a binding; a field that is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindingChange {
    /// The organization's new name.
    pub organization_name: Option<String>,
    /// The new provider for the organization's files.
    pub provider: Option<ProviderCode>,
    /// The new sync flag.
    pub sync_enabled: Option<bool>,
    /// `false` terminates, `true` resumes the newest terminated one if none is active.
    pub is_active: Option<bool>,
}

impl BindingChange {
    /// Checks the name; the provider is checked by the registry.
    pub fn check(&self) -> Result<()> {
        self.organization_name.as_deref().map_or(Ok(()), check_name)
    }
}

/// Checks a name. As with a file's name, control characters are refused: no name has them, and not
/// every database can keep them (PostgreSQL's text has no U+0000).
fn check_name(name: &str) -> Result<()> {
    let field = "organization_name";
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(field, "organizationName has a control character"));
    }
    if (1..=255).contains(&name.chars().count()) {
        return Ok(());
    }
    Err(Error::invalid(field, "organizationName is a string of 1 to 255 characters")
        .with_limit(255))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_1_to_255_characters_and_none_of_them_controls() {
        for good in ["A", "Grüße & Söhne 🎉", &"é".repeat(255)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", &"é".repeat(256), "a\0", "a\nb", "\u{1b}[31m", "\u{85}"] {
            let error = check_name(bad).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("organization_name"), "{bad:?}");
        }
    }
}
