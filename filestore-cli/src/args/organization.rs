//! Organizations as the user types them. The target checks their rules, so that a server and a data
//! directory answer with the same error. Exception: a text instead of a number.

use clap::Args;
use clap::builder::{StringValueParser, TypedValueParser};
use filestore_core::api::{OrganizationId, OrganizationNumber};

/// The organization of a command, as an argument or as an option.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct OrganizationArgs {
    /// Id of the organization
    #[arg(value_name = "ORG", value_parser = organization_id())]
    argument: Option<OrganizationId>,
    /// Id of the organization, instead of the argument ORG
    #[arg(long = "org", value_name = "ID", value_parser = organization_id())]
    option: Option<OrganizationId>,
}

impl OrganizationArgs {
    /// Returns the organization.
    pub(crate) fn id(self) -> OrganizationId {
        self.option.or(self.argument).expect("clap requires one of the two")
    }
}

/// Parses the id of an organization.
pub(super) fn organization_id() -> impl TypedValueParser<Value = OrganizationId> {
    StringValueParser::new().map(|text: String| OrganizationId::unchecked(text))
}

/// Parses the number of an organization. The error explains why a text is not enough.
pub(super) fn organization_number() -> impl TypedValueParser<Value = OrganizationNumber> {
    StringValueParser::new().try_map(|text: String| number(&text))
}

fn number(text: &str) -> Result<OrganizationNumber, String> {
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    number.map(OrganizationNumber::unchecked).ok_or_else(|| {
        format!(
            "only an organization with a number as its id (1 to {}) can have a binding, a sync or a migration. \
             Files of other organizations stay LOCAL. To store all LOCAL files at a provider, set \
             `local.backend` in the server's configuration",
            OrganizationNumber::MAX.get()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_not_the_number_of_an_organization() {
        assert_eq!(number("42").unwrap().get(), 42);
        assert_eq!(number("-1").unwrap().get(), -1, "the target refuses it");
        for text in ["acme", "", "042", "+42", "4.2", "99999999999999999999"] {
            let error = number(text).unwrap_err();
            assert!(error.contains("9007199254740991"), "{error}");
            assert!(error.contains("stay LOCAL") && error.contains("local.backend"), "{error}");
        }
    }
}
