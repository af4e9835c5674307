//! Keys with which a page calls models: whose they are, what they do, how many there are, and everything that ends them.

use super::{Browser, by_link, set_up};
use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use harness::{Answer, Client};
use http::Method;
use serde_json::{Value, json};

const PATH: &str = "/auth/session/key";

async fn made(browser: &mut Browser, body: Value) -> Value {
    let answer = browser.post(PATH, &body).await;
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.json()
}

fn client(service: &Service, made: &Value) -> Client {
    service.client().with_key(made["key"].as_str().unwrap())
}

async fn is_alive(client: &Client) -> bool {
    client.get("/api-keys/self").await.status == 200
}

fn ends_within(made: &Value, minutes: i64) -> bool {
    let at: DateTime<Utc> = made["expires_at"].as_str().unwrap().parse().unwrap();
    at > Utc::now() && at <= Utc::now() + TimeDelta::minutes(minutes)
}

/// The least that there is, in an organisation that lets members neither see nor make keys.
#[tokio::test]
async fn a_key_of_a_session_calls_models_for_its_person_and_does_nothing_else() {
    let service = Service::start().await;
    let settings = json!({ "membersViewApiKeys": false, "membersWriteApiKeys": false });
    let path = "/admin/organisation/security-settings";
    assert_eq!(service.administrator().put(path, &settings).await.status, 200);
    for (organisation_role, role) in [("member", Some("member")), ("member", Some("admin")), ("owner", None)] {
        let person = service.person(organisation_role, role).await;
        let mut browser = by_link(&service, person).await;
        let key = made(&mut browser, json!({})).await;
        assert_eq!(key["workspace_id"], json!(service.home.workspace_id));
        assert!(ends_within(&key, 15), "{key}");
        let client = client(&service, &key);
        let own = client.get("/api-keys/self").await.json();
        let scopes = json!(["completions.write", "models.list", "mcp.invoke", "prompts.render"]);
        assert_eq!((&own["scopes"], &key["scopes"]), (&scopes, &scopes), "{own}");
        assert_eq!((&own["user_id"], &own["type"]), (&json!(person), &json!("workspace-user")));
        // It makes no keys, whatever its person's role says, and gets no further one.
        let new = json!({ "name": "k", "scopes": ["completions.write"] });
        for path in ["/api-keys/workspace/user", "/api-keys/workspace/service"] {
            assert_eq!(client.post(path, &new).await.status, 403, "{path}");
        }
        assert_eq!(client.post(PATH, &json!({})).await.status, 401);
        let opinion = json!({ "trace_id": "t", "value": 1 });
        assert_eq!(client.post("/feedback", &opinion).await.status, 403, "nor anything else here");
        for path in ["/configs", "/logs", "/admin/users", "/audit-logs", "/api-keys"] {
            assert_eq!(client.get(path).await.status, 403, "{organisation_role} {path}");
        }
        let trail = service.trail(service.home.organisation_id).await;
        let row = trail.iter().rev().find(|row| row["resource_type"] == "session_keys").unwrap();
        assert_eq!((&row["user_id"], &row["resource_id"]), (&json!(person), &key["id"]), "{row}");
        assert_eq!(row["workspace_id"], key["workspace_id"]);
        assert!(!json!(trail).to_string().contains(key["key"].as_str().unwrap()), "the secret is in no row");
    }
}

