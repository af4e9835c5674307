//! Oracle, Reka, Triton, Hugging Face and the older text models of Bedrock, as clients of every dialect meet them. The mock
//! plays the vendors, and refuses what is not of their wire.

use super::{events, said};
use crate::journal::calls::{rows, tokens};
use harness::{Client, Stack, chat};
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use rust_decimal::Decimal;
use serde_json::{Value, json};

fn at_origin(stack: &Stack, provider: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    client.with("x-gateway-provider", provider).with("x-gateway-custom-host", stack.mock.origin())
}

fn sent(stack: &Stack) -> (String, Value) {
    let last = stack.mock.requests().pop().expect("the provider was asked");
    (last.path.clone(), serde_json::from_slice(&last.body).unwrap())
}

/// A config with an account of Oracle's whose key signs.
fn oracle(stack: &Stack) -> Client {
    let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap().private_key_to_pem_pkcs8().unwrap();
    let config = json!({
        "provider": "oracle", "custom_host": stack.mock.origin(), "oracle_region": "eu-frankfurt-1",
        "oracle_compartment_id": "ocid1.compartment.oc1..c", "oracle_tenancy": "ocid1.tenancy.oc1..t",
        "oracle_user": "ocid1.user.oc1..u", "oracle_fingerprint": "20:3b",
        "oracle_private_key": String::from_utf8(key).unwrap(),
    });
    stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.to_string())
}

