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

#[cfg(test)]
mod tests {
    use crate::domain::file::variant;

    #[test]
    fn the_wire_names_the_sizes_that_the_domain_allows() {
        assert_eq!(crate::api::VARIANT_SIZES, variant::VARIANT_SIZES);
    }
}
