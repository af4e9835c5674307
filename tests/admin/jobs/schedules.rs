//! Keys by the calendar: rotated when due, announced a day before, and the mail that says so.

use super::{admin_on, run};
use crate::service::Service;
use admin::jobs::outbox;
use chrono::{DateTime, TimeDelta, Utc};
use harness::sink::{Sink, Speech};
use serde_json::{Value, json};
use shared::model::KeyKind;

/// A service key with a weekly policy whose next rotation is at `due` (SQL).
async fn scheduled(service: &Service, due: &str) -> Value {
    let body = json!({ "name": "nightly", "workspace_id": service.home.workspace_id, "alert_emails": ["ops@x.test"],
                       "rotation_policy": { "rotation_period": "weekly", "key_transition_period_ms": 3_600_000 } });
    let made = service.administrator().post("/api-keys/workspace/service", &body).await.json();
    let set = r#"jsonb_set(rotation_policy, '{next_rotation_at}', to_jsonb(to_char((DUE) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))"#;
    let (set, id) = (set.replace("DUE", due), made["id"].as_str().unwrap());
    service.sql(&format!("UPDATE api_keys SET rotation_policy = {set} WHERE id = '{id}'")).await;
    made
}

async fn letters(service: &Service) -> Vec<(String, String, String)> {
    let rows = "SELECT recipient, kind, body FROM letters ORDER BY recipient, kind";
    let rows = service.database.client().await.query(rows, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

fn secret(key: &Value) -> &str {
    key["key"].as_str().unwrap()
}

#[tokio::test]
async fn a_key_is_rotated_when_it_is_due_and_its_new_secret_is_fetched_by_rotating() {
    let service = Service::start().await;
    let (app, admin) = (admin_on(&service.database).await, service.administrator());
    let key = scheduled(&service, "now()").await;
    let later = scheduled(&service, "now() + interval '1 hour'").await;
    assert_eq!((run(&app, "rotate_keys").await, run(&app, "rotate_keys").await), (1, 0));
    let path = format!("/api-keys/{}", key["id"].as_str().unwrap());
    let shown = admin.get(&path).await.json();
    assert_eq!((&shown["is_unclaimed"], &shown["key"]), (&json!(true), &json!("*****")), "{shown}");
    let next: DateTime<Utc> = shown["rotation_policy"]["next_rotation_at"].as_str().unwrap().parse().unwrap();
    assert!(next > Utc::now() && next <= Utc::now() + TimeDelta::days(7), "{next}");
    let untouched = admin.get(&format!("/api-keys/{}", later["id"].as_str().unwrap())).await.json();
    assert_eq!(untouched["is_unclaimed"], false);
    let open = async |secret: &str| service.client().with_key(secret).get("/api-keys/self").await.status.as_u16();
    assert_eq!(open(secret(&key)).await, 200, "the secret in use works through the transition");
    let fetched = admin.post(&format!("{path}/rotate"), &json!({})).await;
    assert_eq!(fetched.status, 200, "{}", fetched.text());
    let fetched = fetched.json();
    let ends: DateTime<Utc> = fetched["key_transition_expires_at"].as_str().unwrap().parse().unwrap();
    let lasts = ends - Utc::now();
    assert!(lasts > TimeDelta::minutes(55) && lasts <= TimeDelta::minutes(60), "as the policy says: {lasts}");
    assert_eq!((open(secret(&key)).await, open(secret(&fetched)).await), (200, 200));
    assert_eq!(admin.post(&format!("{path}/rotate"), &json!({})).await.status, 409, "fetched once; it is in use now");
    service.sql("UPDATE api_keys SET previous_expires_at = now() WHERE previous_hash IS NOT NULL").await;
    assert_eq!((open(secret(&key)).await, open(secret(&fetched)).await), (401, 200));
}

#[tokio::test]
async fn a_rotation_by_schedule_is_recorded_and_those_who_look_after_the_key_are_told() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let (manager, _) =
        (service.person("member", Some("manager")).await, service.person("member", Some("member")).await);
    service.sql(&format!("UPDATE users SET email = 'manager@x.test' WHERE id = '{manager}'")).await;
    let key = scheduled(&service, "now()").await;
    run(&app, "rotate_keys").await;
    let trail = service.trail(service.home.organisation_id).await;
    let record = trail.last().unwrap();
    assert_eq!((&record["user_type"], &record["action"]), (&json!("system"), &json!("rotate")), "{record}");
    let after = &record["after"];
    assert_eq!((&after["rotation_mode"], &after["api_key_id"]), (&json!("auto"), &key["id"]), "{record}");
    assert_eq!(after["old_key_masked"], json!(shared::identity::api_key::mask(secret(&key))));
    assert!(after["transition_expires_at"].is_string());
    let letters = letters(&service).await;
    let to: Vec<_> = letters.iter().map(|(to, kind, _)| (to.as_str(), kind.as_str())).collect();
    let all = ["manager@x.test", "ops@x.test", "owner@home.test"].map(|to| (to, "key rotated"));
    assert_eq!(to, all, "not the plain member");
    for (_, _, text) in &letters {
        assert!(text.contains("nightly") && text.contains("/rotate") && !text.contains(secret(&key)), "{text}");
    }
}

#[tokio::test]
async fn an_open_transition_is_waited_for_and_ended_keys_are_left_alone() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    for set in [
        "previous_hash = sha256('x'), previous_expires_at = now() + interval '1 hour'",
        "status = 'archived'",
        "expires_at = now() - interval '1 second'",
        "rotation_policy = NULL",
    ] {
        let key = scheduled(&service, "now()").await;
        service.sql(&format!("UPDATE api_keys SET {set} WHERE id = '{}'", key["id"].as_str().unwrap())).await;
        assert_eq!(run(&app, "rotate_keys").await, 0, "{set}");
    }
}

