//! Structured output, tools in streams and Azure's paths, on the wires of OpenAI and Anthropic.

use serde_json::{Value, json};

use crate::{chat, events, mock, post, post_json, send, streamed};

fn schema() -> Value {
    json!({
        "type": "object", "required": ["city", "degrees", "tags"],
        "properties": { "city": { "type": "string" }, "degrees": { "type": "integer", "minimum": -5 },
                        "tags": { "type": "array", "items": { "enum": ["warm", "cold"] } }, "note": { "type": "string" } },
    })
}

#[tokio::test]
async fn the_format_that_is_asked_for_is_the_format_of_the_answer() {
    let mock = mock();
    let expected = json!({ "city": "Paris", "degrees": -5, "tags": ["warm"] });
    let mut body = chat(json!({}));
    body["response_format"] = json!({ "type": "json_schema", "json_schema": { "name": "w", "schema": schema() } });
    let answer = post_json(&mock, "/chat/completions", &body).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected);
    let stream = post(&mock, "/chat/completions", &streamed(body.clone())).await.text().await.unwrap();
    let chunks = events(&stream).into_iter().filter_map(|data| serde_json::from_str::<Value>(&data).ok());
    let streamed_text: String =
        chunks.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect();
    assert_eq!(streamed_text, text);
    body["response_format"] = json!({ "type": "json_object" });
    let answer = post_json(&mock, "/chat/completions", &body).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(text).unwrap().is_object());
    let format = json!({ "format": { "type": "json_schema", "name": "w", "schema": schema() } });
    let answer = post_json(&mock, "/responses", &json!({ "model": "m", "input": "x", "text": format })).await;
    let text = answer["output"][0]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected);
    // What a fault dictates is said as it is.
    let mut body = chat(json!({ "reply": "no JSON" }));
    body["response_format"] = json!({ "type": "json_object" });
    let answer = post_json(&mock, "/chat/completions", &body).await;
    assert_eq!(answer["choices"][0]["message"]["content"], "no JSON");
}

#[tokio::test]
async fn several_tools_are_called_in_streams_too() {
    let mock = mock();
    let fault = json!({ "tool_calls": 2 });
    let function = |name: &str| json!({ "name": name, "parameters": { "type": "object" } });
    let mut body = streamed(chat(fault.clone()));
    body["tools"] =
        json!([{ "type": "function", "function": function("a") }, { "type": "function", "function": function("b") }]);
    let text = post(&mock, "/chat/completions", &body).await.text().await.unwrap();
    let mut calls = [(String::new(), String::new()), (String::new(), String::new())];
    for data in events(&text) {
        let Ok(chunk) = serde_json::from_str::<Value>(&data) else { continue };
        let call = &chunk["choices"][0]["delta"]["tool_calls"][0];
        let Some(index) = call["index"].as_u64() else { continue };
        let (name, arguments) = &mut calls[index as usize];
        name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        arguments.push_str(call["function"]["arguments"].as_str().unwrap());
    }
    let expected = |name: &str| (name.to_owned(), r#"{"city":"Paris"}"#.to_owned());
    assert_eq!(calls, [expected("a"), expected("b")]);
    assert!(text.contains(r#""finish_reason":"tool_calls""#));

    body["tools"] = json!([{ "name": "a", "input_schema": { "type": "object" } }]);
    let text = post(&mock, "/messages", &body).await.text().await.unwrap();
    assert_eq!(text.matches(r#""type":"tool_use""#).count(), 2, "{text}");
    assert!(text.contains(r#""stop_reason":"tool_use""#));

    let mut body = json!({ "model": "fault/tool_calls=2", "input": "x", "stream": true });
    body["tools"] = json!([{ "type": "function", "name": "a", "parameters": { "type": "object" } }]);
    let text = post(&mock, "/responses", &body).await.text().await.unwrap();
    let events: Vec<Value> = events(&text).iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let done: Vec<&Value> = events.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    let output: Vec<&Value> = done.iter().map(|event| &event["item"]).collect();
    assert_eq!(json!(output), events.last().unwrap()["response"]["output"]);
    assert_eq!(output.len(), 2);
}

#[tokio::test]
async fn azures_paths_are_openais_with_a_version() {
    let mock = mock();
    let body = chat(json!({}));
    for (path, status) in [
        ("/openai/deployments/gpt/chat/completions?api-version=2024-10-21", 200),
        ("/openai/deployments/gpt/chat/completions", 404),
        ("/openai/v1/chat/completions", 200),
        ("/openai/v1/responses", 200),
    ] {
        assert_eq!(send(&mock, path, &body).await.status(), status, "{path}");
    }
    let request = reqwest::Client::new().post(mock.origin() + "/openai/v1/chat/completions").header("api-key", "k");
    assert_eq!(request.json(&body).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn who_asks_for_it_is_held_to_the_fields_of_the_wire() {
    let mock = mock();
    let mut body = chat(json!({ "strict": true }));
    assert_eq!(post(&mock, "/chat/completions", &body).await.status(), 200);
    let refused = post(&mock, "/messages", &body).await;
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("max_tokens"));
    body["max_output_tokens"] = json!(5);
    let refused = post_json(&mock, "/chat/completions", &body).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("max_output_tokens"), "{refused}");
}

#[tokio::test]
async fn the_newer_version_of_anthropics_api_takes_no_sampling() {
    let mock = mock();
    let body =
        json!({ "model": "c", "max_tokens": 5, "temperature": 1.0, "messages": [{ "role": "user", "content": "x" }] });
    for (version, status) in [("2023-06-01", 200), ("2026-10-21", 400)] {
        let request = reqwest::Client::new().post(mock.url() + "/messages").header("anthropic-version", version);
        let response = request.bearer_auth("k").json(&body).send().await.unwrap();
        assert_eq!(response.status(), status, "{version}");
    }
}
