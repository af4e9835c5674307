//! When budgets end: what is told of each equals what a slow reference makes of the same counters, and nobody sees another's.

use super::get;
use crate::document::Document;
use crate::policies;
use crate::providers::granted;
use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use shared::db::usage_slots::day_of;
use std::collections::BTreeMap;

const PATH: &str = "/analytics/budgets";

/// Counters of days: scope and id, and what was used on the day that begins then.
type Days = BTreeMap<(String, String), Vec<(DateTime<Utc>, f64)>>;

/// Budgets on one thing of each kind, the monthly ones in dollars.
async fn budgets(service: &Service) {
    let admin = service.administrator();
    let client = granted(service).await;
    let monthly = json!({ "credit_limit": 100, "periodic_reset": "monthly" });
    let key =
        json!({ "name": "ci", "workspace_id": service.home.workspace_id, "usage_limits": { "credit_limit": 50 } });
    assert_eq!(admin.post("/api-keys/workspace/service", &key).await.status, 200);
    let workspace = format!("/workspaces/{}", service.home.workspace_id);
    let tokens = json!({ "usage_limits": { "type": "tokens", "credit_limit": 100_000 } });
    assert_eq!(admin.put(&workspace, &tokens).await.status, 200);
    let provider = json!({ "name": "p", "slug": "p", "integration_id": "main", "usage_limits": monthly });
    assert_eq!(client.post("/providers", &provider).await.status, 200);
    let grant =
        json!({ "workspaces": [{ "id": service.home.workspace_id, "enabled": true, "usage_limits": monthly }] });
    assert_eq!(admin.put("/integrations/main/workspaces", &grant).await.status, 200);
}

/// What was used, at random: of each thing on some days, and of its budget.
async fn use_up(service: &Service, random: &mut StdRng) -> Days {
    service.sql("DELETE FROM usage_counters").await;
    let client = service.database.client().await;
    let key: String =
        client.query_one("SELECT id::text FROM api_keys WHERE usage_limits IS NOT NULL", &[]).await.unwrap().get(0);
    let workspace = service.home.workspace_id;
    let things = [
        ("api_key", key, "cost"),
        ("workspace", workspace.to_string(), "tokens"),
        ("provider", format!("{workspace}/p"), "cost"),
        // A provider of the same name elsewhere.
        ("provider", format!("{}/p", uuid::Uuid::new_v4()), "cost"),
    ];
    const ADD: &str = "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
                       VALUES ($1, $2, $3, $4, 'day', $5, $6::bigint)";
    let mut days = Days::new();
    for (scope, id, unit) in things {
        // Of another unit, which the budget is not of.
        for (unit, is_counted) in [(unit, true), ("requests", false)] {
            for age in 0..10 {
                if random.random_bool(0.4) {
                    continue;
                }
                let (day, amount) = (day_of(Utc::now()) - TimeDelta::days(age), random.random_range(0..4000_i64));
                client.execute(ADD, &[&service.home.organisation_id, &scope, &id, &unit, &day, &amount]).await.unwrap();
                if is_counted {
                    days.entry((scope.to_owned(), id.clone())).or_default().push((day, amount as f64));
                }
            }
        }
    }
    for (table, most) in
        [("api_keys", 6000), ("workspaces", 120_000), ("providers", 11_000), ("integration_workspaces", 11_000)]
    {
        if random.random_bool(0.8) {
            service.spend(table, &random.random_range(0..most).to_string()).await;
        }
    }
    days
}

/// Used in the last 24 hours, and on a day of the last seven.
fn paces(days: &[(DateTime<Utc>, f64)], now: DateTime<Utc>) -> [f64; 2] {
    let used = |length: i64| -> f64 {
        let from = now - TimeDelta::days(length);
        // Today counts whole: nothing was used after now.
        let part = |day: DateTime<Utc>| {
            let counted = day + TimeDelta::days(1) - from.max(day);
            counted.num_milliseconds().max(0) as f64 / 86_400_000.0
        };
        days.iter().map(|(day, amount)| amount * part(*day)).sum()
    };
    [used(1), used(7) / 7.0]
}

fn close(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found} is no number"));
    assert!((found - expected).abs() <= expected.abs() * 1e-6 + 1e-6, "{what}: {found} instead of {expected}");
}

/// What is expected of a budget, by what it says of itself and the counters.
fn check(budget: &Value, paces: Option<[f64; 2]>, now: DateTime<Utc>) {
    let number = |name: &str| budget[name].as_f64().unwrap_or_else(|| panic!("{name}: {budget}"));
    let time = |name: &str| budget[name].as_str().map(|text| text.parse::<DateTime<Utc>>().unwrap());
    let factor = if budget["type"] == "cost" { 0.01 } else { 1.0 };
    let (limit, used) = (number("credit_limit"), number("current_usage"));
    let pace = match paces {
        Some([day, week]) => {
            close(&budget["pace_24h"], day * factor, "24 hours");
            close(&budget["pace_7d"], week * factor, "7 days");
            (day * factor).max(week * factor)
        }
        None => {
            assert!(budget["pace_24h"].is_null() && budget["pace_7d"].is_null(), "{budget}");
            let period = now - time("last_reset_at").unwrap();
            used / (period.num_milliseconds() as f64 / 86_400_000.0).max(1.0)
        }
    };
    close(&budget["pace"], pace, "pace");
    assert_eq!(budget["status"], if used >= limit { "exhausted" } else { "active" });
    let reached = if used >= limit {
        Some(now)
    } else {
        let seconds = (limit - used) / pace * 86_400.0;
        let at = (pace > 0.0 && seconds < 3650.0 * 86_400.0)
            .then(|| now + TimeDelta::milliseconds((seconds * 1000.0) as i64));
        at.filter(|at| time("next_usage_reset_at").is_none_or(|end| *at < end))
    };
    match (reached, time("runs_out_at")) {
        (None, None) => {}
        (Some(expected), Some(found)) => assert!((found - expected).num_seconds().abs() < 60, "{budget}: {expected}"),
        (expected, found) => panic!("{budget}: {found:?} instead of {expected:?}"),
    }
}

