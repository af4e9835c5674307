//! A person's own sign-in at a provider: it goes on as the bearer that it came as, where the workspace lets it take the place of
//! the stored credential, and nowhere else.

use super::{offer, until_logged};
use crate::families::{KEY, application};
use harness::Stack;
use serde_json::{Value, json};

const TOKEN: &str = "Bearer sk-ant-oat01-of-a-person";

fn message() -> Value {
    json!({ "model": "@claude/claude-opus-4-8", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }] })
}

#[tokio::test]
async fn a_sign_in_goes_on_as_a_bearer_and_a_key_as_the_vendor_wants_it() {
    let stack = Stack::start().await;
    for (sent, bearer, key) in [(TOKEN, TOKEN, ""), ("Bearer sk-ant-api03-x", "", "sk-ant-api03-x")] {
        let own = application(&stack).with("authorization", sent).with("x-gateway-provider", "anthropic");
        let own = own.with("x-gateway-custom-host", stack.mock.url());
        let answer = own.post("/messages", &message()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let requests = stack.mock.requests();
        let last = requests.last().unwrap();
        assert_eq!((last.header("authorization"), last.header("x-api-key")), (bearer, key));
    }
}

#[tokio::test]
async fn it_takes_the_place_of_a_stored_credential_only_where_the_workspace_allows_it() {
    let stack = Stack::start().await;
    offer(&stack, "claude", "anthropic").await;
    let key = stack.home.workspace_key.clone();
    let person = stack.anonymous().with("x-gateway-api-key", key.clone()).with("authorization", TOKEN);
    let credential = async || {
        let answer = person.post("/messages", &message()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let requests = stack.mock.requests();
        let last = requests.last().unwrap();
        (last.header("authorization").to_owned(), last.header("x-api-key").to_owned())
    };
    assert_eq!(credential().await, (String::new(), KEY.to_owned()), "not without leave");
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let allowed = stack.administrator().put(&path, &json!({ "settings": { "own_credentials": 1 } })).await;
    assert_eq!(allowed.status, 200, "{}", allowed.text());
    stack.until("it is allowed", async || credential().await == (TOKEN.to_owned(), String::new())).await;
    for other in ["Bearer sk-ant-api03-x".to_owned(), format!("Bearer {key}")] {
        let client = stack.anonymous().with("x-gateway-api-key", key.clone()).with("authorization", other);
        assert_eq!(client.post("/messages", &message()).await.status, 200);
        let requests = stack.mock.requests();
        assert_eq!(requests.last().unwrap().header("x-api-key"), KEY, "a key is none that a person signed in for");
    }
    assert_eq!(application(&stack).post("/messages", &message()).await.status, 200);
    let bearers = stack.mock.requests().iter().filter(|request| request.header("authorization") == TOKEN).count();
    assert!(bearers > 0);
    let is_marked = "metadata ->> '_credential' = 'own'";
    until_logged(&stack, &format!("{is_marked} AND cost IS NOT NULL AND virtual_key = 'claude'"), bearers as i64).await;
    until_logged(&stack, is_marked, bearers as i64).await;
}
