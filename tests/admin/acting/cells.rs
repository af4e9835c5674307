//! What a session is told it may do is what it may do: each operation of the route table, by each role, against the scopes
//! that `GET /api-keys/self` and `GET /auth/session` tell and the reach that the table tells.

use super::{by_session, rows};
use crate::login::browser::Browser;
use crate::login::by_link;
use crate::service::Service;
use harness::Answer;
use serde_json::Value;
use shared::model::KeyKind;
use shared::routes::{KeySet, Operation, SessionReach};

/// Role in the organisation, role in the workspace.
const ROLES: [(&str, Option<&str>); 6] = [
    ("owner", None),
    ("admin", None),
    ("member", Some("admin")),
    ("member", Some("manager")),
    ("member", Some("member")),
    ("member", None),
];

fn scopes(told: &Value) -> Vec<String> {
    let scopes = told["scopes"].as_array().into_iter().flatten();
    scopes.map(|scope| scope.as_str().unwrap().to_owned()).collect()
}

/// What a session is told of itself at one place; none where it may not act.
struct Told {
    kind: KeyKind,
    scopes: Vec<String>,
}

/// Whether the gate lets it through, as the table and the scopes tell.
fn is_open(operation: &Operation, kinds: KeySet, place: &str, told: Option<&Told>) -> bool {
    let Some(told) = told else { return false };
    let is_organisation = told.kind == KeyKind::OrganisationService;
    let acts_there = match operation.session_reach() {
        SessionReach::Nowhere | SessionReach::Person => false,
        SessionReach::Organisation => is_organisation,
        SessionReach::Workspace => place != "*",
        SessionReach::WorkspaceOrOrganisation => place != "*" || is_organisation,
        SessionReach::WorkspacesOrOrganisation => true,
    };
    acts_there
        && (kinds.contains(told.kind) || operation.workspace_sessions)
        && operation.scopes.are_met_by(&told.scopes)
}

/// Refused before its handler was asked.
fn is_stopped(answer: &Answer) -> bool {
    const REASONS: [&str; 5] = [
        "may not perform the operation",
        "act for the whole organisation",
        "is about one workspace",
        "in no such workspace",
        "Sign-in settings are for",
    ];
    let text = answer.text();
    answer.status == 403 && REASONS.iter().any(|reason| text.contains(reason))
}

async fn told(browser: &mut Browser) -> Option<Told> {
    let session = browser.get("/auth/session").await.json();
    let (acting, own) = (&session["acting"], browser.get("/api-keys/self").await);
    if own.status == 200 {
        let own = own.json();
        assert_eq!(scopes(&own), scopes(acting), "{own} {session}");
        let is_organisation = own["type"] == "organisation-service";
        let kind = if is_organisation { KeyKind::OrganisationService } else { KeyKind::WorkspaceUser };
        return Some(Told { kind, scopes: scopes(&own) });
    }
    // In several workspaces at once, where no one key would stand for the session.
    acting.is_object().then(|| Told { kind: KeyKind::WorkspaceUser, scopes: scopes(acting) })
}

#[tokio::test]
async fn every_role_may_do_what_it_is_told_at_every_operation() {
    let service = Service::start().await;
    let home = service.home.workspace_id.to_string();
    let (mut open, mut closed) = (0, 0);
    for (organisation_role, role) in ROLES {
        for place in [home.as_str(), "*"] {
            let person = service.person(organisation_role, role).await;
            let signed_in = by_link(&service, person).await;
            let mut browser = signed_in.with("x-gateway-workspace", place);
            let here = told(&mut browser).await;
            // Operations that only admin keys may call act for the organisation, whatever is named.
            let everywhere = told(&mut signed_in.with("x-gateway-workspace", "*")).await;
            for (operation, kinds) in rows() {
                let is_of_organisation = operation.session_reach() == SessionReach::Organisation;
                let told = if is_of_organisation { &everywhere } else { &here };
                let is_for_owners = operation.is_of_sign_in() && organisation_role != "owner";
                let expected = is_open(operation, kinds, place, told.as_ref()) && !is_for_owners;
                let answer = by_session(&mut browser, operation).await;
                assert_eq!(
                    !is_stopped(&answer),
                    expected,
                    "{organisation_role} {role:?} at {place}: {operation:?}: {}",
                    answer.text()
                );
                *(if expected { &mut open } else { &mut closed }) += 1;
            }
        }
    }
    assert!(open > 500 && closed > 500, "{open} {closed}");
}
