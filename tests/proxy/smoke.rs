//! The shortest way through the product.

use harness::{Stack, chat};

#[tokio::test]
async fn a_chat_completion_comes_back_through_the_proxy() {
    let stack = Stack::start().await;
    let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["object"], "chat.completion");
}

#[tokio::test]
async fn a_key_that_the_database_does_not_know_is_refused() {
    let stack = Stack::start().await;
    let answer = stack.as_application("pk_unknown").post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 401, "{}", answer.text());
}
