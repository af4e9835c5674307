//! Each codec of what is kept: which questions a request becomes, and what the answers mean.

use super::*;
use serde_json::json;
use shared::providers::JOB_CODECS as NAMES;

fn placed() -> Vec<(String, String)> {
    [("bucket", "bkt"), ("account", "acc")].map(|(place, value)| (place.to_owned(), value.to_owned())).to_vec()
}

fn asked(verb: JobVerb, id: &str, body: &Value) -> AskedJob {
    AskedJob {
        verb,
        id: id.to_owned(),
        limit: Some(2),
        after: Some("t k".to_owned()),
        place: "/c".to_owned(),
        files: "/bkt".to_owned(),
        provider: "acme".to_owned(),
        body: body.as_object().cloned().unwrap_or_default(),
        file: None,
        model: None,
        file_name: None,
        request_id: "r-1".to_owned(),
        now: 7,
        placed: placed(),
    }
}

fn codec(name: &str) -> &'static dyn JobCodec {
    by_name(name).unwrap()
}

fn reply(body: &Value) -> JobReply {
    JobReply { length: None, body: Bytes::from(body.to_string()) }
}

/// The questions of a request, with these answers, and its own answer.
fn walked(name: &str, asked: &AskedJob, replies: &[Value]) -> (Vec<String>, JobAnswer) {
    let codec = codec(name);
    let mut call = codec.ask(asked).unwrap();
    let mut questions = Vec::new();
    for (step, told) in replies.iter().enumerate() {
        questions.push(format!("{} {}", call.method, call.place));
        match codec.read(asked, step, &reply(told)).unwrap() {
            JobAnswer::Ask(next) => call = next,
            answer => return (questions, answer),
        }
    }
    panic!("{name}: {questions:?} has no answer");
}

fn object(answer: JobAnswer) -> Value {
    match answer {
        JobAnswer::Json(value) => value,
        other => panic!("{other:?}"),
    }
}

fn sent(name: &str, asked: &AskedJob) -> Value {
    serde_json::from_slice(&codec(name).ask(asked).unwrap().body).unwrap()
}

#[test]
fn every_name_of_the_table_is_a_codec() {
    let names: Vec<&str> = JOB_CODECS.iter().map(|codec| codec.name()).collect();
    assert_eq!(names, NAMES);
}

#[test]
fn a_path_means_one_thing_or_nothing() {
    for (family, method, rest, expected) in [
        (Family::Files, Method::POST, "", Some((JobVerb::Create, ""))),
        (Family::Files, Method::GET, "/s3%3A%2F%2Fb%2Fk", Some((JobVerb::Retrieve, "s3://b/k"))),
        (Family::Files, Method::GET, "/s3%253A%252F%252Fb%252Fk/content", Some((JobVerb::Content, "s3://b/k"))),
        (Family::Files, Method::DELETE, "/f", Some((JobVerb::Delete, "f"))),
        (Family::Batches, Method::GET, "/b/output", Some((JobVerb::Output, "b"))),
        (Family::Batches, Method::POST, "/b/cancel", Some((JobVerb::Cancel, "b"))),
        (Family::Batches, Method::DELETE, "/b", None),
        (Family::FineTuning, Method::GET, "/jobs", Some((JobVerb::List, ""))),
        (Family::FineTuning, Method::GET, "/jobs/arn%3Aaws%3Ax%2F1", Some((JobVerb::Retrieve, "arn:aws:x/1"))),
        (Family::FineTuning, Method::GET, "/jobsx", None),
        (Family::FineTuning, Method::GET, "/jobs/j/events", None),
        (Family::FineTuning, Method::GET, "", None),
    ] {
        let found = verb(family, &method, rest);
        assert_eq!(found.as_ref().map(|(verb, id)| (*verb, id.as_str())), expected, "{family:?} {method} {rest}");
    }
}

