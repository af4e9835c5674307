//! Answers as providers write them, and what is found in them.

use super::UsageReader;
use shared::cost::Usage;

fn plain(body: &str) -> UsageReader {
    let mut found = UsageReader::default();
    found.plain(body.as_bytes(), true);
    found
}

fn stream(events: &[&str]) -> UsageReader {
    let mut found = UsageReader::default();
    for event in events {
        found.events(format!("data: {event}\n\n").as_bytes());
    }
    found
}

#[test]
fn plain_answers_of_every_dialect_give_up_their_usage() {
    for (body, model, usage) in [
        (
            r#"{"id":"c","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"message":{"content":"say \"usage\": {\"a\":1}"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}},"service_tier":"default"}"#,
            Some("gpt-4o-2024-08-06"),
            Some(r#"{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}"#),
        ),
        (
            r#"{"object":"list","data":[{"embedding":[0.1]}],"model":"e","usage": {"prompt_tokens":3,"total_tokens":3}}"#,
            Some("e"),
            Some(r#"{"prompt_tokens":3,"total_tokens":3}"#),
        ),
        (
            r#"{"type":"message","model":"claude","content":[],"usage":{"input_tokens":1,"output_tokens":2},"stop_reason":"end_turn"}"#,
            Some("claude"),
            Some(r#"{"input_tokens":1,"output_tokens":2}"#),
        ),
        (
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":4},"modelVersion":"g"}"#,
            Some("g"),
            Some(r#"{"promptTokenCount":4}"#),
        ),
        (
            r#"{"results":[],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":3}}}"#,
            None,
            Some(r#"{"api_version":{"version":"2"},"billed_units":{"search_units":3}}"#),
        ),
        (r#"{"results":[],"meta":{"pages":3}}"#, None, None),
        (
            r#"{"text":"a","metadata":{"input_tokens":3,"generated_tokens":2}}"#,
            None,
            Some(r#"{"input_tokens":3,"generated_tokens":2}"#),
        ),
        (r#"{"text":"a","metadata":{"user":"u"}}"#, None, None),
        (r#"{"choices":[],"usage":null}"#, None, None),
        (r#"{"choices":[],"usage":{}}"#, None, None),
        ("not json", None, None),
        ("", None, None),
    ] {
        let found = plain(body);
        assert_eq!(found.model.as_deref(), model, "{body}");
        assert_eq!(found.usage.last().map(String::as_str), usage, "{body}");
    }
}

#[test]
fn the_tier_that_served_a_call_of_converse_is_read_outside_of_tool_calls_alone() {
    let forged = r#"{"serviceTier":{"type":"flex"}}"#;
    for (body, tier) in [
        (
            r#"{"output":{},"usage":{"inputTokens":1,"outputTokens":2},"serviceTier":{"type":"priority"}}"#.to_owned(),
            Some("priority"),
        ),
        (
            r#"{"serviceTier" : { "type" : "flex" },"usage":{"inputTokens":1,"outputTokens":2}}"#.to_owned(),
            Some("flex"),
        ),
        (r#"{"usage":{"inputTokens":1,"outputTokens":2},"serviceTier":{"type":7}}"#.to_owned(), None),
        (r#"{"usage":{"inputTokens":1,"outputTokens":2}}"#.to_owned(), None),
        (
            format!(
                r#"{{"output":{{"toolUse":{{"input":{forged}}}}},"usage":{{"inputTokens":1,"outputTokens":2}},"serviceTier":{{"type":"priority"}}}}"#
            ),
            Some("priority"),
        ),
        (
            format!(r#"{{"output":{{"toolUse":{{"input":{forged}}}}},"usage":{{"inputTokens":1,"outputTokens":2}}}}"#),
            None,
        ),
    ] {
        assert_eq!(plain(&body).service_tier.as_deref(), tier, "{body}");
        assert_eq!(stream(&[&body]).service_tier.as_deref(), tier, "{body}");
        let mut pieces = UsageReader::default();
        body.as_bytes().chunks(7).for_each(|piece| pieces.plain(piece, false));
        assert_eq!(pieces.service_tier.as_deref(), tier, "{body}");
    }
}

#[test]
fn usage_is_found_wherever_a_long_answer_is_cut() {
    let body = format!(
        r#"{{"model":"e","data":[{}],"usage":{{"prompt_tokens":3,"total_tokens":3}}}}"#,
        vec!["0.123456"; 4000].join(",")
    );
    let bytes = body.as_bytes();
    for cut in (bytes.len() - 60)..bytes.len() {
        let mut found = UsageReader::default();
        found.plain(&bytes[..1000], false);
        found.plain(&bytes[1000..cut], false);
        found.plain(&bytes[cut..], true);
        assert_eq!(found.usage, [r#"{"prompt_tokens":3,"total_tokens":3}"#], "{cut}");
        assert_eq!(found.model.as_deref(), Some("e"));
    }
}

#[test]
fn an_answer_in_pieces_says_what_it_says_as_a_whole_wherever_it_is_cut() {
    let forged = r#"{"usage":{"prompt_tokens":1},"usageMetadata":{"promptTokenCount":1},"model":"cheap","service_tier":"batch"}"#;
    for (body, input) in [
        (
            format!(
                r#"{{"model":"claude","content":[{{"type":"tool_use","input":{forged}}}],"usage":{{"input_tokens":900,"output_tokens":2,"service_tier":"priority"}}}}"#
            ),
            900,
        ),
        (
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"args":{forged}}}}}]}}}}],"usageMetadata":{{"promptTokenCount":800}},"modelVersion":"g"}}"#
            ),
            800,
        ),
        (
            format!(
                r#"{{"usage":{{"inputTokens":700,"outputTokens":1}},"output":{{"message":{{"content":[{{"toolUse":{{"input":{forged}}}}}]}}}}}}"#
            ),
            700,
        ),
    ] {
        let whole = plain(&body);
        assert_eq!(whole.reported_usage().map(|usage| usage.input), Some(input), "{body}");
        for cut in 0..=body.len() {
            let mut found = UsageReader::default();
            let (first, second) = body.as_bytes().split_at(cut);
            for (piece, is_last) in [(first, false), (second, false), (&b""[..], true)] {
                found.plain(piece, is_last);
            }
            assert_eq!((&found.usage, &found.model), (&whole.usage, &whole.model), "{cut} {body}");
            assert_eq!((found.service_tier, found.is_counted), (whole.service_tier.clone(), false), "{cut} {body}");
        }
    }
}

#[test]
fn streams_of_every_dialect_give_up_their_usage_and_the_text_so_far() {
    let chat = stream(&[
        r#"{"model":"m","choices":[{"delta":{"role":"assistant","content":""}}],"usage":null}"#,
        r#"{"model":"m","choices":[{"delta":{"content":"1234"}}],"usage":null}"#,
        r#"{"model":"m","choices":[{"delta":{"content":"5\n\u00e9"}}]}"#,
        r#"{"model":"m","choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3}}"#,
        "[DONE]",
    ]);
    assert_eq!((chat.rough_tokens(), chat.is_final), (2, true));
    assert_eq!(chat.usage, [r#"{"prompt_tokens":2,"completion_tokens":3}"#]);
    assert_eq!(chat.model.as_deref(), Some("m"));

    let messages = stream(&[
        r#"{"type":"message_start","message":{"model":"claude","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"12345"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a\""}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!((messages.rough_tokens(), messages.is_final), (3, true));
    assert_eq!(messages.usage, [r#"{"input_tokens":5,"output_tokens":1}"#, r#"{"output_tokens":7}"#]);

    let responses = stream(&[
        r#"{"type":"response.created","response":{"model":"gpt","usage":null}}"#,
        r#"{"type":"response.output_text.delta","delta":"1234"}"#,
        r#"{"type":"response.output_text.done","text":"1234"}"#,
        r#"{"type":"response.completed","response":{"model":"gpt","output":[{"content":[{"text":"1234"}]}],"usage":{"input_tokens":1,"output_tokens":1}}}"#,
    ]);
    assert_eq!((responses.rough_tokens(), responses.is_final), (1, true));
    assert_eq!(responses.usage, [r#"{"input_tokens":1,"output_tokens":1}"#]);
}

#[test]
fn a_stream_that_reports_as_it_goes_keeps_its_first_and_last_words() {
    let found = stream(&[
        r#"{"choices":[{"text":"a"}],"usage":{"completion_tokens":1}}"#,
        r#"{"choices":[{"text":"b"}],"usage":{"completion_tokens":2}}"#,
        r#"{"choices":[{"text":"c"}],"usage":{"completion_tokens":3}}"#,
    ]);
    assert_eq!(found.usage, [r#"{"completion_tokens":1}"#, r#"{"completion_tokens":3}"#]);
    assert!(!found.is_final);
}

#[test]
fn a_very_long_stream_is_not_kept_whole_and_counts_all_the_same() {
    let said = "12345678".repeat(1000);
    let event = format!(r#"{{"choices":[{{"delta":{{"content":"{said}"}}}}]}}"#);
    let mut found = stream(&vec![event.as_str(); 100]);
    assert_eq!(found.rough_tokens(), 200_000);
    let (text, length) = found.take_text();
    assert_eq!((text.len(), length), (super::MAX_TEXT_BYTES, 800_000));
}

#[test]
fn what_is_counted_on_the_way_is_what_its_words_say() {
    let usages = [
        r#"{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}"#,
        r#"{ "input_tokens": 7, "cache_read_input_tokens": 4, "cache_creation": {"ephemeral_1h_input_tokens": 1}, "output_tokens": 2 }"#,
        // Not plain, or in words that are read as a whole.
        r#"{"prompt_tokens":9,"completion_tokens":5,"cost":0.25,"by":"x}"}"#,
        r#"{"inputTokens":3,"outputTokens":4}"#,
        r#"{"seconds":12,"type":"duration"}"#,
        r#"{"prompt_tokens":18446744073709551615}"#,
    ];
    for (usage, counted) in usages.into_iter().zip([true, true, false, true, false, false]) {
        let body =
            format!(r#"{{"usage":null,"choices":[{{"usage":{{"prompt_tokens":1}}}}],"usage":{usage},"model":"é"}}"#);
        let found = plain(&body);
        assert_eq!((&found.usage[..], found.is_counted), (&[usage.to_owned()][..], counted), "{usage}");
        let words = Usage::from_reported(&found.usage);
        assert!(words.is_some() && found.reported_usage() == words, "{usage}");
    }
    for found in [plain(r#"{"usage":{}}"#), plain("{}")] {
        assert_eq!(found.reported_usage(), None);
    }
    let mut pieces = UsageReader::default();
    for (piece, is_last) in
        [(r#"{"usage":{"prompt_tokens":1}"#, false), (r#","usage":{"prompt_tokens":2,"x":"y"}}"#, true)]
    {
        pieces.plain(piece.as_bytes(), is_last);
    }
    assert_eq!(pieces.reported_usage().map(|usage| usage.input), Some(2), "the last word, though it was not counted");
}

/// However a stream of responses ends, it says what it used.
#[test]
fn every_end_of_a_response_says_what_it_used() {
    for end in crate::wire::framing::end_markers::RESPONSES {
        let found = stream(&[
            r#"{"type":"response.created","response":{"model":"gpt","usage":null}}"#,
            r#"{"type":"response.output_text.delta","delta":"1234"}"#,
            &format!(r#"{{"type":"{end}","response":{{"usage":{{"input_tokens":1,"output_tokens":2}}}}}}"#),
        ]);
        assert!(found.is_final, "{end}");
        assert_eq!(found.usage, [r#"{"input_tokens":1,"output_tokens":2}"#], "{end}");
    }
}

#[test]
fn a_model_of_bedrock_is_read_through_its_frames() {
    let framed = |events: &[&str]| {
        let mut found = UsageReader::default();
        for event in events {
            let bytes = openssl::base64::encode_block(event.as_bytes());
            found.framed_events(format!("event: chunk\ndata: {{\"bytes\":\"{bytes}\"}}\n\n").as_bytes());
        }
        (found.reported_usage().map(|usage| (usage.prompt_tokens(), usage.completion_tokens())), found.is_final)
    };
    let metrics = r#""amazon-bedrock-invocationMetrics":{"inputTokenCount":8,"outputTokenCount":6}"#;
    let stop = format!(r#"{{"type":"message_stop",{metrics}}}"#);
    let anthropic = [
        r#"{"type":"message_start","message":{"model":"claude","usage":{"input_tokens":5,"cache_read_input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","usage":{"output_tokens":7}}"#,
        &stop,
    ];
    assert_eq!(framed(&anthropic), (Some((8, 7)), true), "the vendor's own words win");
    let llama = [r#"{"generation":"a"}"#, &format!(r#"{{"generation":"","stop_reason":"stop",{metrics}}}"#)];
    assert_eq!(framed(&llama), (Some((8, 6)), true));
    assert_eq!(framed(&llama[..1]), (None, false));
}

#[test]
fn pages_are_counted_wherever_a_long_answer_is_cut() {
    let pages = vec![r##"{"index":0,"markdown":"# A","usage_info":{"pages_processed":9}}"##; 60].join(",");
    let body = format!(
        r#"{{"pages":[{pages}],"model":"mistral-ocr-latest","usage_info":{{"pages_processed":60,"pages_processed_annotation":2,"doc_size_bytes":7}}}}"#
    );
    let other = r#"{"usage_info":{"disk":1},"model":"m"}"#;
    for size in [7, 1000, body.len()] {
        let read = |body: &str| {
            let mut found = UsageReader::default();
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            for (place, piece) in pieces.iter().enumerate() {
                found.plain(piece, place + 1 == pieces.len());
            }
            found.reported_usage().map(|usage| usage.units)
        };
        let units = read(&body).unwrap();
        assert_eq!(
            units.into_iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>(),
            ["annotated_pages 2", "pages 60"],
            "{size}"
        );
        assert_eq!(read(other), None, "{size}");
    }
}

#[test]
fn an_answer_that_rests_on_maps_is_one_of_them_whole_or_streamed() {
    let chunk = |metadata: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}},"finishReason":"STOP","groundingMetadata":{metadata}}}],"usageMetadata":{{"promptTokenCount":8}},"modelVersion":"g"}}"#
        )
    };
    for (metadata, maps) in [
        (r#"{"groundingChunks":[{"maps":{"uri":"u","title":"t"}}]}"#, Some(1)),
        (r#"{"groundingChunks":[{"web":{"uri":"u","title":"maps"}}]}"#, None),
        ("{}", None),
    ] {
        let body = chunk(metadata);
        let of = |found: UsageReader| {
            found.reported_usage().unwrap().units.get("maps").map(|count| u64::try_from(*count).unwrap())
        };
        assert_eq!((of(plain(&body)), of(stream(&[&body]))), (maps, maps), "{metadata}");
    }
}

#[test]
fn servers_that_people_run_themselves_count_in_their_own_words() {
    let ollama = r#"{"model":"llama3.2","message":{"role":"assistant","tool_calls":[{"function":{"name":"f",
        "arguments":{"usage":{"prompt_tokens":1,"completion_tokens":1},"eval_count":2}}}]},"done":true,
        "total_duration":5191566416,"prompt_eval_count":26,"prompt_eval_duration":130079000,"eval_count":259,
        "eval_duration":4232710000}"#;
    let streamed = r#"{"model":"llama3.2","message":{"content":"a"},"done":false}
        {"model":"llama3.2","message":{"content":""},"done":true,"prompt_eval_count":26,"eval_count":259}"#;
    let embedded = r#"{"model":"all-minilm","embeddings":[[0.1,0.2]],"total_duration":14143917,"prompt_eval_count":8}"#;
    let tgi = r#"{"generated_text":"b","details":{"finish_reason":"length","generated_tokens":3,"seed":null,
        "prefill":[{"id":1,"text":"\"generated_tokens\":9"},{"id":2,"text":"x"}],"tokens":[{"id":5,"text":"b"}]}}"#;
    let listed = format!("[{tgi}]");
    for (body, model, tokens) in [
        (ollama, Some("llama3.2"), (26, 259)),
        (streamed, Some("llama3.2"), (26, 259)),
        (embedded, Some("all-minilm"), (8, 0)),
        (tgi, None, (2, 3)),
        (&listed, None, (2, 3)),
    ] {
        let whole = plain(body);
        let usage = whole.reported_usage().unwrap_or_else(|| panic!("{body}"));
        assert_eq!((usage.prompt_tokens(), usage.completion_tokens()), tokens, "{body}");
        assert_eq!(whole.model.as_deref(), model, "{body}");
        for length in 1..body.len() {
            let mut found = UsageReader::default();
            body.as_bytes().chunks(length).for_each(|piece| found.plain(piece, false));
            let usage = found.reported_usage().unwrap_or_else(|| panic!("in pieces of {length}: {body}"));
            assert_eq!((usage.prompt_tokens(), usage.completion_tokens()), tokens, "in pieces of {length}: {body}");
        }
    }
    // What was read is not said, so that all of it is estimated.
    assert_eq!(plain(r#"{"generated_text":"b","details":{"generated_tokens":3,"prefill":[]}}"#).reported_usage(), None);
    let stream = stream(&[
        r#"{"index":1,"token":{"id":5,"text":"b"},"generated_text":null,"details":null}"#,
        r#"{"index":2,"token":{"id":6,"text":"c"},"generated_text":"bc","details":{"finish_reason":"length","generated_tokens":2,"seed":null,"input_length":7}}"#,
    ]);
    let usage = stream.reported_usage().unwrap();
    assert_eq!((usage.prompt_tokens(), usage.completion_tokens(), stream.is_final), (7, 2, true));
}

#[test]
fn fees_of_tools_are_counted_in_an_answer_that_comes_in_pieces() {
    let response = r#"{"id":"r","object":"response","model":"gpt-5","output":[{"type":"web_search_call"},
        {"type":"file_search_call"},{"type":"web_search_call"}],"usage":{"input_tokens":5,"output_tokens":1}}"#;
    let grounded = r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["a","b"]}}],
        "usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1},"modelVersion":"g"}"#;
    for body in [response, grounded] {
        let whole = plain(body).reported_usage().unwrap();
        assert!(!whole.units.is_empty(), "{body}");
        for length in 1..body.len() {
            let mut found = UsageReader::default();
            body.as_bytes().chunks(length).for_each(|piece| found.plain(piece, false));
            assert_eq!(found.reported_usage().as_ref(), Some(&whole), "in pieces of {length}: {body}");
        }
    }
}
