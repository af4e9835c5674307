//! Images and files by address, for providers that take bytes alone: the gateway fetches them, within bounds and under the
//! rules for addresses that callers name.

use super::wires::{answer, asked, client};
use crate::upstream::RawUpstream;
use harness::{Answer, Client, Stack};
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const PNG_BASE64: &str = "iVBORw0KGgpyZXN0";

fn looking_at(urls: &[String]) -> Value {
    let images = urls.iter().map(|url| json!({ "type": "image_url", "image_url": { "url": url } }));
    let content: Vec<Value> = [json!({ "type": "text", "text": "What is it?" })].into_iter().chain(images).collect();
    json!({ "model": "m", "messages": [{ "role": "user", "content": content }] })
}

fn converse_answer() -> Vec<u8> {
    let said = json!({ "output": { "message": { "role": "assistant", "content": [{ "text": "Hi" }] } },
        "stopReason": "end_turn", "usage": { "inputTokens": 8, "outputTokens": 3, "totalTokens": 11 } });
    answer("application/json", said.to_string().as_bytes())
}

fn place(host: &RawUpstream, path: &str) -> String {
    format!("{}{path}", host.url().strip_suffix("/v1").unwrap())
}

async fn look(client: &Client, host: &RawUpstream, response: Vec<u8>) -> Answer {
    host.answer(response);
    client.post("/chat/completions", &looking_at(&[place(host, "/a.png")])).await
}

#[tokio::test]
async fn an_image_by_address_reaches_bedrock_and_google_as_bytes() {
    let stack = Stack::start().await;
    let (provider, host) = (RawUpstream::start().await, RawUpstream::start().await);
    let bedrock = client(&stack, &provider, "bedrock");
    provider.answer(converse_answer());
    let got = look(&bedrock, &host, answer("image/png", PNG)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let image = asked(&provider, "x").2["messages"][0]["content"][1]["image"].clone();
    assert_eq!(image, json!({ "format": "png", "source": { "bytes": PNG_BASE64 } }));
    let fetched = host.only().to_ascii_lowercase();
    assert!(fetched.starts_with("get /a.png http/1.1\r\n"), "{fetched}");
    assert!(!fetched.contains("sk-own") && !fetched.contains("x-gateway"), "{fetched}");
    // Servers that do not know the type, and one that sends elsewhere.
    for responses in [vec![answer("application/octet-stream", PNG)], vec![redirect("/b.png"), answer("image/png", PNG)]]
    {
        responses.into_iter().for_each(|response| host.answer(response));
        provider.answer(converse_answer());
        let got = bedrock.post("/chat/completions", &looking_at(&[place(&host, "/a")])).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(asked(&provider, "x").2["messages"][0]["content"][1]["image"]["format"], "png");
    }
    host.take();
    let whole = json!({ "candidates": [{ "content": { "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" }] });
    provider.answer(answer("application/json", whole.to_string().as_bytes()));
    look(&client(&stack, &provider, "google"), &host, answer("image/png", PNG)).await;
    let part = asked(&provider, "x").2["contents"][0]["parts"][1].clone();
    assert_eq!(part, json!({ "inlineData": { "mimeType": "image/png", "data": PNG_BASE64 } }));
}

fn redirect(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn what_cannot_be_fetched_is_400_and_names_the_part() {
    let stack = Stack::start().await;
    let (provider, host) = (RawUpstream::start().await, RawUpstream::start().await);
    let client = client(&stack, &provider, "bedrock");
    for (response, says) in [
        (answer("text/html", b"<html>"), "no image"),
        (answer("image/png", b""), "empty"),
        (answer("image/png", &vec![0; (20 << 20) + 1]), "together"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(), "404"),
        (redirect("https://169.254.169.254/latest/meta-data"), "metadata"),
        (redirect("https://10.0.0.1/"), "not public"),
        (redirect("file:///etc/passwd"), "redirects"),
    ] {
        let got = look(&client, &host, response).await;
        let error = &got.json()["error"];
        assert_eq!((got.status.as_u16(), &error["param"]), (400, &json!("messages[0].content[1]")), "{error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{says}: {error}");
    }
    host.take();
    let many: Vec<String> = (0..21).map(|number| place(&host, &format!("/{number}.png"))).collect();
    let got = client.post("/chat/completions", &looking_at(&many)).await;
    assert_eq!((got.status.as_u16(), &got.json()["error"]["param"]), (400, &json!("messages[0].content[21]")));
    for address in ["https://10.1.2.3/a.png", "https://169.254.169.254/a.png"] {
        let got = client.post("/chat/completions", &looking_at(&[address.to_owned()])).await;
        assert_eq!(got.status, 400, "{address}: {}", got.text());
    }
    assert!(host.take().is_empty() && provider.take().is_empty(), "nobody was asked");
}

#[tokio::test]
async fn a_retry_sends_what_was_written_and_fetches_nothing_again() {
    let stack = Stack::start().await;
    let (provider, host) = (RawUpstream::start().await, RawUpstream::start().await);
    let retry = json!({ "retry": { "attempts": 2, "jitter": "full", "on_status_codes": [503] } });
    let client = client(&stack, &provider, "bedrock").with("x-gateway-config", retry.to_string());
    for _ in 0..2 {
        provider.answer(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec());
    }
    provider.answer(converse_answer());
    let got = look(&client, &host, answer("image/png", PNG)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(got.json()["choices"][0]["message"]["content"], "Hi");
    assert_eq!(host.take().len(), 1, "the image is fetched once");
    let sent: Vec<Value> = provider
        .take()
        .iter()
        .map(|request| String::from_utf8_lossy(request).into_owned())
        .map(|request| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap())
        .collect();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|body| *body == sent[0] && body["messages"][0]["content"][1]["image"]["format"] == "png"));
}
