//! Converts requests of the command line and the wire into the types of the core.

use filestore_core::admin::{FsckDepth, FsckMode, FsckOptions, FsckStart};
use filestore_core::api::{
    CreateBinding, EventQuery, FsckRunRequest, ListQuery, Metadata, PageQuery, UpdateBinding,
};
use filestore_core::bindings::{BindingChange, NewBinding};
use filestore_core::events::{After, EventFilter, EventKind};
use filestore_core::uploads::UploadId;
use filestore_core::{
    self as core, CustomMetadata, ListRequest, PageRequest, Patch, Sha256, Timestamp,
};
use serde_json::Value;

use crate::failure::Result;
use crate::store::request::{Edit, IfMatch, MetadataEdit};

pub(super) fn list_request(query: &ListQuery) -> Result<ListRequest> {
    fn parsed<T: std::str::FromStr<Err = core::Error>>(text: Option<&String>) -> Result<Option<T>> {
        Ok(text.map(|text| text.parse()).transpose()?)
    }

    let mut request = ListRequest::default();
    request.filter.organization_id = parsed(query.organization_id.as_ref())?;
    request.filter.sub_system = parsed(query.sub_system.as_ref())?;
    request.filter.status = query.status.as_ref().map(TryFrom::try_from).transpose()?;
    request.filter.sync_status = query.sync_status.as_ref().map(TryFrom::try_from).transpose()?;
    request.filter.purge_status = query.purge_status.as_ref().map(TryFrom::try_from).transpose()?;

    let filter = &mut request.filter;
    filter.name_prefix.clone_from(&query.name_prefix);
    filter.mime_type.clone_from(&query.mime_type);
    filter.created_after = time("created_after", query.created_after.as_deref())?;
    filter.created_before = time("created_before", query.created_before.as_deref())?;
    filter.name_contains.clone_from(&query.name_contains);
    filter.order = query.order.map(Into::into).unwrap_or_default();
    filter.metadata = query.metadata.clone().into_iter().collect();

    request.limit = query.limit.map(|limit| limit as usize);
    request.cursor.clone_from(&query.cursor);
    Ok(request)
}

/// Reads the ids of a query for known files.
pub(super) fn listed_ids(text: &str) -> Result<Vec<core::FileId>> {
    let ids = text.split(',').filter(|id| !id.is_empty());
    Ok(ids
        .map(|id| id.parse().map_err(|e: core::Error| e.with_field("ids")))
        .collect::<core::Result<_>>()?)
}

pub(super) fn page_request(query: &PageQuery) -> PageRequest {
    let mut request = PageRequest::new();
    request.limit = query.limit.map(|limit| limit as usize);
    request.cursor.clone_from(&query.cursor);
    request
}

/// Reads the filter of a query for events, with the rules of a server.
pub(super) fn event_filter(query: &EventQuery) -> Result<EventFilter> {
    let mut filter = EventFilter::new();
    if let Some(types) = &query.types {
        filter = filter.kinds(EventKind::parse_list(types)?);
    }
    if let Some(organization) = &query.organization_id {
        filter = filter.organization(organization.parse()?);
    }
    Ok(filter)
}

/// Reads the size of a page of events, with the rules of a server.
pub(super) fn event_limit(query: &EventQuery) -> Result<usize> {
    match query.limit.unwrap_or(100) {
        limit @ 1..=1000 => Ok(limit as usize),
        _ => Err(core::Error::invalid("limit", "limit is 1 to 1000").with_limit(1000).into()),
    }
}

/// Reads a place in the log of events.
pub(super) fn place(text: Option<&str>, otherwise: After) -> Result<After> {
    Ok(text.map_or(Ok(otherwise), str::parse)?)
}

/// Reads the position and the length of a page of resumable uploads, with the rules of a server.
pub(super) fn upload_page(query: &PageQuery) -> Result<(Option<UploadId>, usize)> {
    let after = query.cursor.as_deref().map(str::parse::<UploadId>).transpose();
    let after = after.map_err(|error| error.with_field("cursor"))?;
    match query.limit.unwrap_or(100) {
        limit @ 1..=1000 => Ok((after, limit as usize)),
        _ => Err(core::Error::invalid("limit", "limit is 1 to 1000").into()),
    }
}

fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>> {
    let parsed = text.map(|text| text.parse().map_err(|e: core::Error| e.with_field(field)));
    Ok(parsed.transpose()?)
}

/// Parses custom metadata with the rules of the core, which are also the rules of a server.
pub(super) fn metadata(given: Option<&Metadata>) -> Result<Option<CustomMetadata>> {
    let text = given.map(|members| Value::Object(members.clone()).to_string());
    Ok(text.map(|text| text.parse()).transpose()?)
}

pub(super) fn edit(edit: Edit) -> Result<core::Edit> {
    let mut made = core::Edit::default();
    made.name = edit.name.map_or(Patch::Keep, Patch::Set);
    made.mime_type = edit.mime_type.map_or(Patch::Keep, Patch::Set);
    made.metadata = match edit.metadata {
        Some(MetadataEdit::Merge(members)) => {
            Patch::Set(Value::Object(members).to_string().parse()?)
        }
        Some(MetadataEdit::Clear) => Patch::Clear,
        None => Patch::Keep,
    };
    Ok(made)
}

pub(super) fn new_binding(binding: CreateBinding) -> Result<NewBinding> {
    let provider = binding.storage_provider.parse()?;
    let organization = binding.organization_id.try_into()?;

    let mut new = NewBinding::new(organization, binding.organization_name, provider);
    new.sync_enabled = binding.sync_enabled;
    Ok(new)
}

pub(super) fn binding_change(update: UpdateBinding) -> Result<BindingChange> {
    let mut change = BindingChange::default();
    change.organization_name = update.organization_name;
    change.provider = update.storage_provider.map(|code| code.parse()).transpose()?;
    change.sync_enabled = update.sync_enabled;
    change.is_active = update.is_active;
    Ok(change)
}

pub(super) fn preconditions(condition: Option<IfMatch>) -> Result<core::Preconditions> {
    let wanted = match condition {
        None => None,
        Some(IfMatch::Any) => Some(core::IfMatch::Any),
        Some(IfMatch::Sha256(hex)) => Some(core::IfMatch::OneOf(vec![hex.parse::<Sha256>()?])),
    };
    Ok(wanted.into())
}

/// Converts a check's options, except for the provider.
pub(super) fn fsck_options(request: &FsckRunRequest) -> FsckOptions {
    let mut options = FsckOptions::default();
    if request.deep {
        options.depth = FsckDepth::Deep;
    }
    if request.repair {
        options.mode = FsckMode::Repair;
    }
    if request.restart {
        options.start = FsckStart::Anew;
    }
    options.bytes_per_second = request.bytes_per_second;
    options
}
