//! A server that knows people by their own tokens: each is let in by theirs and by nobody else's, whoever asks and however.

use super::{call, client, greeting, serve, session};
use harness::{Client, Stack};
use serde_json::{Value, json};
use uuid::Uuid;

/// A member of the home workspace with a key of their own, and who it is.
pub async fn member(stack: &Stack, name: &str) -> (Client, Uuid) {
    const USER: &str = "INSERT INTO users (organisation_id, email, role) VALUES ($1, $2, 'member') RETURNING id";
    const MEMBER: &str = "INSERT INTO workspace_members (organisation_id, workspace_id, user_id, role)
                          VALUES ($1, $2, $3, 'member')";
    let (organisation, workspace, database) = (stack.home.id, stack.home.workspace_id, stack.database.client().await);
    let email = format!("{name}@home.test");
    let user: Uuid = database.query_one(USER, &[&organisation, &email]).await.unwrap().get(0);
    database.execute(MEMBER, &[&organisation, &workspace, &user]).await.unwrap();
    let key =
        json!({ "name": name, "workspace_id": workspace, "user_id": user, "scopes": ["mcp.invoke", "models.list"] });
    let key = stack.home.create("/api-keys/workspace/user", key).await["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    (client(stack, &key), user)
}

/// They bring the token that the server gave them.
async fn connect(person: &Client, token: &str) {
    let body = json!({ "access_token": token, "expires_at": "2099-01-15T10:30:00Z" });
    let stored = person.put("/v1/mcp-servers/theirs/tokens", &body).await;
    assert_eq!(stored.status, 200, "{}", stored.text());
}

async fn is_let_in(person: &Client) -> bool {
    person.post("/theirs/mcp", &greeting()).await.json()["error"] == Value::Null
}

#[tokio::test]
async fn each_is_let_in_by_their_own_token_and_by_nobody_elses() {
    let stack = Stack::start().await;
    let service = serve(&stack, "theirs", "closed", json!({ "auth_type": "oauth_auto" })).await;
    let (ada, bob) = (member(&stack, "ada").await.0, member(&stack, "bob").await.0);
    assert!(!is_let_in(&ada).await && !is_let_in(&bob).await);
    connect(&ada, "open-sesame").await;
    stack.until("her token is known", async || is_let_in(&ada).await).await;
    stack.mock.reset();
    for other in [&bob, &service] {
        let said = other.post("/theirs/mcp", &greeting()).await.json();
        assert_eq!(said["error"]["code"], -32051, "{said}");
        // Nor by saying whose it should be.
        let claimed = other.with("x-user-id", "ada@home.test").with("authorization", "Bearer open-sesame");
        assert!(!is_let_in(&claimed).await);
    }
    let sent = stack.mock.requests();
    assert!(sent.iter().all(|one| one.header("authorization") != "Bearer open-sesame"), "it went out for another");
    // Her session is of no use to him, with her token behind it.
    let hers = session(&ada, "/theirs/mcp").await;
    let stolen = bob.with("mcp-session-id", super::session_id(&hers));
    assert_eq!(stolen.post("/theirs/mcp", &call(1, "echo", "x")).await.status, 404);
    // His own token is sent for him, and hers for her.
    connect(&bob, "his-own").await;
    let of_bob = async || {
        stack.mock.reset();
        bob.post("/theirs/mcp", &greeting()).await;
        stack.mock.requests().iter().any(|one| one.header("authorization") == "Bearer his-own")
    };
    stack.until("his token is known", of_bob).await;
    assert!(!is_let_in(&bob).await, "the server does not know it");
    stack.mock.reset();
    let called = hers.post("/theirs/mcp", &call(2, "echo", "hello")).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "hello", "{called}");
    assert!(stack.mock.requests().iter().all(|one| one.header("authorization") == "Bearer open-sesame"));
}
