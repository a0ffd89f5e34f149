//! The caller, and the organizations that it can see.

use filestore_core::api::{
    MeReply, OrganizationId, OrganizationReply, OrganizationsReply, PageQuery, ResumableUploadList,
    SubSystemsReply,
};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::Method;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::Call;

/// The position between two pages of a list.
type Position = (Client, PageQuery);

impl Client {
    /// Returns this client's key, with the limits and features of the server.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let me = client.me().await?;
    /// println!("at most {} bytes", me.limits.max_file_size);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn me(&self) -> Result<MeReply> {
        self.json(Call::idempotent(self.request(Method::GET, &["me"]))).await
    }

    /// Returns a page with the organizations that have files or an active binding, with their
    /// storage usage. To get all pages, use [`all_organizations`](Self::all_organizations).
    ///
    /// ```no_run
    /// use filestore_client::PageQuery;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let page = client.organizations(&PageQuery::new().limit(10)).await?;
    /// println!("{} organizations, more: {}", page.items.len(), page.next_cursor.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn organizations(&self, query: &PageQuery) -> Result<OrganizationsReply> {
        let request = self.request(Method::GET, &["organizations"]).query(query);
        self.json(Call::idempotent(request)).await
    }

    /// Returns a stream with all organizations. It fetches each page on demand and ends after an
    /// error.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let mut all = client.all_organizations();
    /// while let Some(one) = all.try_next().await? {
    ///     println!("{} {} files", one.organization_id, one.files);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn all_organizations(
        &self,
    ) -> impl Stream<Item = Result<OrganizationReply>> + Send + Unpin + use<> {
        let start = Some((self.clone(), PageQuery::new().limit(1000)));
        let pages = stream::try_unfold(start, |position| async move {
            match position {
                Some((client, query)) => client.next_organizations(query).await,
                None => Ok(None),
            }
        });
        pages.map_ok(|page| stream::iter(page.into_iter().map(Ok))).try_flatten().boxed()
    }

    /// Returns one page of an organization's sub-systems that have files, with their storage
    /// usage.
    ///
    /// ```no_run
    /// use filestore_client::PageQuery;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// for part in client.sub_systems("42", &PageQuery::new()).await?.items {
    ///     println!("{} {} bytes", part.sub_system, part.bytes);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sub_systems<I>(
        &self,
        organization: I,
        query: &PageQuery,
    ) -> Result<SubSystemsReply>
    where
        I: TryInto<OrganizationId>,
        I::Error: Into<Error>,
    {
        let organization = organization.try_into().map_err(Into::into)?;
        let path = ["organizations", organization.as_str(), "sub-systems"];
        let request = self.request(Method::GET, &path).query(query);
        self.json(Call::idempotent(request)).await
    }

    /// Returns one page of an organization's resumable uploads, oldest first. The page contains ended
    /// uploads. For the uploads of all organizations, see
    /// [`Admin::uploads`](crate::admin::Admin::uploads).
    ///
    /// ```no_run
    /// use filestore_client::PageQuery;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// for upload in client.uploads("42", &PageQuery::new()).await?.items {
    ///     println!("{} {}: {} bytes", upload.upload_id, upload.state, upload.offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn uploads<I>(
        &self,
        organization: I,
        query: &PageQuery,
    ) -> Result<ResumableUploadList>
    where
        I: TryInto<OrganizationId>,
        I::Error: Into<Error>,
    {
        let organization = organization.try_into().map_err(Into::into)?;
        let request = self.request(Method::GET, &["uploads"]).query(query);
        let request = request.query(&[("organization_id", organization.as_str())]);
        self.json(Call::idempotent(request)).await
    }

    /// Returns the organizations of one page and the position of the next page.
    async fn next_organizations(
        self,
        mut query: PageQuery,
    ) -> Result<Option<(Vec<OrganizationReply>, Option<Position>)>> {
        let page = self.organizations(&query).await?;
        if page.next_cursor.is_some() && page.next_cursor == query.cursor {
            return Err(Error::protocol(
                "the list does not continue: the server repeats its cursor",
            ));
        }

        query.cursor = page.next_cursor;
        let next = query.cursor.is_some().then_some((self, query));
        Ok(Some((page.items, next)))
    }
}
