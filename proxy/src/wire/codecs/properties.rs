//! Generated conversations and broken bodies: translations lose nothing that both formats can say, and no input
//! whatever makes a codec panic.

use super::essence;
use super::golden::{OPTIONS, fixtures, read_stream, write_stream};
use super::{AnswerOptions, CODECS, RequestOptions};
use crate::wire::conversation::{
    Answer, Assembler, Choice, Delta, Finish, FinishReason, FunctionTool, Media, MediaSource, Part, Pieces, Request,
    Role, Signature, Signer, SystemText, Thinking, Tool, ToolChoice, ToolResult, ToolUse, Turn, Usage,
};
use proptest::prelude::*;
use serde_json::json;

fn a_text() -> impl Strategy<Value = String> {
    "[a-zé€😀\"\\\\\n ]{1,24}"
}

fn an_image() -> impl Strategy<Value = Part> {
    ("[A-Za-z0-9]{4,12}", prop_oneof![Just("image/png"), Just("image/jpeg")])
        .prop_map(|(data, kind)| Part::Image(Media::new(MediaSource::Base64(data), Some(kind.to_owned()))))
}

fn a_call(id: u32) -> impl Strategy<Value = ToolUse> {
    (prop_oneof![Just("weather"), Just("search")], a_text(), any::<i32>()).prop_map(move |(name, word, number)| {
        ToolUse {
            id: format!("call_{id}"),
            name: name.to_owned(),
            arguments: json!({ "word": word, "number": number }).to_string(),
            ..ToolUse::default()
        }
    })
}

/// A user's question, what the model said and called, and what the tools returned.
fn an_exchange(number: u32) -> impl Strategy<Value = Vec<Turn>> {
    let question = (a_text(), prop::option::of(an_image()));
    let calls = (a_call(2 * number), a_call(2 * number + 1), 0..3_usize);
    (question, prop::option::of(a_text()), calls, a_text()).prop_map(|((text, image), said, calls, returned)| {
        let mut question = vec![Part::text(text)];
        question.extend(image);
        let calls: Vec<ToolUse> = [calls.0, calls.1].into_iter().take(calls.2).collect();
        let result = |call: &ToolUse| {
            let parts = vec![Part::text(returned.clone())];
            Part::ToolResult(ToolResult { id: call.id.clone(), parts, ..ToolResult::default() })
        };
        let results: Vec<Part> = calls.iter().map(result).collect();
        let mut answer: Vec<Part> = said.into_iter().map(Part::text).collect();
        answer.extend(calls.into_iter().map(Part::ToolUse));
        let mut turns = vec![Turn::new(Role::User, question)];
        if !answer.is_empty() {
            turns.push(Turn::new(Role::Assistant, answer));
        }
        if !results.is_empty() {
            turns.push(Turn::new(Role::User, results));
        }
        turns
    })
}

fn a_request() -> impl Strategy<Value = Request> {
    let choice = prop_oneof![
        Just(None),
        Just(Some(ToolChoice::Auto)),
        Just(Some(ToolChoice::Required)),
        Just(Some(ToolChoice::Named("weather".to_owned()))),
    ];
    let exchanges = (an_exchange(0), an_exchange(1), an_exchange(2), 1..4_usize);
    (prop::collection::vec(a_text(), 0..3), exchanges, choice, prop::option::of(1..9_000_u64)).prop_map(
        |(system, exchanges, tool_choice, max_tokens)| {
            let turns = [exchanges.0, exchanges.1, exchanges.2].into_iter().take(exchanges.3).flatten().collect();
            let tool = |name: &str| {
                let parameters = Some(json!({ "type": "object", "properties": { "word": { "type": "string" } } }));
                Tool::Function(FunctionTool { name: name.to_owned(), parameters, ..FunctionTool::default() })
            };
            let mut request = Request {
                model: Some("m".into()),
                system: system.into_iter().map(|text| SystemText { text, ..SystemText::default() }).collect(),
                turns,
                tools: vec![tool("weather"), tool("search")],
                tool_choice,
                ..Request::default()
            };
            request.settings.max_tokens = max_tokens;
            request
        },
    )
}

