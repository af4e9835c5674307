//! Requests that are answered by a provider of another format, beside the same ones that pass untranslated: a kilobyte of
//! chat, plain and streamed, and a long conversation with tools, which is read once and written once.

use super::request::{self, Request};
use serde_json::{Value, json};

/// Their names in the table; each stands beside what it is held against.
pub const PLAIN: &str = "translated";
pub const STREAM: &str = "streamed";
pub const TRANSLATED_STREAM: &str = "translated stream";
pub const LONG: &str = "200 KB";
pub const TRANSLATED_LONG: &str = "translated 200 KB";

/// Events of a measured stream.
const EVENTS: usize = 20;
const LONG_BYTES: usize = 200 << 10;

/// Of a gateway that is asked for chats of OpenAI's, the requests of all rows.
pub fn requests(engine: &Request) -> [(&'static str, Request); 5] {
    let with_body = |body: String| Request { body: body.into(), ..engine.clone() };
    let (streamed, long) = (with_body(request::one_by_one_body(EVENTS)), with_body(long_body()));
    [
        (PLAIN, to_anthropic(engine)),
        (TRANSLATED_STREAM, to_anthropic(&streamed)),
        (STREAM, streamed),
        (TRANSLATED_LONG, to_anthropic(&long)),
        (LONG, long),
    ]
}

fn to_anthropic(request: &Request) -> Request {
    let mut request = request.clone();
    for (name, value) in &mut request.headers {
        if *name == "x-gateway-provider" {
            *value = "anthropic".into();
        }
    }
    request
}

/// Turns of a question, two calls at once, their results and an answer, until it is long enough.
fn long_body() -> String {
    let text: String = "The quick brown fox jumps over the lazy dog, \"twice\".\n".repeat(8);
    let call = |id: String| {
        let arguments = json!({ "city": "Paris", "days": 3, "units": ["celsius", "hPa"] }).to_string();
        json!({ "id": id, "type": "function", "function": { "name": "weather", "arguments": arguments } })
    };
    let turn = |number: usize| {
        let [first, second] = [0, 1].map(|part| format!("call_{number}_{part}"));
        [
            json!({ "role": "user", "content": [{ "type": "text", "text": text }] }),
            json!({ "role": "assistant", "content": null, "tool_calls": [call(first.clone()), call(second.clone())] }),
            json!({ "role": "tool", "tool_call_id": first, "content": text }),
            json!({ "role": "tool", "tool_call_id": second, "content": text }),
            json!({ "role": "assistant", "content": text }),
        ]
    };
    let turns = LONG_BYTES / json!(turn(0)).to_string().len() + 1;
    let messages: Vec<Value> =
        (0..turns).flat_map(turn).chain([json!({ "role": "user", "content": "Go on." })]).collect();
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string", "description": "A city." },
        "days": { "type": "integer", "minimum": 1 }, "units": { "type": "array", "items": { "type": "string" } } } });
    let tool = |number: usize| {
        let name = if number == 0 { "weather".to_owned() } else { format!("tool_{number}") };
        json!({ "type": "function", "function": { "name": name, "description": "A forecast.", "parameters": parameters } })
    };
    let tools: Vec<Value> = (0..20).map(tool).collect();
    json!({ "model": "gpt-4o-mini", "temperature": 0.7, "tools": tools, "messages": messages }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_conversation_is_as_long_as_it_says_and_no_longer() {
        let body = long_body();
        assert!((LONG_BYTES..LONG_BYTES + (16 << 10)).contains(&body.len()), "{}", body.len());
    }

    #[test]
    fn only_the_provider_differs_between_a_request_and_its_translation() {
        let engine = Request {
            address: ([127, 0, 0, 1], 1).into(),
            path: "/v1/chat/completions",
            headers: vec![("x-gateway-provider", "openai".into()), ("x", "y".into())],
            body: "b".into(),
        };
        let translated = to_anthropic(&engine);
        assert_eq!(translated.headers, [("x-gateway-provider", "anthropic".into()), ("x", "y".into())]);
        assert_eq!((translated.path, translated.body), (engine.path, engine.body));
    }
}