#[tokio::test]
async fn owners_are_told_once_a_day_before_a_key_ends_or_is_rotated() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    for (name, created, end) in [
        ("k-soon", "10 days", "'23 hours'"),
        ("k-later", "10 days", "'25 hours'"),
        ("k-short", "0 days", "'1 hour'"),
        ("k-over", "10 days", "'-1 hour'"),
    ] {
        let key = service.key(KeyKind::WorkspaceUser, &[]).await;
        let set =
            format!("name = '{name}', created_at = now() - interval '{created}', expires_at = now() + interval {end}");
        service.sql(&format!("UPDATE api_keys SET {set} WHERE id = '{}'", key.id)).await;
    }
    for due in ["now() + interval '23 hours'", "now() + interval '25 hours'", "now() - interval '1 minute'"] {
        scheduled(&service, due).await;
    }
    assert_eq!((run(&app, "remind_of_keys").await, run(&app, "remind_of_keys").await), (2, 0));
    let sent = letters(&service).await;
    let to: Vec<_> = sent.iter().map(|(to, kind, _)| (to.as_str(), kind.as_str())).collect();
    let expected =
        [("ops@x.test", "key rotation"), ("owner@home.test", "key expiry"), ("owner@home.test", "key rotation")];
    assert_eq!(to, expected, "the person's key concerns its owner, the service's key those who run the place");
    assert!(sent[1].2.contains("k-soon"), "{}", sent[1].2);
    service.sql("UPDATE api_keys SET expires_at = expires_at - interval '1 hour' WHERE name = 'k-soon'").await;
    assert_eq!(run(&app, "remind_of_keys").await, 1, "a moment that was moved is told of anew");
}

#[tokio::test]
async fn limits_show_that_a_mail_told_of_the_end_until_the_end_is_moved() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let client = service.administrator();
    let body = json!({ "name": "k", "scopes": ["completions.write"], "workspace_id": service.home.workspace_id,
        "usage_limits": { "credit_limit": 5 }, "expires_at": "2099-01-01T00:00:00Z" });
    let made = client.post("/api-keys/workspace/service", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let path = format!("/api-keys/{}", made.json()["id"].as_str().unwrap());
    let told = async || client.get(&path).await.json()["usage_limits"]["is_expired_alerts_sent"].clone();
    let soon = "UPDATE api_keys SET created_at = now() - interval '9 days', expires_at = now() + interval '1 hour'
                WHERE name = 'k'";
    service.sql(soon).await;
    assert_eq!((told().await, run(&app, "remind_of_keys").await), (json!(false), 1));
    assert_eq!(told().await, true);
    let more = json!({ "usage_limits": { "credit_limit": 6 }, "name": "k" });
    assert_eq!(client.put(&path, &more).await.status, 200);
    assert_eq!(told().await, true, "other limits are no other end");
    assert_eq!(client.put(&path, &json!({ "reset_usage": true })).await.status, 200);
    assert_eq!(told().await, true, "nor is a new count");
    assert_eq!(client.put(&path, &json!({ "expires_at": "2098-01-01T00:00:00Z" })).await.status, 200);
    assert_eq!(told().await, false);
    assert_eq!(client.get(&path).await.json()["usage_limits"]["credit_limit"], 6);
    service.sql(soon).await;
    service.sql("UPDATE users SET status = 'archived'").await;
    assert_eq!(run(&app, "remind_of_keys").await, 1);
    assert_eq!(told().await, false, "there was nobody to tell");
}

#[tokio::test]
async fn kept_mail_is_handed_over_once_and_tried_again_when_the_server_was_away() {
    let service = Service::start().await;
    let mut sink = Sink::start(Speech::Plain).await;
    let port = format!("--smtp-port={}", sink.port);
    let sending = super::admin_with(&service.database, &["--smtp-host=127.0.0.1", &port, "--smtp-tls=off"]).await;
    let nobody = bench::ports::Reservation::any().unwrap();
    let port = format!("--smtp-port={}", nobody.port());
    let failing = super::admin_with(&service.database, &["--smtp-host=127.0.0.1", &port, "--smtp-tls=off"]).await;
    let key = service.key(KeyKind::WorkspaceUser, &[]).await;
    service
        .sql(&format!(
            "UPDATE api_keys SET created_at = now() - interval '9 days', expires_at = now() + interval '1 hour'
             WHERE id = '{}'",
            key.id
        ))
        .await;
    assert_eq!(run(&sending, "remind_of_keys").await, 1);
    assert_eq!(outbox::send(&failing).await.unwrap(), 1);
    assert_eq!(letters(&service).await.len(), 1, "it is kept");
    assert_eq!(outbox::send(&sending).await.unwrap(), 0, "not at once again");
    service.sql("UPDATE letters SET next_attempt_at = now()").await;
    let (one, two) = tokio::join!(outbox::send(&sending), outbox::send(&sending));
    assert_eq!(one.unwrap() + two.unwrap(), 1, "two admins do not send it twice");
    let letter = sink.letter().await;
    assert_eq!(letter.to, ["owner@home.test"]);
    assert!(letter.text.contains("expires"), "{}", letter.text);
    assert!(letters(&service).await.is_empty());
}