#[test]
fn every_collection_is_listed_read_and_stopped_at_its_own_place() {
    let job = json!({ "id": "b", "name": "p/j/b", "jobArn": "arn:x/b", "job_id": "b" });
    for (name, list, own, stop) in [
        ("message_batches", "/c?limit=2&after_id=t%20k", "GET /c/b", "POST /c/b/cancel"),
        ("vertex_batches", "/c?pageSize=2&pageToken=t%20k", "GET /c/b", "POST /c/b:cancel"),
        ("vertex_tuning", "/c?pageSize=2&pageToken=t%20k", "GET /c/b", "POST /c/b:cancel"),
        ("bedrock_batches", "/cs?maxResults=2&nextToken=t%20k", "GET /c/b", "POST /c/b/stop"),
        ("bedrock_tuning", "/c?maxResults=2&nextToken=t%20k", "GET /c/b", "POST /c/b/stop"),
        ("cohere_batches", "/c", "GET /c/b", "POST /c/b/cancel"),
        ("fireworks_tuning", "/c?pageSize=2&pageToken=t%20k", "GET /c/b", "POST /c/b:cancel"),
    ] {
        let nothing = json!({});
        let listed = codec(name).ask(&asked(JobVerb::List, "", &nothing)).unwrap();
        assert_eq!((listed.method, &*listed.place), (Method::GET, list), "{name}");
        let (questions, answer) = walked(name, &asked(JobVerb::Retrieve, "b", &nothing), std::slice::from_ref(&job));
        assert_eq!(questions, [own], "{name}");
        assert!(object(answer)["id"].as_str().unwrap().ends_with('b'), "{name}");
        let (questions, _) = walked(name, &asked(JobVerb::Cancel, "b", &nothing), &[job.clone(), job.clone()]);
        assert_eq!(questions[0], stop, "{name}");
        let empty = object(walked(name, &asked(JobVerb::List, "", &nothing), std::slice::from_ref(&nothing)).1);
        assert_eq!(
            (&empty["object"], &empty["data"], &empty["has_more"]),
            (&json!("list"), &json!([]), &json!(false)),
            "{name}"
        );
        assert!(codec(name).read(&asked(JobVerb::Retrieve, "b", &nothing), 0, &JobReply::default()).is_err(), "{name}");
        assert!(codec(name).ask(&asked(JobVerb::Create, "", &nothing)).is_err(), "{name}: it needs something");
    }
}

#[test]
fn rows_of_a_message_batch_are_openais_or_anthropics_own() {
    let chat = json!({ "model": "claude-x", "messages": [{ "role": "user", "content": "Hi" }] });
    let own = json!({ "custom_id": "2", "params": { "model": "claude-x", "max_tokens": 5, "messages": [] } });
    let body = json!({ "requests": [{ "custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": chat }, own] });
    let sent = sent("message_batches", &asked(JobVerb::Create, "", &body));
    assert_eq!((&sent["requests"][0]["custom_id"], &sent["requests"][1]), (&json!("1"), &own));
    assert_eq!(sent["requests"][0]["params"]["max_tokens"], 4096, "{sent}");
    let file = asked(JobVerb::Create, "", &json!({ "input_file_id": "f" }));
    assert!(codec("message_batches").ask(&file).unwrap_err().to_string().contains("input_file_id"));
    for (state, counts, status) in [
        ("in_progress", json!({ "processing": 2 }), "in_progress"),
        ("canceling", json!({}), "cancelling"),
        ("ended", json!({ "succeeded": 1, "errored": 1 }), "completed"),
        ("ended", json!({ "canceled": 1 }), "cancelled"),
        ("ended", json!({ "expired": 1 }), "expired"),
    ] {
        let told = json!({ "id": "msgbatch_1", "processing_status": state, "request_counts": counts,
            "created_at": "1970-01-02T00:00:00Z", "ended_at": "1970-01-03T00:00:00Z" });
        let batch = object(walked("message_batches", &asked(JobVerb::Retrieve, "msgbatch_1", &json!({})), &[told]).1);
        assert_eq!((&batch["status"], &batch["created_at"]), (&json!(status), &json!(86400)), "{state}");
        assert_eq!(batch["completed_at"].is_null(), status != "completed", "{batch}");
    }
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "Hi" }], "usage": { "input_tokens": 3, "output_tokens": 1 } });
    let lines = format!(
        "{}\n{}\n",
        json!({ "custom_id": "1", "result": { "type": "succeeded", "message": message } }),
        json!({ "custom_id": "2", "result": { "type": "errored", "error": { "type": "error", "error": { "type": "overloaded_error", "message": "busy" } } } })
    );
    let told = JobReply { length: None, body: Bytes::from(lines) };
    let JobAnswer::Bytes(_, rows) =
        codec("message_batches").read(&asked(JobVerb::Output, "b", &json!({})), 0, &told).unwrap()
    else {
        panic!("rows are bytes")
    };
    let rows: Vec<Value> =
        rows.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(rows[0]["response"]["body"]["choices"][0]["message"]["content"], "Hi", "{rows:?}");
    assert_eq!((&rows[1]["error"]["code"], &rows[1]["custom_id"]), (&json!("overloaded_error"), &json!("2")));
}

