//! Roles and settings, as tables.

use super::*;
use serde_json::json;
use shared::identity::scopes;
use shared::model::KeyKind;

fn defaults() -> SecuritySettings {
    SecuritySettings::default()
}

#[test]
fn every_scope_that_a_person_can_hold_has_a_rule() {
    let held = scopes::all_for_jwt().into_iter().chain(scopes::all_for(KeyKind::WorkspaceUser));
    for scope in held {
        let family = scope.rsplit_once('.').unwrap().0;
        assert!(IN_USE.contains(&scope) || RULES.iter().any(|rule| rule.family == family), "{scope}");
    }
}

#[test]
fn every_setting_that_a_rule_names_exists() {
    for rule in RULES {
        for permission in rule.members.iter().chain(&rule.managers) {
            if let If(name) = permission {
                assert!(security::SETTINGS.iter().any(|setting| setting.name == *name), "{name}");
            }
        }
    }
}

#[test]
fn by_default_members_look_managers_change_and_admins_do_all() {
    for (scope, member, manager) in [
        ("prompts.read", true, true),
        ("prompts.render", true, true),
        ("prompts.create", false, true),
        ("prompts.publish", false, true),
        ("configs.update", false, true),
        ("virtual_keys.copy", false, true),
        ("providers.delete", false, true),
        ("policies.list", true, true),
        ("policies.create", false, true),
        ("cache.delete", false, true),
        ("workspaces.update", false, true),
        ("workspace_users.list", true, true),
        ("workspace_users.create", false, true),
        ("workspace_user_api_keys.create", false, true),
        ("workspace_service_api_keys.read", true, true),
        ("organisation_integrations.list", true, true),
        ("organisation_integrations.create", false, false),
        ("organisation_users.list", false, false),
        ("analytics.view", true, true),
        ("logs.export", true, true),
        ("logs.write", true, true),
        ("completions.write", true, true),
        ("mcp_servers.update", false, true),
        ("invented.read", false, false),
    ] {
        assert_eq!(grants(WorkspaceRole::Member, &defaults(), scope), member, "member {scope}");
        assert_eq!(grants(WorkspaceRole::Manager, &defaults(), scope), manager, "manager {scope}");
        assert!(grants(WorkspaceRole::Admin, &defaults(), scope), "admin {scope}");
    }
}

/// Each setting, switched from its default, changes what its role may do, and never what an admin may.
#[test]
fn a_setting_turns_its_right_for_its_role_alone() {
    let scopes: Vec<&str> = scopes::SCOPES.iter().map(|scope| scope.name).collect();
    for setting in security::SETTINGS {
        let turned = security::effective(&json!({ setting.name: !setting.default }), &json!({}), &json!({}));
        let differs = |role: WorkspaceRole| {
            scopes.iter().any(|scope| grants(role, &turned, scope) != grants(role, &defaults(), scope))
        };
        // These decide which rows or fields of logs are seen, not whether.
        let is_fine = setting.name.contains("AllData")
            || setting.name.contains("LogMetadata")
            || setting.name.starts_with("organisation");
        assert_eq!(differs(WorkspaceRole::Member), !is_fine && setting.name.starts_with("members"), "{}", setting.name);
        assert_eq!(
            differs(WorkspaceRole::Manager),
            !is_fine && setting.name.starts_with("managers"),
            "{}",
            setting.name
        );
        assert!(!differs(WorkspaceRole::Admin), "{}", setting.name);
    }
}

#[test]
fn owners_and_admins_of_the_organisation_are_admins_everywhere_and_strangers_nothing() {
    for (organisation, member, role) in [
        ("owner", None, Some(WorkspaceRole::Admin)),
        ("admin", Some("member"), Some(WorkspaceRole::Admin)),
        ("member", Some("manager"), Some(WorkspaceRole::Manager)),
        ("member", None, None),
        ("", Some("invented"), None),
    ] {
        assert_eq!(Standing::new(organisation, member, defaults()).role, role, "{organisation} {member:?}");
    }
    let stranger = Standing::new("member", None, defaults());
    assert!(effective_scopes(&["prompts.read".into(), "completions.write".into()], &stranger).is_empty());
}

#[test]
fn creating_user_keys_comes_with_the_role() {
    let held = ["prompts.read".to_owned(), "prompts.create".to_owned()];
    let of = |role: &str| effective_scopes(&held, &Standing::new("member", Some(role), defaults()));
    assert_eq!(of("member"), ["prompts.read"]);
    assert_eq!(of("manager"), ["prompts.read", "prompts.create", "workspace_user_api_keys.create"]);
}

#[test]
fn nobody_gives_a_role_above_their_own() {
    for (by, role, allowed) in [
        (WorkspaceRole::Manager, WorkspaceRole::Admin, false),
        (WorkspaceRole::Manager, WorkspaceRole::Manager, true),
        (WorkspaceRole::Manager, WorkspaceRole::Member, true),
        (WorkspaceRole::Admin, WorkspaceRole::Admin, true),
        (WorkspaceRole::Member, WorkspaceRole::Member, false),
    ] {
        assert_eq!(may_assign(by, role), allowed, "{by:?} {role:?}");
    }
}
