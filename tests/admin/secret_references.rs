//! Secret references over HTTP: what opens a manager goes in, is sealed, and never comes out again.

use crate::sealing::sealer;
use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use shared::model::SecretReference;
use shared::secrets::ManagerKind;
use shared::secrets::seal::Keyring;

const PATH: &str = "/secret-references";
const SECRETS: [&str; 4] = ["hvs.canary-token-1", "canary-secret-id-2", "AKIACANARY3", "canary/aws+secret4"];

fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

fn field(answer: &Answer) -> String {
    answer.json()["data"]["errors"][0]["field"].as_str().unwrap_or_default().to_owned()
}

fn vault() -> Value {
    json!({
        "name": "OpenAI in Vault", "manager_type": "hashicorp_vault", "secret_path": "secret/openai", "secret_key": "key",
        "auth_config": { "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": SECRETS[0] },
        "tags": { "team": "red", "tier": null },
    })
}

async fn create(client: &Client, body: &Value) -> Value {
    let answer = client.post(PATH, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn the_gateways_own_identity_is_lent_only_when_switched_on() {
    let body = json!({
        "name": "role", "manager_type": "aws_sm", "secret_path": "p",
        "auth_config": { "aws_auth_type": "serviceRole", "aws_region": "eu-west-1" },
    });
    let service = Service::start().await;
    let admin = service.administrator();
    let refused = admin.post(PATH, &body).await;
    assert_eq!((outcome(&refused), field(&refused)), ((400, "AB01".into()), "auth_config.aws_auth_type".into()));
    assert!(refused.text().contains("SECRETS_OWN_IDENTITY"), "{}", refused.text());
    let keys = json!({ "aws_auth_type": "accessKey", "aws_region": "eu-west-1", "aws_access_key_id": "a", "aws_secret_access_key": "b" });
    let mut with_keys = body.clone();
    with_keys["auth_config"] = keys;
    let made = create(&admin, &with_keys).await;
    let path = format!("{PATH}/{}", made["slug"].as_str().unwrap());
    let refused = admin.put(&path, &json!({ "auth_config": body["auth_config"] })).await;
    assert_eq!(field(&refused), "auth_config.aws_auth_type", "{}", refused.text());
    let lending = Service::start_with(&["--secrets-own-identity=ON"]).await;
    create(&lending.administrator(), &body).await;
}

#[tokio::test]
async fn a_reference_is_made_shown_changed_and_gone_by_id_or_slug() {
    let service = Service::start().await;
    let admin = service.administrator();
    let made = create(&admin, &vault()).await;
    let id = made["id"].as_str().unwrap();
    assert_eq!(made, json!({ "id": id, "slug": "openai-in-vault", "object": "secret-reference" }));
    let shown = admin.get(&format!("{PATH}/openai-in-vault")).await.json();
    let expected = json!({
        "id": id, "organisation_id": service.home.organisation_id, "name": "OpenAI in Vault", "slug": "openai-in-vault",
        "description": null, "manager_type": "hashicorp_vault",
        "auth_config": { "vault_auth_type": "token", "vault_addr": "https://vault.test", "masked_vault_token": "hv*****n-1" },
        "secret_path": "secret/openai", "secret_key": "key", "allow_all_workspaces": true, "allowed_workspaces": [],
        "allowed_hosts": [],
        "tags": { "team": "red", "tier": null }, "created_by": service.home.admin_key.id, "status": "ACTIVE",
        "created_at": shown["created_at"], "last_updated_at": shown["last_updated_at"], "object": "secret-reference",
    });
    assert_eq!(shown, expected);
    let path = format!("{PATH}/{id}");
    let change = json!({ "description": "d", "secret_key": null });
    assert_eq!(admin.put(&path, &change).await.json(), json!({}));
    let shown = admin.get(&path).await.json();
    assert_eq!((&shown["description"], &shown["secret_key"]), (&json!("d"), &Value::Null));
    assert_eq!((&shown["slug"], &shown["manager_type"]), (&json!("openai-in-vault"), &json!("hashicorp_vault")));
    for fixed in [json!({ "slug": "x" }), json!({ "manager_type": "aws_sm" })] {
        assert_eq!(outcome(&admin.put(&path, &fixed).await), (400, "AB01".into()), "{fixed} never changes");
    }
    assert_eq!(admin.delete(&path).await.json(), json!({}));
    assert_eq!(outcome(&admin.get(&path).await), (404, "AB08".into()));
    let left = "SELECT count(*) FROM secret_references";
    let left: i64 = service.database.client().await.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0, "nothing is left of the credentials");
    create(&admin, &vault()).await;
}

#[tokio::test]
async fn a_list_shows_less_and_is_narrowed_by_kind_tags_and_name() {
    let service = Service::start().await;
    let admin = service.administrator();
    create(&admin, &vault()).await;
    let aws = json!({
        "name": "Bedrock", "manager_type": "aws_sm", "secret_path": "prod/bedrock", "tags": { "team": "blue" },
        "auth_config": { "aws_auth_type": "accessKey", "aws_access_key_id": SECRETS[2],
                         "aws_secret_access_key": SECRETS[3], "aws_region": "eu-west-1" },
    });
    create(&admin, &aws).await;
    let list = admin.get(PATH).await.json();
    assert_eq!((&list["total"], list["data"].as_array().unwrap().len()), (&json!(2), 2));
    let item = &list["data"][0];
    let mut names: Vec<_> = item.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["created_at", "id", "last_updated_at", "manager_type", "name", "object", "slug", "status"],
        "{item}"
    );
    for (query, expected) in [
        ("manager_type=aws_sm", vec!["Bedrock"]),
        ("search=VAULT", vec!["OpenAI in Vault"]),
        (r#"tags={"team":"red"}"#, vec!["OpenAI in Vault"]),
        (r#"tags={"team":"red","tier":"x"}"#, vec![]),
    ] {
        let list = admin.get(&format!("{PATH}?{query}")).await.json();
        let found: Vec<_> = list["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{query}");
    }
    for query in ["manager_type=gcp", "tags=red", "tags=[1]"] {
        assert_eq!(outcome(&admin.get(&format!("{PATH}?{query}")).await), (400, "AB01".into()), "{query}");
    }
}

#[tokio::test]
async fn what_cannot_work_is_refused_by_its_field_and_a_taken_slug_is_400() {
    let service = Service::start().await;
    let admin = service.administrator();
    create(&admin, &vault()).await;
    let other = service.organisation().await.workspace_id;
    let with = |name: &str, value: Value| {
        let mut body = vault();
        body[name] = value;
        body
    };
    for (body, named) in [
        (with("slug", json!("openai-in-vault")), "slug"),
        (with("slug", json!("not a slug")), "slug"),
        (with("manager_type", json!("gcp")), "manager_type"),
        (with("auth_config", json!({ "vault_auth_type": "ldap" })), "auth_config.vault_auth_type"),
        (
            with("auth_config", json!({ "vault_auth_type": "token", "vault_addr": "https://v.test" })),
            "auth_config.vault_token",
        ),
        (
            with(
                "auth_config",
                json!({ "vault_auth_type": "token", "vault_addr": "ftp://v.test", "vault_token": "t" }),
            ),
            "auth_config.vault_addr",
        ),
        (with("secret_path", json!("")), "secret_path"),
        (with("secret_path", json!("secret/../../sys/seal")), "secret_path"),
        (with("secret_key", json!("x".repeat(256))), "secret_key"),
        (with("allowed_workspaces", json!([])), "allowed_workspaces"),
        (with("allowed_workspaces", json!([other])), "allowed_workspaces[0]"),
        (with("allow_all_workspaces", json!(false)), "allowed_workspaces"),
        (with("tags", json!({ "team": 1 })), "tags.team"),
        (with("organisation_id", json!(other)), "organisation_id"),
    ] {
        let answer = admin.post(PATH, &body).await;
        assert_eq!((outcome(&answer), field(&answer)), ((400, "AB01".into()), named.to_owned()), "{}", answer.text());
    }
    assert_eq!(admin.get(PATH).await.json()["total"], 1);
    let second = create(&admin, &vault()).await;
    let slug = second["slug"].as_str().unwrap();
    assert!(slug.starts_with("openai-in-vault-") && slug.len() == "openai-in-vault-".len() + 6, "{slug}");
}

#[tokio::test]
async fn a_reference_serves_all_workspaces_or_those_that_are_listed() {
    let service = Service::start().await;
    let admin = service.administrator();
    let one = service.workspace("one").await;
    service.workspace("two").await;
    let mut body = vault();
    body["allowed_workspaces"] = json!([one, "two", "one"]);
    let path = format!("{PATH}/{}", create(&admin, &body).await["id"].as_str().unwrap());
    let served = async || {
        let shown = admin.get(&path).await.json();
        (shown["allow_all_workspaces"].as_bool().unwrap(), shown["allowed_workspaces"].clone())
    };
    assert_eq!(served().await, (false, json!(["one", "two"])));
    for (change, expected) in [
        (json!({ "allowed_workspaces": ["two"] }), (false, json!(["two"]))),
        (json!({ "allow_all_workspaces": false, "description": "same" }), (false, json!(["two"]))),
        (json!({ "allow_all_workspaces": true }), (true, json!([]))),
        (json!({ "allowed_workspaces": ["one"] }), (false, json!(["one"]))),
    ] {
        let answer = admin.put(&path, &change).await;
        assert_eq!(answer.status, 200, "{change}: {}", answer.text());
        assert_eq!(served().await, expected, "{change}");
    }
    let both = json!({ "allow_all_workspaces": true, "allowed_workspaces": ["one"] });
    assert_eq!(outcome(&admin.put(&path, &both).await), (400, "AB01".into()));
    assert_eq!(outcome(&admin.put(&path, &json!({ "allowed_workspaces": [] })).await), (400, "AB01".into()));
}

/// Everything that is written anywhere is searched for what was sent.
#[tokio::test]
async fn credentials_are_sealed_and_appear_nowhere_yet_open_for_the_one_who_fetches() {
    let keyring = Keyring::generate("test").unwrap();
    let service = Service::start_with(&[&format!("--gateway-master-key={}", keyring.trim())]).await;
    let admin = service.administrator();
    let made = create(&admin, &vault()).await;
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let change = json!({ "auth_config": { "vault_auth_type": "approle", "vault_role_id": "role", "vault_secret_id": SECRETS[1] } });
    let answer = admin.put(&path, &change).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let again = json!({ "auth_config": { "vault_namespace": "team" } });
    assert_eq!(admin.put(&path, &again).await.status, 200, "the rest is kept");
    let refused = json!({ "auth_config": { "vault_token": SECRETS[0] } });
    assert_eq!(field(&admin.put(&path, &refused).await), "auth_config.vault_token", "it belongs to another way");
    let shown = admin.get(&path).await;
    let expected = json!({ "vault_auth_type": "approle", "vault_addr": "https://vault.test", "vault_role_id": "role",
                           "vault_namespace": "team", "masked_vault_secret_id": "ca*****d-2" });
    assert_eq!(shown.json()["auth_config"], expected);
    let client = service.database.client().await;
    let dump = "SELECT string_agg(row_to_json(r)::text, '') || encode(string_agg(r.sealed_auth_config, ''), 'escape')
                FROM secret_references r";
    let mut everything: String = client.query_one(dump, &[]).await.unwrap().get(0);
    everything.push_str(&shown.text());
    for row in service.trail(service.home.organisation_id).await {
        everything.push_str(&row.to_string());
    }
    for secret in SECRETS {
        assert!(!everything.contains(secret), "{secret}");
    }
    let sql = format!("SELECT {} FROM secret_references", SecretReference::COLUMNS);
    let row = SecretReference::from_row(&client.query_one(&sql, &[]).await.unwrap()).unwrap();
    let place = SecretReference::place(row.organisation_id.uuid(), row.id);
    let opened = sealer(&keyring).open(&client, &place, &row.sealed_auth_config).await.unwrap();
    assert!(opened.expose_text().unwrap().contains(SECRETS[1]));
    let reference = row.reference(&opened).unwrap();
    assert_eq!((reference.id, reference.secret_path.as_str()), (row.id, "secret/openai"));
    assert_eq!(ManagerKind::parse(&row.manager_type), Some(ManagerKind::Vault));
}

#[tokio::test]
async fn a_reference_in_use_cannot_be_deleted() {
    let service = Service::start().await;
    let admin = service.administrator();
    let id = create(&admin, &vault()).await["id"].as_str().unwrap().to_owned();
    let organisation = service.home.organisation_id;
    for name in [id.as_str(), "openai-in-vault"] {
        let insert = format!(
            r#"DELETE FROM integrations; INSERT INTO integrations (organisation_id, slug, name, ai_provider_id, secret_mappings)
            VALUES ('{organisation}', 'i', 'i', 'openai', '[{{"target_field": "key", "secret_reference_id": "{name}"}}]')"#
        );
        service.sql(&insert).await;
        let answer = admin.delete(&format!("{PATH}/{id}")).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{}", answer.text());
        assert_eq!(admin.get(&format!("{PATH}/{id}")).await.status, 200, "it is still there");
    }
    service.sql("UPDATE integrations SET status = 'archived'").await;
    assert_eq!(admin.delete(&format!("{PATH}/{id}")).await.status, 200);
}