#[test]
fn rows_are_written_one_by_one_in_the_form_of_their_provider() {
    let row = |id: &str| BatchRow {
        custom_id: id.to_owned(),
        body: json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "Hi" }] })
            .as_object()
            .cloned()
            .unwrap(),
    };
    for (name, model, id, body) in [
        ("message_batches", "claude-x", "/custom_id", "/params/messages/0/role"),
        ("vertex_batches", "gemini-x", "/requestId", "/request/contents/0/role"),
        ("bedrock_batches", "anthropic.claude-x", "/recordId", "/modelInput/messages/0/role"),
        ("bedrock_batches", "amazon.nova-x", "/recordId", "/modelInput/messages/0/role"),
    ] {
        let written = codec(name).input_row(&row("a-1"), model).unwrap();
        let at = |pointer: &str| written.pointer(pointer).and_then(Value::as_str);
        assert_eq!((at(id), at(body)), (Some("a-1"), Some("user")), "{name}: {written}");
        assert!(!written.to_string().contains("stream"), "{written}");
    }
    for bad in ["", "a b", "é", &*"a".repeat(65)] {
        let error = codec("message_batches").input_row(&row(bad), "claude-x").unwrap_err();
        assert!(error.to_string().contains("custom_id"), "{bad}: {error}");
    }
    assert_eq!(codec("message_batches").input_frame().concat(), r#"{"requests":[,]}"#);
    assert!(codec("cohere_batches").input_row(&row("a"), "m").is_err());
}

