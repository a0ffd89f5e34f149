//! The operations of the API, one file for each group.

mod admin;
mod bindings;
mod events;
mod files;
mod forms;
mod service;
mod uploads;
mod webhooks;

pub(crate) use webhooks::deliveries;

use crate::operation::Group;

/// Returns all groups, in the order in which a reader meets them.
pub(crate) fn all() -> Vec<Group> {
    vec![
        files::group(),
        uploads::group(),
        events::group(),
        webhooks::group(),
        bindings::group(),
        service::group(),
        admin::group(),
    ]
}
