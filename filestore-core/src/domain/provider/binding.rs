//! Bindings: the choice of a provider for new files of an organization.

use super::ProviderCode;
use crate::domain::error::{Error, Result};
use crate::domain::id::OrganizationNumber;
use crate::domain::time::clock::Timestamp;

/// An organization's binding to a provider. An organization has at most one active binding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Binding {
    /// Binding id. A later binding has a larger id.
    pub id: i64,
    /// Organization number.
    pub organization: OrganizationNumber,
    /// Organization name: 1 to 255 characters without control characters.
    pub organization_name: String,
    /// Provider for the organization's new files.
    pub provider: ProviderCode,
    /// If `true`, the store keeps new files locally first and copies them in the background. If
    /// `false`, an upload returns when the provider has the file.
    pub sync_enabled: bool,
    /// `true` while the binding is active.
    pub is_active: bool,
    /// Creation time.
    pub effective_from: Timestamp,
    /// Termination time. `None` while the binding is active.
    pub effective_to: Option<Timestamp>,
}

impl Binding {
    /// Makes the active binding `id` that `new` asks for.
    pub(crate) fn begun(id: i64, new: &NewBinding, now: Timestamp) -> Self {
        Self {
            id,
            organization: new.organization,
            organization_name: new.organization_name.clone(),
            provider: new.provider.clone(),
            sync_enabled: new.sync_enabled,
            is_active: true,
            effective_from: now,
            effective_to: None,
        }
    }

    /// Changes the active binding, or ends it.
    pub(crate) fn change(&mut self, change: &BindingChange, now: Timestamp) {
        self.apply(change);
        if change.is_active == Some(false) {
            self.is_active = false;
            self.effective_to = Some(now);
        }
    }

    /// Resumes the ended binding with `change`. Returns false if its provider is then none of the active ones.
    pub(crate) fn resume(&mut self, change: &BindingChange, active: &[ProviderCode]) -> bool {
        self.apply(change);
        self.is_active = active.contains(&self.provider);
        if self.is_active {
            self.effective_to = None;
        }
        self.is_active
    }

    /// Applies the name, provider and sync flag of `change`.
    fn apply(&mut self, change: &BindingChange) {
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

/// A request for a new binding. For example, `NewBinding::new(number, "Example & Sons",
/// provider).with_sync()` copies new files to the provider in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewBinding {
    /// Organization number.
    pub organization: OrganizationNumber,
    /// Organization name: 1 to 255 characters without control characters.
    pub organization_name: String,
    /// Provider for the organization's new files.
    pub provider: ProviderCode,
    /// Sync flag, see [`Binding::sync_enabled`].
    pub sync_enabled: bool,
}

impl NewBinding {
    /// Binds `organization` to `provider`. An upload returns when the provider has the file. To
    /// copy in the background instead, call [`with_sync`](Self::with_sync).
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

    /// Stores new files locally first and copies them in the background.
    #[must_use]
    pub fn with_sync(mut self) -> Self {
        self.sync_enabled = true;
        self
    }

    /// Checks the name. The registry checks the provider.
    pub fn check(&self) -> Result<()> {
        check_name(&self.organization_name)
    }
}

/// Changes to a binding. A field that is `None` does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindingChange {
    /// New organization name.
    pub organization_name: Option<String>,
    /// New provider for the organization.
    pub provider: Option<ProviderCode>,
    /// New sync flag.
    pub sync_enabled: Option<bool>,
    /// `false` ends the binding. `true` resumes the newest ended binding if no binding is active.
    pub is_active: Option<bool>,
}

impl BindingChange {
    /// Checks the name. The registry checks the provider.
    pub fn check(&self) -> Result<()> {
        self.organization_name.as_deref().map_or(Ok(()), check_name)
    }
}

/// Checks a name. Refuses control characters, as for file names, because some databases cannot
/// store them (PostgreSQL's text has no U+0000).
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
