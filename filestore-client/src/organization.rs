//! The target of uploads: an organization and a sub-system.

use filestore_core::api::{OrganizationId, SubSystem};

use crate::client::Client;
use crate::error::{Error, Result};

/// An organization on a server, returned by [`Client::organization`].
#[derive(Debug, Clone)]
pub struct Organization {
    client: Client,
    id: OrganizationId,
}

/// The target of uploads: an organization and a sub-system, returned by
/// [`Organization::sub_system`].
///
/// A place is cheap to clone, so keep and reuse it. For example, upload a photo and a batch:
///
/// ```no_run
/// use filestore_client::{Batch, Client, Item};
///
/// # async fn run(client: Client) -> filestore_client::Result<()> {
/// let gallery = client.organization("42")?.sub_system("gallery")?;
/// let photo = gallery.upload(Item::from_path("photo.jpg")?).await?;
/// let pages = Batch::new().item(Item::from_path("1.pdf")?).item(Item::from_path("2.pdf")?);
/// let records = gallery.batch(pages).await?;
/// println!("{} and {} pages", photo.file_id, records.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Place {
    pub(crate) client: Client,
    pub(crate) organization_id: OrganizationId,
    pub(crate) sub_system: SubSystem,
}

impl Client {
    /// Selects an organization. You do not create organizations first. This sends no request.
    ///
    /// Fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the text is not a valid id.
    pub fn organization<I>(&self, id: I) -> Result<Organization>
    where
        I: TryInto<OrganizationId>,
        I::Error: Into<Error>,
    {
        let id = id.try_into().map_err(Into::into)?;
        Ok(Organization { client: self.clone(), id })
    }
}

impl Organization {
    /// Returns the organization's id.
    pub fn id(&self) -> &OrganizationId {
        &self.id
    }

    /// Selects a sub-system: a part of your application, for example `invoices`. This sends no
    /// request.
    ///
    /// Fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the text is not a valid
    /// name.
    pub fn sub_system<S>(self, name: S) -> Result<Place>
    where
        S: TryInto<SubSystem>,
        S::Error: Into<Error>,
    {
        let sub_system = name.try_into().map_err(Into::into)?;
        Ok(Place { client: self.client, organization_id: self.id, sub_system })
    }
}

impl Place {
    /// Returns the organization's id.
    pub fn organization_id(&self) -> &OrganizationId {
        &self.organization_id
    }

    /// Returns the sub-system's name.
    pub fn sub_system(&self) -> &SubSystem {
        &self.sub_system
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_place_that_the_service_would_refuse_is_refused_at_once() {
        let client = Client::new("http://host").unwrap();
        let error = client.organization("a b").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("organization_id is 1 to 64"), "{error}");

        let organization = client.organization("42").unwrap();
        let error = organization.sub_system("../up").unwrap_err();
        assert!(error.to_string().contains("sub_system is 1 to 64"), "{error}");
    }

    #[test]
    fn an_accepted_id_is_left_to_the_server() {
        let client = Client::new("http://host").unwrap();
        let organization = client.organization(OrganizationId::unchecked("a b")).unwrap();
        assert_eq!(organization.id().as_str(), "a b");
    }
}
