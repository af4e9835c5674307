//! Organisation, users, invites, workspaces and their members, and SCIM, which feeds them from outside.

use super::operation::{ADMIN as A, ANY, Access, Feature, Operation, delete, get, patch, post, put};

pub(super) static ADMIN: &[Operation] = &[
    get(1, "/admin/organisation", A, &["organisation_settings.read", "organisations.read"]),
    put(2, "/admin/organisation", A, &["organisation_settings.update"]).audited("organisation", "update"),
    get(3, "/admin/organisation/defaults", A, &["organisation_settings.read"]),
    put(4, "/admin/organisation/defaults", A, &["organisation_settings.update"]).audited("organisation", "update"),
    get(5, "/admin/organisation/security-settings", A, &["organisation_settings.read"]),
    put(6, "/admin/organisation/security-settings", A, &["organisation_settings.update"])
        .audited("organisation", "update"),
    get(7, "/admin/organisation/auth-settings", A, &["organisation_settings.read"]),
    put(8, "/admin/organisation/auth-settings", A, &["organisation_settings.update"]).audited("organisation", "update"),
    get(0, "/admin/domains", A, &["organisation_settings.read"]),
    post(0, "/admin/domains", A, &["organisation_settings.update"]).audited("organisation", "update"),
    post(0, "/admin/domains/{domainId}/verify", A, &["organisation_settings.update"]).audited("organisation", "update"),
    delete(0, "/admin/domains/{domainId}", A, &["organisation_settings.update"]).audited("organisation", "update"),
    get(0, "/admin/saml-keys", A, &["organisation_settings.read"]),
    post(0, "/admin/saml-keys", A, &["organisation_settings.update"]).audited("organisation", "update"),
    post(0, "/admin/saml-keys/activate", A, &["organisation_settings.update"]).audited("organisation", "update"),
    delete(0, "/admin/saml-keys/standby", A, &["organisation_settings.update"]).audited("organisation", "update"),
    get(11, "/admin/users", A, &["organisation_users.list"]),
    get(12, "/admin/users/{userId}", A, &["organisation_users.read"]),
    put(13, "/admin/users/{userId}", A, &["organisation_users.update"]).audited("users", "update"),
    delete(14, "/admin/users/{userId}", A, &["organisation_users.delete"]).audited("users", "delete"),
    post(15, "/admin/users/invites", A, &["organisation_users.create"]).audited("user_invites", "create"),
    get(16, "/admin/users/invites", A, &["organisation_users.list"]),
    get(17, "/admin/users/invites/{inviteId}", A, &["organisation_users.read"]),
    delete(18, "/admin/users/invites/{inviteId}", A, &["organisation_users.delete"]).audited("user_invites", "delete"),
    post(19, "/admin/users/invites/{inviteId}/resend", A, &["organisation_users.create"])
        .audited("user_invites", "manage"),
    // The invitation's token in the body is the credential.
    post(20, "/admin/users/invites/accept", Access::Public, &[]).audited("user_invites", "manage"),
    post(21, "/admin/workspaces", A, &["workspaces.create"]).audited("workspaces", "create"),
    get(22, "/admin/workspaces", ANY, &["workspaces.list"]),
    get(23, "/admin/workspaces/{workspaceId}", ANY, &["workspaces.read"]),
    put(24, "/admin/workspaces/{workspaceId}", ANY, &["workspaces.update"]).audited("workspaces", "update"),
    delete(25, "/admin/workspaces/{workspaceId}", A, &["workspaces.delete"]).audited("workspaces", "delete"),
    post(26, "/admin/workspaces/{workspaceId}/users", ANY, &["workspace_users.create"])
        .audited("workspace_users", "create"),
    get(27, "/admin/workspaces/{workspaceId}/users", ANY, &["workspace_users.list"]),
    get(28, "/admin/workspaces/{workspaceId}/users/{userId}", ANY, &["workspace_users.read"]),
    put(29, "/admin/workspaces/{workspaceId}/users/{userId}", ANY, &["workspace_users.update"])
        .audited("workspace_users", "update"),
    delete(30, "/admin/workspaces/{workspaceId}/users/{userId}", ANY, &["workspace_users.delete"])
        .audited("workspace_users", "delete"),
];

