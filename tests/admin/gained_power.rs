//! Nobody gains power: each way by which the product hands out a credential or a session, with what the caller had before,
//! and that they do not have more afterwards. One table for keys, one for sign-in, one for people that others vouch for.

use crate::document::Document;
use crate::login::browser::Browser;
use crate::login::provider::Provider;
use crate::login::{AUTH_SETTINGS, by_link, person, set_up, signed_in, started};
use crate::scim::{self, TOKEN};
use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::identity::scopes;
use shared::model::KeyKind;
use shared::routes::{self, Access};
use std::collections::BTreeSet;
use uuid::Uuid;

async fn send(client: &Client, method: &str, path: &str, body: Option<Value>) -> Answer {
    let request = client.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
    whole(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

/// Everything that changes by whom people and tokens are recognised, from the route table itself: what is added there is
/// held to it here.
#[tokio::test]
async fn sign_in_is_changed_only_by_who_could_not_gain_by_it() {
    let service = Service::start().await;
    let every = scopes::all_for(KeyKind::OrganisationService);
    let but_one: Vec<&str> = every.iter().copied().filter(|one| *one != "audit_logs.list").collect();
    let key = async |kind, scopes: &[&str]| service.client().with_key(&service.key(kind, scopes).await.key);
    let by_key = [
        (
            "a key with organisation_settings.update alone",
            key(KeyKind::OrganisationService, &["organisation_settings.update"]).await,
            false,
        ),
        ("a key with every scope but one", key(KeyKind::OrganisationService, &but_one).await, false),
        ("a key of a workspace with every scope", key(KeyKind::WorkspaceService, &every).await, false),
        ("an owner's own key with every scope", key(KeyKind::WorkspaceUser, &every).await, false),
        ("nobody", service.client(), false),
        ("a key with every scope", key(KeyKind::OrganisationService, &every).await, true),
        ("the first key", service.administrator(), true),
    ];
    let (admin, member) = (service.person("admin", None).await, service.person("member", Some("admin")).await);
    let mut by_session = [
        ("an admin's session", by_link(&service, admin).await, false),
        ("a member's session", by_link(&service, member).await, false),
        ("an owner's session", by_link(&service, service.home.owner_id).await, true),
    ];
    let operations: Vec<_> = routes::operations().filter(|operation| operation.changes_sign_in()).collect();
    assert!(operations.len() >= 7, "{}", operations.len());
    for operation in operations {
        let path = operation.path.replace("{domainId}", &Uuid::new_v4().to_string());
        let method = operation.method.as_str();
        // Refused for what it is, once who asks is let in; nothing changes between two callers.
        let body = (method != "DELETE").then(|| json!({}));
        for (who, client, may) in &by_key {
            let status = send(client, method, &path, body.clone()).await.status.as_u16();
            assert_eq!(!matches!(status, 401 | 403), *may, "{who}: {method} {path}: {status}");
        }
        for (who, browser, may) in &mut by_session {
            let status = browser.send(operation_method(method), &path, body.as_ref()).await.status.as_u16();
            assert_eq!(status != 403, *may, "{who}: {method} {path}: {status}");
        }
    }
    // An owner really does it, and reads it; others by their session do not.
    let change = json!({ "disable_login_links": true });
    let [(_, admin, _), _, (_, owner, _)] = &mut by_session;
    assert_eq!(owner.send(Method::PUT, AUTH_SETTINGS, Some(&change)).await.json()["disable_login_links"], true);
    assert_eq!(owner.get(AUTH_SETTINGS).await.json()["disable_login_links"], true);
    assert_eq!(admin.get(AUTH_SETTINGS).await.status, 403);
    let row = service
        .trail(service.home.organisation_id)
        .await
        .into_iter()
        .rev()
        .find(|row| row["after"]["disable_login_links"] == true);
    assert_eq!(row.unwrap()["user_id"], json!(service.home.owner_id));
}

fn operation_method(method: &str) -> Method {
    Method::from_bytes(method.as_bytes()).unwrap()
}

/// Keys that are made, changed, rotated or promised: never with more than who asks has.
/// What is asked for, the key that asks and its scopes, and the request.
type Way<'w> = (&'w str, KeyKind, &'w [&'w str], &'w str, String, Option<Value>);

#[tokio::test]
async fn a_key_is_worth_no_more_than_who_makes_it() {
    let service = Service::start().await;
    let (workspace, strong) = (
        service.home.workspace_id,
        service.key(KeyKind::OrganisationService, &["audit_logs.list", "organisation_settings.update"]).await,
    );
    let strong_here = service.key(KeyKind::WorkspaceService, &["logs.list", "completions.write"]).await;
    let owners = service.key(KeyKind::WorkspaceUser, &["logs.list"]).await;
    let manager = service.person("member", Some("manager")).await;
    let invited = async |body: Value| {
        let made = service.administrator().post("/admin/users/invites", &body).await;
        assert_eq!(made.status, 200, "{}", made.text());
        made.json()["id"].as_str().unwrap().to_owned()
    };
    let admins_invite = invited(json!({ "email": "grace@home.test", "role": "admin" })).await;
    let promised_key = invited(json!({
        "email": "ada@home.test", "role": "member", "workspaces": [{ "id": workspace, "role": "member" }],
        "workspace_api_key_details": { "scopes": ["logs.list", "completions.write"] },
    }))
    .await;
    let key = |scopes: &[&str]| json!({ "name": "k", "workspace_id": workspace, "scopes": scopes });
    let organisation = KeyKind::OrganisationService;
    let service_key = KeyKind::WorkspaceService;
    let ways: &[Way] = &[
        (
            "an organisation key with more",
            organisation,
            &["organisation_service_api_keys.create"],
            "POST",
            "/api-keys/organisation/service".into(),
            Some(json!({ "name": "k", "scopes": ["audit_logs.list"] })),
        ),
        (
            "another secret of a stronger key",
            organisation,
            &["organisation_service_api_keys.rotate"],
            "POST",
            format!("/api-keys/{}/rotate", strong.id),
            Some(json!({})),
        ),
        (
            "more scopes for a key",
            organisation,
            &["organisation_service_api_keys.update"],
            "PUT",
            format!("/api-keys/{}", strong.id),
            Some(json!({ "scopes": ["audit_logs.list", "organisation_users.create"] })),
        ),
        (
            "a workspace key with more",
            service_key,
            &["workspace_service_api_keys.create"],
            "POST",
            "/api-keys/workspace/service".into(),
            Some(key(&["logs.list"])),
        ),
        (
            "another secret of a stronger key of the workspace",
            service_key,
            &["workspace_service_api_keys.rotate"],
            "POST",
            format!("/api-keys/{}/rotate", strong_here.id),
            Some(json!({})),
        ),
        (
            "another secret of an owner's key",
            service_key,
            &["workspace_user_api_keys.rotate"],
            "POST",
            format!("/api-keys/{}/rotate", owners.id),
            Some(json!({})),
        ),
        (
            "somebody who is an owner from the first day",
            organisation,
            &["organisation_users.create"],
            "POST",
            "/admin/users/invites".into(),
            Some(json!({ "email": "new@home.test", "role": "owner" })),
        ),
        (
            "an admin of whoever reads a mailbox",
            organisation,
            &["organisation_users.create"],
            "POST",
            "/admin/users/invites".into(),
            Some(json!({ "email": "new@home.test", "role": "admin" })),
        ),
        (
            "an admin of a workspace of whoever reads a mailbox",
            organisation,
            &["organisation_users.create"],
            "POST",
            "/admin/users/invites".into(),
            Some(
                json!({ "email": "new@home.test", "role": "member", "workspaces": [{ "id": workspace, "role": "admin" }] }),
            ),
        ),
        (
            "the link of an invitation of an admin",
            organisation,
            &["organisation_users.create"],
            "POST",
            format!("/admin/users/invites/{admins_invite}/resend"),
            Some(json!({})),
        ),
        (
            "the link of an invitation with a stronger key",
            organisation,
            &["organisation_users.create"],
            "POST",
            format!("/admin/users/invites/{promised_key}/resend"),
            Some(json!({})),
        ),
        (
            "an admin of a member",
            organisation,
            &["organisation_users.update"],
            "PUT",
            format!("/admin/users/{manager}"),
            Some(json!({ "role": "admin" })),
        ),
        (
            "an owner of a member",
            organisation,
            &["organisation_users.update"],
            "PUT",
            format!("/admin/users/{manager}"),
            Some(json!({ "role": "owner" })),
        ),
        (
            "a member of an owner",
            organisation,
            &["organisation_users.update"],
            "PUT",
            format!("/admin/users/{}", service.home.owner_id),
            Some(json!({ "role": "member" })),
        ),
        (
            "sign-in as anybody",
            organisation,
            &["organisation_settings.update"],
            "PUT",
            AUTH_SETTINGS.into(),
            Some(json!({ "jwks_json": { "keys": [] } })),
        ),
        (
            "a directory of one's own",
            organisation,
            &["organisation_settings.update"],
            "PUT",
            AUTH_SETTINGS.into(),
            Some(json!({ "scim": { "enabled": true, "token": TOKEN } })),
        ),
    ];
    for (what, kind, held, method, path, body) in ways {
        let client = service.client().with_key(&service.key(*kind, held).await.key);
        let answer = send(&client, method, path, body.clone()).await;
        assert!(matches!(answer.status.as_u16(), 400 | 403), "{what}: {} {}", answer.status, answer.text());
        assert!(answer.json()["key"].is_null() && answer.json()["invite_link"].is_null(), "{what}: {}", answer.text());
    }
    // Whoever could give as much by another operation may invite so.
    let may_seat = service.key(organisation, &["organisation_users.create", "workspace_users.create"]).await;
    let seated =
        json!({ "email": "bob@home.test", "role": "member", "workspaces": [{ "id": workspace, "role": "admin" }] });
    let answer = service.client().with_key(&may_seat.key).post("/admin/users/invites", &seated).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    // What was tried changed nothing.
    let seen = service.administrator().get(&format!("/api-keys/{}", strong.id)).await.json();
    assert_eq!(seen["scopes"], json!(["audit_logs.list", "organisation_settings.update"]), "{seen}");
    assert_eq!(
        service.administrator().get(&format!("/admin/users/{}", service.home.owner_id)).await.json()["role"],
        "owner"
    );
    assert!(service.administrator().get(AUTH_SETTINGS).await.json()["jwks_json"].is_null());
}

/// Every operation that shows a credential, by the document, and where it is judged what that credential is worth. A new one
/// fails here until somebody has thought of it.
#[tokio::test]
async fn every_operation_that_shows_a_credential_is_judged() {
    const JUDGED: &[(&str, &str)] = &[
        ("POST /api-keys/organisation/service", "a_key_is_worth_no_more_than_who_makes_it"),
        ("POST /api-keys/workspace/service", "a_key_is_worth_no_more_than_who_makes_it"),
        ("POST /api-keys/workspace/user", "api_keys::authority"),
        ("POST /api-keys/{id}/rotate", "a_key_is_worth_no_more_than_who_makes_it"),
        ("POST /admin/users/invites", "a_key_is_worth_no_more_than_who_makes_it"),
        ("POST /admin/users/invites/{inviteId}/resend", "a_key_is_worth_no_more_than_who_makes_it"),
        ("POST /auth/session/key", "login::session_keys"),
        ("POST /deployments", "a_deployments_token_opens_no_operation"),
        ("POST /deployments/{idOrSlug}/rotate-token", "a_deployments_token_opens_no_operation"),
    ];
    let service = Service::start().await;
    let shown =
        Document::of(&service).await.answering_with(&["key", "client_auth", "invite_link", "token", "access_token"]);
    let judged: BTreeSet<String> = JUDGED.iter().map(|(operation, _)| (*operation).to_owned()).collect();
    assert_eq!(shown, judged);
}

/// It is a name under which a proxy fetches what it is for.
#[tokio::test]
async fn a_deployments_token_opens_no_operation() {
    let service = Service::start().await;
    let made = service.administrator().post("/deployments", &json!({ "name": "eu", "type": "production" })).await;
    let token = made.json()["client_auth"].as_str().unwrap().to_owned();
    for operation in routes::operations().filter(|one| !matches!(one.access, Access::Public | Access::ScimToken)) {
        let path: String = operation
            .path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        for client in
            [service.client().with_key(&token), service.client().with("authorization", format!("Bearer {token}"))]
        {
            let answer = send(&client, operation.method.as_str(), &path, None).await;
            assert_eq!(answer.status, 401, "{operation:?}: {}", answer.text());
        }
    }
}

/// A directory knows people, and is not who decides about owners: an address is where links to sign in are sent.
#[tokio::test]
async fn a_directory_changes_no_owner() {
    let service = Service::start().await;
    let idp = scim::provider(&service, &service.home, TOKEN).await;
    let path = format!("/scim/Users/{}", service.home.owner_id);
    let whole_person =
        |email: &str| json!({ "userName": email, "emails": [{ "value": email, "primary": true }], "active": true });
    let named = |op: &str, path: &str, value: Value| json!([{ "op": op, "path": path, "value": value }]);
    for operations in [
        named("replace", "userName", json!("mallory@home.test")),
        named("replace", "emails", json!([{ "value": "mallory@home.test", "primary": true }])),
        named("add", "emails", json!([{ "value": "mallory@home.test", "primary": true }])),
        named("replace", "emails[type eq \"work\"].value", json!("mallory@home.test")),
        json!([{ "op": "replace", "value": { "userName": "mallory@home.test" } }]),
        named("replace", "active", json!(false)),
    ] {
        scim::patch(&idp, &path, operations.clone()).await;
        assert_eq!(
            owner_of(&service).await,
            ("owner@home.test".to_owned(), "owner".to_owned(), "active".to_owned()),
            "{operations}"
        );
    }
    let refused = send(&idp, "PUT", &path, Some(whole_person("mallory@home.test"))).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let bulk = json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],
        "Operations": [{ "method": "PUT", "path": format!("/Users/{}", service.home.owner_id), "data": whole_person("mallory@home.test") }],
    });
    idp.post("/scim/Bulk", &bulk).await;
    assert_eq!(idp.delete(&path).await.status, 403);
    let elsewise = json!({ "userName": "OWNER@home.test", "roles": [{ "value": "member" }], "name": { "givenName": "Grace" }, "active": true });
    assert_eq!(
        send(&idp, "PUT", &path, Some(elsewise)).await.status,
        200,
        "what is not about power is the directory's"
    );
    assert_eq!(owner_of(&service).await, ("owner@home.test".to_owned(), "owner".to_owned(), "active".to_owned()));
    let made = idp.post("/scim/Users", &json!({ "userName": "eve@home.test", "roles": [{ "value": "owner" }] })).await;
    let role = service
        .database
        .client()
        .await
        .query_opt("SELECT role FROM users WHERE email = 'eve@home.test'", &[])
        .await
        .unwrap();
    assert!(role.is_none_or(|row| row.get::<_, &str>(0) != "owner"), "{}", made.text());
}

