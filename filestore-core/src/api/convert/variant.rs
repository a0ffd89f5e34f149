//! The variant cache.

use crate::api;
use crate::variant::CacheReport;

impl From<CacheReport> for api::VariantCacheReport {
    fn from(report: CacheReport) -> Self {
        let CacheReport {
            disk_entries,
            disk_bytes,
            memory_entries,
            memory_bytes,
            intermediate_bytes,
            eager_waiting,
            eager_made,
            eager_dropped,
            removed,
        } = report;
        Self {
            disk_entries,
            disk_bytes,
            memory_entries,
            memory_bytes,
            intermediate_bytes,
            eager_waiting,
            eager_made,
            eager_dropped,
            removed,
        }
    }
}
