//! API keys.

use std::time::Duration;

use crate::api;
use crate::domain::access::key::{ApiKey, KeySecret, NewKey};
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, Result};
use crate::domain::id::OrganizationId;

/// Name of a key without a name.
const UNNAMED: &str = "unnamed";

impl TryFrom<&api::CreateKey> for NewKey {
    type Error = Error;

    /// Reads the request. `InvalidField` for an invalid organization or an unknown scope.
    fn try_from(request: &api::CreateKey) -> Result<Self> {
        let scopes =
            request.scopes.iter().map(|scope| scope.parse()).collect::<Result<Vec<_>>>()?;
        let name = request.name.clone().unwrap_or_else(|| UNNAMED.to_owned());

        let mut new = Self::new(name, organizations(&request.organizations)?, scopes);
        new.expires_in = request.expires_in_s.map(Duration::from_secs);
        new.check()?;
        Ok(new)
    }
}

fn organizations(texts: &[String]) -> Result<Scope> {
    if texts == [api::ALL_ORGANIZATIONS] {
        return Ok(Scope::All);
    }
    let ids = texts.iter().map(|text| text.parse::<OrganizationId>());
    let ids = ids.collect::<Result<_>>().map_err(|error| error.with_field("organizations"))?;
    Ok(Scope::Organizations(ids))
}

impl From<&ApiKey> for api::KeyReply {
    fn from(key: &ApiKey) -> Self {
        let organizations = match &*key.organizations {
            Scope::All => vec![api::ALL_ORGANIZATIONS.to_owned()],
            Scope::Organizations(list) => list.iter().map(ToString::to_string).collect(),
        };

        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            organizations,
            scopes: key.scopes.iter().map(|scope| scope.to_string()).collect(),
            created_at: key.created_at.to_string(),
            expires_at: key.expires_at.map(|at| at.to_string()),
            rotated_at: key.rotated_at.map(|at| at.to_string()),
            old_valid_until: key.old_valid_until.map(|at| at.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
            last_used_at: key.last_used_at.map(|at| at.to_string()),
        }
    }
}

impl From<&(ApiKey, KeySecret)> for api::NewKeyReply {
    fn from((key, secret): &(ApiKey, KeySecret)) -> Self {
        Self::new(secret.expose(), key.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::key::KeyScope;

    #[test]
    fn the_wire_and_the_domain_have_the_same_scopes() {
        let domain: Vec<_> = KeyScope::ALL.iter().map(|scope| scope.as_str()).collect();
        assert_eq!(domain, api::KEY_SCOPES);
    }

    #[test]
    fn a_star_alone_is_every_organization() {
        let read = |names: &[&str]| {
            NewKey::try_from(&api::CreateKey::new(names.iter().copied(), ["read"]))
        };
        assert_eq!(read(&["*"]).unwrap().organizations, Scope::All);
        let two = Scope::Organizations(vec!["7".parse().unwrap(), "acme".parse().unwrap()]);
        assert_eq!(read(&["7", "acme"]).unwrap().organizations, two);

        for bad in [&[][..], &["*", "7"], &["007"], &[""]] {
            let error = read(bad).unwrap_err();
            assert_eq!(error.details().field.as_deref(), Some("organizations"), "{bad:?}");
        }
        assert_eq!(read(&["7"]).unwrap().name, UNNAMED);
    }
}
