//! Listing records.

use filestore_core::api::{FileRecord, ListReply};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::Method;
use serde::Serialize;

use crate::client::{Call, Client};
use crate::error::{Error, Result};

/// Which records to list, newest first.
///
/// ```
/// use filestore_client::ListQuery;
///
/// let query = ListQuery::new().organization_id("42").status("READY").limit(50);
/// # let _ = query;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListQuery {
    organization_id: Option<String>,
    sub_system: Option<String>,
    status: Option<String>,
    purge_status: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

impl ListQuery {
    /// Every record the key may see, except deleted ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those of one organization.
    #[must_use]
    pub fn organization_id(mut self, id: impl Into<String>) -> Self {
        self.organization_id = Some(id.into());
        self
    }

    /// Only those of one part of the application.
    #[must_use]
    pub fn sub_system(mut self, name: impl Into<String>) -> Self {
        self.sub_system = Some(name.into());
        self
    }

    /// Only `TEMP`, `THUMBNAIL` or `READY` ones.
    #[must_use]
    pub fn status(mut self, status: impl Into<String>) -> Self {
        self.status = Some(status.into());
        self
    }

    /// `SYSTEM_PURGE`: only deleted ones that are not yet purged.
    #[must_use]
    pub fn purge_status(mut self, status: impl Into<String>) -> Self {
        self.purge_status = Some(status.into());
        self
    }

    /// Records of one page, 1 to 1000; 100 otherwise.
    #[must_use]
    pub fn limit(mut self, records: u32) -> Self {
        self.limit = Some(records);
        self
    }

    /// Goes on where a page's `next_cursor` says.
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

impl Client {
    /// One page of records.
    ///
    /// ```no_run
    /// use filestore_client::ListQuery;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let page = client.list(&ListQuery::new().organization_id("42")).await?;
    /// println!("{} records, more: {}", page.items.len(), page.next_cursor.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list(&self, query: &ListQuery) -> Result<ListReply> {
        self.json(Call::repeatable(self.request(Method::GET, &["files"]).query(query))).await
    }

    /// All records, page after page as they are asked for. After an error the stream ends.
    ///
    /// ```no_run
    /// use filestore_client::ListQuery;
    /// use futures_util::TryStreamExt;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let mut records = client.list_all(ListQuery::new().limit(1000));
    /// while let Some(record) = records.try_next().await? {
    ///     println!("{} {}", record.file_id, record.original_name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_all(
        &self,
        query: ListQuery,
    ) -> impl Stream<Item = Result<FileRecord>> + Send + Unpin + use<> {
        let client = self.clone();
        let pages = stream::try_unfold(Some(query), move |query| {
            let client = client.clone();
            async move {
                let Some(mut query) = query else { return Ok(None) };
                let page = client.list(&query).await?;
                if page.next_cursor.is_some() && page.next_cursor == query.cursor {
                    return Err(Error::protocol(
                        "the listing does not go on: the server repeats its cursor",
                    ));
                }
                query.cursor = page.next_cursor;
                let next = query.cursor.is_some().then_some(query);
                Ok(Some((stream::iter(page.items.into_iter().map(Ok)), next)))
            }
        });
        pages.try_flatten().boxed()
    }
}
