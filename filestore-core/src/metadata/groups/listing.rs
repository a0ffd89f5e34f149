//! Listings of files.

use async_trait::async_trait;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::listing::{ListFilter, ListPosition};
use crate::metadata::types::ListedFiles;

/// Listings of files.
#[async_trait]
pub trait Listing: Send + Sync + 'static {
    /// Lists at most `limit` files after `after`, or from the start if `None`, in the order of the
    /// [`ListFilter`]. The cost does not depend on the table's size. With a filter that no index covers,
    /// a page can therefore have fewer files and still have a next position.
    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<ListedFiles>;
}