async fn owner_of(service: &Service) -> (String, String, String) {
    const FIND: &str = "SELECT email, role, status FROM users WHERE id = $1";
    let row = service.database.client().await.query_one(FIND, &[&service.home.owner_id]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

/// Who set the identity provider up says who comes; that it is the owner, the owner says first, once, for that one.
#[tokio::test]
async fn an_identity_provider_signs_an_owner_in_only_by_their_word() {
    let (service, provider) = started(&[]).await;
    let owner = || person("the owner", "owner@home.test");
    let login = async |provider: &Provider, claims: Value| {
        let mut browser = Browser::new(&service);
        (signed_in(&service, provider, &mut browser, claims).await.status.as_u16(), browser)
    };
    let links = "/auth/owner-links";
    let issuer = json!({ "issuer": provider.issuer });
    assert_eq!(login(&provider, owner()).await.0, 403, "nobody asked the owner");
    // Admins, members and keys cannot say it, and nobody can for another identity provider.
    for role in ["admin", "member"] {
        let mut other = by_link(&service, service.person(role, Some("admin")).await).await;
        assert_eq!(other.post(links, &issuer).await.status, 403, "{role}");
    }
    assert_eq!(service.administrator().post(links, &issuer).await.status, 401);
    let mut session = by_link(&service, service.home.owner_id).await;
    assert_eq!(session.post(links, &json!({ "issuer": "https://other.test" })).await.status, 200);
    assert_eq!(login(&provider, owner()).await.0, 403, "for another identity provider");
    // The word is too old.
    let allowed = session.post(links, &issuer).await;
    assert_eq!((allowed.status.as_u16(), &allowed.json()["user_id"]), (200, &json!(service.home.owner_id)));
    service.sql("UPDATE owner_links SET expires_at = now() - interval '1 second'").await;
    assert_eq!(login(&provider, owner()).await.0, 403, "too late");
    assert_eq!(session.post(links, &issuer).await.status, 200);
    let (status, mut browser) = login(&provider, owner()).await;
    assert_eq!((status, browser.user().await), (303, service.home.owner_id));
    // From now on they are known, by their account and not by their address.
    assert_eq!(login(&provider, owner()).await.0, 303);
    assert_eq!(login(&provider, person("somebody else", "owner@home.test")).await.0, 403);
    // Once: the next identity provider asks again.
    let next = Provider::start().await;
    set_up(&service, json!({ "oidc": next.settings() })).await;
    assert_eq!(login(&next, owner()).await.0, 403, "of another identity provider");
    assert_eq!(login(&next, person("ada", "ada@home.test")).await.0, 303, "others come as before");
}
