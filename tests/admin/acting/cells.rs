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

/// Whether the gate lets it through, as the table and the scopes tell.
fn is_open(operation: &Operation, kinds: KeySet, place: Option<&str>, kind: KeyKind, held: &[String]) -> bool {
    let acts_there = match (operation.session_reach(), place) {
        (SessionReach::Nowhere | SessionReach::Person, _) => false,
        (SessionReach::Organisation, _) => kind == KeyKind::OrganisationService,
        (SessionReach::Workspace, place) => place != Some("*"),
        (SessionReach::WorkspaceOrOrganisation, Some("*")) => kind == KeyKind::OrganisationService,
        (SessionReach::WorkspaceOrOrganisation | SessionReach::WorkspacesOrOrganisation, _) => true,
    };
    acts_there && (kinds.contains(kind) || operation.workspace_sessions) && operation.scopes.are_met_by(held)
}

/// Refused before its handler was asked.
fn is_stopped(answer: &Answer) -> bool {
    let text = answer.text();
    answer.status == 403
        && ["scope", "kind of", "whole organisation", "one workspace", "no such workspace", "Sign-in settings"]
            .iter()
            .any(|part| text.contains(part))
}

async fn told(browser: &mut Browser) -> (KeyKind, Vec<String>) {
    let session = browser.get("/auth/session").await.json();
    let own = browser.get("/api-keys/self").await;
    let acting = &session["acting"];
    if own.status == 200 {
        let own = own.json();
        assert_eq!(scopes(&own), scopes(acting), "{own} {session}");
        let kind =
            if own["type"] == "organisation-service" { KeyKind::OrganisationService } else { KeyKind::WorkspaceUser };
        return (kind, scopes(&own));
    }
    (KeyKind::WorkspaceUser, scopes(acting))
}

#[tokio::test]
async fn every_role_may_do_what_it_is_told_at_every_operation() {
    let service = Service::start().await;
    let home = service.home.workspace_id.to_string();
    let (mut open, mut closed) = (0, 0);
    for (organisation_role, role) in ROLES {
        for place in [Some(home.as_str()), Some("*")] {
            let person = service.person(organisation_role, role).await;
            let mut browser = by_link(&service, person).await.with("x-gateway-workspace", place.unwrap());
            let (kind, held) = told(&mut browser).await;
            // Operations that only admin keys may call act for the organisation, whatever is named.
            let mut all = by_link(&service, person).await.with("x-gateway-workspace", "*");
            let everywhere = told(&mut all).await;
            for (operation, kinds) in rows() {
                let is_of_organisation = operation.session_reach() == SessionReach::Organisation;
                let (kind, held) = if is_of_organisation { (everywhere.0, &everywhere.1) } else { (kind, &held) };
                let expected = is_open(operation, kinds, place, kind, held)
                    && !(operation.is_of_sign_in() && organisation_role != "owner");
                let answer = by_session(&mut browser, operation).await;
                assert_eq!(
                    !is_stopped(&answer),
                    expected,
                    "{organisation_role} {role:?} at {place:?}: {operation:?}: {}",
                    answer.text()
                );
                if expected { open += 1 } else { closed += 1 }
            }
        }
    }
    assert!(open > 1000 && closed > 1000, "{open} {closed}");
}
