//! Owners and admins act for the whole organisation by their session: with every operation that an admin key has, and
//! nobody else by it. All of it is made from the route table, so that a new row is held to it, too.

mod cells;
mod keys;
mod limits;
mod owners;
mod recent;
mod workspaces;

use crate::login::browser::Browser;
use crate::login::{AUTH_SETTINGS, by_link};
use crate::logs::{at, store};
use crate::service::Service;
use chrono::SecondsFormat;
use harness::issuer::{Issuer, claims};
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::identity::scopes;
use shared::model::KeyKind;
use shared::routes::{Access, KeySet, Operation, SessionReach, operations};
use uuid::Uuid;

/// Role in the organisation, role in the workspace: those who do not run the organisation.
const OTHERS: [(&str, Option<&str>); 4] =
    [("member", Some("admin")), ("member", Some("manager")), ("member", Some("member")), ("member", None)];

fn path_of(operation: &Operation) -> String {
    let fill = |segment: &str| match segment.strip_prefix('{') {
        Some(name) if name.starts_with('*') => "a/b".to_owned(),
        Some(_) => Uuid::nil().to_string(),
        None => segment.to_owned(),
    };
    operation.path.split('/').map(fill).collect::<Vec<_>>().join("/")
}

fn method_of(operation: &Operation) -> Method {
    Method::from_bytes(operation.method.as_str().as_bytes()).unwrap()
}

async fn by_session(browser: &mut Browser, operation: &Operation) -> Answer {
    browser.send(method_of(operation), &path_of(operation), None).await
}

async fn by_key(client: &Client, operation: &Operation) -> Answer {
    whole(client.request(method_of(operation), &path_of(operation))).await
}

fn rows() -> impl Iterator<Item = (&'static Operation, KeySet)> {
    operations().filter_map(|operation| match operation.access {
        Access::Keys(kinds) => Some((operation, kinds)),
        _ => None,
    })
}

/// The session of somebody, who names all workspaces.
async fn everywhere(service: &Service, person: Uuid) -> Browser {
    by_link(service, person).await.with("x-gateway-workspace", "*")
}

#[tokio::test]
async fn owners_and_admins_have_every_operation_of_admin_keys() {
    let service = Service::start().await;
    let key = service.administrator();
    let mut owner = everywhere(&service, service.home.owner_id).await;
    let mut admin = everywhere(&service, service.person("admin", None).await).await;
    let mut plain = by_link(&service, service.home.owner_id).await;
    let mut reached = 0;
    for (operation, kinds) in rows() {
        if !kinds.organisation_service {
            assert_eq!(by_session(&mut owner, operation).await.status, 403, "of a workspace: {operation:?}");
            continue;
        }
        let expected = by_key(&key, operation).await.status;
        let by_owner = by_session(&mut owner, operation).await;
        assert!(!matches!(by_owner.status.as_u16(), 401 | 403), "{operation:?}: {}", by_owner.text());
        let by_admin = by_session(&mut admin, operation).await;
        if operation.is_of_sign_in() {
            assert_eq!(by_admin.status, 403, "{operation:?}: {}", by_admin.text());
            continue;
        }
        assert_eq!((by_owner.status, by_admin.status), (expected, expected), "{operation:?}: {}", by_admin.text());
        // What only admin keys may call needs no header.
        if operation.session_reach() == SessionReach::Organisation {
            assert_eq!(by_session(&mut plain, operation).await.status, expected, "{operation:?}");
        }
        reached += 1;
    }
    assert!(reached > 200, "{reached}");
}

#[tokio::test]
async fn nobody_else_acts_for_the_organisation() {
    let service = Service::start().await;
    for (organisation_role, role) in OTHERS {
        let person = service.person(organisation_role, role).await;
        let mut plain = by_link(&service, person).await;
        let mut all = plain.with("x-gateway-workspace", "*");
        for (operation, kinds) in rows() {
            let answer = by_session(&mut all, operation).await;
            // What happened in their own workspaces they see at once: see `workspaces`.
            let is_seen = role.is_some_and(|role| role != "member" || operation.path != "/audit-logs")
                && operation.session_reach() == SessionReach::WorkspacesOrOrganisation;
            assert_eq!(answer.status != 403, is_seen, "{role:?} everywhere: {operation:?}: {}", answer.text());
            if !kinds.workspace_user && !operation.workspace_sessions {
                let answer = by_session(&mut plain, operation).await;
                assert_eq!(answer.status, 403, "{role:?}: {operation:?}: {}", answer.text());
            }
        }
    }
}