/// Aliases of 21–30: the specification names these paths, the clients call those under `/admin`.
pub(super) static WORKSPACES: &[Operation] = &[
    post(0, "/workspaces", A, &["workspaces.create"]).audited("workspaces", "create"),
    get(0, "/workspaces", ANY, &["workspaces.list"]),
    get(0, "/workspaces/{workspaceId}", ANY, &["workspaces.read"]),
    put(0, "/workspaces/{workspaceId}", ANY, &["workspaces.update"]).audited("workspaces", "update"),
    delete(0, "/workspaces/{workspaceId}", A, &["workspaces.delete"]).audited("workspaces", "delete"),
    post(0, "/workspaces/{workspaceId}/users", ANY, &["workspace_users.create"]).audited("workspace_users", "create"),
    get(0, "/workspaces/{workspaceId}/users", ANY, &["workspace_users.list"]),
    get(0, "/workspaces/{workspaceId}/users/{userId}", ANY, &["workspace_users.read"]),
    put(0, "/workspaces/{workspaceId}/users/{userId}", ANY, &["workspace_users.update"])
        .audited("workspace_users", "update"),
    delete(0, "/workspaces/{workspaceId}/users/{userId}", ANY, &["workspace_users.delete"])
        .audited("workspace_users", "delete"),
];

pub(super) static WORKSPACE_EXCLUSIONS: &[Operation] = &[
    get(9, "/workspace-exclusions/input-guardrails", A, &["organisation_exclusions.list"]),
    get(9, "/workspace-exclusions/output-guardrails", A, &["organisation_exclusions.list"]),
    put(10, "/workspace-exclusions/input-guardrails", A, &["organisation_exclusions.update"])
        .audited("organisation", "update"),
    put(10, "/workspace-exclusions/output-guardrails", A, &["organisation_exclusions.update"])
        .audited("organisation", "update"),
];

const TOKEN: Access = Access::ScimToken;

/// `/scim/groups` is ours, `/scim/Groups` the protocol's: matching is case-sensitive.
pub(super) static SCIM: &[Operation] = &[
    get(196, "/scim/workspaces", A, &["organisation_users.list"]).when(Feature::Scim),
    post(197, "/scim/workspaces", A, &["organisation_users.create"]).audited("scim", "create").when(Feature::Scim),
    delete(198, "/scim/workspaces/{mappingId}", A, &["organisation_users.delete"])
        .audited("scim", "delete")
        .when(Feature::Scim),
    get(199, "/scim/groups", A, &["organisation_users.list"]).when(Feature::Scim),
    get(200, "/scim/ServiceProviderConfig", TOKEN, &[]).when(Feature::Scim),
    get(200, "/scim/ResourceTypes", TOKEN, &[]).when(Feature::Scim),
    get(200, "/scim/Schemas", TOKEN, &[]).when(Feature::Scim),
    get(0, "/scim/ResourceTypes/{id}", TOKEN, &[]).when(Feature::Scim),
    get(0, "/scim/Schemas/{id}", TOKEN, &[]).when(Feature::Scim),
    post(0, "/scim/Bulk", TOKEN, &[]).audited("scim", "manage").when(Feature::Scim),
    get(201, "/scim/Users", TOKEN, &[]).when(Feature::Scim),
    post(202, "/scim/Users", TOKEN, &[]).audited("scim", "create").when(Feature::Scim),
    get(203, "/scim/Users/{id}", TOKEN, &[]).when(Feature::Scim),
    put(203, "/scim/Users/{id}", TOKEN, &[]).audited("scim", "update").when(Feature::Scim),
    patch(203, "/scim/Users/{id}", TOKEN, &[]).audited("scim", "update").when(Feature::Scim),
    delete(203, "/scim/Users/{id}", TOKEN, &[]).audited("scim", "delete").when(Feature::Scim),
    get(204, "/scim/Groups", TOKEN, &[]).when(Feature::Scim),
    post(204, "/scim/Groups", TOKEN, &[]).audited("scim", "create").when(Feature::Scim),
    get(205, "/scim/Groups/{id}", TOKEN, &[]).when(Feature::Scim),
    put(205, "/scim/Groups/{id}", TOKEN, &[]).audited("scim", "update").when(Feature::Scim),
    patch(205, "/scim/Groups/{id}", TOKEN, &[]).audited("scim", "update").when(Feature::Scim),
    delete(205, "/scim/Groups/{id}", TOKEN, &[]).audited("scim", "delete").when(Feature::Scim),
];
