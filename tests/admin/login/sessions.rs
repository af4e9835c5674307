//! Sessions: what a cookie opens, how it is protected, how its token changes, and everything that ends it.

use super::{Browser, by_link, link, set_up};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};

async fn owner(service: &Service) -> Browser {
    by_link(service, service.home.owner_id).await
}

#[tokio::test]
async fn a_session_says_who_is_signed_in_and_acts_with_their_role() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    let session = browser.get("/auth/session").await.json();
    assert_eq!(session["user"]["email"], "owner@home.test", "{session}");
    assert_eq!((&session["user"]["role"], &session["provider"]), (&json!("owner"), &json!("link")));
    assert_eq!(session["organisation"]["id"], json!(service.home.organisation_id));
    assert_eq!(session["workspaces"][0]["id"], json!(service.home.workspace_id));
    let made = browser.post("/labels", &json!({ "name": "by-hand" })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(browser.get("/labels?search=by-hand").await.json()["total"], 1);
    // What only admin keys may, an owner may: see `acting`.
    assert_eq!(browser.get("/admin/users").await.status, 200);
    assert_eq!(browser.get("/api-keys/self").await.json()["type"], "workspace-user");
    let trail = service.trail(service.home.organisation_id).await;
    let row = trail.iter().find(|row| row["resource_type"] == "labels").unwrap();
    assert_eq!((&row["user_id"], &row["user_type"]), (&json!(service.home.owner_id), &json!("user")));
    assert_eq!(row["api_key_id"], Value::Null, "a session is no key");
}

#[tokio::test]
async fn a_member_is_held_to_their_role_and_their_workspaces() {
    let service = Service::start().await;
    let person = service.person("member", Some("member")).await;
    let mut browser = by_link(&service, person).await;
    assert_eq!(browser.get("/prompts").await.status, 200);
    assert_eq!(browser.post("/collections", &json!({ "name": "mine" })).await.status, 403);
    let other = service.workspace("elsewhere").await;
    assert_eq!(browser.with("x-gateway-workspace", "elsewhere").get("/prompts").await.status, 403);
    assert_eq!(browser.with("x-gateway-workspace", &other.to_string()).get("/prompts").await.status, 403);
    // An owner acts in every workspace, in the default one unless they say otherwise.
    let mut owner = owner(&service).await;
    let own = owner.get("/api-keys/self").await.json();
    assert_eq!(own["workspace_id"], json!(service.home.workspace_id));
    let own = owner.with("x-gateway-workspace", "elsewhere").get("/api-keys/self").await.json();
    assert_eq!(own["workspace_id"], json!(other));
    let nowhere = service.person("member", None).await;
    let mut browser = by_link(&service, nowhere).await;
    assert_eq!(browser.get("/labels").await.status, 403);
    assert_eq!(browser.get("/auth/session").await.json()["workspaces"], json!([]));
}

#[tokio::test]
async fn a_cookie_is_out_of_reach_of_scripts_and_of_other_sites() {
    for (url, name, secure) in [
        ("--public-url=https://gw.test", "__Host-gateway_session", true),
        ("--public-url=http://gw.test", "gateway_session", false),
    ] {
        let service = Service::start_with(&[url]).await;
        let token = link(&service, service.home.organisation_id, service.home.owner_id).await;
        let answer = service.client().post("/auth/sessions", &json!({ "token": token })).await;
        let line = answer.header("set-cookie").to_owned();
        assert!(line.starts_with(&format!("{name}=")), "{line}");
        for part in ["; Path=/", "; HttpOnly", "; SameSite=Lax"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("Domain="), "{line}");
        assert_eq!(line.contains("; Secure"), secure, "{line}");
    }
}

