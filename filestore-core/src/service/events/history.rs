//! The history of one file, for explanations.

use super::Inner;
use super::reading::event;
use crate::domain::error::Result;
use crate::domain::event::EventNaming;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::report::explain::History;
use crate::metadata::{LogOrder, LogRange};

impl Inner {
    /// Looks through the newest events of an organization for those of a file.
    pub(crate) async fn history(
        &self,
        file: FileId,
        organization: &OrganizationId,
    ) -> Result<History> {
        let range = LogRange {
            from: None,
            order: LogOrder::Backward,
            organizations: Some(vec![organization.clone()]),
            limit: History::MOST_LOOKED_AT,
        };
        let log = self.metadata.read_events(&range).await?;
        let (Some(key), true) = (log.key, log.is_on) else { return Ok(History::default()) };

        let naming = EventNaming::new(key);
        let events = log.rows.iter().map(|row| {
            let body = row.body.as_ref()?;
            Some(event(naming.id(row.position, row.at), row.at, body))
        });
        Ok(History::of(file, events))
    }
}
