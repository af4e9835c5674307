//! Inputs of batches: each fault with its line, within bounds.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn row(id: &str, model: &str) -> Value {
    json!({ "custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": { "model": model } })
}

fn check(file: &str, models: Models) -> Result<InputSummary, Vec<BatchError>> {
    let mut check = InputCheck::new(BatchEndpoint::ChatCompletions, models);
    file.as_bytes().chunks(7).all(|piece| check.push(piece));
    check.finish()
}

/// Codes and lines.
fn errors(file: &str, models: Models) -> Vec<(String, Option<String>, Option<u64>)> {
    let errors = check(file, models).err().unwrap_or_default();
    errors.into_iter().map(|error| (error.code, error.param, error.line)).collect()
}

#[test]
fn each_fault_is_told_with_its_line() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut bad = row("b", "m");
        change(&mut bad);
        format!("{}\n\n{bad}\n{}", row("a", "m"), row("c", "m"))
    };
    for (file, code, param) in [
        (with(&|row| *row = json!("text")), "invalid_json_line", None),
        (with(&|row| *row = json!(["list"])), "invalid_json_line", None),
        (with(&|row| row["body"] = json!(7)), "invalid_json_line", None),
        (with(&|row| row["custom_id"] = json!(7)), "invalid_json_line", None),
        (with(&|row| row["custom_id"] = json!("a")), "duplicate_custom_id", Some("custom_id")),
        (with(&|row| row["custom_id"] = json!("")), "missing_required_parameter", Some("custom_id")),
        (with(&|row| row["custom_id"] = json!("x".repeat(513))), "missing_required_parameter", Some("custom_id")),
        (with(&|row| row["custom_id"] = json!("a\u{0}")), "missing_required_parameter", Some("custom_id")),
        (with(&|row| row["custom_id"] = Value::Null), "missing_required_parameter", Some("custom_id")),
        (with(&|row| row["method"] = json!("GET")), "invalid_method", Some("method")),
        (with(&|row| row["url"] = json!("/v1/embeddings")), "mismatched_url", Some("url")),
        (with(&|row| row["url"] = Value::Null), "mismatched_url", Some("url")),
        (with(&|row| row["body"] = Value::Null), "missing_required_parameter", Some("body")),
        (with(&|row| row["body"] = json!({})), "missing_required_parameter", Some("body.model")),
        (with(&|row| row["body"] = json!({ "model": 7 })), "missing_required_parameter", Some("body.model")),
        (with(&|row| row["body"]["model"] = json!("n")), "mismatched_model", Some("body.model")),
    ] {
        let expected = vec![(code.to_owned(), param.map(str::to_owned), Some(3))];
        assert_eq!(errors(&file, Models::One), expected, "{file}");
    }
}

#[test]
fn a_good_file_is_summed_up_however_it_ends() {
    let file = format!("{}\r\n\n{}", row("a", "m"), row("b", "n"));
    for end in ["", "\n", "\r\n\r\n"] {
        let file = format!("{file}{end}");
        let summary = InputSummary { rows: 2, bytes: file.len() as u64, model: "m".into() };
        assert_eq!(check(&file, Models::Any), Ok(summary));
    }
}

#[test]
fn each_row_is_found_again_where_its_place_says() {
    let rows = [row("a", "m"), row("b", "m"), row("é", "m")].map(|row| row.to_string());
    let file = format!("\n{}\r\n\n  \n{}\n{}", rows[0], rows[1], rows[2]);
    for size in [1, 7, 4096] {
        let mut check = InputCheck::new(BatchEndpoint::ChatCompletions, Models::Any).with_places();
        let mut places = Vec::new();
        for piece in file.as_bytes().chunks(size) {
            assert!(check.push(piece));
            places.extend(check.take_places());
        }
        check.end();
        places.extend(check.take_places());
        let found: Vec<(u64, &str, &str)> = places
            .iter()
            .map(|place| {
                let at = usize::try_from(place.at).unwrap();
                (place.number, &*place.custom_id, &file[at..at + place.bytes])
            })
            .collect();
        assert_eq!(found, [(1, "a", &*rows[0]), (2, "b", &*rows[1]), (3, "é", &*rows[2])], "{size}");
        assert_eq!(check.finish().map(|summary| summary.rows), Ok(3));
    }
}

#[test]
fn a_file_is_bounded_in_rows_bytes_lines_and_errors() {
    let mut rows: Vec<String> = (0..MAX_ROWS).map(|number| row(&number.to_string(), "m").to_string()).collect();
    let mut whole = InputCheck::new(BatchEndpoint::ChatCompletions, Models::One);
    assert!(whole.push(rows.join("\n").as_bytes()));
    assert_eq!(whole.finish().map(|summary| summary.rows), Ok(MAX_ROWS));
    rows.push(row("one more", "m").to_string());
    let mut more = InputCheck::new(BatchEndpoint::ChatCompletions, Models::One);
    more.push(rows.join("\n").as_bytes());
    let error = more.finish().unwrap_err().remove(0);
    assert_eq!((&*error.code, error.line), ("too_many_requests", Some(MAX_ROWS + 1)));

    let mut blanks = vec![b' '; 999_999];
    blanks.push(b'\n');
    let mut large = InputCheck::new(BatchEndpoint::ChatCompletions, Models::One);
    for _ in 0..200 {
        assert!(large.push(&blanks));
    }
    assert!(!large.push(b"\n"));
    assert_eq!(large.finish().unwrap_err()[0].code, "file_too_large");

    let mut long = InputCheck::new(BatchEndpoint::ChatCompletions, Models::One);
    assert!(long.push(b"\n") && long.push(&vec![b'x'; MAX_LINE]) && !long.push(b"x"));
    let error = long.finish().unwrap_err().remove(0);
    assert_eq!((&*error.code, error.line), ("line_too_long", Some(2)));

    assert_eq!(errors(&"no JSON\n".repeat(1_000), Models::One).len(), MAX_ERRORS);
    assert_eq!(errors(" \n\n", Models::One)[0].0, "empty_file");
}

