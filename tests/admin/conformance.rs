//! Every operation of the route table, one after the other: no credential, a wrong one, the wrong kind of key, no
//! scope, each scope that should do, and the shape of every answer.

use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::{HeaderValue, Method};
use shared::identity::scopes;
use shared::model::KeyKind::{self, OrganisationService, WorkspaceService, WorkspaceUser};
use shared::routes::{Access, Operation, Scopes, operations};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::LazyLock;

const KINDS: [KeyKind; 3] = [OrganisationService, WorkspaceService, WorkspaceUser];

async fn call(client: &Client, operation: &Operation) -> Answer {
    let fill = |segment: &str| match segment.strip_prefix('{') {
        Some(name) if name.starts_with('*') => "a/b".to_owned(),
        Some(_) => "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11".to_owned(),
        None => segment.to_owned(),
    };
    let path = operation.path.split('/').map(fill).collect::<Vec<_>>().join("/");
    let method = Method::from_bytes(operation.method.as_str().as_bytes()).unwrap();
    whole(client.request(method, &path)).await
}

/// Status and code; the answer must have the shape that clients rely on.
fn outcome(operation: &Operation, answer: &Answer) -> (u16, Option<String>) {
    if answer.header("content-type") == "text/event-stream" {
        return (answer.status.as_u16(), None);
    }
    let body = answer.json();
    assert!(body.is_object(), "{operation:?}: {body}");
    let is_scim = operation.access == Access::ScimToken;
    let kind = if is_scim { "application/scim+json" } else { "application/json" };
    assert_eq!(answer.header("content-type"), kind, "{operation:?}");
    let id = answer.header("x-gateway-request-id");
    assert_eq!(id.len(), 36, "{operation:?}: {id}");
    if answer.status.is_success() {
        return (answer.status.as_u16(), None);
    }
    if is_scim {
        assert_eq!(body["status"], answer.status.as_str(), "{operation:?}");
        assert!(body["detail"].as_str().is_some_and(|text| !text.is_empty()), "{operation:?}: {body}");
        return (answer.status.as_u16(), (answer.status == 401).then(|| "AB05".to_owned()));
    }
    assert_eq!(body["success"], false, "{operation:?}");
    assert_eq!(body["request_id"], id, "{operation:?}");
    // Clients of the public price list read a miss as a text.
    let is_listing = operation.path.starts_with("/model-configs/") && answer.status == 404;
    let error = if is_listing { &body["error"] } else { &body["error"]["message"] };
    for message in [&body["message"], &body["data"]["message"], error] {
        assert!(message.as_str().is_some_and(|text| !text.is_empty()), "{operation:?}: {body}");
    }
    assert!(is_listing || body["error"]["code"] == body["data"]["errorCode"], "{operation:?}: {body}");
    (answer.status.as_u16(), body["data"]["errorCode"].as_str().map(str::to_owned))
}

fn is(outcome: &(u16, Option<String>), status: u16, code: &str) -> bool {
    outcome.0 == status && outcome.1.as_deref() == Some(code)
}

/// What a permitted call meets: its handler, or the honest answer that there is none. The call has no body and names
/// nothing that exists, so each handler has one answer to it; `successes` shows the other.
/// None when it did; else what it met.
fn missed(operation: &Operation, answer: &Answer) -> Option<String> {
    let (status, code) = outcome(operation, answer);
    let expected = if admin::resources::is_built(operation) { answer_to_nothing(operation) } else { 501 };
    let expected_code = match expected {
        200 => None,
        400 => Some("AB01"),
        404 => Some("AB08"),
        _ => Some("AB10"),
    };
    let is_as_expected = (status, code.as_deref()) == (expected, expected_code);
    let called = format!("{} {}", operation.method.as_str(), operation.path);
    (!is_as_expected).then(|| format!("{called}: {status} instead of {expected}: {}", answer.json()["message"]))
}

fn answer_to_nothing(operation: &Operation) -> u16 {
    let key = (operation.method.as_str(), operation.path);
    if let Some((_, _, status)) = UNUSUAL.iter().find(|(method, path, _)| (*method, *path) == key) {
        return *status;
    }
    // Figures need a time.
    if COUNTING.iter().any(|beginning| operation.path.starts_with(beginning)) {
        return 400;
    }
    match (operation.method.as_str(), operation.path.contains('{')) {
        ("GET", false) => 200,
        (_, true) => 404,
        (_, false) => 400,
    }
}