#[tokio::test]
async fn csrf_a_call_that_changes_something_needs_the_token_and_our_own_site() {
    let service = Service::start_with(&["--public-url=https://gw.test"]).await;
    let token = link(&service, service.home.organisation_id, service.home.owner_id).await;
    let mut browser = Browser::new(&service);
    browser.post("/auth/sessions", &json!({ "token": token })).await;
    let body = |n: usize| json!({ "name": format!("label-{n}") });
    assert_eq!(browser.post("/labels", &body(1)).await.status, 403, "without the token");
    assert_eq!(browser.delete("/auth/sessions/0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11").await.status, 403);
    browser.learn_csrf().await;
    let good = browser.csrf_token.clone().unwrap();
    browser.csrf_token = Some(good.chars().rev().collect());
    assert_eq!(browser.post("/labels", &body(2)).await.status, 403, "with another token");
    browser.csrf_token = Some(good);
    for (name, value, status) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "same-origin", 200),
        ("origin", "https://evil.test", 403),
        ("origin", "null", 403),
        ("origin", "https://gw.test", 200),
    ] {
        let answer = browser.with(name, value).post("/labels", &body(name.len() + value.len())).await;
        assert_eq!(answer.status, status, "{name}: {value}: {}", answer.text());
    }
    assert_eq!(service.administrator().get("/labels?search=label-").await.json()["total"], 2);
}

#[tokio::test]
async fn csrf_of_logins_another_site_cannot_sign_a_browser_in() {
    let service = Service::start().await;
    let token = link(&service, service.home.organisation_id, service.home.owner_id).await;
    let stranger = Browser::new(&service);
    let answer = stranger.with("sec-fetch-site", "cross-site").post("/auth/sessions", &json!({ "token": token })).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(!answer.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn session_fixation_a_login_never_takes_over_a_token_that_was_there() {
    let service = Service::start().await;
    let token = link(&service, service.home.organisation_id, service.home.owner_id).await;
    let mut browser = Browser::new(&service);
    browser.cookies.insert("gateway_session".into(), "planted-by-an-attacker-0123456789".into());
    let answer = browser.post("/auth/sessions", &json!({ "token": token })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let session = browser.session().unwrap().clone();
    assert_ne!(session, "planted-by-an-attacker-0123456789");
    let mut attacker = Browser::new(&service);
    attacker.cookies.insert("gateway_session".into(), "planted-by-an-attacker-0123456789".into());
    assert_eq!(attacker.get("/auth/session").await.status, 401);
    // Nor does the next login keep the token of the session before it.
    let token = link(&service, service.home.organisation_id, service.home.owner_id).await;
    browser.post("/auth/sessions", &json!({ "token": token })).await;
    assert_ne!(browser.session().unwrap(), &session);
}

#[tokio::test]
async fn a_token_changes_with_use_and_the_one_before_works_for_a_moment() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    let first = browser.session().unwrap().clone();
    assert_eq!(browser.get("/labels").await.status, 200);
    assert_eq!(browser.session().unwrap(), &first, "not before its time");
    service.sql("UPDATE sessions SET rotated_at = now() - interval '16 minutes'").await;
    let mut late = Browser::new(&service);
    late.cookies = browser.cookies.clone();
    assert_eq!(browser.get("/labels").await.status, 200);
    let second = browser.session().unwrap().clone();
    assert_ne!(second, first);
    // A request that was under way.
    assert_eq!(late.get("/labels").await.status, 200);
    assert_eq!(late.session().unwrap(), &first, "one rotation, not two");
    assert_eq!(browser.get("/labels").await.status, 200);
}

#[tokio::test]
async fn a_lost_answer_with_a_new_token_ends_no_session() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    let first = browser.session().unwrap().clone();
    // Each answer that brings a token is lost, hours long.
    let mut lost = Vec::new();
    for _ in 0..3 {
        service.sql("UPDATE sessions SET rotated_at = rotated_at - interval '16 minutes'").await;
        let mut answered = Browser::new(&service);
        answered.cookies = browser.cookies.clone();
        assert_eq!(answered.get("/labels").await.status, 200);
        let token = answered.session().unwrap().clone();
        assert_ne!(token, first, "a due token is replaced again");
        lost.push(token);
        service.sql("UPDATE sessions SET rotated_at = rotated_at - interval '5 minutes'").await;
        let body = json!({ "name": format!("label-{}", lost.len()) });
        assert_eq!(browser.post("/labels", &body).await.status, 200);
        assert_eq!(browser.session().unwrap(), &first, "no token is replaced before its time");
    }
    // The answer that is not lost brings one that counts, and those that were lost are nothing any more.
    service.sql("UPDATE sessions SET rotated_at = rotated_at - interval '16 minutes'").await;
    assert_eq!(browser.get("/labels").await.status, 200);
    let newest = browser.session().unwrap().clone();
    assert!(newest != first && !lost.contains(&newest));
    let used = async |token: &String| {
        let mut stranger = Browser::new(&service);
        stranger.cookies.insert("gateway_session".into(), token.clone());
        stranger.get("/labels").await.status
    };
    let ends = async || super::trail(&service).await.iter().filter(|row| row["action"] == "delete").count();
    for token in &lost[..2] {
        assert_eq!(used(token).await, 401);
    }
    assert_eq!((browser.get("/labels").await.status.as_u16(), ends().await), (200, 0));
    // One that was replaced unused and comes back was not lost: somebody has it who is not who went on.
    assert_eq!(used(&lost[2]).await, 401);
    assert_eq!((browser.get("/labels").await.status.as_u16(), ends().await), (401, 1));
}

/// Whoever throws each new token away could go on beside its owner for ever.
#[tokio::test]
async fn a_token_outlives_only_a_few_successors() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    let first = browser.cookies.clone();
    for _ in 0..5 {
        service.sql("UPDATE sessions SET rotated_at = rotated_at - interval '16 minutes'").await;
        browser.cookies.clone_from(&first);
        assert_eq!(browser.get("/labels").await.status, 200);
    }
    browser.cookies.clone_from(&first);
    assert_eq!(browser.get("/labels").await.status, 200, "as long as its last successor is not due");
    service.sql("UPDATE sessions SET rotated_at = rotated_at - interval '16 minutes'").await;
    browser.cookies = first;
    assert_eq!(browser.get("/labels").await.status, 401);
    assert_eq!(super::trail(&service).await.iter().filter(|row| row["action"] == "delete").count(), 1);
}