fn an_answer() -> impl Strategy<Value = Answer> {
    let thought = prop::option::of(("[a-z ]{1,2000}", "[A-Za-z0-9]{8}"));
    (thought, prop::option::of("[a-zé€😀 ]{1,2500}"), a_call(7), a_call(8), 0..3_usize, 0..900_u64).prop_map(
        |(thought, text, first, second, calls, tokens)| {
            let thought = thought.map(|(text, value)| {
                let signature = Some(Signature::new(Signer::Anthropic, value));
                Part::Thinking(Thinking { text, signature, id: None })
            });
            let mut parts: Vec<Part> = thought.into_iter().chain(text.map(Part::text)).collect();
            parts.extend([first, second].into_iter().take(calls).map(Part::ToolUse));
            let reason = if calls > 0 { FinishReason::ToolUse } else { FinishReason::Stop };
            let finish = Some(Finish::new(reason));
            Answer {
                id: Some("resp_1".into()),
                model: Some("m".into()),
                choices: vec![Choice { parts, finish, ..Choice::default() }],
                usage: Some(Usage::from_sums(tokens, tokens / 3, 0, tokens + 1)),
                ..Answer::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_survives_every_pair_of_formats(request in a_request()) {
        let turning = CODECS.iter().filter(|codec| codec.name() != "completions");
        for first in turning.clone() {
            for second in turning.clone() {
                let mut out = Vec::new();
                first.write_request(&request, &RequestOptions::default(), &mut out).unwrap();
                let read = first.read_request(&out).unwrap();
                let mut out = Vec::new();
                second.write_request(&read, &RequestOptions::default(), &mut out).unwrap();
                let there = second.read_request(&out).unwrap();
                let mut out = Vec::new();
                first.write_request(&there, &RequestOptions::default(), &mut out).unwrap();
                let back = first.read_request(&out).unwrap();
                let reply = |request: &Request| {
                    let is_without = [first.name(), second.name()].contains(&"cohere");
                    let reply = essence::of_request(request).without_tools(is_without);
                    reply.told_to(first.name()).told_to(second.name())
                };
                prop_assert_eq!(reply(&back), reply(&request), "{} to {}", first.name(), second.name());
            }
        }
    }

    #[test]
    fn an_answer_in_pieces_is_the_same_answer(answer in an_answer()) {
        let mut assembler = Assembler::default();
        for delta in Pieces::new(&answer) {
            if let Delta::Text { text, .. } = &delta {
                prop_assert!(text.chars().count() <= 500);
            }
            assembler.push(delta).unwrap();
        }
        prop_assert_eq!(assembler.finish().unwrap(), answer);
    }

    #[test]
    fn an_answer_is_understood_from_its_stream_in_every_format(answer in an_answer()) {
        let deltas: Vec<Delta> = Pieces::new(&answer).collect();
        for codec in CODECS {
            let options = AnswerOptions { is_strict: false, ..OPTIONS };
            let stream = write_stream(*codec, &deltas, options);
            let (again, ended) = read_stream(*codec, &[&stream]);
            prop_assert_eq!(ended, Ok(()));
            let mut assembler = Assembler::default();
            again.into_iter().for_each(|delta| assembler.push(delta).unwrap());
            let reply = |answer: &Answer| essence::of_answer(answer).told_to(codec.name());
            prop_assert_eq!(reply(&assembler.finish().unwrap()), reply(&answer), "{}", codec.name());
        }
    }

    /// Fixtures with bytes changed, cut or doubled. That this test ends is its statement.
    #[test]
    fn broken_input_never_panics(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        for codec in CODECS {
            for kind in ["requests", "answers", "streams", "errors"] {
                let all = fixtures(*codec, kind);
                let (_, mut body) = all[pick.index(all.len())].clone();
                let place = at.index(body.len());
                if cut { body.truncate(place) } else { body[place] = byte }
                if let Ok(request) = codec.read_request(&body) {
                    for target in CODECS {
                        let _ = target.write_request(&request, &RequestOptions::default(), &mut Vec::new());
                    }
                }
                if let Ok(answer) = codec.read_answer(&body) {
                    for target in CODECS {
                        target.write_answer(&answer, &OPTIONS, &mut Vec::new());
                    }
                }
                let _ = codec.read_error(500, None, &body);
                let (deltas, _) = read_stream(*codec, &[&body]);
                for target in CODECS {
                    write_stream(*target, &deltas, OPTIONS);
                }
            }
        }
    }
}