/// Operations that answer otherwise than lists (200), what is found by a name (404) and what needs a body (400).
static UNUSUAL: &[(&str, &str, u16)] = &[
    ("DELETE", "/admin/workspaces/{workspaceId}", 400),
    ("DELETE", "/workspaces/{workspaceId}", 400),
    ("POST", "/admin/workspaces/{workspaceId}/users", 400),
    ("POST", "/workspaces/{workspaceId}/users", 400),
    ("PUT", "/admin/workspaces/{workspaceId}/users/{userId}", 400),
    ("PUT", "/workspaces/{workspaceId}/users/{userId}", 400),
    ("PUT", "/admin/users/{userId}", 400),
    ("POST", "/api-keys/{type}/{subType}", 400),
    ("PUT", "/integrations/{slug}/models", 400),
    ("PUT", "/integrations/{slug}/integration-models", 400),
    ("DELETE", "/integrations/{slug}/models", 400),
    ("GET", "/auth/methods", 400),
    ("GET", "/auth/login", 400),
    ("GET", "/auth/callback/{organisationId}", 400),
    ("POST", "/auth/backchannel-logout/{organisationId}", 400),
    ("POST", "/auth/saml/{organisationId}/acs", 400),
    ("POST", "/admin/saml-keys", 200),
    ("POST", "/admin/saml-keys/activate", 404),
    ("DELETE", "/admin/saml-keys/standby", 404),
    ("POST", "/configs/{slug}/rollback", 400),
    ("POST", "/guardrails/{id}/rollback", 400),
    ("POST", "/policies/usage-limits/{id}/entities/reset", 400),
    ("PUT", "/feedback/{id}", 400),
    ("PUT", "/prompts/{promptId}/labels/{labelId}", 400),
];

/// Operations that count calls.
static COUNTING: &[&str] = &["/analytics/graphs/", "/analytics/summary/", "/analytics/groups/", "/logs/groups/"];