#[tokio::test]
async fn a_token_whose_successor_was_not_used_is_held_to_the_end_of_the_session() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    service.sql("UPDATE sessions SET rotated_at = now() - interval '16 minutes'").await;
    let mut answered = Browser::new(&service);
    answered.cookies = browser.cookies.clone();
    assert_eq!(answered.get("/labels").await.status, 200);
    service.sql("UPDATE sessions SET last_used_at = now() - interval '7 hours'").await;
    assert_eq!(browser.get("/labels").await.status, 200);
    service.sql("UPDATE sessions SET last_used_at = now() - interval '9 hours'").await;
    assert_eq!(browser.get("/labels").await.status, 401);
    assert_eq!(answered.get("/labels").await.status, 401, "its successor too");
}

/// An earlier release runs beside this one during an upgrade, and knows nothing of tokens that were not used yet.
#[tokio::test]
async fn a_token_that_an_earlier_release_replaced_counts_for_a_minute() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    let replaced = "UPDATE sessions SET previous_hash = hash, hash = sha256('new'), rotated_at = now()";
    service.sql(&format!("{replaced}, confirmed_at = now() - interval '1 hour'")).await;
    assert_eq!(browser.get("/labels").await.status, 200);
    service.sql("UPDATE sessions SET rotated_at = now() - interval '2 minutes'").await;
    assert_eq!(browser.get("/labels").await.status, 401);
}

