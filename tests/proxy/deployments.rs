//! A proxy that says which deployment it is: it serves that deployment's workspaces, follows its changes, and gives
//! signs of life.

use harness::{Stack, chat};
use serde_json::{Value, json};
use shared::bootstrap;
use shared::identity::api_key::KeyHash;
use uuid::Uuid;

const TOKEN: &str = "gwd_0123456789012345678901234567890123456789012";

/// A proxy of the deployment `site`, which does not exist yet.
async fn stack() -> Stack {
    let proxy = Stack::builder().proxy("GATEWAY_DEPLOYMENT_SLUG", "site");
    proxy.proxy("GATEWAY_DEPLOYMENT_TOKEN", TOKEN).start().await
}

async fn deploy(stack: &Stack, slug: &str, token: &str, workspaces: &[Uuid]) {
    const MAKE: &str = "INSERT INTO deployments
        (organisation_id, name, slug, type, token_hash, allow_all_workspaces, workspace_ids)
        VALUES ($1, 'Site', $2, 'production', $3, $4, $5)";
    let hash = KeyHash::from_key(token.as_bytes()).0;
    let db = stack.database.client().await;
    let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&stack.home.id, &slug, &hash.as_slice(), &workspaces.is_empty(), &workspaces];
    db.execute(MAKE, values).await.unwrap();
}

async fn ask(stack: &Stack, key: &str) -> (u16, Value) {
    let answer = stack.as_application(key).post("/chat/completions", &chat("Hello")).await;
    (answer.status.as_u16(), answer.json()["error"]["code"].clone())
}

async fn until_served(stack: &Stack, key: &str, is_served: bool) {
    stack.until("the proxy knows the deployment", async || (ask(stack, key).await.0 == 200) == is_served).await;
}

#[tokio::test]
async fn a_restricted_deployment_serves_its_own_workspaces_and_follows_changes() {
    let stack = stack().await;
    let key = stack.home.workspace_key.clone();
    assert_eq!(ask(&stack, &key).await, (403, json!("workspace_mismatch")), "a deployment that nobody knows");
    deploy(&stack, "site", TOKEN, &[stack.home.workspace_id]).await;
    until_served(&stack, &key, true).await;

    let db = stack.database.client().await;
    let elsewhere: Uuid = db
        .query_one(
            "INSERT INTO workspaces (organisation_id, name, slug) VALUES ($1, 'Else', 'elsewhere') RETURNING id",
            &[&stack.home.id],
        )
        .await
        .unwrap()
        .get(0);
    let neighbour = bootstrap::create_workspace_key(&db, elsewhere, "K", &["completions.write"], "pk_").await.unwrap();
    stack.until_known(&neighbour.key).await;
    assert_eq!(ask(&stack, &neighbour.key).await, (403, json!("workspace_mismatch")));
    let stranger = stack.organisation().await;
    assert_eq!(ask(&stack, &stranger.workspace_key).await, (403, json!("workspace_mismatch")));

    db.execute("UPDATE deployments SET allow_all_workspaces = true", &[]).await.unwrap();
    until_served(&stack, &neighbour.key, true).await;
    assert_eq!(ask(&stack, &stranger.workspace_key).await.0, 403, "never another organisation's");
    db.execute("UPDATE deployments SET status = 'archived'", &[]).await.unwrap();
    until_served(&stack, &key, false).await;
}

#[tokio::test]
async fn neither_a_slug_nor_a_token_alone_is_an_identity() {
    let stack = stack().await;
    let key = stack.home.workspace_key.clone();
    deploy(&stack, "site", "gwd_another", &[]).await;
    deploy(&stack, "other", TOKEN, &[]).await;
    // Both are known once a key made after them is.
    stack.key(&["completions.write"]).await;
    assert_eq!(ask(&stack, &key).await, (403, json!("workspace_mismatch")));
}

#[tokio::test]
async fn a_proxy_without_an_identity_serves_everybody() {
    let stack = Stack::start().await;
    deploy(&stack, "site", TOKEN, &[Uuid::new_v4()]).await;
    stack.key(&["completions.write"]).await;
    assert_eq!(ask(&stack, &stack.home.workspace_key).await.0, 200);
}

#[tokio::test]
async fn a_request_that_says_which_deployment_it_came_through_is_held_to_it() {
    let stack = Stack::start().await;
    let other = "gwd_another_one_of_the_same_organisation_0123456789";
    deploy(&stack, "site", TOKEN, &[stack.home.workspace_id]).await;
    deploy(&stack, "elsewhere", other, &[Uuid::new_v4()]).await;
    let client = stack.client();
    let through = async |token: &str| {
        let answer = client.with("x-gateway-client-auth", token).post("/chat/completions", &chat("Hello")).await;
        (answer.status.as_u16(), answer.json()["error"]["code"].clone())
    };
    stack.until("the deployment is known", async || through(TOKEN).await.0 == 200).await;
    assert_eq!(stack.mock.requests().pop().unwrap().header("x-gateway-client-auth"), "", "it stays here");
    for token in [other, "gwd_nobody", ""] {
        assert_eq!(through(token).await, (403, json!("workspace_mismatch")), "{token}");
    }
}

#[tokio::test]
async fn a_token_that_was_replaced_opens_nothing_and_the_new_one_does() {
    let stack = Stack::start().await;
    let made = stack.home.create("/deployments", json!({ "name": "Site", "slug": "site", "type": "production" })).await;
    let (client, old) = (stack.client(), made["client_auth"].as_str().unwrap());
    let through =
        async |token: &str| client.with("x-gateway-client-auth", token).post("/chat/completions", &chat("Hello")).await;
    stack.until("the deployment is known", async || through(old).await.status == 200).await;
    let rotated = stack.home.create("/deployments/site/rotate-token", json!({})).await;
    let new = rotated["client_auth"].as_str().unwrap();
    stack.until("the new token is known", async || through(new).await.status == 200).await;
    let refused = through(old).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (403, &json!("workspace_mismatch")));
}

#[tokio::test]
async fn a_deployment_made_over_http_becomes_active_by_its_proxys_sign_of_life() {
    let stack = Stack::start().await;
    let made = stack.home.create("/deployments", json!({ "name": "Site", "slug": "site", "type": "production" })).await;
    let shown = async || stack.home.get("/deployments/site").await.json();
    assert_eq!((&shown().await["status"], &shown().await["last_sync_at"]), (&json!("inactive"), &Value::Null));
    let token = made["client_auth"].as_str().unwrap();
    let another = Stack::builder()
        .proxy("DATABASE_URL", stack.database.url())
        .proxy("GATEWAY_DEPLOYMENT_SLUG", "site")
        .proxy("GATEWAY_DEPLOYMENT_TOKEN", token)
        .start()
        .await;
    stack.until("the deployment is active", async || shown().await["status"] == "active").await;
    assert!(shown().await["last_sync_at"].is_string());
    assert!(!another.proxy.log().contains(token), "the token is in the log");
    assert_eq!(stack.as_application(&stack.home.workspace_key).get("/models").await.status, 200);
}
