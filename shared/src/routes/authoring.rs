//! What people write: configs, prompts and their parts, guardrails, policies; and `explain`, which says what they
//! would do to a request.

use super::operation::{ADMIN as A, ANY, Feature, Operation, delete, get, post, put};

/// A config may have a thousand targets, a template long examples.
const DOCUMENT: usize = 4 << 20;
/// A request that is asked about may carry images.
const EXPLAINED_BODY: usize = 20 << 20;

pub(super) static CONFIGS: &[Operation] = &[
    post(60, "/configs", ANY, &["configs.create"]).audited("configs", "create").body_up_to(DOCUMENT),
    get(61, "/configs", ANY, &["configs.list"]),
    get(62, "/configs/{slug}", ANY, &["configs.read"]),
    put(63, "/configs/{slug}", ANY, &["configs.update"]).audited("configs", "update").body_up_to(DOCUMENT),
    delete(64, "/configs/{slug}", ANY, &["configs.delete"]).audited("configs", "delete"),
    get(65, "/configs/{slug}/versions", ANY, &["configs.read"]),
    get(0, "/configs/{slug}/versions/diff", ANY, &["configs.read"]),
    post(0, "/configs/{slug}/rollback", ANY, &["configs.update"]).audited("configs", "manage"),
];

pub(super) static EXPLAIN: &[Operation] =
    &[post(0, "/explain", ANY, &["logs.view", "configs.read"]).all_scopes().body_up_to(EXPLAINED_BODY)];

/// Running a prompt, `POST /prompts/{promptId}/completions`, is inference and therefore not here.
pub(super) static PROMPTS: &[Operation] = &[
    post(66, "/prompts", ANY, &["prompts.create"]).audited("prompts", "create").body_up_to(DOCUMENT),
    get(67, "/prompts", ANY, &["prompts.list"]),
    get(68, "/prompts/{promptId}", ANY, &["prompts.read"]),
    put(69, "/prompts/{promptId}", ANY, &["prompts.update"]).audited("prompts", "update").body_up_to(DOCUMENT),
    delete(70, "/prompts/{promptId}", ANY, &["prompts.delete"]).audited("prompts", "delete"),
    put(71, "/prompts/{promptId}/makeDefault", ANY, &["prompts.publish"]).audited("prompts", "publish"),
    get(72, "/prompts/{promptId}/versions", ANY, &["prompts.read"]),
    get(0, "/prompts/{promptId}/versions/diff", ANY, &["prompts.read"]),
    get(73, "/prompts/{promptId}/versions/{versionId}", ANY, &["prompts.read"]),
    put(74, "/prompts/{promptId}/versions/{versionId}", ANY, &["prompts.update"])
        .audited("prompts", "update")
        .body_up_to(DOCUMENT),
    get(0, "/prompts/{promptId}/labels", ANY, &["prompts.read"]),
    put(0, "/prompts/{promptId}/labels/{labelId}", ANY, &["prompts.update"]).audited("prompts", "update"),
    delete(0, "/prompts/{promptId}/labels/{labelId}", ANY, &["prompts.update"]).audited("prompts", "update"),
    post(75, "/prompts/{promptId}/render", ANY, &["prompts.render", "prompts.read"]).body_up_to(DOCUMENT),
    post(77, "/prompts/partials", ANY, &["prompts.create"]).audited("partials", "create").body_up_to(DOCUMENT),
    get(78, "/prompts/partials", ANY, &["prompts.list"]),
    get(79, "/prompts/partials/{id}", ANY, &["prompts.read"]),
    put(80, "/prompts/partials/{id}", ANY, &["prompts.update"]).audited("partials", "update").body_up_to(DOCUMENT),
    delete(81, "/prompts/partials/{id}", ANY, &["prompts.delete"]).audited("partials", "delete"),
    get(82, "/prompts/partials/{id}/versions", ANY, &["prompts.read"]),
    put(83, "/prompts/partials/{id}/makeDefault", ANY, &["prompts.publish"]).audited("partials", "publish"),
];

pub(super) static COLLECTIONS: &[Operation] = &[
    post(84, "/collections", ANY, &["prompts.create"]).audited("collections", "create"),
    get(85, "/collections", ANY, &["prompts.list"]),
    get(86, "/collections/{id}", ANY, &["prompts.read"]),
    put(87, "/collections/{id}", ANY, &["prompts.update"]).audited("collections", "update"),
    delete(88, "/collections/{id}", ANY, &["prompts.delete"]).audited("collections", "delete"),
];

