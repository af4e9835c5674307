//! What requests are routed to and paid with: integrations, providers, virtual keys (their old name), prices,
//! references to outside secrets, and gateway deployments.

use super::operation::{ADMIN as A, ANY, Access, Operation, delete, get, post, put};

const CREATE: &[&str] = &["organisation_integrations.create", "workspace_integrations.create"];
const LIST: &[&str] = &["organisation_integrations.list", "workspace_integrations.list"];
const READ: &[&str] = &["organisation_integrations.read", "workspace_integrations.read"];
const UPDATE: &[&str] = &["organisation_integrations.update", "workspace_integrations.update"];
const DELETE: &[&str] = &["organisation_integrations.delete", "workspace_integrations.delete"];

/// Hundreds of models, each with its prices.
const MODEL_LIST: usize = 4 << 20;

pub(super) static INTEGRATIONS: &[Operation] = &[
    post(40, "/integrations", ANY, CREATE).audited("integrations", "create"),
    get(41, "/integrations", ANY, LIST),
    get(42, "/integrations/{slug}", ANY, READ),
    put(43, "/integrations/{slug}", ANY, UPDATE).audited("integrations", "update"),
    delete(44, "/integrations/{slug}", ANY, DELETE).audited("integrations", "delete"),
    get(45, "/integrations/{slug}/models", ANY, READ),
    put(46, "/integrations/{slug}/models", ANY, UPDATE).audited("integrations", "update").body_up_to(MODEL_LIST),
    put(0, "/integrations/{slug}/integration-models", ANY, UPDATE)
        .audited("integrations", "update")
        .body_up_to(MODEL_LIST),
    delete(47, "/integrations/{slug}/models", ANY, UPDATE).audited("integrations", "delete"),
    get(48, "/integrations/{slug}/workspaces", A, &["organisation_integrations.read"]),
    put(49, "/integrations/{slug}/workspaces", A, &["organisation_integrations.update"])
        .audited("integrations", "update"),
    post(0, "/integrations/{slug}/test", ANY, UPDATE).audited("integrations", "test"),
];

pub(super) static PROVIDERS: &[Operation] = &[
    post(50, "/providers", ANY, &["providers.create"]).audited("providers", "create"),
    get(51, "/providers", ANY, &["providers.list"]),
    get(0, "/providers/types", ANY, &["providers.list"]),
    post(0, "/providers/types/{type}/test", ANY, CREATE).audited("integrations", "test"),
    get(52, "/providers/{slug}", ANY, &["providers.read"]),
    put(53, "/providers/{slug}", ANY, &["providers.update"]).audited("providers", "update"),
    delete(54, "/providers/{slug}", ANY, &["providers.delete"]).audited("providers", "delete"),
];

pub(super) static VIRTUAL_KEYS: &[Operation] = &[
    post(55, "/virtual-keys", ANY, &["virtual_keys.create"]).audited("virtual_keys", "create"),
    get(56, "/virtual-keys", ANY, &["virtual_keys.list"]),
    get(57, "/virtual-keys/{slug}", ANY, &["virtual_keys.read"]),
    put(58, "/virtual-keys/{slug}", ANY, &["virtual_keys.update"]).audited("virtual_keys", "update"),
    delete(59, "/virtual-keys/{slug}", ANY, &["virtual_keys.delete"]).audited("virtual_keys", "delete"),
];

/// Public price lists; a model's name may contain slashes.
pub(super) static MODEL_CONFIGS: &[Operation] = &[
    get(113, "/model-configs/pricing/{provider}/{*model}", Access::Public, &[]),
    get(114, "/model-configs/pricing/{provider}", Access::Public, &[]),
    get(115, "/model-configs/general/{provider}", Access::Public, &[]),
];

pub(super) static SECRET_REFERENCES: &[Operation] = &[
    get(116, "/secret-references", A, &["secret_references.list"]),
    post(117, "/secret-references", A, &["secret_references.create"]).audited("secret_references", "create"),
    get(118, "/secret-references/{idOrSlug}", A, &["secret_references.read"]),
    put(119, "/secret-references/{idOrSlug}", A, &["secret_references.update"]).audited("secret_references", "update"),
    delete(120, "/secret-references/{idOrSlug}", A, &["secret_references.delete"])
        .audited("secret_references", "delete"),
];

pub(super) static DEPLOYMENTS: &[Operation] = &[
    post(121, "/deployments", A, &["deployments.create"]).audited("deployments", "create"),
    get(122, "/deployments", A, &["deployments.list"]),
    get(123, "/deployments/{idOrSlug}", A, &["deployments.read"]),
    put(124, "/deployments/{idOrSlug}", A, &["deployments.update"]).audited("deployments", "update"),
    delete(125, "/deployments/{idOrSlug}", A, &["deployments.delete"]).audited("deployments", "delete"),
    post(0, "/deployments/{idOrSlug}/rotate-token", A, &["deployments.update"]).audited("deployments", "rotate"),
];
