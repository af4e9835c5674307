//! Guardrails that run by default, for an organisation and for a workspace: only those that exist can be named, and what
//! is named cannot be deleted.

use super::{PATH, create, field, outcome, path};
use crate::service::Service;
use serde_json::{Value, json};
use shared::model::{Guardrail, GuardrailVersion, Organisation, Workspace};

const DEFAULTS: &str = "/admin/organisation/defaults";

fn named(made: &Value) -> Value {
    json!({ "id": made["id"], "slug": made["slug"] })
}

#[tokio::test]
async fn an_organisations_defaults_are_its_own_guardrails_each_once() {
    let service = Service::start().await;
    let client = service.administrator();
    let (one, two) = (create(&client, &service, None).await, create(&client, &service, None).await);
    let part = create(&client, &service, Some(&service.home.workspace_id.to_string())).await;
    let change = json!({ "input_guardrails": [two["slug"], one["id"], two["id"]], "output_guardrails": [one["slug"]] });
    let expected = json!({ "input_guardrails": [named(&two), named(&one)], "output_guardrails": [named(&one)] });
    let answer = client.put(DEFAULTS, &change).await;
    assert_eq!(answer.json(), expected, "in the order of the request");
    assert_eq!(client.get(DEFAULTS).await.json(), expected);

    let slug = one["slug"].as_str().unwrap();
    let slip = format!("{slug}0");
    let elsewhere = service.client().with_key(&service.organisation().await.admin_key.key);
    for (client, name) in [
        (&client, json!(slip)),
        (&client, part["slug"].clone()),
        (&client, json!(uuid::Uuid::nil())),
        (&client, json!("'; DROP TABLE guardrails; --")),
        (&elsewhere, one["id"].clone()),
        (&elsewhere, one["slug"].clone()),
    ] {
        let refused = client.put(DEFAULTS, &json!({ "input_guardrails": [], "output_guardrails": [name] })).await;
        let seen = (outcome(&refused), field(&refused));
        assert_eq!(seen, ((400, "AB01".into()), "output_guardrails[0]".into()), "{name}: {}", refused.text());
    }
    let taught = client.put(DEFAULTS, &json!({ "input_guardrails": [format!("{slug}x")] })).await.json();
    assert_eq!(taught["data"]["errors"][0]["nearest"], slug, "{taught}");
    assert_eq!(client.get(DEFAULTS).await.json(), expected, "what was refused changed nothing");
    assert_eq!(elsewhere.get(DEFAULTS).await.json()["input_guardrails"], json!([]));
}

#[tokio::test]
async fn a_workspaces_defaults_are_its_own_and_its_organisations() {
    let service = Service::start().await;
    let client = service.administrator();
    service.workspace("elsewhere").await;
    let home = service.home.workspace_id.to_string();
    let whole = create(&client, &service, None).await;
    let own = create(&client, &service, Some(&home)).await;
    let other = create(&client, &service, Some("elsewhere")).await;
    let workspace = format!("/admin/workspaces/{home}");
    let change = json!({ "defaults": { "input_guardrails": [own["id"], whole["slug"], own["slug"]] } });
    let answer = client.put(&workspace, &change).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        answer.json()["defaults"]["input_guardrails"],
        json!([own["slug"], whole["slug"]]),
        "as slugs, each once"
    );
    for name in [json!("pg-nothing"), other["slug"].clone(), other["id"].clone(), json!("")] {
        for change in [
            json!({ "defaults": { "output_guardrails": [whole["slug"], name] } }),
            json!({ "defaults": { "input_guardrails": [own["slug"], name], "metadata": { "a": "b" } } }),
        ] {
            let refused = client.put(&workspace, &change).await;
            assert_eq!(outcome(&refused), (400, "AB01".into()), "{change}: {}", refused.text());
            assert!(field(&refused).ends_with("_guardrails[1]"), "{}", refused.text());
        }
    }
    let many = json!({ "defaults": { "input_guardrails": vec![whole["slug"].clone(); 101] } });
    assert_eq!(field(&client.put(&workspace, &many).await), "defaults.input_guardrails");
    let shown = client.get(&workspace).await.json();
    assert_eq!(shown["defaults"]["input_guardrails"], json!([own["slug"], whole["slug"]]));
    assert_eq!((&shown["defaults"]["metadata"], &shown["defaults"]["output_guardrails"]), (&Value::Null, &json!([])));
    let cleared = client.put(&workspace, &json!({ "defaults": { "input_guardrails": null } })).await.json();
    assert_eq!(cleared["defaults"]["input_guardrails"], json!([]));

    let new = |name: &Value| json!({ "name": "Fresh", "defaults": { "output_guardrails": [name] } });
    let refused = client.post("/admin/workspaces", &new(&own["slug"])).await;
    assert_eq!(field(&refused), "defaults.output_guardrails[0]", "a new workspace has none of its own");
    let made = client.post("/admin/workspaces", &new(&whole["id"])).await;
    assert_eq!(made.json()["defaults"]["output_guardrails"], json!([whole["slug"]]), "{}", made.text());
}