#[tokio::test]
async fn every_budget_ends_when_its_counters_say() {
    let service = Service::start().await;
    budgets(&service).await;
    let policy = policies::made(&service.administrator(), "/policies/usage-limits", &policies::usage(&service)).await;
    let document = Document::of(&service).await;
    let mut random = StdRng::seed_from_u64(24);
    for round in 0..8 {
        let days = use_up(&service, &mut random).await;
        let begun = if round % 2 == 0 { "1 minute" } else { "9 days" };
        let reset = format!(
            "UPDATE usage_limits_policies SET last_reset_at = date_trunc('milliseconds', now()) - interval '{begun}'"
        );
        service.sql(&reset).await;
        for user in ["ada", "bob"] {
            policies::spend(&service, &policy, user, &random.random_range(0..1200).to_string()).await;
        }
        let answer = service.administrator().get(PATH).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let faults = document.faults(&Method::GET, PATH, &answer);
        assert!(faults.is_empty(), "{faults:?}");
        let list = answer.json();
        let now: DateTime<Utc> = list["as_of"].as_str().unwrap().parse().unwrap();
        let found = list["data"].as_array().unwrap();
        assert_eq!((found.len(), &list["total"]), (6, &json!(6)), "{list}");
        let ends: Vec<&str> = found.iter().map(|one| one["runs_out_at"].as_str().unwrap_or("never")).collect();
        assert!(ends.is_sorted(), "the first to end comes first: {ends:?}");
        for budget in found {
            let id = budget["id"].as_str().unwrap();
            let provider = ("provider".to_owned(), format!("{}/p", service.home.workspace_id));
            let counted = match budget["kind"].as_str().unwrap() {
                "provider" | "integration" => provider,
                kind => (kind.to_owned(), id.to_owned()),
            };
            let paces = paces(days.get(&counted).map_or(&[], Vec::as_slice), now);
            check(budget, (budget["kind"] != "policy").then_some(paces), now);
        }
    }
}

#[tokio::test]
async fn budgets_are_chosen_by_kind_and_page_and_open_in_a_spreadsheet() {
    let service = Service::start().await;
    budgets(&service).await;
    let client = service.administrator();
    let kinds = async |query: &str| {
        let list = get(&client, PATH, query).await;
        let kinds = list["data"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap().to_owned());
        (kinds.collect::<Vec<_>>(), list["total"].as_u64().unwrap())
    };
    assert_eq!(kinds("kind=workspace").await, (vec!["workspace".to_owned()], 1));
    assert_eq!(kinds("kind=policy").await, (Vec::new(), 0), "no group has used anything");
    let (mut both, _) = kinds("kind=api_key,provider&page_size=1").await;
    both.extend(kinds("kind=api_key,provider&page_size=1&current_page=1").await.0);
    both.sort();
    assert_eq!(both, ["api_key", "provider"]);
    assert_eq!(kinds("page_size=2&current_page=9").await, (Vec::new(), 4), "beyond the last page");
    let wrong = client.get(&format!("{PATH}?kind=colour")).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    let sheet = client.with("accept", "text/csv").get(PATH).await;
    assert!(sheet.header("content-type").starts_with("text/csv"), "{}", sheet.header("content-type"));
    assert_eq!(sheet.text().lines().count(), 5, "{}", sheet.text());
}

#[tokio::test]
async fn nobody_sees_budgets_of_others() {
    let service = Service::start().await;
    budgets(&service).await;
    let policy = policies::made(&service.administrator(), "/policies/usage-limits", &policies::usage(&service)).await;
    policies::spend(&service, &policy, "ada", "5").await;
    let total = async |client: &harness::Client, query: &str| get(client, PATH, query).await["total"].clone();
    let other = service.organisation().await;
    let stranger = service.client().with_key(&other.admin_key.key);
    assert_eq!(total(&stranger, "workspace_slug=*").await, 0);
    let theirs = stranger.get(&format!("{PATH}?workspace_slug={}", service.home.workspace_id)).await;
    assert_eq!(theirs.status, 404, "{}", theirs.text());
    let elsewhere = service.workspace("elsewhere").await;
    let neighbour = service.workspace_client(elsewhere).await;
    assert_eq!(total(&neighbour, "workspace_slug=*").await, 0);
    assert_eq!(total(&service.administrator(), "workspace_slug=elsewhere").await, 0);
    assert_eq!(total(&service.administrator(), "workspace_slug=*").await, 5);

    let member = service.person("member", Some("member")).await;
    let client = service.person_client(service.home.workspace_id, member).await;
    assert_eq!(total(&client, "").await, 5);
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogMetadata": false}'"#).await;
    assert_eq!(total(&client, "").await, 4, "the name of a group is metadata");
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewAllData": false}'"#).await;
    assert_eq!(total(&client, "").await, 0);
    let own = format!(
        r#"UPDATE api_keys SET usage_limits = '{{"type": "cost", "credit_limit": 5, "last_reset_at": "2026-01-01T00:00:00.000Z"}}'
           WHERE user_id = '{member}'"#
    );
    service.sql(&own).await;
    assert_eq!(total(&client, "").await, 1, "their own key's");
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewAnalytics": false}'"#).await;
    assert_eq!(client.get(PATH).await.status, 403);
}
