//! Turns requests of the command line and the wire into the core's types.

use filestore_core::api::{CreateBinding, ListQuery, UpdateBinding};
use filestore_core::{self as core, BindingChange, ListFilter, ListRequest, NewBinding, Sha256};

use crate::failure::Result;
use crate::target::request::IfMatch;

pub(super) fn list_request(query: &ListQuery) -> Result<ListRequest> {
    fn parsed<T: std::str::FromStr<Err = core::Error>>(text: Option<&String>) -> Result<Option<T>> {
        Ok(text.map(|text| text.parse()).transpose()?)
    }

    let filter = ListFilter {
        organization_id: parsed(query.organization_id.as_ref())?,
        sub_system: parsed(query.sub_system.as_ref())?,
        status: query.status.as_ref().map(TryFrom::try_from).transpose()?,
        purge_status: query.purge_status.as_ref().map(TryFrom::try_from).transpose()?,
    };

    Ok(ListRequest {
        filter,
        limit: query.limit.map(|limit| limit as usize),
        cursor: query.cursor.clone(),
    })
}

pub(super) fn new_binding(binding: CreateBinding) -> Result<NewBinding> {
    Ok(NewBinding {
        organization_name: binding.organization_name,
        provider: binding.storage_provider.parse()?,
        sync_enabled: binding.sync_enabled,
        organization: binding.organization_id.try_into()?,
    })
}

pub(super) fn binding_change(update: UpdateBinding) -> Result<BindingChange> {
    Ok(BindingChange {
        organization_name: update.organization_name,
        provider: update.storage_provider.map(|code| code.parse()).transpose()?,
        sync_enabled: update.sync_enabled,
        is_active: update.is_active,
    })
}

pub(super) fn if_match(condition: IfMatch) -> Result<core::IfMatch> {
    Ok(match condition {
        IfMatch::Any => core::IfMatch::Any,
        IfMatch::Sha256(hex) => core::IfMatch::OneOf(vec![hex.parse::<Sha256>()?]),
    })
}