#[test]
fn batches_over_a_bucket_say_where_their_files_are() {
    let body = json!({ "input_file_id": "gs%3A%2F%2Fbkt%2Fin%2Ff.jsonl", "model": "gemini-x", "endpoint": "/v1/chat/completions",
        "metadata": { "gateway_batch_id": "gwb-0a", "Team": "a", "team": "A b", "1st": "a", "n": 1 } });
    let sent = sent("vertex_batches", &asked(JobVerb::Create, "", &body));
    assert_eq!(sent["labels"], json!({ "gateway_batch_id": "gwb-0a" }), "what fits");
    assert_eq!(sent["model"], "publishers/google/models/gemini-x");
    assert_eq!(sent["inputConfig"]["gcsSource"]["uris"], json!(["gs://bkt/in/f.jsonl"]));
    assert_eq!(sent["outputConfig"]["gcsDestination"]["outputUriPrefix"], "gs://bkt/in/output");
    let told = json!({ "name": "projects/1/locations/l/batchPredictionJobs/9", "state": "JOB_STATE_SUCCEEDED",
        "labels": { "gateway_batch_id": "gwb-0a" }, "outputInfo": { "gcsOutputDirectory": "gs://bkt/out" }, "completionStats": { "successfulCount": "3", "failedCount": "1" } });
    let batch =
        object(walked("vertex_batches", &asked(JobVerb::Retrieve, "9", &json!({})), std::slice::from_ref(&told)).1);
    assert_eq!(
        (&batch["id"], &batch["status"], &batch["output_file_id"]),
        (&json!("9"), &json!("completed"), &json!("gs%3A%2F%2Fbkt%2Fout%2Fpredictions.jsonl"))
    );
    assert_eq!(batch["request_counts"], json!({ "total": 4, "completed": 3, "failed": 1 }));
    assert_eq!(batch["metadata"]["gateway_batch_id"], "gwb-0a");
    let row = json!({ "requestId": "1", "status": "", "response": { "candidates": [{ "content": { "role": "model", "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" }] } });
    let (questions, answer) = walked("vertex_batches", &asked(JobVerb::Output, "9", &json!({})), &[told, row]);
    assert_eq!(questions[1], "GET /storage/v1/b/bkt/o/out%2Fpredictions.jsonl?alt=media");
    assert!(
        matches!(&answer, JobAnswer::Bytes(_, rows) if String::from_utf8_lossy(rows).contains("\"content\":\"Hi\"")),
        "{answer:?}"
    );

    let body = json!({ "input_file_id": "s3%3A%2F%2Fbkt%2Fin%2Ff.jsonl", "model": "anthropic.claude-x", "role_arn": "arn:role" });
    let sent = self::sent("bedrock_batches", &asked(JobVerb::Create, "", &body));
    assert_eq!((&sent["roleArn"], &sent["modelId"]), (&json!("arn:role"), &json!("anthropic.claude-x")));
    assert_eq!(sent["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"], "s3://bkt/in/output/");
    let told = json!({ "jobArn": "arn:aws:bedrock:r:1:model-invocation-job/j1", "status": "Completed",
        "inputDataConfig": { "s3InputDataConfig": { "s3Uri": "s3://bkt/in/f.jsonl" } },
        "outputDataConfig": { "s3OutputDataConfig": { "s3Uri": "s3://bkt/out/" } } });
    let id = "arn:aws:bedrock:r:1:model-invocation-job/j1";
    let (questions, made) =
        walked("bedrock_batches", &asked(JobVerb::Create, "", &body), &[json!({ "jobArn": id }), told.clone()]);
    assert_eq!(questions, ["POST /c", "GET /c/arn%3Aaws%3Abedrock%3Ar%3A1%3Amodel-invocation-job%2Fj1"]);
    assert_eq!(object(made)["id"], "arn%3Aaws%3Abedrock%3Ar%3A1%3Amodel-invocation-job%2Fj1");
    let row = json!({ "recordId": "1", "modelOutput": { "type": "message", "role": "assistant", "content": [{ "type": "text", "text": "Hi" }] } });
    let (questions, answer) = walked("bedrock_batches", &asked(JobVerb::Output, id, &json!({})), &[told, row]);
    assert_eq!(questions[1], "GET /bkt/out/j1/f.jsonl.out");
    assert!(
        matches!(&answer, JobAnswer::Bytes(_, rows) if String::from_utf8_lossy(rows).contains("\"content\":\"Hi\"")),
        "{answer:?}"
    );
}

#[test]
fn fine_tuning_is_asked_for_in_the_vendors_words() {
    let body = json!({ "model": "m", "training_file": "gs%3A%2F%2Fbkt%2Ft.jsonl", "suffix": "mine",
        "hyperparameters": { "n_epochs": 3, "learning_rate_multiplier": "auto" } });
    let vertex = sent("vertex_tuning", &asked(JobVerb::Create, "", &body));
    assert_eq!(
        vertex,
        json!({ "baseModel": "m", "tunedModelDisplayName": "mine", "supervisedTuningSpec": {
        "trainingDatasetUri": "gs://bkt/t.jsonl", "hyperParameters": { "epochCount": 3 } } })
    );
    let mut body = json!({ "model": "m", "training_file": "s3%3A%2F%2Fbkt%2Ft.jsonl", "hyperparameters": { "n_epochs": 3 },
        "provider_options": { "role_arn": "arn:role" } });
    let bedrock = sent("bedrock_tuning", &asked(JobVerb::Create, "", &body));
    assert_eq!((&bedrock["roleArn"], &bedrock["hyperParameters"]), (&json!("arn:role"), &json!({ "epochCount": "3" })));
    assert_eq!(bedrock["trainingDataConfig"]["s3Uri"], "s3://bkt/t.jsonl");
    body["training_file"] = json!("d-1");
    let fireworks = sent("fireworks_tuning", &asked(JobVerb::Create, "", &body));
    assert_eq!((&fireworks["dataset"], &fireworks["epochs"]), (&json!("accounts/acc/datasets/d-1"), &json!(3)));
    for (name, state, status) in [
        ("vertex_tuning", json!({ "state": "JOB_STATE_SUCCEEDED" }), "succeeded"),
        ("vertex_tuning", json!({ "state": "JOB_STATE_PENDING" }), "queued"),
        ("bedrock_tuning", json!({ "status": "Stopping" }), "cancelled"),
        ("bedrock_tuning", json!({ "status": "Completed" }), "succeeded"),
        ("fireworks_tuning", json!({ "state": "JOB_STATE_COMPLETED" }), "succeeded"),
        ("fireworks_tuning", json!({ "state": "JOB_STATE_RUNNING" }), "running"),
    ] {
        let job = object(walked(name, &asked(JobVerb::Retrieve, "j", &json!({})), &[state]).1);
        assert_eq!((&job["object"], &job["status"]), (&json!("fine_tuning.job"), &json!(status)), "{name}");
    }
}

#[test]
fn files_are_kept_in_the_accounts_bucket_alone_and_rows_are_rewritten() {
    let row = json!({ "custom_id": "1", "method": "POST", "url": "/v1/chat/completions",
        "body": { "model": "anthropic.claude-x", "messages": [{ "role": "user", "content": "Hi" }] } });
    for (name, place, field) in [
        ("bedrock_files", "PUT /c/r-1/f.jsonl", "/modelInput/messages/0/role"),
        ("vertex_files", "POST /upload/c/o?uploadType=media&name=r-1%2Ff.jsonl", "/request/messages/0/role"),
    ] {
        let mut upload = asked(JobVerb::Create, "", &json!({ "purpose": "batch" }));
        upload.file = Some(UploadedFile { name: "f.jsonl".into(), bytes: Bytes::from(format!("{row}\n\n")) });
        let call = codec(name).ask(&upload).unwrap();
        assert_eq!(format!("{} {}", call.method, call.place), place);
        let written: Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(written.pointer(field), Some(&json!("user")), "{written}");
        upload.file = Some(UploadedFile { name: "f".into(), bytes: Bytes::from_static(b"{}\n") });
        assert!(codec(name).ask(&upload).unwrap_err().to_string().contains("line 1"), "{name}");
        upload.body = json!({ "purpose": "fine-tune" }).as_object().cloned().unwrap();
        assert_eq!(codec(name).ask(&upload).unwrap().body, "{}\n", "{name}: only batches are rewritten");
    }
    for (name, id) in [("bedrock_files", "s3://other/k"), ("vertex_files", "gs://other/k"), ("bedrock_files", "file-1")]
    {
        let other = asked(JobVerb::Content, id, &json!({}));
        assert!(codec(name).ask(&other).is_err(), "{name} {id}");
    }
    let own = codec("bedrock_files").ask(&asked(JobVerb::Content, "s3://bkt/a b/../k", &json!({}))).unwrap();
    assert_eq!(own.place, "/c/a%20b/%2E%2E/k");
    let glance = JobReply { length: Some(9), body: Bytes::from_static(b"x") };
    let file = codec("bedrock_files").read(&asked(JobVerb::Retrieve, "s3://bkt/k", &json!({})), 0, &glance).unwrap();
    assert_eq!(object(file)["bytes"], 9);
}

#[test]
fn datasets_are_files() {
    let mut upload = asked(JobVerb::Create, "", &json!({ "purpose": "batch" }));
    upload.file = Some(UploadedFile { name: "f\".jsonl".into(), bytes: Bytes::from_static(b"{}\n{}\n") });
    let call = codec("cohere_files").ask(&upload).unwrap();
    assert_eq!(call.place, "/c?name=f%22.jsonl&type=embed-input");
    assert!(String::from_utf8_lossy(&call.body).contains("filename=\"f_.jsonl\""));
    let dataset = json!({ "dataset": { "id": "d", "name": "n", "validation_status": "validated", "dataset_type": "embed-input" } });
    let (questions, file) = walked("cohere_files", &upload, &[json!({ "id": "d" }), dataset]);
    assert_eq!(questions[1], "GET /c/d");
    assert_eq!(object(file)["status"], "processed");
    let made = json!({ "name": "accounts/acc/datasets/file-r-1", "state": "UPLOADING" });
    let (questions, file) = walked("fireworks_files", &upload, &[json!({}), json!({}), made]);
    assert_eq!(questions, ["POST /c", "POST /c/file-r-1:upload", "GET /c/file-r-1"]);
    let file = object(file);
    assert_eq!((&file["id"], &file["status"]), (&json!("file-r-1"), &json!("uploaded")));
}

#[test]
fn a_batch_without_output_or_with_it_elsewhere_says_so() {
    let running = json!({ "jobArn": "arn:x/j", "status": "InProgress",
        "inputDataConfig": { "s3InputDataConfig": { "s3Uri": "s3://bkt/f" } },
        "outputDataConfig": { "s3OutputDataConfig": { "s3Uri": "s3://bkt/out" } } });
    let mut elsewhere = running.clone();
    elsewhere["status"] = json!("Completed");
    elsewhere["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"] = json!("s3://bkt2/out");
    for (name, told, expected) in [
        ("bedrock_batches", running, "no output yet"),
        ("bedrock_batches", elsewhere, "another bucket"),
        ("vertex_batches", json!({ "name": "p/j/1" }), "no output yet"),
        ("vertex_batches", json!({ "outputInfo": { "gcsOutputDirectory": "gs://other/out" } }), "another bucket"),
    ] {
        match walked(name, &asked(JobVerb::Output, "j", &json!({})), &[told]).1 {
            JobAnswer::Refused(why) => assert!(why.contains(expected), "{name}: {why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn jobs_read_and_write_in_the_accounts_bucket_alone() {
    let role = json!("arn:role");
    for (name, scheme, field) in [
        ("vertex_batches", "gs", "input_file_id"),
        ("vertex_batches", "gs", "output_data_config"),
        ("vertex_tuning", "gs", "training_file"),
        ("vertex_tuning", "gs", "validation_file"),
        ("bedrock_batches", "s3", "input_file_id"),
        ("bedrock_batches", "s3", "output_data_config"),
        ("bedrock_tuning", "s3", "training_file"),
        ("bedrock_tuning", "s3", "validation_file"),
        ("bedrock_tuning", "s3", "output_data_config"),
    ] {
        let own = format!("{scheme}://bkt/in/f.jsonl");
        let mut body = json!({ "model": "m", "role_arn": role, "input_file_id": own, "training_file": own,
            "validation_file": own, "output_data_config": format!("{scheme}://bkt/") });
        assert!(codec(name).ask(&asked(JobVerb::Create, "", &body)).is_ok(), "{name}");
        for other in ["other/in/f.jsonl", "bkt2/f", "other"] {
            body[field] = json!(format!("{scheme}%3A%2F%2F{}", other.replace('/', "%2F")));
            let error = codec(name).ask(&asked(JobVerb::Create, "", &body)).unwrap_err().to_string();
            assert!(error.contains(field), "{name} {field} {other}: {error}");
        }
    }
    let body = json!({ "model": "m", "role_arn": role, "input_file_id": "s3://bkt/f",
        "provider_options": { "output_data_config": { "s3OutputDataConfig": { "s3Uri": "s3://other/out" } } } });
    assert!(codec("bedrock_batches").ask(&asked(JobVerb::Create, "", &body)).is_err());
}

#[test]
fn a_row_that_is_too_long_is_refused_on_its_way_in_and_named_on_its_way_out() {
    let long = json!({ "custom_id": "1", "body": { "model": "m", "user": "x".repeat(MAX_LINE_BYTES) } }).to_string();
    let mut upload = asked(JobVerb::Create, "", &json!({ "purpose": "batch" }));
    upload.file = Some(UploadedFile { name: "f".into(), bytes: Bytes::from(long.clone()) });
    assert!(codec("bedrock_files").ask(&upload).unwrap_err().to_string().contains("line 1"));
    let told = JobReply { length: None, body: Bytes::from(format!("{long}\n{{\"custom_id\":\"2\"}}\n")) };
    let output = codec("message_batches").read(&asked(JobVerb::Output, "b", &json!({})), 0, &told).unwrap();
    let JobAnswer::Bytes(_, rows) = output else { panic!("rows are bytes") };
    let rows: Vec<Value> =
        rows.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["error"]["code"], &rows[1]["custom_id"]), (&json!("row_left_out"), &json!("2")));
    let object = JobReply { length: None, body: Bytes::from(long) };
    assert!(codec("message_batches").read(&asked(JobVerb::Retrieve, "b", &json!({})), 0, &object).is_err());
}