pub(super) static LABELS: &[Operation] = &[
    post(89, "/labels", ANY, &["prompts.create"]).audited("labels", "create"),
    get(90, "/labels", ANY, &["prompts.list"]),
    get(91, "/labels/{labelId}", ANY, &["prompts.read"]),
    put(92, "/labels/{labelId}", ANY, &["prompts.update"]).audited("labels", "update"),
    delete(93, "/labels/{labelId}", ANY, &["prompts.delete"]).audited("labels", "delete"),
];

/// Organisation-level guardrails have scopes of their own; either name opens the route.
pub(super) static GUARDRAILS: &[Operation] = &[
    post(94, "/guardrails", ANY, &["guardrails.create", "organisation_guardrails.create"])
        .audited("guardrails", "create")
        .when(Feature::Guardrails),
    get(95, "/guardrails", ANY, &["guardrails.list", "organisation_guardrails.list"]).when(Feature::Guardrails),
    get(96, "/guardrails/{id}", ANY, &["guardrails.read", "organisation_guardrails.read"]).when(Feature::Guardrails),
    put(97, "/guardrails/{id}", ANY, &["guardrails.update", "organisation_guardrails.update"])
        .audited("guardrails", "update")
        .when(Feature::Guardrails),
    delete(98, "/guardrails/{id}", ANY, &["guardrails.delete", "organisation_guardrails.delete"])
        .audited("guardrails", "delete")
        .when(Feature::Guardrails),
    get(99, "/guardrails/checks", ANY, &["guardrails.list", "organisation_guardrails.list"]).when(Feature::Guardrails),
    post(0, "/guardrails/test", ANY, &["guardrails.read", "organisation_guardrails.read"]).when(Feature::Guardrails),
    get(0, "/guardrails/{id}/versions", ANY, &["guardrails.read", "organisation_guardrails.read"])
        .when(Feature::Guardrails),
    post(0, "/guardrails/{id}/rollback", ANY, &["guardrails.update", "organisation_guardrails.update"])
        .audited("guardrails", "manage")
        .when(Feature::Guardrails),
];

/// Credentials of the vendors behind guardrail checks.
pub(super) static PLUGINS: &[Operation] = &[
    post(214, "/plugins", A, &["plugins.create"]).audited("plugins", "create"),
    put(215, "/plugins/{id}", A, &["plugins.update"]).audited("plugins", "update"),
    get(216, "/plugins", A, &["plugins.list"]),
];

pub(super) static POLICIES: &[Operation] = &[
    post(100, "/policies/rate-limits", ANY, &["policies.create"]).audited("policies", "create").when(Feature::Policies),
    get(101, "/policies/rate-limits", ANY, &["policies.list"]).when(Feature::Policies),
    get(102, "/policies/rate-limits/{rateLimitsPolicyId}", ANY, &["policies.read"]).when(Feature::Policies),
    put(103, "/policies/rate-limits/{rateLimitsPolicyId}", ANY, &["policies.update"])
        .audited("policies", "update")
        .when(Feature::Policies),
    delete(104, "/policies/rate-limits/{rateLimitsPolicyId}", ANY, &["policies.delete"])
        .audited("policies", "delete")
        .when(Feature::Policies),
    get(105, "/policies/rate-limits/{id}/entities", ANY, &["policies.read"]).when(Feature::Policies),
    post(106, "/policies/usage-limits", ANY, &["policies.create"])
        .audited("policies", "create")
        .when(Feature::Policies),
    get(107, "/policies/usage-limits", ANY, &["policies.list"]).when(Feature::Policies),
    get(108, "/policies/usage-limits/{policyUsageLimitsId}", ANY, &["policies.read"]).when(Feature::Policies),
    put(109, "/policies/usage-limits/{policyUsageLimitsId}", ANY, &["policies.update"])
        .audited("policies", "update")
        .when(Feature::Policies),
    delete(110, "/policies/usage-limits/{policyUsageLimitsId}", ANY, &["policies.delete"])
        .audited("policies", "delete")
        .when(Feature::Policies),
    get(111, "/policies/usage-limits/{id}/entities", ANY, &["policies.read"]).when(Feature::Policies),
    put(112, "/policies/usage-limits/{id}/entities/{entityId}/reset", ANY, &["policies.update"])
        .audited("policies", "manage")
        .when(Feature::Policies),
    // Alias of 112 that one client calls, with the entity in the body.
    post(0, "/policies/usage-limits/{id}/entities/reset", ANY, &["policies.update"])
        .audited("policies", "manage")
        .when(Feature::Policies),
];
