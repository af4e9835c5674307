//! Budgets under the jobs: alerts once per crossing, marks, and resets by the calendar.

use super::{admin_on, admin_with, run};
use crate::policies::{made, spend, usage};
use crate::providers::granted;
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};

const KEYS: &str = "/api-keys/workspace/service";

/// Recipient, kind and subject of every letter that waits to be sent.
async fn letters(service: &Service) -> Vec<(String, String, String)> {
    let rows = "SELECT recipient, kind, subject FROM letters ORDER BY subject, recipient";
    let rows = service.database.client().await.query(rows, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

/// How many letters of each kind wait, which are then thrown away.
async fn taken(service: &Service) -> (usize, usize) {
    let letters = letters(service).await;
    service.sql("DELETE FROM letters").await;
    let of = |kind: &str| letters.iter().filter(|letter| letter.1 == kind).count();
    (of("budget threshold"), of("budget exhausted"))
}

async fn key(service: &Service, limits: Value) -> String {
    let body = json!({
        "name": "ci", "workspace_id": service.home.workspace_id, "usage_limits": limits, "alert_emails": ["ops@x.test"],
    });
    let made = service.administrator().post(KEYS, &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    format!("/api-keys/{}", made.json()["id"].as_str().unwrap())
}

async fn actions(service: &Service) -> Vec<String> {
    let trail = service.trail(service.home.organisation_id).await;
    let by_system = trail.iter().filter(|row| row["user_type"] == "system");
    by_system.map(|row| row["action"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_crossing_is_told_once_to_those_who_run_the_workspace_and_the_organisation() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    for (role, place) in
        [("admin", None), ("member", Some("admin")), ("member", Some("manager")), ("member", Some("member"))]
    {
        service.person(role, place).await;
    }
    let path = key(&service, json!({ "credit_limit": 10, "alert_threshold": 8 })).await;
    let admin = service.administrator();
    service.spend("api_keys", "799.99").await;
    assert_eq!(run(&app, "watch_budgets").await, 0);
    service.spend("api_keys", "800").await;
    assert_eq!((run(&app, "watch_budgets").await, run(&app, "watch_budgets").await), (1, 0));
    // The owner, an admin, the workspace's admin and manager, and whom the key names; not the member.
    assert_eq!(taken(&service).await, (5, 0));
    let shown = admin.get(&path).await.json();
    assert_eq!(
        (&shown["status"], &shown["usage_limits"]["is_threshold_alerts_sent"]),
        (&json!("active"), &json!(true))
    );
    service.spend("api_keys", "1000").await;
    assert_eq!((run(&app, "watch_budgets").await, run(&app, "watch_budgets").await), (1, 0));
    let subjects = letters(&service).await;
    assert!(subjects.contains(&(
        "ops@x.test".into(),
        "budget exhausted".into(),
        "The budget of API key ci is used up".into()
    )));
    assert_eq!(taken(&service).await, (0, 5));
    let shown = admin.get(&path).await.json();
    assert_eq!(
        (&shown["status"], &shown["usage_limits"]["is_exhausted_alerts_sent"]),
        (&json!("exhausted"), &json!(true))
    );
    assert_eq!(actions(&service).await, ["threshold_reached", "limit_reached"]);
    let raised = json!({ "usage_limits": { "credit_limit": 20, "alert_threshold": 15 } });
    assert_eq!(admin.put(&path, &raised).await.status, 200);
    let shown = admin.get(&path).await.json();
    assert_eq!(
        (&shown["status"], &shown["usage_limits"]["is_exhausted_alerts_sent"]),
        (&json!("active"), &json!(false))
    );
    assert_eq!(run(&app, "watch_budgets").await, 0, "there is room again");
    service.spend("api_keys", "2100").await;
    assert_eq!(run(&app, "watch_budgets").await, 1);
    assert_eq!(taken(&service).await, (0, 5), "who hears of the end need not hear of the threshold");
    assert_eq!(run(&app, "watch_budgets").await, 0);
}

#[tokio::test]
async fn workspaces_providers_and_integrations_are_watched_too() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let client = granted(&service).await;
    let admin = service.administrator();
    let limits = json!({ "type": "tokens", "credit_limit": 1000 });
    let provider = json!({ "name": "p", "slug": "p", "integration_id": "main", "usage_limits": limits });
    assert_eq!(client.post("/providers", &provider).await.status, 200);
    let workspace = format!("/workspaces/{}", service.home.workspace_id);
    assert_eq!(admin.put(&workspace, &json!({ "usage_limits": limits })).await.status, 200);
    let grant = json!({ "workspaces": [{ "id": service.home.workspace_id, "enabled": true, "usage_limits": limits }] });
    assert_eq!(admin.put("/integrations/main/workspaces", &grant).await.status, 200);
    for table in ["providers", "workspaces", "integration_workspaces"] {
        service.spend(table, "999").await;
        assert_eq!(run(&app, "watch_budgets").await, 0, "{table}");
        service.spend(table, "1000").await;
        assert_eq!((run(&app, "watch_budgets").await, run(&app, "watch_budgets").await), (1, 0), "{table}");
        assert_eq!(taken(&service).await, (0, 1), "{table}");
    }
    assert_eq!(client.get("/providers/p").await.json()["status"], "exhausted");
    let shown = admin.get(&workspace).await.json()["usage_limits"][0].clone();
    assert_eq!((&shown["status"], &shown["is_exhausted_alerts_sent"]), (&json!("exhausted"), &json!(true)));
    let raised =
        admin.put(&workspace, &json!({ "usage_limits": { "type": "tokens", "credit_limit": 2000 } })).await.json();
    assert_eq!(raised["usage_limits"][0]["status"], "active");
    let off = admin_with(&service.database, &["--usage-limits-enabled=OFF"]).await;
    service.spend("workspaces", "5000").await;
    assert_eq!(run(&off, "watch_budgets").await, 0, "switched off");
}

async fn due(service: &Service, table: &str, at: &str) {
    let set = format!(r#"to_jsonb(to_char(({at}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))"#);
    let place = if table == "workspaces" { "{0,next_usage_reset_at}" } else { "{next_usage_reset_at}" };
    service
        .sql(&format!(
            "UPDATE {table} SET usage_limits = jsonb_set(usage_limits, '{place}', {set}) WHERE usage_limits IS NOT NULL"
        ))
        .await;
}

#[tokio::test]
async fn budgets_start_over_when_their_time_comes_however_late_it_is_noticed() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let admin = service.administrator();
    let path = key(&service, json!({ "credit_limit": 10, "alert_threshold": 8, "periodic_reset": "monthly" })).await;
    let workspace = format!("/workspaces/{}", service.home.workspace_id);
    let limits = json!({ "usage_limits": { "credit_limit": 10, "periodic_reset_days": 3 } });
    assert_eq!(admin.put(&workspace, &limits).await.status, 200);
    for table in ["api_keys", "workspaces"] {
        service.spend(table, "1200").await;
    }
    assert_eq!((run(&app, "watch_budgets").await, run(&app, "reset_budgets").await), (2, 0), "nothing is due");
    taken(&service).await;
    // Three months and a week ago: made up for as one.
    due(&service, "api_keys", "date_trunc('month', now(), 'UTC') - interval '3 months'").await;
    due(&service, "workspaces", "date_trunc('day', now(), 'UTC') - interval '7 days'").await;
    assert_eq!((run(&app, "reset_budgets").await, run(&app, "reset_budgets").await), (2, 0));
    let shown = admin.get(&path).await.json();
    assert_eq!((&shown["status"], &shown["usage_limits"]["current_usage"]), (&json!("active"), &json!(0)));
    assert_eq!(shown["usage_limits"]["is_exhausted_alerts_sent"], false);
    let expected = "SELECT to_char(date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC', 'YYYY-MM-DD'),
                           to_char(date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC' + interval '1 month', 'YYYY-MM-DD'),
                           to_char(date_trunc('day', now(), 'UTC') AT TIME ZONE 'UTC' - interval '1 day', 'YYYY-MM-DD'),
                           to_char(date_trunc('day', now(), 'UTC') AT TIME ZONE 'UTC' + interval '2 days', 'YYYY-MM-DD')";
    let row = service.database.client().await.query_one(expected, &[]).await.unwrap();
    let day = |n: usize| format!("{}T00:00:00.000Z", row.get::<_, &str>(n));
    assert_eq!((&shown["last_reset_at"], &shown["next_usage_reset_at"]), (&json!(day(0)), &json!(day(1))));
    let shown = admin.get(&workspace).await.json();
    assert_eq!(shown["usage_limits"][0]["current_usage"], 0);
    assert_eq!(shown["last_reset_at"], day(2));
    assert_eq!(shown["usage_limits"][0]["next_usage_reset_at"], day(3));
    service.spend("api_keys", "1000").await;
    assert_eq!(run(&app, "watch_budgets").await, 1, "who was told is told again in the new period");
}

async fn groups(client: &Client, policy: &str) -> Value {
    client.get(&format!("{policy}?include_usage=true")).await.json()["value_key_usage_map"].clone()
}

#[tokio::test]
async fn groups_of_a_policy_are_told_of_once_and_wake_with_room() {
    let service = Service::start().await;
    let (app, admin) = (admin_on(&service.database).await, service.administrator());
    let policy = made(&admin, "/policies/usage-limits", &usage(&service)).await;
    for (name, cents) in [("alice", "800"), ("bob", "1000"), ("carol", "100")] {
        spend(&service, &policy, &format!("metadata._user:{name}"), cents).await;
    }
    assert_eq!((run(&app, "watch_policies").await, run(&app, "watch_policies").await), (2, 0));
    assert_eq!(taken(&service).await, (1, 1));
    let mut told = actions(&service).await;
    told.sort_unstable();
    assert_eq!(told, ["limit_reached", "threshold_reached"]);
    let seen = groups(&admin, &policy).await;
    let state = |one: &Value| (one["is_threshold_alerts_sent"] == true, one["is_exhausted_alerts_sent"] == true);
    assert_eq!(state(&seen["metadata._user:alice"]), (true, false));
    assert_eq!(state(&seen["metadata._user:bob"]), (true, true));
    assert_eq!(state(&seen["metadata._user:carol"]), (false, false));
    assert_eq!(admin.put(&policy, &json!({ "credit_limit": 20, "alert_threshold": 15 })).await.status, 200);
    let seen = groups(&admin, &policy).await;
    assert_eq!(state(&seen["metadata._user:bob"]), (false, false));
    assert_eq!(seen["metadata._user:bob"]["status"], "active");
    assert_eq!(run(&app, "watch_policies").await, 0);
    spend(&service, &policy, "metadata._user:bob", "1600").await;
    assert_eq!(run(&app, "watch_policies").await, 1);
    assert_eq!(admin.put(&policy, &json!({ "alert_threshold": null })).await.status, 200);
    assert_eq!(state(&groups(&admin, &policy).await["metadata._user:bob"]), (false, false));
    taken(&service).await;
    spend(&service, &policy, "metadata._user:bob", "2000").await;
    assert_eq!(run(&app, "watch_policies").await, 1);
    assert_eq!(taken(&service).await, (0, 1));
    assert_eq!(admin.put(&policy, &json!({ "reset_usage_for_value": "bob" })).await.status, 200);
    assert_eq!(state(&groups(&admin, &policy).await["metadata._user:bob"]), (false, false));
    assert_eq!(run(&app, "watch_policies").await, 0);
    spend(&service, &policy, "metadata._user:dora", "2000").await;
    assert_eq!(admin.put(&policy, &json!({ "status": "archived" })).await.status, 200);
    assert_eq!(run(&app, "watch_policies").await, 0, "archived policies are skipped");
}

#[tokio::test]
async fn a_policy_starts_over_on_its_day_with_all_its_groups() {
    let service = Service::start().await;
    let (app, admin) = (admin_on(&service.database).await, service.administrator());
    let mut body = usage(&service);
    body["periodic_reset"] = "weekly".into();
    let policy = made(&admin, "/policies/usage-limits", &body).await;
    spend(&service, &policy, "metadata._user:alice", "1000").await;
    assert_eq!((run(&app, "watch_policies").await, run(&app, "reset_policies").await), (1, 0));
    service.sql("UPDATE usage_limits_policies SET next_usage_reset_at = date_trunc('week', now(), 'UTC') - interval '14 days',
                        last_reset_at = date_trunc('week', now(), 'UTC') - interval '21 days'").await;
    assert_eq!((run(&app, "reset_policies").await, run(&app, "reset_policies").await), (1, 0));
    let shown = admin.get(&policy).await.json();
    let week = "SELECT to_char(date_trunc('week', now(), 'UTC') AT TIME ZONE 'UTC', 'YYYY-MM-DD'),
                       to_char(date_trunc('week', now(), 'UTC') AT TIME ZONE 'UTC' + interval '7 days', 'YYYY-MM-DD')";
    let row = service.database.client().await.query_one(week, &[]).await.unwrap();
    let day = |n: usize| format!("{}T00:00:00.000Z", row.get::<_, &str>(n));
    assert_eq!((&shown["last_reset_at"], &shown["next_usage_reset_at"]), (&json!(day(0)), &json!(day(1))));
    assert_eq!(groups(&admin, &policy).await, json!({}), "nobody has used anything, and nothing was told");
    let kept: i64 =
        service.database.client().await.query_one("SELECT count(*) FROM policy_entities", &[]).await.unwrap().get(0);
    assert_eq!(kept, 0);
}
