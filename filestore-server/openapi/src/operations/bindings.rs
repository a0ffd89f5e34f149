//! Bindings of organizations to providers.

use filestore_core::api::{BindingReply, BindingUpdateReply, CreateBinding, UpdateBinding};

use crate::operation::{Group, Need, Operation};
use crate::schemas::{reply, request};
use crate::shared::{organization_number, query};

pub(crate) fn group() -> Group {
    Group {
        name: "Bindings",
        description: "Choose the provider for the new files of an organization.",
        operations: vec![list(), create(), update()],
    }
}

fn list() -> Operation {
    Operation::get("/organization-storage-bindings", "listBindings", Need::ServiceAdmin)
        .says("List bindings, newest first", "")
        .asks([query(
            "organizationId",
            "Only bindings of this organization.",
            organization_number(),
        )])
        .replies_all(200, "The bindings.", reply::<BindingReply>)
}

fn create() -> Operation {
    Operation::post("/organization-storage-bindings/create", "createBinding", Need::ServiceAdmin)
        .says(
            "Bind an organization to a provider",
            "You can send the read-only keys of a binding (`id`, `effectiveFrom`, `effectiveTo`). The server ignores \
             them.",
        )
        .json(request::<CreateBinding>)
        .replies(201, "The binding.", reply::<BindingReply>)
        .refuses([409, 422])
}

fn update() -> Operation {
    Operation::put("/organization-storage-bindings/update", "updateBinding", Need::ServiceAdmin)
        .says(
            "Change the active binding of an organization",
            "Absent fields do not change. `isActive: false` ends the binding, `true` resumes the newest binding. \
             Existing files stay at their provider until you migrate them.",
        )
        .json(request::<UpdateBinding>)
        .replies(200, "The binding after the change.", reply::<BindingUpdateReply>)
        .refuses([404, 409, 422])
}
