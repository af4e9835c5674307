//! What a provider keeps and makes beside chats: files, batches, jobs, stores, assistants, threads, images, audio,
//! moderations. One rule serves all collections; nothing is remembered, so every id exists.

use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

use super::openai::CREATED;
use super::pattern;
use super::reply::Reply;
use super::shape::Payload;

/// Where a collection is, what one of it is called, and how its ids begin.
const COLLECTIONS: &[(&str, &str, &str)] = &[
    ("/files", "file", "file-"),
    ("/batches", "batch", "batch_"),
    ("/fine_tuning/jobs", "fine_tuning.job", "ftjob-"),
    ("/vector_stores", "vector_store", "vs_"),
    ("/assistants", "assistant", "asst_"),
    ("/threads", "thread", "thread_"),
    ("/responses", "response", "resp_"),
];

/// What stands below one of a collection.
const PARTS: &[(&str, &str)] = &[
    ("messages", "thread.message"),
    ("runs", "thread.run"),
    ("files", "vector_store.file"),
    ("events", "fine_tuning.job.event"),
    ("checkpoints", "fine_tuning.job.checkpoint"),
    ("input_items", "message"),
];

/// Speech of this many bytes.
const SPEECH: usize = 40_000;

pub fn knows(method: &Method, path: &str) -> bool {
    match collection(path) {
        Some((_, rest)) => {
            matches!(*method, Method::GET | Method::POST | Method::DELETE) && action(method, rest).is_some()
        }
        None => *method == Method::POST && is_made(path),
    }
}

fn is_made(path: &str) -> bool {
    matches!(
        path,
        "/moderations"
            | "/images/generations"
            | "/images/edits"
            | "/images/variations"
            | "/audio/speech"
            | "/audio/transcriptions"
            | "/audio/translations"
    )
}

pub fn answer(method: &Method, path: &str, body: &[u8], id: u64, reply: &Reply<'_>) -> Payload {
    if let Some(((_, kind, prefix), rest)) = collection(path)
        && let Some(action) = action(method, rest)
    {
        return provider_object(action, kind, prefix, body, id);
    }
    match path {
        "/moderations" => json_of(&moderation(body, id)),
        "/audio/speech" => speech(),
        "/audio/transcriptions" | "/audio/translations" => transcript(body, reply),
        _ => json_of(
            &json!({ "created": CREATED, "data": [{ "b64_json": "aW1hZ2U=", "revised_prompt": &*reply.text }] }),
        ),
    }
}

