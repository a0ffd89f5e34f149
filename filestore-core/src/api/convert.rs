//! From the domain to the wire.

use crate::domain::binding::Binding;
use crate::domain::provider::Provider;
use crate::domain::record::FileRecord;
use crate::storage::ProviderCheck;
use crate::variant::CacheReport;

impl From<&FileRecord> for super::FileRecord {
    fn from(record: &FileRecord) -> Self {
        Self {
            file_id: record.file_id.to_string(),
            original_name: record.original_name.clone(),
            mime_type: record.mime_type.clone(),
            file_size: record.blob.size_bytes,
            ext: record.ext.clone(),
            file_path: record.blob.key.to_string(),
            sync_status: record.state.sync().to_string(),
            updated_at: record.updated_at.to_string(),
            status: record.state.status().to_string(),
            storage_location: record.state.location().to_string(),
            storage_provider: record.blob.provider.to_string(),
            organization_id: record.organization_id.to_string(),
            sub_system: record.sub_system.to_string(),
            sha256: record.blob.sha256.to_hex(),
            width: record.blob.dimensions.map(|d| d.width),
            height: record.blob.dimensions.map(|d| d.height),
            version: record.version,
            created_at: record.created_at.to_string(),
            expires_at: record.expires_at.map(|at| at.to_string()),
            purge_status: record.state.purge().map(|purge| purge.to_string()),
        }
    }
}

impl From<&ProviderCheck> for super::ProviderCheckReport {
    fn from(check: &ProviderCheck) -> Self {
        let steps = check.steps.iter().map(|step| super::ProviderCheckStep {
            name: step.name.to_owned(),
            outcome: step.outcome.as_str().to_owned(),
            detail: step.detail.clone(),
        });
        Self {
            provider_code: check.provider.to_string(),
            can_serve: check.can_serve,
            steps: steps.collect(),
        }
    }
}

impl From<&Binding> for super::BindingReply {
    fn from(binding: &Binding) -> Self {
        Self {
            id: binding.id,
            organization_id: binding.organization_id,
            organization_name: binding.organization_name.clone(),
            storage_provider: binding.provider.to_string(),
            sync_enabled: binding.sync_enabled,
            is_active: binding.is_active,
            effective_from: binding.effective_from.to_string(),
            effective_to: binding.effective_to.map(|at| at.to_string()),
        }
    }
}

impl From<&Binding> for super::BindingUpdateReply {
    fn from(binding: &Binding) -> Self {
        Self {
            id: binding.id,
            organization_id: binding.organization_id,
            is_active: binding.is_active,
            sync_enabled: binding.sync_enabled,
            storage_provider: binding.provider.to_string(),
        }
    }
}

impl From<&Provider> for super::ProviderReply {
    fn from(provider: &Provider) -> Self {
        Self { provider_code: provider.code.to_string(), provider_name: provider.name.clone() }
    }
}

impl From<CacheReport> for super::VariantCacheReport {
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
