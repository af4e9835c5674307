//! Bodies that clients compress, as Codex does: where the gateway reads a body it is made plain first, so that guardrails, the
//! cache, logs and the provider see the text; where it does not, it passes as it came, or not at all if somebody must look at it.

use crate::families::application;
use crate::guardrails::lanes::{guarded, until_held};
use crate::journal::calls::rows;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::client::whole;
use harness::{Answer, Client, Stack, chat};
use http::Method;
use serde_json::{Value, json};
use std::io::Write as _;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

/// A block that is not compressed, of up to 64 KiB, and an empty last one (RFC 7932, 9.2).
fn brotli(text: &[u8]) -> Vec<u8> {
    let header = (u32::try_from(text.len()).unwrap() - 1) << 4 | 1 << 20;
    [&header.to_le_bytes()[..3], text, &[0b11]].concat()
}

type Encode = fn(&[u8]) -> Vec<u8>;

const ALL: [(&str, Encode); 3] = [("zstd", zstd), ("gzip", gzip), ("br", brotli)];

async fn post(client: &Client, path: &str, encoding: &str, body: Vec<u8>) -> Answer {
    let request = client.request(Method::POST, path).header("content-type", "application/json");
    whole(request.header("content-encoding", encoding).body(body)).await
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// A gigabyte of blanks, in a few bytes.
fn bomb() -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..1024 {
        encoder.write_all(&blanks).unwrap();
    }
    encoder.finish().unwrap()
}

#[tokio::test]
async fn the_provider_and_the_log_have_the_plain_text() {
    let stack = Stack::start().await;
    let codex = json!({ "model": "gpt-4o-mini", "input": "é ".repeat(40_000), "store": false });
    let asked = [("/chat/completions", chat("Hello")), ("/responses", codex)];
    // Named once more, as a client could.
    let client = stack.client().with("x-gateway-forward-headers", "content-encoding");
    let mut count = 0;
    for (path, body) in &asked {
        let text = body.to_string();
        for (encoding, pack) in ALL.into_iter().filter(|(encoding, _)| *encoding != "br" || text.len() <= 1 << 16) {
            let answer = post(&client, path, encoding, pack(text.as_bytes())).await;
            assert_eq!(answer.status, 200, "{path} {encoding}: {}", answer.text());
            let requests = stack.mock.requests();
            let last = requests.last().unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&last.body).unwrap(), *body, "{path} {encoding}");
            assert_eq!(last.header("content-encoding"), "", "{path} {encoding}");
            count += 1;
            let log = format!("/logs/{}", answer.header("x-gateway-request-id"));
            if *path == "/chat/completions" {
                stack
                    .until("its body is stored", async || {
                        let log = stack.administrator().get(&log).await.json();
                        log["finalUntransformedRequest"]["body"] == *body
                    })
                    .await;
            }
        }
    }
    for row in rows(&stack, count).await {
        assert!(row.get::<_, i64>("req_units") > 0, "its tokens are counted");
    }
}

#[tokio::test]
async fn a_kept_answer_is_found_however_its_question_was_sent() {
    let stack = Stack::start().await;
    let client = stack.client().with("x-gateway-cache", "simple");
    let text = chat("Hello").to_string();
    assert_eq!(client.post("/chat/completions", &chat("Hello")).await.header("x-gateway-cache-status"), "MISS");
    for (encoding, pack) in ALL {
        let hit = async || {
            let answer = post(&client, "/chat/completions", encoding, pack(text.as_bytes())).await;
            answer.header("x-gateway-cache-status") == "HIT"
        };
        stack.until(encoding, hit).await;
    }
}

#[tokio::test]
async fn what_becomes_too_large_is_413_however_small_it_came() {
    let stack = Stack::builder().proxy("MAX_BODY_BYTES", "1000000").start().await;
    let client = stack.client();
    let fits = json!({ "model": "m", "messages": [{ "role": "user", "content": "x".repeat(900_000) }] }).to_string();
    let longer =
        json!({ "model": "m", "messages": [{ "role": "user", "content": "x".repeat(1_000_000) }] }).to_string();
    for (encoding, pack) in [("zstd", zstd as fn(&[u8]) -> Vec<u8>), ("gzip", gzip)] {
        let answer = post(&client, "/chat/completions", encoding, pack(fits.as_bytes())).await;
        assert_eq!(answer.status, 200, "{encoding}: {}", answer.text());
        let asked = stack.mock.requests().len();
        let refused = post(&client, "/chat/completions", encoding, pack(longer.as_bytes())).await;
        assert_eq!(code(&refused), (413, "body_too_large".into()), "{encoding}");
        assert_eq!(stack.mock.requests().len(), asked, "{encoding}");
    }
    let bomb = bomb();
    assert!(bomb.len() < 200_000, "{}", bomb.len());
    let answers = futures::future::join_all((0..8).map(|_| post(&client, "/chat/completions", "zstd", bomb.clone())));
    for answer in answers.await {
        assert_eq!(code(&answer), (413, "body_too_large".into()));
    }
    assert_eq!(client.post("/chat/completions", &chat("after")).await.status, 200);
}

