//! The table is complete, unambiguous and leaves inference alone.

use super::template;
use super::*;
use std::collections::BTreeSet;

/// A path that fits the template, with values no literal uses.
fn sample(template: &str) -> String {
    let fill = |segment: &str| match segment.strip_prefix('{') {
        Some(name) if name.starts_with('*') => "with/a/slash".to_owned(),
        Some(_) => "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11".to_owned(),
        None => segment.to_owned(),
    };
    template.split('/').map(fill).collect::<Vec<_>>().join("/")
}

#[test]
fn every_operation_finds_itself_with_and_without_a_trailing_slash() {
    for operation in operations() {
        let path = sample(operation.path);
        for path in [path.clone(), format!("{path}/")] {
            assert_eq!(find(operation.method.as_str(), &path), Lookup::Operation(operation), "{path}");
        }
    }
}

/// 233 operations in the contract, of which 11 are inference; 63 rows are aliases and additions.
#[test]
fn every_numbered_operation_of_the_contract_is_there_but_for_inference() {
    let inference = [76, 206, 207, 208, 209];
    let expected: BTreeSet<u16> = (1..=216).filter(|number| !inference.contains(number)).collect();
    let present: BTreeSet<u16> = operations().map(|one| one.number).filter(|number| *number != 0).collect();
    assert_eq!(present, expected);
    assert_eq!(operations().filter(|one| one.number != 0).count(), 233 - 11);
    assert_eq!(operations().filter(|one| one.number == 0).count(), 63);
}

#[test]
fn inference_and_pass_through_are_not_the_control_planes() {
    for path in [
        "",
        "/",
        "/chat/completions",
        "/completions",
        "/embeddings",
        "/messages",
        "/messages/count_tokens",
        "/responses/resp_1",
        "/audio/transcriptions",
        "/images/generations",
        "/moderations",
        "/rerank",
        "/files",
        "/files/file-1/content",
        "/batches",
        "/batches/gwb-1/output",
        "/fine_tuning/jobs",
        "/models",
        "/models/gpt-4o",
        "/assistants",
        "/realtime",
        "/prompts/pp-greeting-1a2b3c/completions",
        "/proxy/configs",
        "/configs/pc-1/unknown",
        "/Configs",
        "/configsx",
        "/%63onfigs",
        "//configs",
        "/configs//",
        "configs",
    ] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            assert_eq!(find(method, path), Lookup::NotControlPlane, "{method} {path}");
        }
    }
}

/// An identity provider that asks for what is not there hears it in its protocol's words, and no provider is asked.
#[test]
fn what_is_below_scim_and_no_operation_is_still_the_control_planes() {
    for path in ["/scim/.search", "/scim/0b0cb1f4", "/scim/Users/a/b", "/scim/Me"] {
        for method in ["GET", "POST", "DELETE"] {
            assert_eq!(find(method, path), Lookup::Unknown, "{method} {path}");
        }
    }
    assert_eq!(find("GET", "/scim"), Lookup::NotControlPlane);
    assert_eq!(find("POST", "/scim/Users/.search"), Lookup::WrongMethod);
}

#[test]
fn a_literal_path_wins_over_a_parameter_whatever_the_method() {
    for (method, path, number) in [
        ("GET", "/guardrails/checks", Some(99)),
        ("DELETE", "/guardrails/checks", None),
        ("GET", "/prompts/partials", Some(78)),
        ("DELETE", "/prompts/partials", None),
        ("GET", "/prompts/partials/versions", Some(79)),
        ("POST", "/prompts/partials/render", None),
        ("GET", "/api-keys/self", Some(39)),
        ("DELETE", "/api-keys/self", None),
        ("POST", "/api-keys/k/rotate", Some(38)),
        ("POST", "/api-keys/organisation/user", Some(0)),
        ("GET", "/logs/exports", Some(188)),
        ("GET", "/logs/exports/field-restrictions", Some(194)),
        ("GET", "/logs/erase", None),
        ("GET", "/analytics/groups/users", Some(178)),
        ("GET", "/analytics/groups/model", Some(182)),
        ("GET", "/scim/groups", Some(199)),
        ("GET", "/scim/Groups", Some(204)),
        ("get", "/configs", None),
        ("PATCH", "/configs", None),
    ] {
        match (find(method, path), number) {
            (Lookup::Operation(found), Some(number)) => assert_eq!(found.number, number, "{method} {path}"),
            (Lookup::WrongMethod, None) => {}
            (other, _) => panic!("{method} {path}: {other:?}"),
        }
    }
}

#[test]
fn no_two_operations_claim_the_same_method_and_paths() {
    let shape = |path: &str| -> String {
        path.split('/')
            .map(|segment| if segment.starts_with('{') { "{}" } else { segment })
            .collect::<Vec<_>>()
            .join("/")
    };
    let mut seen = BTreeSet::new();
    for operation in operations() {
        assert!(seen.insert((operation.method.as_str(), shape(operation.path))), "{operation:?}");
    }
}