/// A user key is of one workspace and a token too, whoever's they are and whatever they say of themselves.
#[tokio::test]
async fn keys_and_tokens_of_an_owner_reach_nothing_of_the_organisation() {
    let (service, issuer) = (Service::start_with(&["--trusted-custom-hosts=127.0.0.1"]).await, Issuer::start().await);
    let jwks = json!({ "jwks_url": issuer.url() });
    assert_eq!(service.administrator().put(AUTH_SETTINGS, &jwks).await.status, 200);
    service.workspace("elsewhere").await;
    let every: Vec<&str> = scopes::SCOPES.iter().map(|scope| scope.name).collect();
    let key = service.key(KeyKind::WorkspaceUser, &every).await.key;
    let mut said = claims(service.home.organisation_id, &service.home.workspace_id.to_string(), &every.join(" "));
    said["email_id"] = json!("owner@home.test");
    for (what, credential) in [("a key", key), ("a token", issuer.token(&said))] {
        let plain = service.client().with_key(&credential);
        for client in
            [plain.clone(), plain.with("x-gateway-workspace", "*"), plain.with("x-gateway-workspace", "elsewhere")]
        {
            let own = client.get("/api-keys/self").await.json();
            assert_eq!(own["workspace_id"], json!(service.home.workspace_id), "{what}: {own}");
            assert_eq!(own["user_id"], json!(service.home.owner_id), "{what}: {own}");
            let seen = client.get("/workspaces").await.json();
            assert_eq!(seen["total"], 1, "{what}: {seen}");
            for (operation, kinds) in rows().filter(|(_, kinds)| kinds.organisation_service) {
                if !kinds.workspace_user && !kinds.jwt {
                    let answer = by_key(&client, operation).await;
                    assert_eq!(answer.status, 403, "{what}: {operation:?}: {}", answer.text());
                }
            }
        }
    }
}

#[tokio::test]
async fn each_call_asks_for_the_role_as_it_is_now_and_keeps_to_the_rules_of_cookies() {
    let service = Service::start_with(&["--api-access-enabled=OFF"]).await;
    let person = service.person("admin", Some("member")).await;
    let mut browser = everywhere(&service, person).await;
    assert_eq!(browser.get("/admin/users").await.status, 200, "sessions pass while keys do not");
    assert_eq!(service.administrator().get("/admin/users").await.status, 402);
    let mut forged = browser.with("x-nothing", "1");
    forged.csrf_token = None;
    let new = json!({ "name": "Second" });
    assert_eq!(forged.post("/workspaces", &new).await.status, 403, "without the token");
    let mut foreign = browser.with("sec-fetch-site", "cross-site");
    assert_eq!(foreign.post("/workspaces", &new).await.status, 403, "from another site");
    assert_eq!(browser.post("/workspaces", &new).await.status, 200);
    let row = service
        .trail(service.home.organisation_id)
        .await
        .into_iter()
        .find(|row| row["resource_type"] == "workspaces" && row["response_status_code"] == 200);
    let row = row.unwrap();
    assert_eq!(
        (&row["user_id"], &row["user_type"], &row["api_key_id"]),
        (&json!(person), &json!("user"), &Value::Null)
    );
    service.sql(&format!("UPDATE users SET role = 'member' WHERE id = '{person}'")).await;
    for path in ["/admin/users", "/workspaces", "/labels"] {
        assert_eq!(browser.get(path).await.status, 403, "{path}");
    }
    service.sql(&format!("UPDATE users SET role = 'admin', status = 'archived' WHERE id = '{person}'")).await;
    assert_eq!(browser.get("/admin/users").await.status, 401);
}

#[tokio::test]
async fn other_organisations_are_out_of_reach() {
    let service = Service::start().await;
    let rival = service.organisation().await;
    let theirs = service.client().with_key(&rival.admin_key.key);
    let label = theirs.post("/labels", &json!({ "name": "theirs", "workspace_id": rival.workspace_id })).await.json();
    let mut owner = everywhere(&service, service.home.owner_id).await;
    for path in [
        format!("/labels/{}", label["id"].as_str().unwrap()),
        format!("/workspaces/{}", rival.workspace_id),
        format!("/admin/users/{}", rival.owner_id),
        format!("/admin/users/{}/sessions", rival.owner_id),
        format!("/labels?workspace_id={}", rival.workspace_id),
        format!("/logs?workspace_slug={}", rival.workspace_id),
    ] {
        assert_eq!(owner.get(&path).await.status, 404, "{path}");
    }
    let path = format!("/admin/users/{}", rival.owner_id);
    assert_eq!(owner.send(Method::PUT, &path, Some(&json!({ "role": "member" }))).await.status, 404);
    assert_eq!(owner.delete(&path).await.status, 404);
    let new = json!({ "name": "x", "workspace_id": rival.workspace_id });
    assert_eq!(owner.post("/labels", &new).await.status, 404);
    let there = by_link(&service, service.home.owner_id).await;
    let mut there = there.with("x-gateway-workspace", &rival.workspace_id.to_string());
    assert_eq!(there.get("/labels").await.status, 403);
    assert_eq!(owner.get("/labels?search=theirs").await.json()["total"], 0);
}

