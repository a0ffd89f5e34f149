//! Why a file is where it is.

use super::{Fact, FactCode, Subject};
use crate::domain::file::record::Deletion;
use crate::domain::file::status::{Status, SyncStatus};
use crate::domain::report::receipt::DeletedBy;

impl Subject<'_> {
    /// Lists the reasons for the place and the state of the file.
    pub(super) fn why(&self) -> Vec<Fact> {
        let record = self.record();
        let mut why = vec![self.reason_for_the_place()];
        why.extend(self.claim_of_the_sync());
        why.extend(self.migration());
        if let Some(deletion) = record.deletion {
            why.push(deleted(deletion, self.work.deleted_by.as_ref()));
        }
        if self.work.purge.is_claimed {
            let sentence = "the purge has claimed the file: a restore is no longer possible";
            why.push(Fact::new(FactCode::ClaimedByPurge, sentence));
        }
        why
    }

    fn reason_for_the_place(&self) -> Fact {
        match self.record().state.status() {
            Status::Temp => Fact::new(
                FactCode::Temporary,
                "a TEMP file stays LOCAL until `filestore ready` promotes it",
            ),
            Status::Thumbnail => {
                Fact::new(FactCode::Thumbnail, "a THUMBNAIL file stays LOCAL with any binding")
            }
            Status::Ready => self.reason_by_binding(),
        }
    }

    fn reason_by_binding(&self) -> Fact {
        let organization = &self.record().organization_id;
        let Some(binding) = &self.work.binding else {
            let sentence =
                format!("organization {organization} has no binding: its new files are LOCAL");
            return Fact::new(FactCode::NoBinding, sentence);
        };

        let provider = &binding.provider;
        let fact = if provider.is_local() {
            let sentence = format!("organization {organization} is bound to LOCAL");
            Fact::new(FactCode::BoundToLocal, sentence)
        } else if binding.sync_enabled {
            let sentence = format!(
                "organization {organization} is bound to {provider} with sync: new files are stored LOCAL \
                 and then copied"
            );
            Fact::new(FactCode::BoundWithSync, sentence)
        } else {
            let sentence = format!(
                "organization {organization} is bound to {provider} without sync: uploads write there \
                 directly"
            );
            Fact::new(FactCode::Bound, sentence)
        };
        fact.at(provider.clone()).since(binding.effective_from)
    }

    fn claim_of_the_sync(&self) -> Option<Fact> {
        let record = self.record();
        let is_claimed = record.state.sync() == SyncStatus::Syncing;
        let lease = self.work.sync_not_before;
        is_claimed.then(|| {
            let sentence =
                "the sync worker has claimed the file, and renews the claim while it works";
            Fact::new(FactCode::ClaimedBySync, sentence).until(Some(lease))
        })
    }

    fn migration(&self) -> Option<Fact> {
        let target = self.seen.migration.as_ref()?;
        let organization = &self.record().organization_id;
        let provider = self.seen.shown(target);
        let sentence =
            format!("a migration of organization {organization} to {provider} is running");
        Some(Fact::new(FactCode::Migration, sentence).at(provider))
    }
}

/// Describes a deletion. Names only the kind of the caller, because other readers need not know the key.
pub(super) fn deleted(deletion: Deletion, by: Option<&DeletedBy>) -> Fact {
    let by = match by.unwrap_or(&DeletedBy::Unknown) {
        DeletedBy::Key { .. } => "deleted with an API key",
        DeletedBy::OpenMode => "deleted through a server without keys",
        DeletedBy::AdminSocket => "deleted through the admin socket",
        DeletedBy::Library => "deleted by a program that has opened the store",
        DeletedBy::Expiry => "deleted because it expired",
        DeletedBy::Erasure => "deleted by the erasure of its organization",
        DeletedBy::Unknown => "deleted by an unknown caller",
    };
    Fact::new(FactCode::Deleted, format!("the file was {by}")).since(deletion.deleted_at)
}
