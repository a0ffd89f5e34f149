//! Bindings of organizations to providers.

use filestore_core::api::{BindingReply, BindingUpdateReply, CreateBinding, UpdateBinding};

use crate::operation::{Group, Need, Operation};
use crate::schemas::{reply, request};
use crate::shared::{organization_number, query};

pub(crate) fn group() -> Group {
    Group {
        name: "Bindings",
        description: "The provider of an organization's new files.",
        operations: vec![list(), create(), update()],
    }
}

fn list() -> Operation {
    Operation::get("/organization-storage-bindings", "listBindings", Need::ServiceAdmin)
        .says("List bindings, newest first", "")
        .asks([query("organizationId", "Only those of this organization.", organization_number())])
        .replies_all(200, "The bindings.", reply::<BindingReply>)
}

fn create() -> Operation {
    Operation::post("/organization-storage-bindings/create", "createBinding", Need::ServiceAdmin)
        .says(
            "Bind an organization to a provider",
            "The read-only keys of a binding (`id`, `effectiveFrom`, `effectiveTo`) are accepted and ignored.",
        )
        .json(request::<CreateBinding>)
        .replies(201, "The binding.", reply::<BindingReply>)
        .refuses([409, 422])
}

fn update() -> Operation {
    Operation::put("/organization-storage-bindings/update", "updateBinding", Need::ServiceAdmin)
        .says(
            "Change the active binding of an organization",
            "What is absent stays as it is. `isActive: false` ends the binding, `true` resumes the newest one. \
             Existing files stay where they are until they are migrated.",
        )
        .json(request::<UpdateBinding>)
        .replies(200, "The binding after the change.", reply::<BindingUpdateReply>)
        .refuses([404, 409, 422])
}
