//! Good answers and streams of a format, spoilt in every way by a fixed rule: nothing here is random, so that what failed
//! once fails again.

use crate::translation::wires::frame_of;
use serde_json::{Value, json};
use std::path::Path;

pub struct Case {
    pub what: String,
    pub bytes: Vec<u8>,
}

fn case(what: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Case {
    Case { what: what.into(), bytes: bytes.into() }
}

/// Of the golden tests.
fn fixture(format: &str, kind: &str, names: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format).join(kind);
    let paths = names.iter().flat_map(|name| ["json", "sse"].map(|ending| folder.join(format!("{name}.{ending}"))));
    let found = paths.filter_map(|path| std::fs::read_to_string(path).ok()).next();
    found.unwrap_or_else(|| panic!("{}: none of {names:?}", folder.display())).replace("\r\n", "\n")
}

const CALLS: [&str; 5] =
    ["parallel-tool-use", "parallel-calls", "parallel-calls-side-by-side", "tool-use", "function-call"];
/// Of a stream of a format, how many changed values are tried.
const MAX_CHANGES: usize = 40;

/// What is no JSON, or none of an answer.
fn no_answers() -> Vec<Case> {
    vec![
        case("nothing", ""),
        case("a brace", "{"),
        case("null", "null"),
        case("a list", "[]"),
        case("a text", "\"x\""),
        case("an empty object", "{}"),
        case("two objects", "{}{}"),
        case("HTML", "<html>"),
        case("a zero", "\0"),
        case("half a surrogate", "{\"content\":\"\\ud800\"}"),
        case("a number beyond all", "{\"usage\":{\"input_tokens\":1e999}}"),
        case("no UTF-8", b"{\"content\":\"\xff\xfe\"}".to_vec()),
        case("a deep list", "[".repeat(100_000)),
        case("a deep object", "{\"a\":".repeat(100_000)),
    ]
}

pub fn bad_answers(format: &str) -> Vec<Case> {
    let good = fixture(format, "answers", &CALLS);
    let mut cases = no_answers();
    cases.extend((1..8).map(|eighth| case(format!("{eighth}/8"), &good.as_bytes()[..good.len() * eighth / 8])));
    let value: Value = serde_json::from_str(&good).expect("a fixture is JSON");
    for (place, changed) in changes(&value) {
        cases.push(case(format!("{place}: {changed}"), changed.to_string()));
    }
    cases
}

/// Each value of it, replaced by one of another type.
fn changes(good: &Value) -> Vec<(String, Value)> {
    let others = [json!(null), json!(-1), json!("x"), json!([]), json!({}), json!(1e300), json!([{}]), json!(true)];
    let mut changed = Vec::new();
    for (index, place) in places(good).into_iter().enumerate() {
        for step in [0, 3] {
            let mut value = good.clone();
            if let Some(found) = value.pointer_mut(&place) {
                *found = others[(index + step) % others.len()].clone();
                changed.push((place.clone(), value));
            }
        }
    }
    changed
}

fn places(value: &Value) -> Vec<String> {
    let below = |key: String, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        let inner = places(value).into_iter().map(move |place| format!("/{key}{place}"));
        inner.collect::<Vec<_>>()
    };
    let inner: Vec<String> = match value {
        Value::Object(map) => map.iter().flat_map(|(key, value)| below(key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().flat_map(|(at, value)| below(at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    std::iter::once(String::new()).chain(inner).collect()
}

/// One event, as its name and its data.
type Event = (String, Vec<u8>);

fn events(stream: &str) -> Vec<Event> {
    let event = |text: &str| {
        let line = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default();
        (line("event: ").to_owned(), line("data: ").as_bytes().to_vec())
    };
    stream.split("\n\n").filter(|text| text.contains("data: ")).map(event).collect()
}

fn written(format: &str, events: &[Event]) -> Vec<u8> {
    let one = |(name, data): &Event| match (format, &**name) {
        ("converse", _) => frame_of("event", name, data),
        (_, "") => [b"data: ", &**data, b"\n\n"].concat(),
        _ => [b"event: ", name.as_bytes(), b"\ndata: ", data, b"\n\n"].concat(),
    };
    events.iter().flat_map(one).collect()
}

pub fn bad_streams(format: &str) -> Vec<Case> {
    let good = events(&fixture(format, "streams", &CALLS));
    let bytes = written(format, &good);
    let mut cases: Vec<Case> =
        (0..8).map(|eighth| case(format!("{eighth}/8 of the bytes"), &bytes[..bytes.len() * eighth / 8])).collect();
    let mut flipped = bytes.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    cases.push(case("a byte in the middle", flipped));
    cases.push(case("rubbish", b"\0\xff\0\xff data: {}\n\n".repeat(20)));
    cases.push(case("only comments", ": nothing\n\n".repeat(50)));
    for (at, (name, data)) in good.iter().enumerate() {
        let with = |event: Option<Vec<u8>>| {
            let mut events = good.clone();
            match event {
                Some(data) => events[at].1 = data,
                None => drop(events.remove(at)),
            }
            written(format, &events)
        };
        cases.push(case(format!("without event {at}, {name}"), with(None)));
        let mut twice = good.clone();
        twice.insert(at, good[at].clone());
        cases.push(case(format!("event {at} twice"), written(format, &twice)));
        let mut first = good.clone();
        first.rotate_left(at);
        cases.push(case(format!("event {at} first"), written(format, &first)));
        let bad = no_answers();
        for bad in [&bad[at % bad.len()], &bad[(at + 5) % bad.len()]] {
            let data: Vec<u8> = bad.bytes.iter().copied().take(20_000).collect();
            cases.push(case(format!("event {at} is {}", bad.what), with(Some(data))));
        }
        let Ok(value) = serde_json::from_slice::<Value>(data) else { continue };
        let changed = changes(&value).into_iter().take(MAX_CHANGES / good.len() + 2);
        cases.extend(changed.map(|(place, value)| {
            case(format!("{place} of event {at}: {value}"), with(Some(value.to_string().into_bytes())))
        }));
    }
    cases
}

/// More than any event may have, and nothing before it.
pub fn huge_event(format: &str) -> Vec<u8> {
    const LENGTH: usize = (16 << 20) + 4096;
    let text = "x".repeat(LENGTH);
    written(format, &[("contentBlockDelta".to_owned(), format!("{{\"text\":\"{text}\"}}").into_bytes())])
}
