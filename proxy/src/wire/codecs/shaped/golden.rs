//! Golden tests of shapes, as those of formats: what each provider is sent for a chat, and what a client of chats gets of
//! its answers, its errors and its streams.

use super::SHAPED;
use crate::wire::codecs::chat::ChatCodec;
use crate::wire::codecs::golden::{OPTIONS, check, fixtures, fixtures_in, lines, parsed, read_stream, write_stream};
use crate::wire::codecs::{Codec, RequestOptions};
use crate::wire::conversation::{Answer, Delta, Pieces};
use serde_json::{Map, Value, json};

/// Those that have streams of their own.
const STREAMED: [&str; 2] = ["oracle", "triton"];

#[test]
fn every_shape_has_enough_fixtures() {
    assert!(fixtures_in("shaped", "requests").len() >= 15);
    for codec in SHAPED {
        for (kind, least) in [("answers", 15), ("errors", 8)] {
            let count = fixtures(codec, kind).len();
            assert!(count >= least, "{} has {count} {kind}, not {least}", codec.name());
        }
    }
}

#[test]
fn chats_are_written_in_every_shape_as_expected() {
    let placed = [("compartment".to_owned(), "ocid1.compartment".to_owned())];
    for (path, body) in fixtures_in("shaped", "requests") {
        let request = ChatCodec.read_request(&body).unwrap();
        let mut found = Map::new();
        for (codec, model) in SHAPED.iter().map(|codec| (codec, "m")).chain([(&SHAPED[0], "cohere.command-r")]) {
            let options = RequestOptions {
                model: Some(model),
                chat_max_tokens: "max_tokens",
                placed: &placed,
                ..RequestOptions::default()
            };
            let mut out = Vec::new();
            let entry = match codec.write_request(&request, &options, &mut out) {
                Err(error) => json!({ "refused": error.to_string() }),
                Ok(dropped) => json!({ "dropped": dropped.names().collect::<Vec<_>>(), "body": parsed(&out) }),
            };
            let name = if model == "m" { codec.name().to_owned() } else { format!("{}, {model}", codec.name()) };
            found.insert(name, entry);
        }
        check(&path, "expected.json", &lines(&found));
    }
}

#[test]
fn answers_become_chats_as_expected() {
    for codec in SHAPED {
        for (path, body) in fixtures(codec, "answers") {
            let mut found = Map::new();
            match codec.read_answer(&body) {
                Err(error) => drop(found.insert("refused".into(), error.to_string().into())),
                Ok(answer) => {
                    let mut out = Vec::new();
                    ChatCodec.write_answer(&answer, &OPTIONS, &mut out);
                    found.insert("chat".into(), parsed(&out));
                    if !STREAMED.contains(&codec.name()) {
                        found.insert("chat, as a stream".into(), in_pieces(&answer));
                    }
                }
            }
            check(&path, "expected.json", &lines(&found));
        }
    }
}

#[test]
fn errors_become_chats_errors_as_expected() {
    for codec in SHAPED {
        for (path, fixture) in fixtures(codec, "errors") {
            let fixture = parsed(&fixture);
            let status = u16::try_from(fixture["status"].as_u64().unwrap()).unwrap();
            let body = match &fixture["body"] {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let error = codec.read_error(status, fixture["type"].as_str(), body.as_bytes());
            let mut out = Vec::new();
            ChatCodec.write_error(&error, &OPTIONS, &mut out);
            let found = Map::from_iter([("chat".to_owned(), parsed(&out))]);
            check(&path, "expected.json", &lines(&found));
        }
    }
}

/// What a client gets that asked for a stream where the provider has none.
fn in_pieces(answer: &Answer) -> Value {
    let deltas: Vec<Delta> = Pieces::new(answer).collect();
    let written = String::from_utf8(write_stream(&ChatCodec, &deltas, OPTIONS)).unwrap();
    written.split("\n\n").filter(|event| !event.is_empty()).map(Value::from).collect()
}

#[test]
fn streams_become_chats_streams_as_expected_wherever_they_are_cut() {
    for codec in SHAPED.iter().filter(|codec| STREAMED.contains(&codec.name())) {
        let streams = fixtures(codec, "streams");
        assert!(streams.len() >= 8, "{} has {} streams", codec.name(), streams.len());
        for (path, stream) in streams {
            let whole = read_stream(codec, &[&stream]);
            let mut found = format!("== deltas\n{:?}\n", whole.1);
            whole.0.iter().for_each(|delta| found += &format!("{delta:?}\n"));
            found += "== chat\n";
            found += &String::from_utf8(write_stream(&ChatCodec, &whole.0, OPTIONS)).unwrap();
            check(&path, "expected.txt", &found);
            for cut in 0..=stream.len() {
                let pieces = [&stream[..cut], &stream[cut..]];
                assert_eq!(read_stream(codec, &pieces), whole, "{} cut at {cut}", path.display());
            }
        }
    }
}