#[tokio::test]
async fn all_workspaces_are_seen_with_their_logs_and_figures_archived_ones_too() {
    let service = Service::start().await;
    let (second, gone) = (service.workspace("second").await, service.workspace("gone").await);
    for workspace in [service.home.workspace_id, second, gone] {
        store(&service, at(60), json!({ "workspace_id": workspace })).await;
    }
    service.sql(&format!("UPDATE workspaces SET status = 'archived' WHERE id = '{gone}'")).await;
    for person in [service.home.owner_id, service.person("admin", None).await] {
        let mut all = everywhere(&service, person).await;
        assert_eq!(all.get("/workspaces").await.json()["total"], 2);
        assert_eq!(all.get("/workspaces?status=active,archived").await.json()["total"], 3);
        assert_eq!(all.get("/logs").await.json()["total"], 3);
        assert_eq!(all.get("/logs?workspace_slug=gone").await.json()["total"], 1);
        let span = [at(3600), at(0)].map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true));
        let span = format!("time_of_generation_min={}&time_of_generation_max={}", span[0], span[1]);
        let counted = all.get(&format!("/logs/groups/workspace?{span}")).await;
        assert_eq!(counted.json()["total"], 3, "{}", counted.text());
        assert_eq!(all.get(&format!("/logs?workspace_slug={second}")).await.json()["total"], 1);
        let mut plain = by_link(&service, person).await;
        assert_eq!(plain.get("/logs").await.json()["total"], 3, "what happened is seen without the star, too");
        assert_eq!(plain.get("/workspaces").await.json()["total"], 1);
        let mut named = plain.with("x-gateway-workspace", "second");
        assert_eq!(named.get("/logs").await.json()["total"], 1);
    }
}

#[tokio::test]
async fn a_session_is_told_what_it_may_do_where_it_acts() {
    let service = Service::start().await;
    let every_admin = scopes::all_for(KeyKind::OrganisationService);
    let mut owner = everywhere(&service, service.home.owner_id).await;
    let own = owner.get("/api-keys/self").await.json();
    assert_eq!((&own["type"], &own["workspace_id"]), (&json!("organisation-service"), &Value::Null), "{own}");
    assert_eq!(own["scopes"], json!(every_admin));
    let session = owner.get("/auth/session").await.json();
    assert_eq!(session["acting"], json!({ "workspace_id": null, "scopes": every_admin }), "{session}");
    let mut member = by_link(&service, service.person("member", Some("member")).await).await;
    let own = member.get("/api-keys/self").await.json();
    let session = member.get("/auth/session").await.json();
    assert_eq!(session["acting"], json!({ "workspace_id": own["workspace_id"], "scopes": own["scopes"] }), "{session}");
    let mut all = member.with("x-gateway-workspace", "*");
    let looks = ["analytics.view", "logs.export", "logs.list", "logs.view"];
    let session = all.get("/auth/session").await.json();
    assert_eq!(session["acting"], json!({ "workspace_id": null, "scopes": looks }), "{session}");
    assert_eq!(all.get("/api-keys/self").await.status, 403);
    let mut elsewhere = member.with("x-gateway-workspace", "nowhere");
    assert_eq!(elsewhere.get("/auth/session").await.json()["acting"], Value::Null);
}

/// Name and settings of a workspace are for those who run it; what its roles may do, for those who run the organisation.
#[tokio::test]
async fn who_runs_a_workspace_changes_its_settings_and_not_its_bounds() {
    let service = Service::start().await;
    service.sql(r#"UPDATE organisations SET settings = '{"workspace_overrides": {"logs": true}}'"#).await;
    let path = format!("/admin/workspaces/{}", service.home.workspace_id);
    let own = [json!({ "name": "Market" }), json!({ "settings": { "debug_log": 0 } })];
    let bounds = [json!({ "security_settings": { "membersViewLogs": false } }), json!({ "priority": 99 })];
    for (organisation, role, by_own, by_bounds) in [
        ("member", Some("member"), 403, 403),
        ("member", Some("manager"), 200, 403),
        ("member", Some("admin"), 200, 403),
        ("admin", None, 200, 200),
    ] {
        let mut browser = by_link(&service, service.person(organisation, role).await).await;
        for (bodies, status) in [(&own, by_own), (&bounds, by_bounds)] {
            for body in bodies {
                let answer = browser.send(Method::PUT, &path, Some(body)).await;
                assert_eq!(answer.status, status, "{organisation} {role:?} {body}: {}", answer.text());
            }
        }
    }
    let key = service.workspace_client(service.home.workspace_id).await;
    for body in own.iter().chain(&bounds) {
        assert_eq!(key.put(&path, body).await.status, 403, "{body}");
    }
}
