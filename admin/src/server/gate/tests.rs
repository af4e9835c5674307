//! The order of refusals, and what counts as a control-plane path.

use super::*;
use shared::identity::api_key::KeyHash;
use shared::model::{AccessStatus, KeyKind};
use shared::routes::Lookup;
use uuid::Uuid;

fn operation(method: &str, path: &str) -> &'static Operation {
    match routes::find(method, path) {
        Lookup::Operation(found) => found,
        other => panic!("{method} {path}: {other:?}"),
    }
}

fn caller(kind: KeyKind, scopes: &[&str]) -> Caller {
    let key = ApiKey {
        id: Uuid::nil().into(),
        organisation_id: Uuid::nil().into(),
        workspace_id: None,
        user_id: None,
        kind,
        hash: KeyHash([0; 32]),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    };
    Caller::new(key, None)
}

fn all_on() -> Features {
    Features {
        guardrails_enabled: true,
        api_access_enabled: true,
        data_exports_enabled: true,
        usage_limits_enabled: true,
        audit_logs_enabled: true,
        scim_enabled: true,
        scim_membership_user_mode: false,
        policy_enabled: true,
    }
}

#[test]
fn a_caller_needs_a_live_feature_the_right_kind_of_key_and_the_scope() {
    use KeyKind::{OrganisationService, WorkspaceService, WorkspaceUser};
    for (method, path, kind, scopes, code) in [
        ("GET", "/configs", WorkspaceUser, &["configs.list"][..], None),
        ("GET", "/configs", WorkspaceUser, &["configs.read"], Some("AB03")),
        ("GET", "/configs", WorkspaceUser, &[], Some("AB03")),
        ("GET", "/audit-logs", OrganisationService, &["audit_logs.list"], None),
        ("GET", "/audit-logs", WorkspaceService, &["audit_logs.list"], Some("AB03")),
        ("POST", "/feedback", WorkspaceService, &["completions.write"], None),
        ("POST", "/feedback", OrganisationService, &["logs.write"], Some("AB03")),
        ("POST", "/logs", WorkspaceService, &["logs.write"], Some("AB03")),
        ("POST", "/logs", WorkspaceService, &["logs.write", "completions.write"], None),
        ("GET", "/virtual-keys", WorkspaceService, &["providers.list"], None),
        ("GET", "/api-keys/self", WorkspaceUser, &[], None),
    ] {
        let refused = permit(operation(method, path), Some(&caller(kind, scopes)), &all_on()).err();
        assert_eq!(refused.map(|error| error.code()), code, "{method} {path} {kind:?} {scopes:?}");
    }
}

#[test]
fn a_feature_that_is_off_is_the_first_reason() {
    let workspace_key = caller(KeyKind::WorkspaceService, &[]);
    for (path, flags, setting) in [
        ("/guardrails", Features { guardrails_enabled: false, ..all_on() }, "GUARDRAILS_ENABLED"),
        ("/logs/exports", Features { data_exports_enabled: false, ..all_on() }, "DATA_EXPORTS_ENABLED"),
        ("/audit-logs", Features { audit_logs_enabled: false, ..all_on() }, "AUDIT_LOGS_ENABLED"),
        ("/scim/groups", Features { scim_enabled: false, ..all_on() }, "SCIM_ENABLED"),
        ("/policies/rate-limits", Features { policy_enabled: false, ..all_on() }, "POLICY_ENABLED"),
        ("/configs", Features { api_access_enabled: false, ..all_on() }, "API_ACCESS_ENABLED"),
        ("/api-keys/self", Features { api_access_enabled: false, ..all_on() }, "API_ACCESS_ENABLED"),
    ] {
        let refused = permit(operation("GET", path), Some(&workspace_key), &flags).unwrap_err();
        assert_eq!(refused.code(), "AB09", "{path}");
        assert!(refused.to_string().contains(setting), "{path}: {refused}");
    }
}

#[test]
fn a_refusal_names_the_scopes_it_misses() {
    let refused = permit(operation("POST", "/logs"), Some(&caller(KeyKind::WorkspaceService, &[])), &all_on());
    assert!(refused.unwrap_err().to_string().contains("needs completions.write and logs.write"));
}

#[test]
fn paths_are_relative_to_the_version_and_prices_also_to_the_root() {
    for (path, expected) in [
        ("/v1/configs", Some("/configs")),
        ("/v1", None),
        ("/v1x/configs", None),
        ("/configs", None),
        ("/model-configs/pricing/openai/gpt-4o", Some("/model-configs/pricing/openai/gpt-4o")),
        ("/model-configs/general/openai", Some("/model-configs/general/openai")),
    ] {
        assert_eq!(relative(path), expected, "{path}");
    }
}

#[test]
fn a_canonical_uri_has_the_version_no_trailing_slash_and_its_query() {
    for (uri, expected) in [
        ("/v1/configs/", "/v1/configs"),
        ("/v1/configs?search=a%20b&x=", "/v1/configs?search=a%20b&x="),
        ("/v1/configs/?x=1", "/v1/configs?x=1"),
        ("/model-configs/pricing/openai/a/b", "/v1/model-configs/pricing/openai/a/b"),
    ] {
        assert_eq!(canonical(&uri.parse().unwrap()).to_string(), expected);
    }
}