type Collection = (&'static str, &'static str, &'static str);

fn collection(path: &str) -> Option<(Collection, &str)> {
    COLLECTIONS.iter().find_map(|found| {
        let rest = path.strip_prefix(found.0)?;
        (rest.is_empty() || rest.starts_with('/')).then_some((*found, rest))
    })
}

enum Action<'p> {
    Create,
    List,
    Read(&'p str),
    Delete(&'p str),
    Cancel(&'p str),
    Content,
    Search,
    ListParts(&'static str),
    CreatePart(&'static str),
}

fn action<'p>(method: &Method, rest: &'p str) -> Option<Action<'p>> {
    let segments: Vec<&str> = rest.split('/').skip(1).collect();
    let part = |name: &str| PARTS.iter().find(|(found, _)| *found == name).map(|(_, kind)| *kind);
    Some(match (method.as_str(), &segments[..]) {
        ("POST", []) => Action::Create,
        ("GET", []) => Action::List,
        ("POST", ["runs"]) => Action::CreatePart("thread.run"),
        ("GET" | "POST", [id]) => Action::Read(id),
        ("DELETE", [id]) => Action::Delete(id),
        ("POST", [id, "cancel"]) => Action::Cancel(id),
        ("GET", [_, "content" | "output"]) => Action::Content,
        ("POST", [_, "search"]) => Action::Search,
        ("GET", [_, name]) => Action::ListParts(part(name)?),
        ("POST", [_, name]) => Action::CreatePart(part(name)?),
        _ => return None,
    })
}

fn provider_object(action: Action<'_>, kind: &str, prefix: &str, body: &[u8], id: u64) -> Payload {
    let new = format!("{prefix}{id:016}");
    json_of(&match action {
        Action::Create => object(kind, &new, body),
        Action::List => list(&[object(kind, &new, b"")]),
        Action::Read(id) => object(kind, id, body),
        Action::Delete(id) => json!({ "id": id, "object": format!("{kind}.deleted"), "deleted": true }),
        Action::Cancel(id) => {
            let mut cancelled = object(kind, id, body);
            cancelled["status"] = json!("cancelled");
            cancelled
        }
        Action::Content => {
            let line = "{\"custom_id\":\"1\",\"response\":{\"status_code\":200}}\n";
            return Payload::Typed("application/octet-stream", Bytes::from_static(line.as_bytes()));
        }
        Action::Search => json!({ "object": "vector_store.search_results.page", "data": [], "has_more": false }),
        Action::ListParts(kind) => list(&[object(kind, &format!("part_{id:016}"), b"")]),
        Action::CreatePart(kind) => object(kind, &format!("part_{id:016}"), body),
    })
}

/// With the fields of the request, if it had any.
fn object(kind: &str, id: &str, body: &[u8]) -> Value {
    let mut object: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    for (name, value) in
        [("id", json!(id)), ("object", json!(kind)), ("created_at", json!(CREATED)), ("status", json!("completed"))]
    {
        object.insert(name.to_owned(), value);
    }
    if kind == "response" {
        object.insert("output".to_owned(), json!([]));
    }
    if kind == "file" {
        object.extend([("bytes".to_owned(), json!(body.len())), ("purpose".to_owned(), json!("batch"))]);
    }
    Value::Object(object)
}

fn list(data: &[Value]) -> Value {
    let id = data.first().map(|one| one["id"].clone());
    json!({ "object": "list", "data": data, "first_id": id, "last_id": id, "has_more": false })
}

fn moderation(body: &[u8], id: u64) -> Value {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let judged = |input: &Value| {
        let is_bad = input.to_string().contains("violence");
        json!({
            "flagged": is_bad,
            "categories": { "violence": is_bad, "hate": false },
            "category_scores": { "violence": if is_bad { 0.9 } else { 0.1 }, "hate": 0.0 },
        })
    };
    let results: Vec<Value> = match asked["input"].as_array() {
        Some(inputs) => inputs.iter().map(judged).collect(),
        None => vec![judged(&asked["input"])],
    };
    let model = asked["model"].as_str().unwrap_or("text-moderation-latest");
    json!({ "id": format!("modr-{id:016}"), "model": model, "results": results })
}

fn speech() -> Payload {
    let mut bytes = vec![0; SPEECH];
    pattern::fill(0, &mut bytes);
    Payload::Typed("audio/mpeg", Bytes::from(bytes))
}

fn transcript(form: &[u8], reply: &Reply<'_>) -> Payload {
    let says = |field: &str, value: &str| {
        let wanted = format!("name=\"{field}\"\r\n\r\n{value}\r\n");
        form.windows(wanted.len()).any(|window| window == wanted.as_bytes())
    };
    if says("stream", "true") {
        let delta = |piece: &&str| json!({ "type": "transcript.text.delta", "delta": piece });
        let events = reply.pieces().iter().map(delta).collect::<Vec<_>>();
        let done = json!({ "type": "transcript.text.done", "text": &*reply.text });
        let events = events.iter().chain([&done]).map(|event| Bytes::from(format!("data: {event}\n\n")));
        return Payload::Events(events.collect());
    }
    match says("response_format", "text") {
        true => Payload::Typed("text/plain; charset=utf-8", Bytes::from(reply.text.to_string())),
        false => json_of(&json!({ "text": &*reply.text })),
    }
}

fn json_of(value: &Value) -> Payload {
    Payload::whole(value.to_string().into_bytes())
}
