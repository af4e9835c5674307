//! Calls that follow each other are listed in that order, whichever thread or proxy of a machine served them.

use super::calls::rows;
use harness::{Client, Stack, chat};
use uuid::Uuid;

/// Enough calls that some of them end within one millisecond.
const CALLS: usize = 120;

#[tokio::test]
async fn calls_that_follow_each_other_are_listed_in_that_order() {
    let stack = Stack::start().await;
    let replica = stack.replica().await;
    let mut sent = Vec::new();
    for number in 0..CALLS {
        // A new client connects anew, and so meets any of the threads.
        let fresh = Client::new(if number % 3 == 0 { &replica.base_url } else { &stack.base_url });
        // Refused before a provider is called: nothing else is as quick, and it is logged like any call.
        let refused = fresh.with_key(&stack.home.workspace_key).post("/chat/completions", &chat("Hello")).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        sent.push(refused.header("x-gateway-request-id").to_owned());
    }
    let listed: Vec<String> =
        rows(&stack, CALLS).await.iter().map(|row| row.get::<_, Uuid>("id").to_string()).collect();
    assert_eq!(listed, sent);
}
