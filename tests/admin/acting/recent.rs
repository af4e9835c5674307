//! What a session that was left open is not enough for.

use super::{by_session, everywhere, rows};
use crate::login::browser::Browser;
use crate::service::Service;
use harness::Answer;
use http::Method;
use serde_json::{Value, json};
use shared::routes::{Access, operations};

fn is_asked_to_sign_in(answer: &Answer) -> bool {
    answer.status == 401 && answer.json()["error"]["type"] == "reauthenticate"
}

async fn grow_old(service: &Service) {
    service.sql("UPDATE sessions SET created_at = now() - interval '11 minutes'").await;
}

/// From the route table: what is marked there asks for it, and nothing else does of itself.
#[tokio::test]
async fn an_old_sign_in_is_enough_for_all_but_what_is_marked() {
    let service = Service::start().await;
    let mut owner = everywhere(&service, service.home.owner_id).await;
    grow_old(&service).await;
    let mut marked = Vec::new();
    for (operation, _) in rows().filter(|(_, kinds)| kinds.organisation_service) {
        let answer = by_session(&mut owner, operation).await;
        assert_eq!(is_asked_to_sign_in(&answer), operation.needs_recent_sign_in(), "{operation:?}: {}", answer.text());
        marked.extend(operation.needs_recent_sign_in().then_some(operation.path));
    }
    for path in ["/api-keys/organisation/service", "/logs/erase", "/admin/organisation/auth-settings"] {
        assert!(marked.contains(&path), "{path}");
    }
    let of_person = operations().filter(|one| one.access == Access::Session && one.needs_recent_sign_in());
    assert_eq!(of_person.map(|one| one.path).collect::<Vec<_>>(), ["/auth/owner-links"]);
    let issuer = json!({ "issuer": "https://id.test" });
    assert!(is_asked_to_sign_in(&owner.post("/auth/owner-links", &issuer).await));
    // A key is no session.
    let erase = service.administrator().post("/logs/erase", &json!({})).await;
    assert_eq!(erase.status, 400, "{}", erase.text());
}

async fn each_marked_thing(service: &Service, browser: &mut Browser) -> Vec<(String, Answer)> {
    let key = format!("/api-keys/{}", service.home.admin_key.id);
    let person = format!("/admin/users/{}", service.person("member", None).await);
    let itself = format!("/admin/users/{}", service.home.owner_id);
    let calls: [(Method, String, Value); 6] = [
        (Method::POST, "/api-keys/organisation/service".into(), json!({ "name": "k", "scopes": ["audit_logs.list"] })),
        (Method::PUT, key.clone(), json!({ "description": "d" })),
        (Method::POST, format!("{key}/rotate"), json!({})),
        (Method::DELETE, key, json!({})),
        (Method::PUT, person, json!({ "role": "owner" })),
        (Method::PUT, itself, json!({ "role": "owner", "first_name": "Ada" })),
    ];
    let mut answers = Vec::new();
    for (method, path, body) in calls {
        let answer = browser.send(method.clone(), &path, Some(&body)).await;
        answers.push((format!("{method} {path}"), answer));
    }
    answers
}

#[tokio::test]
async fn admin_keys_and_owners_ask_for_it_and_a_new_token_is_no_sign_in() {
    let service = Service::start().await;
    let mut owner = everywhere(&service, service.home.owner_id).await;
    grow_old(&service).await;
    service.sql("UPDATE sessions SET rotated_at = now() - interval '16 minutes'").await;
    let before = owner.session().unwrap().clone();
    assert_eq!(owner.get("/admin/users").await.status, 200);
    assert_ne!(owner.session().unwrap(), &before, "the token was replaced");
    for (call, answer) in each_marked_thing(&service, &mut owner).await {
        assert!(is_asked_to_sign_in(&answer), "{call}: {} {}", answer.status, answer.text());
    }
    let member = service.person("member", Some("member")).await;
    let change = json!({ "role": "admin" });
    let changed = owner.send(Method::PUT, &format!("/admin/users/{member}"), Some(&change)).await;
    assert_eq!(changed.status, 200, "people who are no owners: {}", changed.text());
    // Who signs in again goes on.
    let mut again = everywhere(&service, service.home.owner_id).await;
    for (call, answer) in each_marked_thing(&service, &mut again).await {
        assert_eq!(answer.status, 200, "{call}: {}", answer.text());
    }
}