#[tokio::test]
async fn session_token_replay_ends_the_session_for_both_and_is_in_the_trail() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    let mut thief = Browser::new(&service);
    thief.cookies = browser.cookies.clone();
    service.sql("UPDATE sessions SET rotated_at = now() - interval '16 minutes'").await;
    assert_eq!(thief.get("/labels").await.status, 200);
    // The thief goes on with the new token; calls that were under way meanwhile still pass.
    assert_eq!(thief.get("/labels").await.status, 200);
    assert_eq!(browser.get("/labels").await.status, 200);
    service.sql("UPDATE sessions SET confirmed_at = now() - interval '2 minutes', rotated_at = now() - interval '3 minutes'").await;
    assert_eq!(browser.get("/labels").await.status, 401, "the owner's token was replaced by the thief's call");
    assert_eq!(thief.get("/labels").await.status, 401);
    assert_eq!(browser.get("/labels").await.status, 401);
    let rows: Vec<Value> = super::trail(&service).await.into_iter().filter(|row| row["action"] == "delete").collect();
    assert_eq!(rows.len(), 1, "once, and only by the replay: {rows:?}");
    assert_eq!((&rows[0]["user_id"], &rows[0]["response_status_code"]), (&json!(service.home.owner_id), &json!(401)));
    assert!(rows[0]["error"].as_str().unwrap().contains("came back"), "{rows:?}");
    for token in [browser.session(), thief.session()].into_iter().flatten() {
        assert!(!rows[0].to_string().contains(token.as_str()), "no token is in the trail");
    }
}

