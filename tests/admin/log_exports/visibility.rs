//! Who sees which exports and what may be in them: tenants, people, and fields that an organisation keeps back.

use super::{Place, draft, shown, start};
use harness::Client;
use serde_json::{Value, json};
use shared::identity::scopes;
use shared::model::KeyKind;

const SECURITY: &str = "/admin/organisation/security-settings";

async fn settings(place: &Place, settings: Value) {
    let answer = place.service.administrator().put(SECURITY, &settings).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn exported(place: &Place, client: &Client) -> (String, usize) {
    exported_as(place, client, json!({ "filters": {}, "requested_data": ["id"] })).await
}

async fn exported_as(place: &Place, client: &Client, body: Value) -> (String, usize) {
    let id = draft(client, body).await;
    start(client, &id).await;
    place.make().await;
    let lines = place.lines(client, &id).await.len();
    (id, lines)
}

#[tokio::test]
async fn an_export_holds_logs_of_its_own_workspace_alone() {
    let place = Place::start().await;
    let (home, other) = (&place.service.home, place.service.organisation().await);
    let elsewhere = place.service.workspace("elsewhere").await;
    place.fill_home(2).await;
    place.fill(home.organisation_id, elsewhere, None, 3).await;
    place.fill(other.organisation_id, other.workspace_id, None, 4).await;
    let admin = place.service.administrator();
    let foreign = place.service.client().with_key(&other.admin_key.key);
    let workspace = place.service.workspace_client(elsewhere).await;
    let default = json!({ "filters": {}, "requested_data": ["id"], "workspace_id": home.workspace_id });
    let (own, lines) = exported_as(&place, &admin, default).await;
    assert_eq!(lines, 2);
    let (theirs, lines) = exported(&place, &workspace).await;
    assert_eq!(lines, 3);
    assert_eq!(exported(&place, &foreign).await.1, 4);
    for body in [json!({ "workspace_id": "elsewhere" }), json!({ "filters": { "workspace_slug": "elsewhere" } })] {
        let mut whole = json!({ "filters": {}, "requested_data": ["id"] });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let made = admin.post("/logs/exports", &whole).await.json();
        assert_eq!(made["total"], 3, "{body}");
        assert_eq!(workspace.get(&format!("/logs/exports/{}", made["id"].as_str().unwrap())).await.status, 200);
    }
    for (client, id) in [(&foreign, &own), (&foreign, &theirs), (&workspace, &own)] {
        let at = |rest: &str| format!("/logs/exports/{id}{rest}");
        for answer in [
            client.get(&at("")).await,
            client.put(&at(""), &json!({ "description": "mine" })).await,
            client.post(&at("/start"), &json!({})).await,
            client.post(&at("/cancel"), &json!({})).await,
            client.get(&at("/download")).await,
        ] {
            assert_eq!(answer.status, 404, "{}", answer.text());
        }
    }
    let foreign_workspace = json!({ "filters": {}, "requested_data": ["id"], "workspace_id": other.workspace_id });
    assert_eq!(admin.post("/logs/exports", &foreign_workspace).await.status, 404);
    assert_eq!(workspace.post("/logs/exports", &foreign_workspace).await.status, 403);
    assert_eq!(workspace.get("/logs/exports").await.json()["total"], 3);
}

#[tokio::test]
async fn people_see_their_own_exports_and_in_them_what_the_settings_let_them_see() {
    let place = Place::start().await;
    let home = &place.service.home;
    let (ada, bob) =
        (place.service.person("member", Some("member")).await, place.service.person("member", Some("member")).await);
    for (user, count) in [(Some(ada), 2), (Some(bob), 3), (None, 4)] {
        place.fill(home.organisation_id, home.workspace_id, user, count).await;
    }
    let scopes = scopes::all_for(KeyKind::WorkspaceUser);
    let key = async |user| place.service.key_for(home, home.workspace_id, user, KeyKind::WorkspaceUser, &scopes).await;
    let (ada_client, bob_client) =
        (place.service.client().with_key(&key(ada).await.key), place.service.client().with_key(&key(bob).await.key));
    let (all, lines) = exported(&place, &ada_client).await;
    assert_eq!(lines, 9, "members see all data unless told otherwise");
    for path in [format!("/logs/exports/{all}"), format!("/logs/exports/{all}/download")] {
        assert_eq!(bob_client.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(bob_client.get("/logs/exports").await.json()["total"], 0);
    settings(&place, json!({ "membersViewAllData": false })).await;
    assert_eq!(ada_client.get(&format!("/logs/exports/{all}/download")).await.status, 403, "made when she saw more");
    assert_eq!(exported(&place, &ada_client).await.1, 2);
    assert_eq!(exported(&place, &bob_client).await.1, 3);
    let admin = place.service.administrator();
    assert_eq!(exported(&place, &admin).await.1, 9);
    // Whoever else starts it: it stays hers.
    let hers = draft(&ada_client, json!({ "filters": {}, "requested_data": ["id"] })).await;
    assert_eq!(admin.put(&format!("/logs/exports/{hers}"), &json!({ "filters": {} })).await.json()["total"], 2);
    start(&admin, &hers).await;
    place.make().await;
    assert_eq!(place.lines(&ada_client, &hers).await.len(), 2);
    // A draft from before is made with what she sees now.
    settings(&place, json!({ "membersViewAllData": true })).await;
    let early = draft(&ada_client, json!({ "filters": {}, "requested_data": ["id"] })).await;
    settings(&place, json!({ "membersViewAllData": false })).await;
    start(&ada_client, &early).await;
    place.make().await;
    assert_eq!(place.lines(&ada_client, &early).await.len(), 2);
    settings(&place, json!({ "membersViewLogs": false })).await;
    assert_eq!(ada_client.get("/logs/exports").await.status, 403);
}

#[tokio::test]
async fn metadata_is_for_those_who_may_see_it() {
    let place = Place::start().await;
    place.fill_home(3).await;
    let person = place.service.person("member", Some("member")).await;
    let client = place.service.person_client(place.service.home.workspace_id, person).await;
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["id", "metadata"] })).await;
    start(&client, &id).await;
    place.make().await;
    settings(&place, json!({ "membersViewLogMetadata": false })).await;
    assert_eq!(client.get(&format!("/logs/exports/{id}/download")).await.status, 403);
    for body in [
        json!({ "filters": {}, "requested_data": ["id", "metadata"] }),
        json!({ "filters": { "metadata": { "_user": "u-1" } }, "requested_data": ["id"] }),
    ] {
        let refused = client.post("/logs/exports", &body).await;
        assert_eq!(refused.status, 403, "{body}: {}", refused.text());
    }
    let restrictions = client.get("/logs/exports/field-restrictions").await.json();
    assert_eq!(restrictions["deniedFields"], json!(["metadata"]));
}

