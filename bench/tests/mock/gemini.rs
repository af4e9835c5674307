//! Gemini's wire, on Google's own host and on Vertex.

use serde_json::{Value, json};

use crate::{mock, send, send_json};

const WHOLE: &str = "/v1beta/models/gemini-2.5-flash:generateContent";
const STREAM: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";

fn asking(text: &str) -> Value {
    json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] })
}

fn with_fault(fault: Value) -> Value {
    asking(&json!({ "mock": fault }).to_string())
}

fn said(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["candidates"][0]["content"]["parts"][0]["text"].as_str()).collect()
}

/// Events, which Google ends with both line ends.
fn events(text: &str) -> Vec<Value> {
    let data = |event: &str| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    text.split_terminator("\r\n\r\n").map(data).collect()
}

#[tokio::test]
async fn content_is_the_same_whole_as_events_and_as_an_array() {
    let mock = mock();
    let mut body = asking("12345678");
    body["system_instruction"] = json!({ "parts": [{ "text": "1234" }] });
    let whole = send_json(&mock, WHOLE, &body).await;
    assert_eq!(
        (&whole["usageMetadata"]["promptTokenCount"], &whole["modelVersion"]),
        (&json!(3), &json!("gemini-2.5-flash"))
    );
    let text = said(std::slice::from_ref(&whole));
    let sse = send(&mock, &format!("{STREAM}?alt=sse"), &body).await;
    assert!(sse.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let events = events(&sse.text().await.unwrap());
    let array = send(&mock, STREAM, &body).await;
    assert!(array.headers()["content-type"].to_str().unwrap().starts_with("application/json"));
    let array: Vec<Value> = array.json().await.unwrap();
    assert_eq!(array, events_without_ids(&events, &array));
    assert_eq!(said(&events), text);
    let last = events.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(last["usageMetadata"], whole["usageMetadata"]);
    assert_eq!(mock.counts().served("generate_content", "ok"), 3);
}

/// The events with the ids of another answer, which differ from request to request.
fn events_without_ids(events: &[Value], other: &[Value]) -> Vec<Value> {
    let mut events = events.to_vec();
    for (event, other) in events.iter_mut().zip(other) {
        event["responseId"] = other["responseId"].clone();
    }
    events
}

#[tokio::test]
async fn tools_are_called_when_any_is_wanted_and_side_by_side_when_a_fault_says_so() {
    let mock = mock();
    let tool = |name: &str| json!({ "name": name, "parametersJsonSchema": { "type": "object", "properties": { "city": { "type": "string" } } } });
    let mut body = asking("x");
    body["tools"] = json!([{ "functionDeclarations": [tool("weather"), tool("time")] }]);
    body["toolConfig"] = json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["time"] } });
    let call = &send_json(&mock, WHOLE, &body).await["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!(call, &json!({ "name": "time", "args": { "city": "Paris" } }));
    body["contents"] = with_fault(json!({ "tool_calls": 2 }))["contents"].clone();
    let parts = &send_json(&mock, WHOLE, &body).await["candidates"][0]["content"]["parts"];
    assert_eq!(
        (&parts[0]["functionCall"]["name"], &parts[1]["functionCall"]["name"]),
        (&json!("weather"), &json!("time"))
    );
}

#[tokio::test]
async fn what_is_not_of_the_wire_is_refused_in_googles_words() {
    let mock = mock();
    let mut unknown = asking("x");
    unknown["max_tokens"] = json!(5);
    let mut nested = asking("x");
    nested["generationConfig"] = json!({ "max_output_tokens": "5" });
    for (body, named) in [
        (json!({ "messages": [] }), "contents"),
        (unknown, "maxTokens"),
        (nested, "generationConfig.maxOutputTokens"),
        (json!({ "contents": [{ "role": "assistant", "parts": [] }] }), "contents[0].role"),
        (json!({ "contents": [] }), "contents"),
    ] {
        let response = send(&mock, WHOLE, &body).await;
        assert_eq!(response.status(), 400, "{body}");
        let error = response.json::<Value>().await.unwrap();
        assert_eq!(error["error"]["status"], "INVALID_ARGUMENT");
        assert!(error["error"]["message"].as_str().unwrap().contains(named), "{error}");
    }
}