#[tokio::test]
async fn it_is_of_one_workspace_of_the_person_and_asked_for_by_their_page_alone() {
    let service = Service::start().await;
    let (second, out) = (service.workspace("second").await, service.workspace("out").await);
    let rival = service.organisation().await;
    let person = service.person("member", Some("member")).await;
    let join = "INSERT INTO workspace_members (organisation_id, workspace_id, user_id, role) VALUES";
    let home = service.home.organisation_id;
    service.sql(&format!("{join} ('{home}', '{second}', '{person}', 'member')")).await;
    let mut browser = by_link(&service, person).await;
    for named in [json!("second"), json!(second)] {
        assert_eq!(made(&mut browser, json!({ "workspace_id": named })).await["workspace_id"], json!(second));
    }
    let mut there = browser.with("x-gateway-workspace", "second");
    assert_eq!(made(&mut there, json!({})).await["workspace_id"], json!(second));
    assert_eq!(browser.with("x-gateway-workspace", "*").post(PATH, &json!({})).await.status, 400);
    for (named, status) in [
        (json!("*"), 400),
        (json!("out"), 403),
        (json!(out), 403),
        (json!("nowhere"), 403),
        (json!(rival.workspace_id), 403),
        (json!(7), 400),
    ] {
        let answer = browser.post(PATH, &json!({ "workspace_id": named })).await;
        assert_eq!(answer.status, status, "{named}: {}", answer.text());
    }
    let mut forged = browser.with("x-nothing", "1");
    forged.csrf_token = None;
    assert_eq!(forged.post(PATH, &json!({})).await.status, 403, "without the token");
    assert_eq!(browser.with("sec-fetch-site", "cross-site").post(PATH, &json!({})).await.status, 403);
    let by_key: [Answer; 2] = [
        service.administrator().post(PATH, &json!({})).await,
        service.person_client(service.home.workspace_id, person).await.post(PATH, &json!({})).await,
    ];
    assert!(by_key.iter().all(|answer| answer.status == 401));
    let mut nowhere = by_link(&service, service.person("member", None).await).await;
    assert_eq!(nowhere.post(PATH, &json!({})).await.status, 403);
}