#[tokio::test]
async fn fields_that_the_organisation_keeps_back_cannot_be_exported() {
    let place = Place::start().await;
    let client = place.service.administrator();
    let home = &place.service.home;
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["id", "request"] })).await;
    let seen = client.get("/logs/exports/field-restrictions").await.json();
    assert_eq!((&seen["workspace_id"], &seen["deniedFields"]), (&json!(home.workspace_id), &json!([])));
    assert_eq!(seen["allowedFields"].as_array().unwrap().len(), 23);
    let keep_back = json!({ "settings": { "export_settings": { "deniedFields": ["request", "total_units"] } } });
    let kept = client.put("/admin/organisation", &keep_back).await;
    assert_eq!(kept.status, 200, "{}", kept.text());
    let seen = client.get("/logs/exports/field-restrictions").await.json();
    assert_eq!(seen["deniedFields"], json!(["request", "total_units"]));
    assert_eq!(seen["allowedFields"].as_array().unwrap().len(), 21);
    for (asked, status) in [("request", 400), ("total_tokens", 400), ("response", 200)] {
        let body = json!({ "filters": {}, "requested_data": [asked] });
        assert_eq!(client.post("/logs/exports", &body).await.status, status, "{asked}");
    }
    let refused = client.post(&format!("/logs/exports/{id}/start"), &json!({})).await;
    assert_eq!((refused.status.as_u16(), refused.json()["data"]["errorCode"].as_str()), (400, Some("AB01")));
    assert_eq!(shown(&client, &id).await["status"], "draft");
}
