//! Explanations of files: the facts from the database, the providers and the clock, in one place.

use super::Files;
use crate::domain::error::{Error, Result};
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::report::explain::{
    Circumstances, Explanation, KnownProvider, Reader, explain, explain_purged,
};
use crate::domain::time::clock::Timestamp;

impl Files<'_> {
    /// Explains where a file is and why, what comes next and when, which attempts failed, and which events the log
    /// has of the file. Also explains deleted files, and purged files as long as their purge receipt is kept.
    ///
    /// The events of the file are those among the newest 2,000 of its organization.
    ///
    /// The health of the providers is what this process knows. If several servers share the store, each of them
    /// might see another one.
    ///
    /// `NotFound` for an unknown id and a file outside the scope.
    ///
    /// ```
    /// use filestore_core::explain::{Reader, StepCode};
    /// use filestore_core::{FileStore, NewUpload, Scope};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let store = FileStore::open(dir.path()).await?;
    /// let new = NewUpload::new("42".parse()?, "gallery".parse()?);
    /// let id = store.upload(new, &b"hello"[..]).await?.file_id;
    /// store.scoped(&Scope::All).delete(id).await?;
    ///
    /// let explained = store.scoped(&Scope::All).explain(id, Reader::Operator).await?;
    /// for fact in explained.place.iter().chain(&explained.why) {
    ///     println!("{}: {}", fact.code, fact.sentence);
    /// }
    /// let step = &explained.next[0];
    /// assert_eq!((step.code, step.undo), (StepCode::Purge, Some("restore")));
    /// assert!(step.not_before > Some(explained.explained_at));
    ///
    /// let events: Vec<_> = explained.history.events.iter().map(|event| event.kind.as_str()).collect();
    /// assert_eq!(events, ["file.uploaded", "file.deleted"]);
    /// # store.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn explain(self, id: FileId, reader: Reader) -> Result<Explanation> {
        let inner = &self.store.inner;
        let now = inner.now();
        if let Some(work) = inner.metadata.file_work(id, self.scope, now).await? {
            let organization = &work.record.organization_id;
            let explained = self
                .with_circumstances(Some(organization), reader, now, |seen| explain(&work, seen))
                .await?;
            return Ok(explained.with_history(inner.history(id, organization).await?));
        }

        // A record is deleted in the transaction that writes the receipt, so a file is in one of both.
        let purged = inner.metadata.receipt(id, self.scope).await?;
        let purged = purged.ok_or_else(|| Error::not_found("file"))?;
        let explained = self
            .with_circumstances(None, reader, now, |seen| explain_purged(&purged, seen))
            .await?;
        Ok(explained.with_history(inner.history(id, &purged.organization_id).await?))
    }

    /// Calls `explain` with the state of the store, and with the migration of `organization`.
    async fn with_circumstances(
        self,
        organization: Option<&OrganizationId>,
        reader: Reader,
        now: Timestamp,
        explain: impl FnOnce(&Circumstances<'_>) -> Explanation,
    ) -> Result<Explanation> {
        let inner = &self.store.inner;
        let running = match organization {
            Some(organization) => inner.background.running_migration(organization).await?,
            None => None,
        };
        let registry = inner.stores.providers();
        let known = registry.all().iter().map(|provider| KnownProvider {
            provider: provider.clone(),
            health: registry.health_of(&provider.code),
        });

        Ok(explain(&Circumstances {
            now,
            config: &inner.config(),
            providers: &known.collect::<Vec<_>>(),
            migration: running.map(|running| running.to),
            may_remove: inner.background.may_remove(),
            reader,
        }))
    }
}