#[tokio::test]
async fn an_encoding_that_nobody_here_reads_is_415_and_a_damaged_body_400() {
    let stack = Stack::start().await;
    let client = stack.client();
    let text = chat("Hello").to_string();
    for encoding in ["compress", "deflate", "gzip, zstd", "aws-chunked"] {
        let refused = post(&client, "/chat/completions", encoding, gzip(text.as_bytes())).await;
        assert_eq!(code(&refused), (415, "unsupported_content_encoding".into()), "{encoding}");
        assert_eq!(refused.json()["error"]["param"], "content-encoding", "{}", refused.text());
    }
    let anthropic = post(&client, "/messages", "compress", Vec::new()).await;
    assert_eq!((anthropic.status.as_u16(), &anthropic.json()["type"]), (415, &json!("error")), "in its own words");
    for (encoding, pack) in ALL {
        let whole = pack(text.as_bytes());
        let mut odd = whole.clone();
        odd.extend_from_slice(b"and more");
        let cut = whole[..whole.len() - 3].to_vec();
        let cases = [("cut", cut), ("plain", text.clone().into_bytes()), ("with a tail", odd)];
        // What stands behind the end of brotli is no part of it, and goes nowhere.
        for (what, body) in cases.into_iter().filter(|(what, _)| encoding != "br" || *what != "with a tail") {
            let refused = post(&client, "/chat/completions", encoding, body).await;
            assert_eq!(code(&refused), (400, "invalid_content_encoding".into()), "{encoding} {what}");
        }
    }
    for identity in ["identity", "Identity"] {
        let plain = post(&client, "/chat/completions", identity, text.clone().into_bytes()).await;
        assert_eq!(plain.status, 200, "{}", plain.text());
    }
    assert_eq!(stack.mock.requests().len(), 2, "no provider heard of the others");
}

#[tokio::test]
async fn no_text_comes_past_a_guardrail_because_it_is_compressed() {
    let (stack, client) = guarded(&["input_guardrails"]).await;
    until_held(&stack, &client).await;
    let before = stack.mock.requests().len();
    let said = json!([{ "role": "user", "content": "forbidden" }]);
    let form = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\nx\r\n\
                --b\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\nforbidden\r\n\
                --b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";
    let contents = json!({ "contents": [{ "role": "user", "parts": [{ "text": "forbidden" }] }] });
    let converse = json!({ "messages": [{ "role": "user", "content": [{ "text": "forbidden" }] }] });
    let json = "application/json";
    for (encoding, pack) in ALL {
        for (path, kind, body, expected) in [
            // Read by the gateway.
            ("/chat/completions", json, json!({ "model": "m", "messages": said }).to_string(), 446),
            ("/chat/completions", json, json!({ "model": "m", "messages": said, "stream": true }).to_string(), 446),
            ("/messages", json, json!({ "model": "m", "max_tokens": 5, "messages": said }).to_string(), 446),
            ("/responses", json, json!({ "model": "m", "input": "forbidden" }).to_string(), 446),
            ("/embeddings", json, json!({ "model": "m", "input": "forbidden" }).to_string(), 446),
            ("/v1beta/models/m:generateContent", json, contents.to_string(), 446),
            ("/model/m/converse", json, converse.to_string(), 446),
            ("/audio/transcriptions", "multipart/form-data; boundary=b", form.into(), 446),
            // Passed on as they come, so that nobody could look.
            ("/elsewhere", json, json!({ "text": "forbidden" }).to_string(), 403),
            ("/threads/runs", json, json!({ "instructions": "forbidden" }).to_string(), 403),
            ("/files", "multipart/form-data; boundary=b", form.into(), 403),
        ] {
            let request = client.request(Method::POST, path).header("content-type", kind);
            let answer = whole(request.header("content-encoding", encoding).body(pack(body.as_bytes()))).await;
            assert_eq!(answer.status, expected, "{path} {encoding}: {}", answer.text());
        }
    }
    assert_eq!(stack.mock.requests().len(), before, "no provider heard of any of it");
}

#[tokio::test]
async fn each_reader_of_bodies_takes_them_or_says_why_not() {
    let stack = Stack::start().await;
    let question = json!({ "path": "/v1/chat/completions", "body": chat("Hello") }).to_string();
    let client = application(&stack);
    let explained = post(&client, "/explain", "zstd", zstd(question.as_bytes())).await;
    assert_eq!(explained.status, 200, "{}", explained.text());
    let batch = json!({ "input_file_id": "gwf-00000000-0000-0000-0000-000000000000",
        "endpoint": "/v1/chat/completions", "completion_window": "immediate" });
    let (plain, packed) = (
        client.post("/batches", &batch).await,
        post(&client, "/batches", "gzip", gzip(batch.to_string().as_bytes())).await,
    );
    assert_eq!(code(&packed), code(&plain), "{}", packed.text());
    assert!(packed.status.is_client_error());
    let form = "--b\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b--\r\n";
    let upload = client.request(Method::POST, "/files").header("content-type", "multipart/form-data; boundary=b");
    let refused = whole(upload.header("content-encoding", "gzip").body(gzip(form.as_bytes()))).await;
    assert_eq!(code(&refused), (415, "unsupported_content_encoding".into()), "a file is kept as it comes");
    // What is passed on stays what its sender made of it.
    let run = json!({ "model": "m", "text": "Hello" }).to_string();
    let relayed = post(&stack.client(), "/threads/runs", "zstd", zstd(run.as_bytes())).await;
    assert_eq!(relayed.status, 200, "{}", relayed.text());
    let requests = stack.mock.requests();
    let last = requests.last().unwrap();
    assert_eq!((last.header("content-encoding"), last.body_bytes), ("zstd", zstd(run.as_bytes()).len() as u64));
    // The control plane reads plain bodies alone.
    let made = post(&stack.administrator(), "/labels", "gzip", gzip(br#"{"name":"x"}"#)).await;
    assert!([400, 415].contains(&made.status.as_u16()), "{}", made.text());
}
