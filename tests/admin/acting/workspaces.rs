//! Who runs no organisation sees what happened in all of their workspaces at once, and in no other.

use super::everywhere;
use crate::login::browser::Browser;
use crate::login::by_link;
use crate::logs::{at, store};
use crate::service::Service;
use chrono::SecondsFormat;
use serde_json::{Value, json};
use uuid::Uuid;

async fn join(service: &Service, person: Uuid, workspace: Uuid, role: &str) {
    let home = service.home.organisation_id;
    service
        .sql(&format!(
            "INSERT INTO workspace_members (organisation_id, workspace_id, user_id, role)
             VALUES ('{home}', '{workspace}', '{person}', '{role}')"
        ))
        .await;
}

/// What a workspace says of its roles, where it is open for that.
async fn override_in(service: &Service, workspace: Uuid, settings: Value) {
    let open = json!({ "workspace_overrides": { "logs": true, "analytics": true, "data_visibility": true } });
    service.sql(&format!("UPDATE organisations SET settings = settings || '{open}'")).await;
    service.sql(&format!("UPDATE workspaces SET security_settings = '{settings}' WHERE id = '{workspace}'")).await;
}

async fn seen(browser: &mut Browser, query: &str) -> Vec<Uuid> {
    let answer = browser.get(&format!("/logs?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    let list = answer.json();
    let mut ids: Vec<Uuid> =
        list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn sorted<const N: usize>(mut ids: [Uuid; N]) -> Vec<Uuid> {
    ids.sort_unstable();
    ids.into()
}

fn span() -> String {
    let span = [at(3600), at(-5)].map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true));
    format!("time_of_generation_min={}&time_of_generation_max={}", span[0], span[1])
}

#[tokio::test]
async fn logs_and_figures_are_of_all_own_workspaces_and_of_no_other() {
    let service = Service::start().await;
    let rival = service.organisation().await;
    let (second, out, gone) =
        (service.workspace("second").await, service.workspace("out").await, service.workspace("gone").await);
    let person = service.person("member", Some("member")).await;
    join(&service, person, second, "manager").await;
    join(&service, person, gone, "admin").await;
    service.sql(&format!("UPDATE workspaces SET status = 'archived' WHERE id = '{gone}'")).await;
    let home = store(&service, at(60), json!({})).await;
    let there = store(&service, at(50), json!({ "workspace_id": second })).await;
    let hidden = [
        store(&service, at(40), json!({ "workspace_id": out })).await,
        store(&service, at(30), json!({ "workspace_id": gone })).await,
        store(
            &service,
            at(20),
            json!({ "organisation_id": rival.organisation_id, "workspace_id": rival.workspace_id }),
        )
        .await,
    ];
    for mut browser in [everywhere(&service, person).await, by_link(&service, person).await] {
        assert_eq!(seen(&mut browser, "").await, sorted([home, there]));
        assert_eq!(seen(&mut browser, "workspace_slug=*").await, sorted([home, there]));
        assert_eq!(seen(&mut browser, "workspace_slug=second").await, [there]);
        let both = format!("workspace_slug=second,{}", service.home.workspace_id);
        assert_eq!(seen(&mut browser, &both).await, sorted([home, there]));
        for name in ["out".into(), "second,out".into(), "gone".into(), out.to_string(), rival.workspace_id.to_string()]
        {
            for path in [format!("/logs?workspace_slug={name}"), format!("/analytics/budgets?workspace_slug={name}")] {
                assert_eq!(browser.get(&path).await.status, 404, "{path}");
            }
        }
        for (ids, status) in [(&[home, there][..], 200), (&hidden, 404)] {
            for id in ids {
                assert_eq!(browser.get(&format!("/logs/{id}")).await.status, status, "{id}");
            }
        }
        let groups = browser.get(&format!("/logs/groups/workspace?{}", span())).await;
        assert_eq!(groups.json()["total"], 2, "{}", groups.text());
        assert!(!groups.text().contains("\"out\""), "{}", groups.text());
        let named = browser.get("/logs").await.json();
        let named: Vec<&str> =
            named["workspaces"].as_array().unwrap().iter().map(|one| one["slug"].as_str().unwrap()).collect();
        assert_eq!(named.len(), 2, "{named:?}");
    }
    // Saved filters too are of their workspaces.
    for (workspace, status) in [(second, 200), (out, 404)] {
        let saved = json!({ "name": "f", "filters": { "status_code": [200] }, "workspace_id": workspace });
        let saved = service.administrator().post("/analytics/saved-filters", &saved).await.json();
        let path = format!("/analytics/groups/workspaces?saved_filter_id={}&{}", saved["id"].as_str().unwrap(), span());
        let answer = by_link(&service, person).await.get(&path).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    // Where a workspace is named, it is that one.
    let mut one = by_link(&service, person).await.with("x-gateway-workspace", "second");
    assert_eq!(seen(&mut one, "").await, [there]);
    // Who leaves sees no more of it with the next call, and who is in none sees nothing.
    let mut all = everywhere(&service, person).await;
    service.sql(&format!("DELETE FROM workspace_members WHERE workspace_id = '{second}'")).await;
    assert_eq!(seen(&mut all, "").await, [home]);
    service.sql(&format!("DELETE FROM workspace_members WHERE user_id = '{person}'")).await;
    assert_eq!(all.get("/logs").await.status, 403);
}

#[tokio::test]
async fn each_workspace_says_for_itself_what_its_people_see() {
    let service = Service::start().await;
    let second = service.workspace("second").await;
    let person = service.person("member", Some("member")).await;
    join(&service, person, second, "member").await;
    let home = store(&service, at(60), json!({})).await;
    let own = store(&service, at(55), json!({ "user_id": person })).await;
    let there = store(&service, at(50), json!({ "workspace_id": second })).await;
    let mut all = everywhere(&service, person).await;
    assert_eq!(seen(&mut all, "").await, sorted([home, own, there]));
    override_in(&service, second, json!({ "membersViewLogs": false })).await;
    assert_eq!(seen(&mut all, "").await, sorted([home, own]));
    assert_eq!(all.get(&format!("/logs/{there}")).await.status, 404);
    assert_eq!(all.get("/logs?workspace_slug=second").await.status, 403);
    assert_eq!(all.get("/logs/exports").await.status, 200);
    // Figures are a right of their own.
    let graph = format!("/analytics/groups/workspaces?{}", span());
    assert_eq!(all.get(&graph).await.json()["total"], 2);
    override_in(&service, second, json!({ "membersViewAnalytics": false })).await;
    assert_eq!(all.get(&graph).await.json()["total"], 1);
    assert_eq!(seen(&mut all, "").await, sorted([home, own, there]));
    // The narrowest decides for all that are looked at together.
    override_in(&service, second, json!({ "membersViewAllData": false, "membersViewLogMetadata": false })).await;
    assert_eq!(seen(&mut all, "").await, [own]);
    assert_eq!(seen(&mut all, "workspace_slug=second").await, [] as [Uuid; 0]);
    let home_alone = format!("workspace_slug={}", service.home.workspace_id);
    assert_eq!(seen(&mut all, &home_alone).await, sorted([home, own]));
    let by_metadata = "metadata=%7B%22_user%22%3A%22ada%22%7D";
    assert_eq!(all.get(&format!("/logs?{by_metadata}")).await.status, 403);
    assert_eq!(all.get(&format!("/logs?{home_alone}&{by_metadata}")).await.status, 200);
}

#[tokio::test]
async fn exports_and_budgets_are_of_own_workspaces_too() {
    let service = Service::start().await;
    let (second, out) = (service.workspace("second").await, service.workspace("out").await);
    let person = service.person("member", Some("member")).await;
    for workspace in [second, out] {
        join(&service, person, workspace, "member").await;
    }
    let mut ids = Vec::new();
    for workspace in [service.home.workspace_id, second, out] {
        let mut there = by_link(&service, person).await.with("x-gateway-workspace", &workspace.to_string());
        let made = there.post("/logs/exports", &json!({ "filters": {}, "requested_data": ["id"] })).await;
        assert_eq!(made.status, 200, "{}", made.text());
        ids.push(made.json()["id"].as_str().unwrap().to_owned());
        let key = json!({ "name": "ci", "workspace_id": workspace, "usage_limits": { "credit_limit": 50 } });
        let key = service.administrator().post("/api-keys/workspace/service", &key).await;
        assert_eq!(key.status, 200, "{}", key.text());
    }
    service.sql(&format!("DELETE FROM workspace_members WHERE workspace_id = '{out}'")).await;
    let mut all = everywhere(&service, person).await;
    assert_eq!(all.get("/logs/exports").await.json()["total"], 2);
    for (id, status) in ids.iter().zip([200, 200, 404]) {
        assert_eq!(all.get(&format!("/logs/exports/{id}")).await.status, status);
        let expected = if status == 200 { 400 } else { 404 };
        assert_eq!(all.get(&format!("/logs/exports/{id}/download")).await.status, expected, "a draft has no files");
    }
    assert_eq!(all.get("/analytics/budgets").await.json()["total"], 2);
    let mut other = everywhere(&service, service.person("member", Some("admin")).await).await;
    assert_eq!(other.get("/logs/exports").await.json()["total"], 0, "another's are not theirs");
    assert_eq!(other.get("/analytics/budgets").await.json()["total"], 1);
    // Nothing is changed everywhere at once.
    let new = json!({ "filters": {}, "requested_data": ["id"] });
    assert_eq!(all.post("/logs/exports", &new).await.status, 403);
    override_in(&service, second, json!({ "membersViewLogs": false })).await;
    assert_eq!(all.get("/logs/exports").await.json()["total"], 1);
    assert_eq!(all.get(&format!("/logs/exports/{}", ids[1])).await.status, 404);
}
