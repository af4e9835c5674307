//! Credentials of the vendors behind guardrail checks: they go in, are sealed for their place, and never come out.

use crate::sealing::sealer;
use crate::service::Service;
use harness::Answer;
use serde_json::{Value, json};
use shared::model::{KeyKind, Plugin};
use shared::secrets::seal::Keyring;

const PATH: &str = "/plugins";
const SECRET: &str = "ag-canary-0123456789";

fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

fn new(secret: &str) -> Value {
    json!({ "id": "aiguard", "credentials": { "apiKey": secret, "region": "eu" } })
}

#[tokio::test]
async fn credentials_are_stored_shown_as_masks_replaced_and_taken_away() {
    let service = Service::start().await;
    let admin = service.administrator();
    let made = admin.post(PATH, &new(SECRET)).await;
    assert_eq!(made.json(), json!({ "id": "aiguard", "object": "plugin" }), "{}", made.text());
    let list = admin.get(PATH).await.json();
    let shown = &list["data"][0];
    let expected = json!({
        "id": "aiguard", "object": "plugin", "organisation_id": service.home.organisation_id,
        "credentials": { "masked_apiKey": "ag*****789", "masked_region": "*****" },
        "created_at": shown["created_at"], "last_updated_at": shown["last_updated_at"],
    });
    assert_eq!((shown, &list["total"]), (&expected, &json!(1)));
    let again = admin.post(PATH, &new(SECRET)).await;
    assert_eq!(outcome(&again), (409, "AB07".into()), "{}", again.text());
    let path = format!("{PATH}/aiguard");
    let replaced = json!({ "credentials": { "apiKey": "ag-another-secret-t-1" } });
    assert_eq!(admin.put(&path, &replaced).await.json(), json!({}));
    let shown = admin.get(PATH).await.json()["data"][0]["credentials"].clone();
    assert_eq!(shown, json!({ "masked_apiKey": "ag*****t-1" }), "all of them are replaced");
    assert_eq!(admin.put(&path, &json!({})).await.json()["message"], "Nothing to update");
    assert_eq!(admin.put(&path, &json!({ "credentials": null })).await.status, 200);
    assert_eq!(admin.get(PATH).await.json()["data"][0]["credentials"], Value::Null);
    let sealed: Option<Vec<u8>> =
        service.database.client().await.query_one("SELECT sealed FROM plugins", &[]).await.unwrap().get(0);
    assert_eq!(sealed, None, "nothing is left of them");
    let trail = service.trail(service.home.organisation_id).await;
    let seen: Vec<_> = trail.iter().map(|row| (row["action"].as_str().unwrap(), row["resource_id"].as_str())).collect();
    let (create, update) = (("create", Some("aiguard")), ("update", Some("aiguard")));
    assert_eq!(seen, [create, ("create", None), update, update, update]);
    assert!(
        trail.iter().all(|row| row["resource_type"] == "plugins" && !row.to_string().contains("canary")),
        "{trail:?}"
    );
}

#[tokio::test]
async fn what_is_sealed_opens_for_its_row_alone() {
    let keyring = Keyring::generate("m").unwrap();
    let service = Service::start_with(&[&format!("--gateway-master-key={}", keyring.trim())]).await;
    assert_eq!(service.administrator().post(PATH, &new(SECRET)).await.status, 200);
    let database = service.database.client().await;
    let row = database.query_one(&format!("SELECT {} FROM plugins", Plugin::COLUMNS), &[]).await.unwrap();
    let mut plugin = Plugin::from_row(&row).unwrap();
    let (sealer, sealed) = (sealer(&keyring), plugin.sealed.clone().unwrap());
    let opened = sealer.open(&database, &plugin.place(), &sealed).await.unwrap();
    let credentials = Plugin::credentials(&opened).unwrap();
    assert_eq!(Value::Object(credentials), new(SECRET)["credentials"]);
    plugin.id = uuid::Uuid::nil();
    assert!(sealer.open(&database, &plugin.place(), &sealed).await.is_err(), "another row's");
}

#[tokio::test]
async fn an_unknown_vendor_and_what_is_no_credential_are_refused_without_the_value() {
    let service = Service::start().await;
    let admin = service.administrator();
    assert_eq!(admin.post(PATH, &new(SECRET)).await.status, 200);
    let of = |credentials: Value| json!({ "id": "aiguard", "credentials": credentials });
    for (body, field) in [
        (json!({ "id": "aigard", "credentials": { "apiKey": SECRET } }), "id"),
        (json!({ "id": "default", "credentials": { "apiKey": SECRET } }), "id"),
        (json!({ "credentials": { "apiKey": SECRET } }), "id"),
        (json!({ "id": "aiguard" }), "credentials"),
        (of(json!({})), "credentials"),
        (of(json!(SECRET)), "credentials"),
        (of(json!({ "apiKey": [SECRET] })), "credentials.apiKey"),
        (of(json!({ "masked_apiKey": "ag*****789" })), "credentials.masked_apiKey"),
        (of(json!({ "apiKey": SECRET.repeat(1000) })), "credentials.apiKey"),
    ] {
        let refused = admin.post(PATH, &body).await;
        assert_eq!(outcome(&refused), (400, "AB01".into()), "{}", refused.text());
        assert_eq!(refused.json()["data"]["errors"][0]["field"], field, "{}", refused.text());
        assert!(!refused.text().contains("canary"), "{}", refused.text());
    }
    let taught = admin.post(PATH, &json!({ "id": "aigard", "credentials": { "apiKey": "k" } })).await.json();
    assert_eq!(taught["data"]["errors"][0]["nearest"], "aiguard", "{taught}");
}

#[tokio::test]
async fn each_organisation_has_its_own_and_workspaces_have_none() {
    let service = Service::start().await;
    let other = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(service.administrator().post(PATH, &new(SECRET)).await.status, 200);
    assert_eq!(other.get(PATH).await.json()["total"], 0);
    let foreign = other.put(&format!("{PATH}/aiguard"), &json!({ "credentials": null })).await;
    assert_eq!(outcome(&foreign), (404, "AB08".into()));
    assert_eq!(other.post(PATH, &new("ag-their-own-1")).await.status, 200, "one of theirs is no conflict");
    assert_eq!(service.administrator().get(PATH).await.json()["data"][0]["credentials"]["masked_apiKey"], "ag*****789");
    let key = service.key(KeyKind::WorkspaceService, &["plugins.list", "plugins.create"]).await;
    let workspace = service.client().with_key(&key.key);
    assert_eq!(outcome(&workspace.get(PATH).await), (403, "AB03".into()));
    assert_eq!(outcome(&workspace.post(PATH, &new(SECRET)).await), (403, "AB03".into()));
}

#[tokio::test]
async fn without_a_master_key_nothing_is_stored() {
    let service = Service::start_without_master_key().await;
    let refused = service.administrator().post(PATH, &new(SECRET)).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(service.administrator().get(PATH).await.json()["total"], 0);
}