#[tokio::test]
async fn every_operation_refuses_a_missing_and_an_unknown_credential() {
    let service = Service::start().await;
    let mut wrong: Vec<String> = Vec::new();
    let stranger = service.client().with_key("pk_0123456789012345678901234567890123456789012");
    for operation in operations() {
        for client in [&service.client(), &stranger] {
            let answer = call(client, operation).await;
            match operation.access {
                Access::Public => wrong.extend(missed(operation, &answer)),
                Access::Keys(_) | Access::ScimToken | Access::Session => {
                    let met = outcome(operation, &answer);
                    assert!(is(&met, 401, "AB05"), "{operation:?}: {met:?}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_operation_admits_the_kinds_of_key_it_names_and_no_other() {
    let service = Service::start().await;
    let mut wrong: Vec<String> = Vec::new();
    let every_scope: Vec<&str> = scopes::SCOPES.iter().map(|scope| scope.name).collect();
    let mut clients = HashMap::new();
    for kind in KINDS {
        clients.insert(kind.as_str(), service.client().with_key(&service.key(kind, &every_scope).await.key));
    }
    for operation in operations() {
        let Access::Keys(kinds) = operation.access else { continue };
        for kind in KINDS {
            let answer = call(&clients[kind.as_str()], operation).await;
            if kinds.contains(kind) {
                wrong.extend(missed(operation, &answer).map(|missed| format!("{kind:?} {missed}")));
            } else {
                let met = outcome(operation, &answer);
                assert!(is(&met, 403, "AB03"), "{kind:?} {operation:?}: {met:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Of an organisation key; who holds less cannot change by whom people are recognised.
static EVERY_ADMIN_SCOPE: LazyLock<Vec<&str>> = LazyLock::new(|| scopes::all_for(OrganisationService));

#[tokio::test]
async fn every_operation_asks_for_one_of_its_scopes_and_for_nothing_more() {
    let service = Service::start().await;
    let mut wrong: Vec<String> = Vec::new();
    let mut clients: HashMap<(&str, &[&str]), Client> = HashMap::new();
    for operation in operations() {
        let Access::Keys(kinds) = operation.access else { continue };
        let kind = KINDS.into_iter().find(|kind| kinds.contains(*kind)).expect("somebody may call it");
        let sufficient: Vec<&'static [&'static str]> = match operation.scopes {
            _ if operation.changes_sign_in() => vec![&EVERY_ADMIN_SCOPE],
            Scopes::All(all) => vec![all],
            Scopes::Any(any) => any.chunks(1).collect(),
        };
        let insufficient: &[&'static [&'static str]] = match operation.scopes {
            Scopes::Any(any) if operation.changes_sign_in() => &[&[], any, &EVERY_ADMIN_SCOPE[1..]],
            Scopes::All(all) => &[&[], &all[..1], &all[1..]],
            Scopes::Any([]) => &[],
            Scopes::Any(_) => &[&[], &["agents.invoke"]],
        };
        let cases =
            sufficient.iter().map(|scopes| (*scopes, true)).chain(insufficient.iter().map(|scopes| (*scopes, false)));
        for (scopes, suffices) in cases {
            if let Entry::Vacant(slot) = clients.entry((kind.as_str(), scopes)) {
                slot.insert(service.client().with_key(&service.key(kind, scopes).await.key));
            }
            let answer = call(&clients[&(kind.as_str(), scopes)], operation).await;
            if suffices {
                wrong.extend(missed(operation, &answer).map(|missed| format!("{scopes:?} {missed}")));
            } else {
                let met = outcome(operation, &answer);
                assert!(is(&met, 403, "AB03"), "{scopes:?} {operation:?}: {met:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_feature_that_is_off_is_answered_402_for_its_routes_alone() {
    let off = ["--guardrails-enabled=OFF", "--policy-enabled=OFF", "--data-exports-enabled=OFF", "--scim-enabled=OFF"];
    let service = Service::start_with(&[&off[..], &["--audit-logs-enabled=OFF"]].concat()).await;
    let client = service.administrator();
    for operation in operations().filter(|one| matches!(one.access, Access::Keys(_))) {
        let met = outcome(operation, &call(&client, operation).await);
        assert_eq!(is(&met, 402, "AB09"), operation.feature.is_some(), "{operation:?}: {met:?}");
    }
}

#[tokio::test]
async fn without_api_access_keys_may_do_nothing_and_public_routes_remain() {
    let service = Service::start_with(&["--api-access-enabled=OFF"]).await;
    let mut wrong: Vec<String> = Vec::new();
    let client = service.administrator();
    let by_key = operations().filter(|one| !matches!(one.access, Access::ScimToken | Access::Session));
    for operation in by_key {
        let answer = call(&client, operation).await;
        match operation.access {
            Access::Public => wrong.extend(missed(operation, &answer)),
            _ => assert!(is(&outcome(operation, &answer), 402, "AB09"), "{operation:?}"),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A path that the table knows answers 405 with the methods it has, a path that it does not know 404.
#[tokio::test]
async fn unknown_paths_and_methods_are_told_apart() {
    let service = Service::start().await;
    let client = service.administrator();
    for (method, path, status, allow) in [
        (Method::PATCH, "/configs", 405, "POST, GET"),
        (Method::DELETE, "/guardrails/checks", 405, "GET"),
        (Method::OPTIONS, "/api-keys/self", 405, "GET"),
        (Method::GET, "/chat/completions", 404, ""),
        (Method::POST, "/prompts/pp-1/completions", 404, ""),
        (Method::GET, "/models", 404, ""),
        (Method::GET, "/nothing", 404, ""),
        (Method::GET, "/%63onfigs", 404, ""),
    ] {
        let answer = whole(client.request(method.clone(), path)).await;
        assert_eq!(answer.status, status, "{method} {path}");
        assert_eq!(answer.json()["data"]["errorCode"], "AB02", "{method} {path}");
        assert_eq!(
            answer.headers.get("allow"),
            HeaderValue::from_str(allow).ok().filter(|one| !one.is_empty()).as_ref()
        );
    }
    for path in ["/", "/v1", "/configs", "/v1x/configs"] {
        let answer = Client::new(&service.origin).with_key(&service.home.admin_key.key).get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str()),
            (404, Some("AB02")),
            "{path}"
        );
    }
}