#[tokio::test]
async fn there_are_three_at_once_and_none_in_any_list() {
    let service = Service::start().await;
    let home = service.home.workspace_id;
    // The workspace has no place for another key of a person: these take none.
    service.sql(r#"UPDATE workspaces SET settings = settings || '{"user_api_key_count": 0}'"#).await;
    let person = service.person("member", Some("admin")).await;
    let (mut here, mut there) = (by_link(&service, person).await, by_link(&service, person).await);
    let mut keys = Vec::new();
    for n in 0..5 {
        let browser = if n % 2 == 0 { &mut here } else { &mut there };
        keys.push(made(browser, json!({})).await);
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(is_alive(&client(&service, key)).await, n >= 2, "{n}");
    }
    let id = keys[4]["id"].as_str().unwrap();
    let mut owner = by_link(&service, service.home.owner_id).await.with("x-gateway-workspace", "*");
    for browser in [&mut here, &mut owner] {
        let listed = browser.get("/api-keys?type=workspace-user").await;
        assert!(!listed.text().contains(id), "{}", listed.text());
        let path = format!("/api-keys/{id}");
        assert_eq!(browser.get(&path).await.status, 404);
        let longer = json!({ "expires_at": "2099-01-01T00:00:00Z" });
        assert_eq!(browser.send(Method::PUT, &path, Some(&longer)).await.status, 404);
        assert_eq!(browser.post(&format!("{path}/rotate"), &json!({})).await.status, 404);
        assert_eq!(browser.delete(&path).await.status, 404);
    }
    assert_eq!(service.administrator().get(&format!("/api-keys/{id}?workspace_id={home}")).await.status, 404);
}

#[tokio::test]
async fn it_ends_with_time_with_its_session_and_with_its_person() {
    let service = Service::start().await;
    let person = service.person("member", Some("member")).await;
    let other = service.person("member", Some("member")).await;
    let mut bystander = by_link(&service, other).await;
    let kept = made(&mut bystander, json!({})).await;
    let (home, admin) = (service.home.workspace_id, service.administrator());
    // Each way on a session of its own.
    let mut browser = by_link(&service, person).await;
    let key = client(&service, &made(&mut browser, json!({})).await);
    assert!(is_alive(&key).await);
    service.sql(&format!("UPDATE api_keys SET expires_at = now() WHERE user_id = '{person}'")).await;
    assert!(!is_alive(&key).await, "time");
    let key = client(&service, &made(&mut browser, json!({})).await);
    assert_eq!(browser.post("/auth/logout", &json!({})).await.status, 200);
    assert!(!is_alive(&key).await, "sign-out");
    let mut browser = by_link(&service, person).await;
    let key = client(&service, &made(&mut browser, json!({})).await);
    assert_eq!(admin.delete(&format!("/admin/users/{person}/sessions")).await.status, 200);
    assert!(!is_alive(&key).await, "signed out by an administrator");
    let mut browser = by_link(&service, person).await;
    let key = client(&service, &made(&mut browser, json!({})).await);
    let left = admin.delete(&format!("/workspaces/{home}/users/{person}")).await;
    assert_eq!(left.status, 200, "{}", left.text());
    assert!(!is_alive(&key).await, "left the workspace");
    let demoted = service.person("admin", None).await;
    let mut browser = by_link(&service, demoted).await;
    let key = client(&service, &made(&mut browser, json!({})).await);
    assert_eq!(admin.put(&format!("/admin/users/{demoted}"), &json!({ "role": "member" })).await.status, 200);
    assert!(!is_alive(&key).await, "no administrator any more");
    let leaver = service.person("member", Some("member")).await;
    let mut browser = by_link(&service, leaver).await;
    let key = client(&service, &made(&mut browser, json!({})).await);
    assert_eq!(admin.delete(&format!("/admin/users/{leaver}")).await.status, 200);
    assert!(!is_alive(&key).await, "removed");
    // What ended leaves nothing behind, and other people's are as they were.
    assert!(is_alive(&client(&service, &kept)).await);
    service.sql("UPDATE api_keys SET expires_at = now() - interval '1 minute' WHERE session_id IS NOT NULL").await;
    let app = crate::jobs::admin_on(&service.database).await;
    crate::jobs::run(&app, "expire_sessions").await;
    let count = "SELECT count(*) FROM api_keys WHERE session_id IS NOT NULL";
    assert_eq!(service.database.client().await.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn it_lives_no_longer_than_its_session_or_keys_of_its_workspace() {
    let service = Service::start().await;
    let person = service.person("member", Some("member")).await;
    let mut browser = by_link(&service, person).await;
    set_up(&service, json!({ "session_settings": { "idle_timeout": 300 } })).await;
    assert!(ends_within(&made(&mut browser, json!({})).await, 5));
    set_up(&service, json!({ "session_settings": { "max_session_ttl": 900 } })).await;
    service.sql("UPDATE sessions SET created_at = now() - interval '12 minutes'").await;
    assert!(ends_within(&made(&mut browser, json!({})).await, 3));
    set_up(&service, json!({ "session_settings": null })).await;
    service.sql(r#"UPDATE workspaces SET settings = settings || '{"user_api_key_max_ttl": 60}'"#).await;
    assert!(ends_within(&made(&mut browser, json!({})).await, 1));
    // It is held to what keys of people are held to here.
    service.sql(r#"UPDATE workspaces SET settings = settings || '{"user_key_metadata": {"team": "red"}}'"#).await;
    let key = made(&mut browser, json!({})).await;
    let find = format!("SELECT defaults FROM api_keys WHERE id = '{}'", key["id"].as_str().unwrap());
    let defaults: Value = service.database.client().await.query_one(&find, &[]).await.unwrap().get(0);
    assert_eq!(defaults["metadata"], json!({ "team": "red" }));
}

#[tokio::test]
async fn without_api_access_it_calls_nothing_of_the_control_plane() {
    let service = Service::start_with(&["--api-access-enabled=OFF"]).await;
    let mut browser = by_link(&service, service.home.owner_id).await;
    let key = client(&service, &made(&mut browser, json!({})).await);
    assert_eq!(key.get("/api-keys/self").await.status, 402);
}