#[test]
fn metadata_has_sixteen_short_pairs() {
    let pairs = |count: usize| Value::Object((0..count).map(|pair| (pair.to_string(), json!("v"))).collect());
    for (metadata, is_good) in [
        (Value::Null, true),
        (pairs(16), true),
        (pairs(17), false),
        (json!({ "é".repeat(64): "é".repeat(512) }), true),
        (json!({ "k".repeat(65): "v" }), false),
        (json!({ "k": "v".repeat(513) }), false),
        (json!({ "k": 7 }), false),
        (json!(["k"]), false),
    ] {
        assert_eq!(check_metadata(&metadata).is_ok(), is_good, "{metadata:.80}");
    }
}

fn batch() -> Batch {
    Batch {
        id: "gwb-1".into(),
        endpoint: BatchEndpoint::Embeddings.as_str().into(),
        input_file_id: "gwf-1".into(),
        completion_window: "24h".into(),
        status: BatchStatus::Validating,
        created_at: 1,
        errors: Vec::new(),
        output_file_id: None,
        error_file_id: None,
        times: StatusTimes { expires_at: Some(9), ..StatusTimes::default() },
        request_counts: RequestCounts::default(),
        metadata: None,
    }
}

#[test]
fn a_batch_keeps_the_time_of_each_status() {
    let mut batch = batch();
    for (next, now, is_taken) in [
        (BatchStatus::Completed, 2, false),
        (BatchStatus::InProgress, 3, true),
        (BatchStatus::Finalizing, 4, true),
        (BatchStatus::Completed, 5, true),
        (BatchStatus::Cancelling, 6, false),
    ] {
        assert_eq!(batch.become_status(next, now), is_taken, "{next:?}");
    }
    let object = batch.to_json();
    assert_eq!(
        (&object["object"], &object["status"], &object["errors"]),
        (&json!("batch"), &json!("completed"), &Value::Null)
    );
    assert_eq!(
        [&object["in_progress_at"], &object["finalizing_at"], &object["completed_at"], &object["cancelling_at"]],
        [&json!(3), &json!(4), &json!(5), &Value::Null]
    );
    batch.errors.push(BatchError::new("code", "words").about("p").at(7));
    let told = json!({ "object": "list", "data": [{ "code": "code", "message": "words", "param": "p", "line": 7 }] });
    assert_eq!(batch.to_json()["errors"], told);
}

#[test]
fn nothing_comes_after_a_final_status_and_everything_ends_in_one() {
    for status in BatchStatus::ALL {
        let next = BatchStatus::ALL.into_iter().filter(|next| status.may_become(*next)).count();
        assert_eq!(next == 0, status.is_final(), "{status:?}");
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_all_others_are_read() {
    for piece in [1 << 20, MAX_LINE + 10, usize::MAX] {
        for end in ["\n", ""] {
            let long = format!("{{\"custom_id\":\"b\"{}", "x".repeat(MAX_LINE));
            let text = format!("a\n{long}\nc\n\nd\n{long}{end}");
            let (mut lines, mut found, mut skipped) = (Lines::default(), Vec::new(), Vec::new());
            let mut read = |lines: &mut Lines| {
                loop {
                    match lines.next_line() {
                        Ok(Some(line)) => found.push((line.number, line.bytes)),
                        Ok(None) => return,
                        Err(LineTooLong { number }) => skipped.push((number, lines.skip_long_line())),
                    }
                }
            };
            for piece in text.as_bytes().chunks(piece) {
                lines.push(piece);
                read(&mut lines);
            }
            lines.end();
            read(&mut lines);
            let line = |number, text: &'static str| (number, bytes::Bytes::from(text));
            assert_eq!(found, [line(1, "a"), line(3, "c"), line(5, "d")]);
            assert_eq!(skipped.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 6]);
            assert!(skipped.iter().all(|(_, start)| long.as_bytes().starts_with(start) && start.len() <= 4096));
        }
    }
}

proptest! {
    #[test]
    fn lines_are_the_same_however_they_are_cut(
        lines in proptest::collection::vec("[a-c ]{0,6}", 0..20),
        length in 1_usize..9,
    ) {
        let text = lines.join("\n");
        let mut reader = Lines::default();
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(length) {
            reader.push(piece);
            while let Some(line) = reader.next_line().unwrap() {
                found.push((line.number, line.bytes));
            }
        }
        reader.end();
        while let Some(line) = reader.next_line().unwrap() {
            found.push((line.number, line.bytes));
        }
        let expected: Vec<_> = (1_u64..).zip(&lines).filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| (number, bytes::Bytes::from(line.clone()))).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_are_too_odd_for_the_check(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut check = InputCheck::new(BatchEndpoint::Completions, Models::Any);
        check.push(&bytes);
        prop_assert!(check.finish().is_err());
    }
}
