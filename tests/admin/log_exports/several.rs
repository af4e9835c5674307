//! Exports of several workspaces: who makes and sees them, whose logs they hold, and what programs of before see of them.

use super::{Place, draft, shown, start};
use crate::login::by_link;
use harness::Client;
use http::Method;
use serde_json::{Value, json};
use shared::identity::scopes;
use shared::model::KeyKind;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Two workspaces of ours with 2 and 3 logs, a third with 5, and another tenant's with 4.
struct Workspaces {
    place: Place,
    first: Uuid,
    second: Uuid,
    foreign: Client,
    foreign_workspace: Uuid,
}

impl Workspaces {
    async fn start() -> Self {
        let place = Place::start().await;
        let (home, other) = (place.service.home.clone(), place.service.organisation().await);
        let (first, second) = (place.service.workspace("first").await, place.service.workspace("second").await);
        place.fill_home(5).await;
        place.fill(home.organisation_id, first, None, 2).await;
        place.fill(home.organisation_id, second, None, 3).await;
        place.fill(other.organisation_id, other.workspace_id, None, 4).await;
        let foreign = place.service.client().with_key(&other.admin_key.key);
        Self { place, first, second, foreign, foreign_workspace: other.workspace_id }
    }

    /// Drafts, starts and makes an export, and counts its lines by workspace.
    async fn exported(&self, client: &Client, workspaces: &Value) -> (String, BTreeMap<String, usize>) {
        let mut body = json!({ "filters": {}, "requested_data": ["id", "workspace_id", "workspace_slug"] });
        body.as_object_mut().unwrap().extend(workspaces.as_object().unwrap().clone());
        let id = draft(client, body).await;
        start(client, &id).await;
        self.place.make().await;
        let mut counted = BTreeMap::new();
        for line in self.place.lines(client, &id).await {
            assert!(line["workspace_id"].is_string(), "{line}");
            *counted.entry(line["workspace_slug"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        (id, counted)
    }
}

async fn default_slug(place: &Place) -> String {
    const SLUG: &str = "SELECT slug FROM workspaces WHERE id = $1";
    place.service.database.client().await.query_one(SLUG, &[&place.service.home.workspace_id]).await.unwrap().get(0)
}

fn counted(workspaces: &[(&str, usize)]) -> BTreeMap<String, usize> {
    workspaces.iter().map(|(slug, count)| ((*slug).to_owned(), *count)).collect()
}

#[tokio::test]
async fn an_organisations_key_exports_one_several_or_all_workspaces() {
    let all = Workspaces::start().await;
    let admin = all.place.service.administrator();
    let default = default_slug(&all.place).await;
    let (one, two, three) =
        (("first", 2), [("first", 2), ("second", 3)], [("first", 2), ("second", 3), (default.as_str(), 5)]);
    for (workspaces, expected, expected_ids) in [
        (json!({}), counted(&three), Value::Null),
        (json!({ "workspace_id": "*" }), counted(&three), Value::Null),
        (json!({ "filters": { "workspace_slug": "*" } }), counted(&three), Value::Null),
        (json!({ "workspace_slug": "first" }), counted(&[one]), json!([all.first])),
        (json!({ "workspace_id": [all.first, "second"] }), counted(&two), json!([all.first, all.second])),
        (json!({ "workspace_slug": "second,first" }), counted(&two), json!([all.first, all.second])),
        (
            json!({ "filters": { "workspace_slug": ["second", all.first] } }),
            counted(&two),
            json!([all.first, all.second]),
        ),
    ] {
        let (id, found) = all.exported(&admin, &workspaces).await;
        assert_eq!(found, expected, "{workspaces}");
        let seen = shown(&admin, &id).await;
        let mut ids = seen["workspace_ids"].clone();
        let sorted = |ids: &mut Value| {
            if let Some(ids) = ids.as_array_mut() {
                ids.sort_by_key(Value::to_string);
            }
        };
        let mut expected_ids = expected_ids;
        sorted(&mut ids);
        sorted(&mut expected_ids);
        assert_eq!(ids, expected_ids, "{workspaces}");
        let is_of_one = seen["workspace_ids"].as_array().is_some_and(|ids| ids.len() == 1);
        assert_eq!(seen["workspace_id"].is_string(), is_of_one, "{seen}");
    }
    for (workspaces, status) in [
        (json!({ "workspace_id": [all.first, all.foreign_workspace] }), 404),
        (json!({ "workspace_id": "first,nowhere" }), 404),
        (json!({ "workspace_id": [] }), 400),
        (json!({ "workspace_slug": [7] }), 400),
    ] {
        let mut body = json!({ "filters": {}, "requested_data": ["id"] });
        body.as_object_mut().unwrap().extend(workspaces.as_object().unwrap().clone());
        let refused = admin.post("/logs/exports", &body).await;
        assert_eq!(refused.status, status, "{workspaces}: {}", refused.text());
    }
    assert_eq!(all.exported(&all.foreign, &json!({})).await.1.values().sum::<usize>(), 4, "another tenant's all");
}

#[tokio::test]
async fn who_has_one_workspace_neither_makes_nor_sees_exports_of_others() {
    let all = Workspaces::start().await;
    let service = &all.place.service;
    let admin = service.administrator();
    let wide = all.exported(&admin, &json!({ "workspace_id": ["first", "second"] })).await.0;
    let whole = all.exported(&admin, &json!({})).await.0;
    let scopes = scopes::all_for(KeyKind::WorkspaceUser);
    let person = service.person("owner", Some("admin")).await;
    let key = service.key_for(&service.home, all.first, person, KeyKind::WorkspaceUser, &scopes).await;
    let of_owner = service.client().with_key(&key.key);
    let of_first = service.workspace_client(all.first).await;
    for client in [&of_first, &of_owner, &all.foreign] {
        for id in [&wide, &whole] {
            let at = |rest: &str| format!("/logs/exports/{id}{rest}");
            for answer in [
                client.get(&at("")).await,
                client.get(&format!("{}?workspace_id=first", at("/download"))).await,
                client.put(&at(""), &json!({ "description": "mine" })).await,
                client.post(&at("/start"), &json!({})).await,
                client.post(&at("/cancel"), &json!({})).await,
                client.get(&at("/download")).await,
            ] {
                assert!([403, 404].contains(&answer.status.as_u16()), "{}: {}", answer.status, answer.text());
            }
        }
        assert_eq!(client.get("/logs/exports").await.json()["total"], 0);
    }
    for workspaces in [json!("second"), json!(["first", "second"]), json!(all.foreign_workspace)] {
        let body = json!({ "filters": {}, "requested_data": ["id"], "workspace_id": workspaces });
        assert_eq!(of_first.post("/logs/exports", &body).await.status, 403, "{body}");
    }
    for workspaces in [json!({}), json!({ "workspace_id": "*" }), json!({ "workspace_slug": "first" })] {
        assert_eq!(all.exported(&of_first, &workspaces).await.1, counted(&[("first", 2)]), "{workspaces}");
    }
    assert_eq!(admin.get("/logs/exports").await.json()["total"], 5);
    assert_eq!(admin.get("/logs/exports?workspace_id=first").await.json()["total"], 3, "of it alone");
}

#[tokio::test]
async fn filters_lead_an_export_to_other_workspaces_by_its_maker_alone() {
    let all = Workspaces::start().await;
    let service = &all.place.service;
    let admin = service.administrator();
    let led = |workspaces: Value| json!({ "filters": { "workspace_slug": workspaces } });
    let id = draft(&admin, json!({ "filters": {}, "requested_data": ["id", "workspace_slug"] })).await;
    let path = format!("/logs/exports/{id}");
    for (workspaces, total, ids) in [
        (json!("first"), 2, json!([all.first])),
        (json!(["second"]), 3, json!([all.second])),
        (json!("first,second"), 5, json!([all.first, all.second])),
        (json!("*"), 10, Value::Null),
    ] {
        let changed = admin.put(&path, &led(workspaces.clone())).await;
        assert_eq!((changed.status.as_u16(), &changed.json()["total"]), (200, &json!(total)), "{}", changed.text());
        let seen = shown(&admin, &id).await["workspace_ids"].clone();
        let sorted =
            |ids: &Value| ids.as_array().map(|ids| ids.iter().map(ToString::to_string).collect::<BTreeSet<_>>());
        assert_eq!(sorted(&seen), sorted(&ids), "{workspaces}: {seen}");
    }
    assert_eq!(admin.put(&path, &led(json!("first"))).await.status, 200);
    assert_eq!(admin.put(&path, &led(json!(all.foreign_workspace))).await.status, 404);
    assert_eq!(admin.put(&path, &led(json!(7))).await.status, 400);
    let mut owner = by_link(service, service.home.owner_id).await.with("x-gateway-workspace", "*");
    let led_by_owner = owner.send(Method::PUT, &path, Some(&led(json!("first")))).await;
    assert_eq!(led_by_owner.status, 200, "where it is already");
    let led_by_owner = owner.send(Method::PUT, &path, Some(&led(json!("second")))).await;
    assert_eq!(led_by_owner.status, 403, "made by another");
    start(&admin, &id).await;
    all.place.make().await;
    let lines = all.place.lines(&admin, &id).await;
    assert!(lines.len() == 2 && lines.iter().all(|line| line["workspace_slug"] == "first"), "{lines:?}");
    let of_first = service.workspace_client(all.first).await;
    let own = draft(&of_first, json!({ "filters": {}, "requested_data": ["id"] })).await;
    let path = format!("/logs/exports/{own}");
    assert_eq!(of_first.put(&path, &led(json!("first"))).await.status, 200);
    assert_eq!(of_first.put(&path, &led(json!("second"))).await.status, 403);
    assert_eq!(shown(&of_first, &own).await["workspace_id"], json!(all.first));
}

#[tokio::test]
async fn an_owner_exports_by_session_what_an_admin_key_does() {
    let all = Workspaces::start().await;
    let service = &all.place.service;
    let mut owner = by_link(service, service.home.owner_id).await.with("x-gateway-workspace", "*");
    let made = owner.post("/logs/exports", &json!({ "filters": {}, "requested_data": ["id"] })).await;
    assert_eq!((made.status.as_u16(), made.json()["total"].clone()), (200, json!(10)), "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let started = owner.post(&format!("/logs/exports/{id}/start"), &json!({})).await;
    assert_eq!(started.status, 200, "{}", started.text());
    all.place.make().await;
    let links = owner.get(&format!("/logs/exports/{id}/download")).await.json();
    assert_eq!(all.place.fetch(links["signed_url"].as_str().unwrap()).await.text().lines().count(), 10);
    let member = service.person("member", Some("admin")).await;
    let mut member = by_link(service, member).await.with("x-gateway-workspace", "*");
    assert_eq!(member.get(&format!("/logs/exports/{id}")).await.status, 404, "in all workspaces of theirs");
}

#[tokio::test]
async fn erasing_empties_the_exports_that_cover_what_was_erased() {
    let all = Workspaces::start().await;
    let service = &all.place.service;
    let admin = service.administrator();
    service
        .sql(&format!(
            "UPDATE request_logs SET metadata = '{{\"_user\": \"ada\"}}' WHERE workspace_id = '{}'",
            all.second
        ))
        .await;
    let mut exports = Vec::new();
    for workspaces in [json!({}), json!({ "workspace_id": ["first", "second"] }), json!({ "workspace_id": "first" })] {
        exports.push(all.exported(&admin, &workspaces).await.0);
    }
    let default = default_slug(&all.place).await;
    exports.push(all.exported(&admin, &json!({ "workspace_id": ["first", default] })).await.0);
    let erased = admin.post("/logs/erase", &json!({ "user": "ada", "mode": "delete" })).await.json();
    assert_eq!(erased["exports"], 2, "{erased}");
    for (id, status) in exports.iter().zip(["stopped", "stopped", "success", "success"]) {
        assert_eq!(shown(&admin, id).await["status"], status);
    }
}

#[tokio::test]
async fn programs_of_before_know_exports_of_one_workspace_alone_and_leave_no_erased_log_in_others() {
    let all = Workspaces::start().await;
    let service = &all.place.service;
    let admin = service.administrator();
    let wide = all.exported(&admin, &json!({})).await.0;
    let one = all.exported(&admin, &json!({ "workspace_id": "first" })).await.0;
    let running = draft(&admin, json!({ "filters": {}, "requested_data": ["id"] })).await;
    start(&admin, &running).await;
    let before = service.database.client().await;
    let organisation = service.home.organisation_id;
    // As they list, run, make, change and let go.
    let listed = before.query("SELECT id::text FROM log_exports WHERE organisation_id = $1", &[&organisation]).await;
    assert_eq!(
        listed.unwrap().iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(),
        std::slice::from_ref(&one)
    );
    const NEXT: &str = "SELECT id FROM log_exports WHERE status = 'in_progress' AND next_step_at <= clock_timestamp()
        ORDER BY next_step_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED";
    assert!(before.query_opt(NEXT, &[]).await.unwrap().is_none());
    const MAKE: &str = "INSERT INTO log_exports (organisation_id, workspace_id, created_by, filters, requested_data)
        VALUES ($1, $2, $2, '{}', '{id}') RETURNING id, status, run";
    let made: Uuid = before.query_one(MAKE, &[&organisation, &all.first]).await.unwrap().get(0);
    let changed = "UPDATE log_exports SET status = 'in_progress', started_at = now(), run = run + 1 WHERE id = $1";
    assert_eq!(before.execute(changed, &[&made]).await.unwrap(), 1);
    assert!(before.query_opt(NEXT, &[]).await.unwrap().is_some());
    all.place.make().await;
    assert_eq!(shown(&admin, &made.to_string()).await["exported_records"], 2, "we go on with theirs");
    assert_eq!(before.execute("DELETE FROM log_exports WHERE id = $1", &[&made]).await.unwrap(), 1);
    // As they erase.
    const ERASE: &str = "INSERT INTO log_erasures (organisation_id, subject, name, mode, figures_due)
        VALUES ($1, 'user', 'u-1', 'delete', true)
        ON CONFLICT (organisation_id, subject, name) DO UPDATE SET asked_at = now()";
    assert_eq!(shown(&admin, &wide).await["status"], "success");
    before.execute(ERASE, &[&organisation]).await.unwrap();
    let seen = shown(&admin, &wide).await;
    assert_eq!((&seen["status"], seen["error"].is_string()), (&json!("stopped"), true), "{seen}");
    assert_eq!(shown(&admin, &one).await["status"], "success", "they empty this one themselves");
    let folders = "SELECT count(*) FROM object_deletions WHERE folder LIKE 'exports/%'";
    assert!(before.query_one(folders, &[]).await.unwrap().get::<_, i64>(0) >= 1);
    start(&admin, &wide).await;
    all.place.make().await;
    before.execute(ERASE, &[&organisation]).await.unwrap();
    assert_eq!(shown(&admin, &wide).await["status"], "stopped", "also when it is asked for again");
}
