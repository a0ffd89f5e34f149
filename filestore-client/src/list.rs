//! Lists of records.

use filestore_core::api::{FileRecord, ListQuery, ListReply};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::Method;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::Call;

/// The position between two pages of a list.
type Position = (Client, ListQuery);

impl Client {
    /// Returns one page of records. To get all pages, use [`list_all`](Self::list_all).
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
        self.json(Call::idempotent(self.request(Method::GET, &["files"]).query(query))).await
    }

    /// Returns a stream of all matching records. The stream fetches each page on demand and ends
    /// after an error.
    ///
    /// For example, print all files of an organization:
    ///
    /// ```no_run
    /// use filestore_client::ListQuery;
    /// use futures_util::TryStreamExt;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let query = ListQuery::new().organization_id("42").limit(1000);
    /// let mut records = client.list_all(query);
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
        let start = Some((self.clone(), query));
        let pages = stream::try_unfold(start, |position| async move {
            match position {
                Some((client, query)) => client.list_next(query).await,
                None => Ok(None),
            }
        });

        let records = pages.map_ok(|page| stream::iter(page.into_iter().map(Ok)));
        records.try_flatten().boxed()
    }

    /// Returns the records of one page and the position of the next page.
    async fn list_next(
        self,
        mut query: ListQuery,
    ) -> Result<Option<(Vec<FileRecord>, Option<Position>)>> {
        let page = self.list(&query).await?;
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
