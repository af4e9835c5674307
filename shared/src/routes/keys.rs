//! API keys. Which of the three `*_api_keys` families is needed depends on the kind of the key in question, so the
//! row lists all three and the handler narrows. Sessions hold a fourth, for the person's own keys.

use super::operation::{ADMIN as A, ANY, Operation, delete, get, keys, post, put};

const LIST: &[&str] = &[
    "organisation_service_api_keys.list",
    "workspace_service_api_keys.list",
    "workspace_user_api_keys.list",
    "own_api_keys.list",
];
const READ: &[&str] = &[
    "organisation_service_api_keys.read",
    "workspace_service_api_keys.read",
    "workspace_user_api_keys.read",
    "own_api_keys.read",
];
const UPDATE: &[&str] = &[
    "organisation_service_api_keys.update",
    "workspace_service_api_keys.update",
    "workspace_user_api_keys.update",
    "own_api_keys.update",
];
const DELETE: &[&str] = &[
    "organisation_service_api_keys.delete",
    "workspace_service_api_keys.delete",
    "workspace_user_api_keys.delete",
    "own_api_keys.delete",
];
const ROTATE: &[&str] = &[
    "organisation_service_api_keys.rotate",
    "workspace_service_api_keys.rotate",
    "workspace_user_api_keys.rotate",
    "own_api_keys.rotate",
    "organisation_service_api_keys.update",
    "workspace_service_api_keys.update",
    "workspace_user_api_keys.update",
];

pub(super) static API_KEYS: &[Operation] = &[
    post(31, "/api-keys/organisation/service", A, &["organisation_service_api_keys.create"])
        .audited("api_keys", "create")
        .after_recent_sign_in(),
    post(32, "/api-keys/workspace/service", keys(true, true, false, false), &["workspace_service_api_keys.create"])
        .audited("api_keys", "create")
        .by_workspace_session(),
    post(33, "/api-keys/workspace/user", keys(true, true, true, false), &["workspace_user_api_keys.create"])
        .audited("api_keys", "create"),
    // Every other pair of kinds is answered 400, not passed to a provider.
    post(0, "/api-keys/{type}/{subType}", ANY, &[]).audited("api_keys", "create"),
    get(34, "/api-keys", ANY, LIST),
    get(35, "/api-keys/{id}", ANY, READ),
    put(36, "/api-keys/{id}", ANY, UPDATE).audited("api_keys", "update"),
    delete(37, "/api-keys/{id}", ANY, DELETE).audited("api_keys", "delete"),
    post(38, "/api-keys/{id}/rotate", ANY, ROTATE).audited("api_keys", "rotate"),
    get(39, "/api-keys/self", ANY, &[]),
];