#[tokio::test]
async fn faults_are_scripted_as_everywhere() {
    let mock = mock();
    let limited = send(&mock, "/v1beta/models/fault%2Fstatus%3D429:generateContent", &asking("x")).await;
    assert_eq!(limited.status(), 429);
    assert_eq!(limited.json::<Value>().await.unwrap()["error"]["status"], "RESOURCE_EXHAUSTED");
    let body = with_fault(json!({ "error_after_chunks": 2, "chunks": 5 }));
    let text = send(&mock, &format!("{STREAM}?alt=sse"), &body).await.text().await.unwrap();
    let events = events(&text);
    assert_eq!((events.len(), &events[2]["error"]["code"]), (3, &json!(500)));
    let array: Vec<Value> = send(&mock, STREAM, &body).await.json().await.unwrap();
    assert!(array[2]["error"].is_object());
    let broken = send(&mock, STREAM, &with_fault(json!({ "bad_json": true }))).await.text().await.unwrap();
    assert!(serde_json::from_str::<Value>(&broken).is_err());
    let uncounted = send_json(&mock, WHOLE, &with_fault(json!({ "no_usage": true }))).await;
    assert!(uncounted.get("usageMetadata").is_none());
}

#[tokio::test]
async fn embeddings_tokens_and_models() {
    let mock = mock();
    let content = json!({ "parts": [{ "text": "12345" }] });
    let one = json!({ "content": content, "outputDimensionality": 3 });
    let embedded = send_json(&mock, "/v1beta/models/e:embedContent", &one).await;
    assert_eq!(embedded["embedding"]["values"].as_array().unwrap().len(), 3);
    let many = json!({ "requests": [{ "model": "models/e", "content": content, "outputDimensionality": 3 }] });
    let batch = send_json(&mock, "/v1beta/models/e:batchEmbedContents", &many).await;
    assert_eq!(batch["embeddings"][0], embedded["embedding"]);
    let nameless = json!({ "requests": [{ "content": content }] });
    assert_eq!(send(&mock, "/v1beta/models/e:batchEmbedContents", &nameless).await.status(), 400);
    let counted = send_json(&mock, "/v1beta/models/g:countTokens", &asking("12345")).await;
    assert_eq!(counted["totalTokens"], 2);
    let models = |url: String| async move { reqwest::get(url).await.unwrap().json::<Value>().await.unwrap() };
    let listed = models(format!("{}/v1beta/models?key=k", mock.origin())).await;
    let name = listed["models"][0]["name"].as_str().unwrap();
    assert_eq!(models(format!("{}/v1beta/{name}?key=k", mock.origin())).await, listed["models"][0]);
}

#[tokio::test]
async fn vertex_serves_googles_and_anthropics_models_at_its_own_paths() {
    let mock = mock();
    let at = |publisher: &str, rest: &str| format!("/v1/projects/p/locations/l/publishers/{publisher}/models/{rest}");
    let google = send_json(&mock, &at("google", "g:generateContent"), &asking("x")).await;
    assert_eq!(google["modelVersion"], "g");
    let predicted =
        send_json(&mock, &at("google", "e:predict"), &json!({ "instances": [{ "content": "12345" }] })).await;
    assert_eq!(predicted["predictions"][0]["embeddings"]["statistics"]["token_count"], 2);
    let mut body = json!({ "max_tokens": 5, "messages": [{ "role": "user", "content": "x" }] });
    let refused = send(&mock, &at("anthropic", "c:rawPredict"), &body).await;
    assert_eq!(refused.status(), 400);
    body["anthropic_version"] = json!("vertex-2023-10-16");
    assert_eq!(send_json(&mock, &at("anthropic", "c:rawPredict"), &body).await["type"], "message");
    let stream = send(&mock, &at("anthropic", "c:streamRawPredict"), &body).await.text().await.unwrap();
    assert!(stream.starts_with("event: message_start"), "{stream}");
}
