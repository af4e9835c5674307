//! What is noted of calls that were given up or had no answer, through the whole engine lane.

use crate::engine::lab::{noted, services};
use crate::journal::Record;
use crate::net::dial::lab::{End, Server};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};

/// What a provider does with a request that it has read.
#[derive(Clone, Copy)]
enum Deed {
    Closes,
    Fails,
    Answers,
    /// Keeps it, and says that it has come.
    Keeps,
}

async fn provider(deeds: &'static [Deed], arrived: Arc<Semaphore>) -> (Server, Value) {
    let server = Server::start(move |stream, number| {
        let arrived = arrived.clone();
        async move {
            let mut end = End::new(stream);
            let Some(_) = end.request().await else { return };
            let said =
                r#"{"choices":[{"message":{"content":"yes"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#;
            let answer = |status: u16, body: &str| {
                let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n");
                format!("{head}content-length: {}\r\n\r\n{body}", body.len())
            };
            match deeds[number - 1] {
                Deed::Closes => {}
                Deed::Fails => end.say(&answer(500, "{}")).await,
                Deed::Answers => end.say(&answer(200, said)).await,
                Deed::Keeps => {
                    arrived.add_permits(1);
                    end.gone().await;
                }
            }
        }
    })
    .await;
    let target =
        json!({ "provider": "openai", "api_key": "k", "custom_host": format!("http://{}/v1", server.address) });
    (server, target)
}

/// What each record guesses, in the order of the tries.
fn guesses(records: &[Vec<u8>]) -> Vec<Option<(u64, u64)>> {
    records.iter().map(|bytes| Record::decode(bytes).unwrap().estimate).collect()
}

/// Sixteen characters.
const WORDS: &str = "four four four 4";
const GUESS: Option<(u64, u64)> = Some((4, 0));

#[tokio::test]
async fn a_call_that_left_whole_is_guessed_and_one_that_was_refused_is_not() {
    for (deeds, retry, expected) in [
        (&[Deed::Closes][..], json!({ "attempts": 0 }), vec![GUESS]),
        (&[Deed::Fails], json!({ "attempts": 0 }), vec![None]),
        (&[Deed::Answers], json!({ "attempts": 0 }), vec![None]),
        (
            &[Deed::Closes, Deed::Answers],
            json!({ "attempts": 1, "jitter": "full", "on_status_codes": [503] }),
            vec![GUESS, None],
        ),
        (
            &[Deed::Closes, Deed::Closes],
            json!({ "attempts": 1, "jitter": "full", "on_status_codes": [503] }),
            vec![GUESS, GUESS],
        ),
        // What was refused has no record of its own where the same target is tried again.
        (
            &[Deed::Fails, Deed::Answers],
            json!({ "attempts": 1, "jitter": "full", "on_status_codes": [500] }),
            vec![None],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let services = services(Some(folder.path()), |_| ());
        let (_server, mut target) = provider(deeds, Arc::new(Semaphore::new(0))).await;
        target["retry"] = retry;
        let found = guesses(&noted(&services, WORDS, &target, None).await);
        assert_eq!(found, expected, "{target}");
    }
    let folder = tempfile::tempdir().unwrap();
    let services = services(Some(folder.path()), |_| ());
    let nobody = json!({ "provider": "openai", "api_key": "k", "custom_host": "http://127.0.0.1:1/v1" });
    assert_eq!(guesses(&noted(&services, WORDS, &nobody, None).await), [None], "nothing left");
}

/// Tells a client to leave when so many calls have come to the provider.
fn once_arrived(arrived: &Arc<Semaphore>, calls: u32) -> Arc<Notify> {
    let leaving = Arc::new(Notify::new());
    let (arrived, leaves) = (arrived.clone(), leaving.clone());
    tokio::spawn(async move {
        arrived.acquire_many(calls).await.unwrap().forget();
        leaves.notify_one();
    });
    leaving
}

#[tokio::test]
async fn calls_whose_client_leaves_are_guessed_as_many_as_have_left() {
    for (deeds, more) in [(&[Deed::Keeps][..], json!({})), (&[Deed::Keeps, Deed::Keeps], json!({ "after_ms": 10 }))] {
        let folder = tempfile::tempdir().unwrap();
        let services = services(Some(folder.path()), |_| ());
        let arrived = Arc::new(Semaphore::new(0));
        let (_server, mut target) = provider(deeds, arrived.clone()).await;
        if more != json!({}) {
            target["hedge"] = more;
        }
        let leaving = once_arrived(&arrived, u32::try_from(deeds.len()).unwrap());
        let found = guesses(&noted(&services, WORDS, &target, Some(leaving)).await);
        assert_eq!(found, vec![GUESS; deeds.len()], "{target}");
    }
}