/// A path is resolved to one template before its method counts.
#[test]
fn rows_of_one_path_spell_their_parameters_alike() {
    for one in operations() {
        for other in operations().filter(|other| other.path != one.path) {
            let (here, there) = (sample(one.path), sample(other.path));
            let same = template::matches(other.path, &here) && template::matches(one.path, &there);
            assert!(!same, "{} and {}", one.path, other.path);
        }
    }
}

/// Two templates cross when each is the more specific one somewhere; the left-most literal then decides.
#[test]
fn only_prompt_partials_and_invites_rely_on_the_left_most_literal() {
    const LEFT_MOST: [&str; 2] = ["/prompts/partials/", "/admin/users/invites/"];
    let crosses = |one: &str, other: &str| {
        let pairs: Vec<_> = one.split('/').zip(other.split('/')).collect();
        let is_parameter = |segment: &str| segment.starts_with('{');
        one.split('/').count() == other.split('/').count()
            && pairs.iter().all(|(a, b)| a == b || is_parameter(a) || is_parameter(b))
            && pairs.iter().any(|(a, b)| is_parameter(a) && !is_parameter(b))
            && pairs.iter().any(|(a, b)| !is_parameter(a) && is_parameter(b))
    };
    for one in operations() {
        for other in operations().filter(|other| crosses(one.path, other.path)) {
            let is_known = LEFT_MOST.iter().any(|left| one.path.starts_with(left) || other.path.starts_with(left));
            assert!(is_known, "{} and {}", one.path, other.path);
        }
    }
}

#[test]
fn a_wrong_method_is_answered_with_the_right_ones() {
    let methods = |path| allowed(path).map(Method::as_str).collect::<Vec<_>>();
    assert_eq!(methods("/configs/pc-1/"), ["GET", "PUT", "DELETE"]);
    assert_eq!(methods("/guardrails/checks"), ["GET"]);
    assert!(methods("/chat/completions").is_empty());
}

#[test]
fn scopes_are_exact_except_for_the_two_names_of_providers() {
    let held = |scopes: &[&str]| scopes.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    for (scopes, holder, met) in [
        (Scopes::Any(&[]), held(&[]), true),
        (Scopes::Any(&["configs.read"]), held(&["configs.list"]), false),
        (Scopes::Any(&["configs.read"]), held(&["configs.read"]), true),
        (Scopes::Any(&["a.read", "b.read"]), held(&["b.read"]), true),
        (Scopes::All(&["a.read", "b.read"]), held(&["b.read"]), false),
        (Scopes::All(&["a.read", "b.read"]), held(&["b.read", "a.read"]), true),
        (Scopes::Any(&["providers.read"]), held(&["virtual_keys.read"]), true),
        (Scopes::Any(&["virtual_keys.list"]), held(&["providers.list"]), true),
        (Scopes::Any(&["virtual_keys.list"]), held(&["providers.read"]), false),
    ] {
        assert_eq!(scopes.are_met_by(&holder), met, "{scopes} by {holder:?}");
    }
}

#[test]
fn feature_flags_cover_their_whole_group() {
    for (prefix, feature) in [
        ("/guardrails", Feature::Guardrails),
        ("/logs/exports", Feature::DataExports),
        ("/audit-logs", Feature::AuditLogs),
        ("/scim", Feature::Scim),
        ("/policies", Feature::Policies),
    ] {
        for operation in operations() {
            let inside = operation.path.starts_with(prefix);
            assert_eq!(operation.feature == Some(feature), inside, "{operation:?}");
        }
    }
}

/// User keys and tokens manage other keys through their user's role, which no scope expresses.
#[test]
fn every_kind_of_key_that_may_call_an_operation_can_hold_its_scopes() {
    use crate::model::KeyKind::{OrganisationService, WorkspaceService, WorkspaceUser};
    for operation in operations() {
        let Access::Keys(kinds) = operation.access else { continue };
        for kind in [OrganisationService, WorkspaceService, WorkspaceUser] {
            let by_role = kind == WorkspaceUser && operation.path.starts_with("/api-keys");
            let held: Vec<String> = crate::identity::scopes::all_for(kind).into_iter().map(str::to_owned).collect();
            let callable = kinds.contains(kind) && !by_role;
            assert!(!callable || operation.scopes.are_met_by(&held), "{kind:?}: {operation:?}");
        }
        let jwt: Vec<String> = crate::identity::scopes::all_for_jwt().into_iter().map(str::to_owned).collect();
        let callable = kinds.jwt && !operation.path.starts_with("/api-keys");
        assert!(!callable || operation.scopes.are_met_by(&jwt), "{operation:?}");
    }
}

#[test]
fn no_operation_needs_a_scope_that_does_not_exist() {
    for scope in operations().flat_map(|one| one.scopes.listed()) {
        assert!(crate::identity::scopes::SCOPES.iter().any(|one| one.name == *scope), "{scope}");
    }
}

#[test]
fn what_needs_no_credential_reads_next_to_nothing() {
    for operation in operations() {
        let most = match operation.access {
            // What an identity provider posts is as long as its certificates and groups.
            Access::Public if operation.path == "/auth/saml/{organisationId}/acs" => 400 << 10,
            Access::Public => PUBLIC_BODY,
            _ => 20 << 20,
        };
        assert!(operation.body_limit <= most, "{operation:?}");
    }
}