#[tokio::test]
async fn oracle_is_asked_in_its_own_shape_and_signed() {
    let stack = Stack::start().await;
    let client = oracle(&stack);
    let mut asked = chat("Hello");
    asked["model"] = json!("openai.gpt-oss-120b");
    asked["max_tokens"] = json!(50);
    let answer = client.post("/chat/completions", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (path, body) = sent(&stack);
    assert_eq!(path, "/20231130/actions/chat");
    assert_eq!(
        (&body["compartmentId"], &body["servingMode"]),
        (&json!("ocid1.compartment.oc1..c"), &json!({ "servingType": "ON_DEMAND", "modelId": "openai.gpt-oss-120b" }))
    );
    let text = json!({ "role": "USER", "content": [{ "type": "TEXT", "text": "Hello" }] });
    assert_eq!((&body["chatRequest"]["messages"][0], &body["chatRequest"]["maxTokens"]), (&text, &json!(50)));
    let signature = stack.mock.requests()[0].header("authorization").to_owned();
    assert!(signature.starts_with("Signature ") && signature.contains("x-content-sha256"), "{signature}");
    let told = answer.json();
    assert!(told["choices"][0]["message"]["content"].as_str().is_some_and(|text| !text.is_empty()), "{told}");
    let usage =
        (told["usage"]["prompt_tokens"].as_i64().unwrap(), told["usage"]["completion_tokens"].as_i64().unwrap());
    asked["stream"] = json!(true);
    let stream = client.post("/chat/completions", &asked).await;
    assert_eq!(stream.header("content-type"), "text/event-stream; charset=utf-8");
    let text = stream.text();
    assert_eq!(said(&events(&text).0), told["choices"][0]["message"]["content"], "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(sent(&stack).1["chatRequest"]["isStream"], true);
    let rows = rows(&stack, 2).await;
    assert_eq!((tokens(&rows[0]), tokens(&rows[1])), (usage, usage));
    assert!(rows.iter().all(|row| !row.get::<_, bool>("usage_estimated")));
    assert!(rows.iter().all(|row| row.get::<_, Option<Decimal>>("cost").is_some_and(|cost| cost > Decimal::ZERO)));
}

#[tokio::test]
async fn tools_messages_and_coheres_models_reach_oracle() {
    let stack = Stack::start().await;
    let client = oracle(&stack);
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let mut asked = chat("Weather?");
    asked["tools"] = json!([{ "type": "function", "function": { "name": "weather", "parameters": schema } }]);
    asked["tool_choice"] = json!("required");
    let told = client.post("/chat/completions", &asked).await.json();
    let call = &told["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(call, &json!({ "name": "weather", "arguments": "{\"city\":\"Paris\"}" }), "{told}");
    assert_eq!(told["choices"][0]["finish_reason"], "tool_calls");
    let asked = json!({ "model": "cohere.command-r-plus", "max_tokens": 9, "system": "Be brief.", "messages": [
        { "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }, { "role": "user", "content": "c" }] });
    let answer = client.post("/messages", &asked).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["type"]), (200, &json!("message")), "{}", answer.text());
    let request = sent(&stack).1["chatRequest"].clone();
    assert_eq!((&request["apiFormat"], &request["message"]), (&json!("COHERE"), &json!("c")));
    assert_eq!(request["preambleOverride"], "Be brief.");
    assert_eq!(request["chatHistory"][1], json!({ "role": "CHATBOT", "message": "b" }));
    let mut streamed = asked.clone();
    streamed["stream"] = json!(true);
    let stream = client.post("/messages", &streamed).await.text();
    let (data, names) = events(&stream);
    let text: String = data.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(
        (json!(text), names.last()),
        (answer.json()["content"][0]["text"].clone(), Some(&"message_stop")),
        "{stream}"
    );
    let answer = at_origin(&stack, "oracle").post("/chat/completions", &chat("Hello")).await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status.as_u16(), &error["param"]), (400, &json!("oracle_compartment_id")), "{error}");
}

#[tokio::test]
async fn reka_answers_whole_and_its_answer_becomes_the_stream_that_was_asked_for() {
    let stack = Stack::start().await;
    let client = at_origin(&stack, "reka-ai");
    let mut asked = chat("Hello");
    asked["model"] = json!("reka-core");
    asked["messages"].as_array_mut().unwrap().insert(0, json!({ "role": "system", "content": "Be brief." }));
    let answer = client.post("/chat/completions", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (path, body) = sent(&stack);
    assert_eq!((&*path, stack.mock.requests()[0].header("x-api-key")), ("/chat", "sk-mock"));
    assert_eq!(body["conversation_history"], json!([{ "type": "human", "text": "Be brief.\n\nHello" }]));
    let told = answer.json();
    asked["stream"] = json!(true);
    let stream = client.post("/chat/completions", &asked).await;
    assert_eq!((stream.status.as_u16(), stream.header("content-type")), (200, "text/event-stream; charset=utf-8"));
    let text = stream.text();
    assert_eq!(said(&events(&text).0), told["choices"][0]["message"]["content"], "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let usage =
        (told["usage"]["prompt_tokens"].as_i64().unwrap(), told["usage"]["completion_tokens"].as_i64().unwrap());
    let rows = rows(&stack, 2).await;
    assert_eq!((tokens(&rows[0]), tokens(&rows[1])), (usage, usage));
    assert!(rows.iter().all(|row| row.get::<_, Option<Decimal>>("cost").is_some_and(|cost| cost > Decimal::ZERO)));
}

#[tokio::test]
async fn triton_completes_a_text_whole_and_in_a_stream() {
    let stack = Stack::start().await;
    let client = at_origin(&stack, "triton");
    let mut asked = json!({ "model": "m", "prompt": "Once", "max_tokens": 9, "top_k": 3, "stop": "END" });
    let answer = client.post("/completions", &asked).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["object"]),
        (200, &json!("text_completion")),
        "{}",
        answer.text()
    );
    let (path, body) = sent(&stack);
    assert_eq!(path, "/generate");
    assert_eq!(body, json!({ "text_input": "Once", "max_tokens": 9, "top_k": 3, "stop_words": ["END"] }));
    asked["stream"] = json!(true);
    let text = client.post("/completions", &asked).await.text();
    assert_eq!(sent(&stack).0, "/generate_stream");
    let (chunks, _) = events(&text);
    let whole: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!(whole, answer.json()["choices"][0]["text"], "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let answer = client.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.json()["object"], "chat.completion", "{}", answer.text());
}

#[tokio::test]
async fn the_older_text_models_of_bedrock_are_invoked() {
    let stack = Stack::start().await;
    let client = at_origin(&stack, "bedrock");
    for (model, place) in [
        ("cohere.command-text-v14", "/model/cohere.command-text-v14/invoke"),
        ("ai21.j2-ultra-v1", "/model/ai21.j2-ultra-v1/invoke"),
    ] {
        let mut asked = chat("Hello");
        asked["model"] = json!(model);
        asked["max_tokens"] = json!(9);
        let answer = client.post("/chat/completions", &asked).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let (path, body) = sent(&stack);
        assert_eq!((&*path, &body["prompt"]), (place, &json!("Hello")));
        assert_eq!(answer.json()["choices"][0]["message"]["content"], "Hi", "{}", answer.text());
    }
}

#[tokio::test]
async fn an_endpoint_of_ones_own_at_hugging_face_has_no_model_in_its_path() {
    let stack = Stack::start().await;
    let asked = json!({ "model": "org/name", "messages": [{ "role": "user", "content": "Hello" }] });
    at_origin(&stack, "huggingface").post("/chat/completions", &asked).await;
    assert_eq!(sent(&stack).0, "/models/org/name/v1/chat/completions");
    let config =
        json!({ "provider": "huggingface", "api_key": "sk-mock", "huggingface_base_url": stack.mock.origin() });
    let own = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.to_string());
    let answer = own.post("/chat/completions", &asked).await;
    assert_eq!((answer.status.as_u16(), &*sent(&stack).0), (200, "/v1/chat/completions"), "{}", answer.text());
}

#[tokio::test]
async fn predibase_is_told_the_adapter_alone() {
    let stack = Stack::start().await;
    let asked =
        json!({ "model": "mistral-7b:mine/1", "user": "tenant", "messages": [{ "role": "user", "content": "Hello" }] });
    at_origin(&stack, "predibase").post("/chat/completions", &asked).await;
    let (path, body) = sent(&stack);
    assert_eq!(
        (&*path, &body["model"]),
        ("/tenant/deployments/v2/llms/mistral-7b/v1/chat/completions", &json!("mine/1"))
    );
}