#[tokio::test]
async fn what_runs_by_default_cannot_be_deleted_even_by_force() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, &service, None).await;
    let workspace = format!("/admin/workspaces/{}", service.home.workspace_id);
    client.put(DEFAULTS, &json!({ "output_guardrails": [made["id"]] })).await;
    client.put(&workspace, &json!({ "defaults": { "input_guardrails": [made["id"]] } })).await;
    for query in ["", "?force=true"] {
        let refused = client.delete(&format!("{}{query}", path(&made))).await;
        assert_eq!(outcome(&refused), (409, "AB07".into()), "{}", refused.text());
        let users = refused.json()["data"]["in_use_by"].clone();
        assert_eq!(
            (&users[0]["object"], &users[1]["object"]),
            (&json!("organisation"), &json!("workspace")),
            "{users}"
        );
        assert_eq!(users[1]["id"], json!(service.home.workspace_id));
    }
    client.put(DEFAULTS, &json!({ "output_guardrails": null })).await;
    assert_eq!(outcome(&client.delete(&path(&made)).await), (409, "AB07".into()), "the workspace still has it");
    client.put(&workspace, &json!({ "defaults": null })).await;
    assert_eq!(client.delete(&path(&made)).await.status, 200);
}

#[tokio::test]
async fn a_guardrail_is_not_deleted_while_it_becomes_a_default() {
    let service = Service::start().await;
    let client = service.administrator();
    for _ in 0..10 {
        let made = create(&client, &service, None).await;
        let change = json!({ "input_guardrails": [made["id"]] });
        let gone = path(&made);
        let (named, deleted) = tokio::join!(client.put(DEFAULTS, &change), client.delete(&gone));
        let statuses = (named.status.as_u16(), deleted.status.as_u16());
        assert!([(200, 409), (400, 200)].contains(&statuses), "{statuses:?}: {}", named.text());
        assert_eq!(client.put(DEFAULTS, &json!({ "input_guardrails": [] })).await.status, 200);
    }
}

#[tokio::test]
async fn a_workspace_goes_with_its_guardrails() {
    let service = Service::start().await;
    let client = service.administrator();
    let workspace = service.workspace("doomed").await;
    let made = create(&client, &service, Some("doomed")).await;
    let path = format!("/admin/workspaces/{workspace}");
    let refused =
        harness::client::whole(client.request(http::Method::DELETE, &path).json(&json!({ "name": "doomed" }))).await;
    assert!(refused.status == 409 && refused.text().contains("guardrails"), "{}", refused.text());
    let force = json!({ "name": "doomed", "force_delete": true });
    let gone = harness::client::whole(client.request(http::Method::DELETE, &path).json(&force)).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(client.get(&format!("{PATH}/{}", made["id"].as_str().unwrap())).await.status, 404);
}

#[tokio::test]
async fn the_proxy_reads_defaults_and_exclusions_from_the_same_rows() {
    let service = Service::start().await;
    let client = service.administrator();
    let (whole, home) = (create(&client, &service, None).await, service.home.workspace_id);
    client.put(DEFAULTS, &json!({ "input_guardrails": [whole["slug"]] })).await;
    client
        .put(&format!("/admin/workspaces/{home}"), &json!({ "defaults": { "output_guardrails": [whole["id"]] } }))
        .await;
    let excluded = json!({ "workspaces": [{ "workspace_id": home, "excluded": true }] });
    client.put("/workspace-exclusions/output-guardrails", &excluded).await;
    let database = service.database.client().await;
    let sql = format!("SELECT {} FROM organisations", Organisation::COLUMNS);
    let organisation = Organisation::from_row(&database.query_one(&sql, &[]).await.unwrap()).unwrap();
    assert_eq!(json!(organisation.guardrails), json!({ "input": [whole["id"]] }));
    let sql = format!("SELECT {} FROM workspaces WHERE id = $1", Workspace::COLUMNS);
    let workspace = Workspace::from_row(&database.query_one(&sql, &[&home]).await.unwrap()).unwrap();
    let sql = format!("SELECT {} FROM guardrails", Guardrail::COLUMNS);
    let guardrail = Guardrail::from_row(&database.query_one(&sql, &[]).await.unwrap()).unwrap();
    assert_eq!((json!(guardrail.id), guardrail.workspace_id), (whole["id"].clone(), None));
    let sql = format!("SELECT {} FROM guardrail_versions", GuardrailVersion::COLUMNS);
    let version = GuardrailVersion::from_row(&database.query_one(&sql, &[]).await.unwrap()).unwrap();
    assert_eq!(
        (version.id, version.content, version.guardrail_id),
        (guardrail.version_id, guardrail.content, guardrail.id)
    );
    let expected = json!({ "output": [whole["slug"]], "excluded_from_input": false, "excluded_from_output": true });
    assert_eq!(json!(workspace.guardrails), expected);
}