#[tokio::test]
async fn time_ends_a_session_as_the_organisation_says() {
    let service = Service::start().await;
    for (settings, change, alive) in [
        (Value::Null, "created_at = now() - interval '23 hours'", true),
        (Value::Null, "created_at = now() - interval '25 hours'", false),
        (Value::Null, "last_used_at = now() - interval '7 hours'", true),
        (Value::Null, "last_used_at = now() - interval '9 hours'", false),
        (json!({ "max_session_ttl": 900 }), "created_at = now() - interval '16 minutes'", false),
        (json!({ "max_session_ttl": 604_800 }), "created_at = now() - interval '25 hours'", true),
        (json!({ "idle_timeout": 300 }), "last_used_at = now() - interval '6 minutes'", false),
        (json!({ "idle_timeout": 86_400 }), "last_used_at = now() - interval '9 hours'", true),
    ] {
        set_up(&service, json!({ "session_settings": settings })).await;
        let mut browser = owner(&service).await;
        service.sql(&format!("UPDATE sessions SET {change}")).await;
        let status = browser.get("/labels").await.status;
        assert_eq!(status.as_u16(), if alive { 200 } else { 401 }, "{settings} {change}");
        service.sql("DELETE FROM sessions").await;
    }
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_their_person_alone() {
    let service = Service::start().await;
    let (mut here, mut there) = (owner(&service).await, owner(&service).await);
    let mut member = by_link(&service, service.person("member", Some("member")).await).await;
    let listed = here.get("/auth/sessions").await.json();
    assert_eq!(listed["total"], 2, "{listed}");
    let of = |is_current: bool| {
        let all = listed["data"].as_array().unwrap();
        all.iter().find(|one| one["is_current"] == is_current).unwrap()["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(member.delete(&format!("/auth/sessions/{}", of(false))).await.status, 404);
    assert_eq!(here.delete("/auth/sessions/no-id").await.status, 404);
    assert_eq!(there.get("/labels").await.status, 200);
    assert_eq!(here.delete(&format!("/auth/sessions/{}", of(false))).await.status, 200);
    assert_eq!(there.get("/labels").await.status, 401);
    assert_eq!(here.post("/auth/logout", &json!({})).await.json(), json!({ "logout_url": null }));
    assert_eq!(here.session(), None, "the cookie is cleared");
    assert_eq!(member.get("/auth/sessions").await.json()["total"], 1);
    let ended: Vec<Value> = super::trail(&service).await;
    assert_eq!(ended.iter().filter(|row| row["action"] == "delete" && row["response_status_code"] == 200).count(), 2);
}

#[tokio::test]
async fn an_administrator_signs_somebody_out_everywhere() {
    let service = Service::start().await;
    let person = service.person("member", Some("member")).await;
    let (mut here, mut there) = (by_link(&service, person).await, by_link(&service, person).await);
    let mut other = owner(&service).await;
    let token = link(&service, service.home.organisation_id, person).await;
    let (admin, path) = (service.administrator(), format!("/admin/users/{person}/sessions"));
    let listed = admin.get(&path).await.json();
    assert_eq!((&listed["total"], &listed["data"][0]["is_current"]), (&json!(2), &json!(false)), "{listed}");
    let rival = service.organisation().await;
    let stranger = service.client().with_key(&rival.admin_key.key);
    assert_eq!(stranger.get(&path).await.status, 404);
    assert_eq!(stranger.delete(&path).await.status, 404);
    assert_eq!(admin.delete(&path).await.json(), json!({ "ended_sessions": 2 }));
    assert_eq!(here.get("/auth/session").await.status, 401);
    assert_eq!(there.get("/auth/session").await.status, 401);
    assert_eq!(other.get("/auth/session").await.status, 200);
    assert_eq!(service.client().post("/auth/sessions", &json!({ "token": token })).await.status, 400, "links too");
    let row = super::trail(&service).await.into_iter().find(|row| row["after"]["ended_sessions"] == 2);
    assert_eq!(row.unwrap()["resource_id"], json!(person.to_string()));
}

#[tokio::test]
async fn who_is_removed_loses_sessions_and_links_at_once() {
    let service = Service::start().await;
    let person = service.person("member", Some("member")).await;
    let mut browser = by_link(&service, person).await;
    let token = link(&service, service.home.organisation_id, person).await;
    assert_eq!(service.administrator().delete(&format!("/admin/users/{person}")).await.status, 200);
    assert_eq!(browser.get("/auth/session").await.status, 401);
    assert_eq!(service.client().post("/auth/sessions", &json!({ "token": token })).await.status, 400);
    let left = service.database.client().await.query_one("SELECT count(*) FROM sessions", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
    // However they were deactivated.
    let person = service.person("member", Some("member")).await;
    let mut browser = by_link(&service, person).await;
    service.sql("UPDATE users SET status = 'archived', is_deactivated = true WHERE role = 'member'").await;
    assert_eq!(browser.get("/auth/session").await.status, 401);
}

#[tokio::test]
async fn a_key_is_meant_where_one_is_sent_and_is_no_session() {
    let service = Service::start().await;
    let mut browser = owner(&service).await;
    assert_eq!(browser.with("x-gateway-api-key", "pk_unknown").get("/labels").await.status, 401);
    let administrator = browser.with("x-gateway-api-key", &service.home.admin_key.key);
    let mut administrator = administrator;
    assert_eq!(administrator.get("/admin/users").await.status, 200, "as the key, without any token");
    let by_key: Client = service.administrator();
    assert_eq!(by_key.get("/auth/session").await.status, 401);
    assert_eq!(by_key.get("/auth/sessions").await.status, 401);
    assert_eq!(browser.get("/auth/session").await.status, 200);
}

#[tokio::test]
async fn without_api_access_people_still_get_in() {
    let service = Service::start_with(&["--api-access-enabled=OFF"]).await;
    let mut browser = owner(&service).await;
    assert_eq!(browser.get("/labels").await.status, 200);
    assert_eq!(service.workspace_client(service.home.workspace_id).await.get("/labels").await.status, 402);
}

#[tokio::test]
async fn what_is_over_is_cleared_away_and_what_is_not_stays() {
    let service = Service::start().await;
    let mut kept = owner(&service).await;
    owner(&service).await;
    service
        .sql(
            "UPDATE sessions SET created_at = now() - interval '2 days' WHERE id = (SELECT id FROM sessions
                ORDER BY created_at DESC LIMIT 1);
             INSERT INTO login_links SELECT sha256('a'), organisation_id, user_id, now() - interval '3 hours',
                now() - interval '2 hours' FROM sessions LIMIT 1;
             INSERT INTO login_replays VALUES (sha256('b'), now() - interval '2 hours')",
        )
        .await;
    let app = crate::jobs::admin_on(&service.database).await;
    assert_eq!(crate::jobs::run(&app, "expire_sessions").await, 3);
    assert_eq!(crate::jobs::run(&app, "expire_sessions").await, 0);
    assert_eq!(kept.get("/labels").await.status, 200);
}
