//! Every operation that people's keys may call, by every role and both ways: what a role includes passes, what it does
//! not include is refused. The expectation is made from the route table and the rules of `access`; that those rules
//! are the right ones is tested beside them, as tables.

use crate::service::Service;
use admin::identity::access::{SecuritySettings, Standing, effective_scopes};
use harness::{Answer, Client, client::whole};
use http::Method;
use shared::model::KeyKind;
use shared::routes::{Access, Operation, operations};
use uuid::Uuid;

/// Role in the organisation, role in the workspace.
const PEOPLE: [(&str, Option<&str>); 6] = [
    ("owner", None),
    ("admin", None),
    ("member", Some("admin")),
    ("member", Some("manager")),
    ("member", Some("member")),
    ("member", None),
];

async fn call(client: &Client, operation: &Operation) -> Answer {
    let fill = |segment: &str| match segment.strip_prefix('{') {
        Some(name) if name.starts_with('*') => "a/b".to_owned(),
        Some(_) => Uuid::nil().to_string(),
        None => segment.to_owned(),
    };
    let path = operation.path.split('/').map(fill).collect::<Vec<_>>().join("/");
    let method = Method::from_bytes(operation.method.as_str().as_bytes()).unwrap();
    whole(client.request(method, &path)).await
}

#[tokio::test]
async fn every_role_may_do_what_it_includes_and_nothing_else() {
    let service = Service::start().await;
    let every_scope: Vec<&str> = shared::identity::scopes::SCOPES.iter().map(|scope| scope.name).collect();
    let held: Vec<String> = every_scope.iter().map(|scope| (*scope).to_owned()).collect();
    let (mut passed, mut refused) = (0, 0);
    for (organisation_role, role) in PEOPLE {
        let person = service.person(organisation_role, role).await;
        let workspace = service.home.workspace_id;
        let key = service.key_for(&service.home, workspace, person, KeyKind::WorkspaceUser, &every_scope).await;
        let client = service.client().with_key(&key.key);
        let standing = Standing::new(organisation_role, role, SecuritySettings::default());
        let scopes = effective_scopes(&held, &standing);
        for operation in operations() {
            let Access::Keys(kinds) = operation.access else { continue };
            if !kinds.workspace_user {
                continue;
            }
            let answer = call(&client, operation).await;
            let is_refused = answer.status == 403 && answer.text().contains("(needs ");
            let is_included = operation.scopes.are_met_by(&scopes);
            assert_eq!(is_refused, !is_included, "{organisation_role} {role:?} {operation:?}: {}", answer.text());
            if is_included { passed += 1 } else { refused += 1 }
        }
    }
    assert!(passed > 100 && refused > 100, "both ways: {passed} passed, {refused} were refused");
}
