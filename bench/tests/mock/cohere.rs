//! Cohere's second version.

use serde_json::{Value, json};

use crate::{events, mock, send, send_json};

fn asking(text: &str) -> Value {
    json!({ "model": "command-a", "messages": [{ "role": "user", "content": text }] })
}

fn with_fault(fault: Value) -> Value {
    asking(&json!({ "mock": fault }).to_string())
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

async fn stream(mock: &bench::mock::Mock, body: Value) -> Vec<Value> {
    let text = send(mock, "/v2/chat", &streamed(body)).await.text().await.unwrap();
    events(&text).iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_stream_says_what_the_whole_answer_says() {
    let mock = mock();
    let whole = send_json(&mock, "/v2/chat", &asking("12345678")).await;
    assert_eq!((&whole["finish_reason"], &whole["usage"]["tokens"]["input_tokens"]), (&json!("COMPLETE"), &json!(2)));
    let events = stream(&mock, asking("12345678")).await;
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["message-start", "content-start"]);
    assert_eq!(kinds[kinds.len() - 2..], ["content-end", "message-end"]);
    let text: String =
        events.iter().filter_map(|event| event["delta"]["message"]["content"]["text"].as_str()).collect();
    assert_eq!(text, whole["message"]["content"][0]["text"]);
    assert_eq!(events.last().unwrap()["delta"]["usage"], whole["usage"]);
}

#[tokio::test]
async fn tools_are_called_one_or_several() {
    let mock = mock();
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "parameters": {} } });
    let mut body = asking("x");
    body["tools"] = json!([tool("weather"), tool("time")]);
    body["tool_choice"] = json!("REQUIRED");
    let whole = send_json(&mock, "/v2/chat", &body).await;
    assert_eq!(whole["finish_reason"], "TOOL_CALL");
    assert_eq!(whole["message"]["tool_calls"][0]["function"]["name"], "weather");
    body["messages"] = with_fault(json!({ "tool_calls": 2 }))["messages"].clone();
    let events = stream(&mock, body).await;
    let mut arguments = [String::new(), String::new()];
    for event in &events {
        if let Some(piece) = event["delta"]["message"]["tool_calls"]["function"]["arguments"].as_str() {
            arguments[event["index"].as_u64().unwrap() as usize] += piece;
        }
    }
    assert_eq!(arguments, [r#"{"city":"Paris"}"#, r#"{"city":"Paris"}"#]);
}

#[tokio::test]
async fn embeddings_come_by_type_and_documents_by_relevance() {
    let mock = mock();
    let body = json!({ "model": "embed-v4.0", "input_type": "search_query", "texts": ["12345", "1"],
                       "embedding_types": ["float", "int8", "base64"] });
    let embedded = send_json(&mock, "/v2/embed", &body).await;
    assert_eq!(embedded["embeddings"]["float"].as_array().unwrap().len(), 2);
    assert!(embedded["embeddings"]["int8"][0][0].is_i64() && embedded["embeddings"]["base64"][0].is_string());
    assert_eq!(embedded["meta"]["billed_units"]["input_tokens"], 3);
    let body =
        json!({ "model": "rerank-v3.5", "query": "the sea", "documents": ["a hill", "the deep sea"], "top_n": 1 });
    let ranked = send_json(&mock, "/v2/rerank", &body).await;
    assert_eq!((ranked["results"].as_array().unwrap().len(), &ranked["results"][0]["index"]), (1, &json!(1)));
}

#[tokio::test]
async fn what_is_not_of_the_wire_is_refused() {
    let mock = mock();
    let mut unknown = asking("x");
    unknown["top_p"] = json!(0.5);
    let mut choice = asking("x");
    choice["tool_choice"] = json!("required");
    for (path, body, named) in [
        ("/v2/chat", json!({ "messages": [] }), "model"),
        ("/v2/chat", unknown, "top_p"),
        ("/v2/chat", choice, "tool_choice"),
        ("/v2/embed", json!({ "model": "e", "texts": ["x"] }), "input_type"),
        ("/v2/embed", json!({ "model": "e", "input_type": "search_query" }), "texts"),
        ("/v2/rerank", json!({ "model": "r", "query": "x" }), "documents"),
    ] {
        let response = send(&mock, path, &body).await;
        assert_eq!(response.status(), 400, "{body}");
        let error = response.json::<Value>().await.unwrap();
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
    }
}

#[tokio::test]
async fn faults_are_scripted_as_everywhere() {
    let mock = mock();
    let mut limited = asking("x");
    limited["model"] = json!("fault/status=429,retry_after=2");
    let response = send(&mock, "/v2/chat", &limited).await;
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"2".parse().unwrap()));
    assert!(response.json::<Value>().await.unwrap()["message"].is_string());
    let events = stream(&mock, with_fault(json!({ "error_after_chunks": 1, "chunks": 4 }))).await;
    assert_eq!(events.last().unwrap()["delta"]["finish_reason"], "ERROR");
    mock.script(json!([{ "no_usage": true }])).unwrap();
    assert!(send_json(&mock, "/v2/chat", &asking("x")).await.get("usage").is_none());
    assert_eq!(mock.requests().last().unwrap().path, "/v2/chat");
}
