//! The listings whose query plans each engine checks.

use crate::domain::file::listing::{ListFilter, ListOrder};
use crate::domain::file::status::{PurgeStatus, SyncStatus};
use crate::metadata::paging::Index;

/// Lists every kind of listing: its filter, its index, and whether it is within one organization.
pub(in crate::metadata) fn listings() -> Vec<(ListFilter, Index, bool)> {
    let mut listings = Vec::new();
    for sub_system in [None, Some("a".parse().unwrap())] {
        for purge_status in [None, Some(PurgeStatus::SystemPurge)] {
            let filter = ListFilter {
                sub_system: sub_system.clone(),
                purge_status,
                ..ListFilter::default()
            };
            listings.push((filter.clone(), Index::Plain, false));
            if purge_status.is_none() {
                let failed = ListFilter { sync_status: Some(SyncStatus::Failed), ..filter.clone() };
                listings.push((failed.clone(), Index::Sync, false));
                listings.push((failed, Index::Sync, true));
            }
            for index in [Index::Plain, Index::Type, Index::Term, Index::Names, Index::Name] {
                listings.push((filter.clone(), index, true));
            }
            let oldest = ListFilter { order: ListOrder::Oldest, ..filter.clone() };
            listings.push((oldest.clone(), Index::Plain, false));
            for index in [Index::Plain, Index::Type, Index::Term] {
                listings.push((oldest.clone(), index, true));
            }
            if purge_status.is_some() {
                let deleted = ListFilter { order: ListOrder::Deleted, ..filter };
                listings.push((deleted.clone(), Index::Deleted, false));
                listings.push((deleted, Index::Deleted, true));
            }
        }
    }
    listings
}
