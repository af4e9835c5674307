//! A text that is rewritten while it grows is the one that is rewritten whole, however it is cut.

use super::*;
use proptest::prelude::*;

fn redactors() -> Vec<Arc<CompiledHook>> {
    let hook = json!({ "id": "h", "stream": "hold", "checks": [{ "id": "pii", "parameters": { "redact": true } }] });
    vec![Arc::new(CompiledHook::from_hook(hook.as_object().unwrap()))]
}

fn placeholders() -> Placeholders {
    let mut names = Placeholders::default();
    names.name("EMAIL", "ann@example.com", |_| false);
    names
}

fn chat(text: &str, finish: Option<&str>) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": text }, "finish_reason": finish }] })
}

/// What a client reads of a chat that comes in these pieces.
fn rewritten(hooks: &[Arc<CompiledHook>], names: &Placeholders, pieces: &[&str]) -> String {
    let mut rewriting = Rewriting::new(hooks, names, StreamShape::Chat).unwrap();
    let mut out = Vec::new();
    let piece = pieces.iter().map(|piece| chat(piece, None)).chain([chat("", Some("stop"))]);
    for event in piece {
        match rewriting.push(None, &event).unwrap() {
            Some(more) => out.extend(more.into_iter().map(|(_, event)| event)),
            None => out.push(event),
        }
    }
    assert!(rewriting.flush().is_empty(), "what ends a text flushes it");
    out.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
}

proptest! {
    #[test]
    fn a_text_is_rewritten_alike_however_it_is_cut(
        pieces in prop::collection::vec("[ab1 @.]{0,8} |[a-z]{2}@b\\.com |4111 1111 1111 1111 |\\[EMAIL_1\\] |é |\\[EM ", 0..200),
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let whole = pieces.concat();
        prop_assert_eq!(rewritten(&redactors(), &Placeholders::default(), &pieces),
            rewritten(&redactors(), &Placeholders::default(), &[&whole]));
        prop_assert_eq!(rewritten(&[], &placeholders(), &pieces), whole.replace("[EMAIL_1]", "ann@example.com"));
    }
}

#[test]
fn what_is_held_goes_out_before_the_event_that_ends_it_and_says_nothing_twice() {
    let mut rewriting = Rewriting::new(&redactors(), &Placeholders::default(), StreamShape::Chat).unwrap();
    assert_eq!(rewriting.push(None, &chat("mail a@b.com", None)), Ok(Some(vec![])));
    let out = rewriting.push(None, &chat("", Some("stop"))).unwrap().unwrap();
    assert_eq!(out.len(), 2);
    assert_eq!(out[0].1["choices"][0]["delta"], json!({ "content": "mail [EMAIL]" }));
    assert_eq!(out[1].1["choices"][0]["finish_reason"], "stop");
}

#[test]
fn texts_that_come_whole_are_rewritten_whole_and_blocks_go_on_as_blocks() {
    let mut rewriting = Rewriting::new(&redactors(), &Placeholders::default(), StreamShape::Responses).unwrap();
    let done = json!({ "type": "response.output_text.done", "text": "a@b.com" });
    let out = rewriting.push(Some("response.output_text.done"), &done).unwrap().unwrap();
    assert_eq!(out[0].1["text"], "[EMAIL]");
    let mut rewriting = Rewriting::new(&redactors(), &Placeholders::default(), StreamShape::Messages).unwrap();
    let start =
        json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "text", "text": "a@b.com" } });
    let first = rewriting.push(Some("content_block_start"), &start).unwrap().unwrap();
    assert_eq!(first[0].1["content_block"]["text"], "", "the block begins");
    let stop = json!({ "type": "content_block_stop", "index": 2 });
    let out = rewriting.push(Some("content_block_stop"), &stop).unwrap().unwrap();
    assert_eq!((out[0].0.as_deref(), &out[0].1["delta"]["text"]), (Some("content_block_delta"), &json!("[EMAIL]")));
    assert_eq!(out[1].1, stop);
}

#[test]
fn nothing_to_rewrite_is_no_rewriting() {
    assert!(Rewriting::new(&[], &Placeholders::default(), StreamShape::Chat).is_none());
}
