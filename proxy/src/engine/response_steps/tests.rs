//! Steps through the whole engine lane, with providers on loopback: whatever fails on the way, the client gets one answer
//! that the steps have changed from its beginning.

use crate::engine::answer::Steps;
use crate::engine::answer::upper_case::{UNSPEAKABLE, UpperCase};
use crate::engine::lab::{chat, services};
use crate::net::dial::lab::{End, Server};
use crate::net::downstream::lab::LabClient;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// In capitals it is shorter: a ligature of three bytes becomes two letters.
const BODY: &str = r#"{"id":"1","choices":[{"message":{"content":"ﬁn straße"}}]}"#;
const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const SAID: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"straße\"}}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"m\",\"code\":500}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// A provider that gives these answers in turn, closes after each, and remembers what it was asked.
struct Provider {
    server: Server,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    async fn start(answers: &[String]) -> Self {
        let answers = Arc::new(Mutex::new(VecDeque::from(answers.to_vec())));
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let bodies = asked.clone();
        let server = Server::start(move |stream, _| {
            let (answers, bodies) = (answers.clone(), bodies.clone());
            async move {
                let mut end = End::new(stream);
                let Some(request) = end.request().await else { return };
                bodies.lock().push(serde_json::from_slice(&request.body).unwrap());
                let answer = answers.lock().pop_front();
                end.say(&answer.expect("one answer for each request")).await;
            }
        });
        Self { server: server.await, asked }
    }

    fn target(&self) -> Value {
        json!({ "provider": "openai", "api_key": "k", "custom_host": format!("http://{}/v1", self.server.address) })
    }

    fn retried(&self) -> Value {
        let mut target = self.target();
        target["retry"] = json!({ "attempts": 1, "on_status_codes": [500, 502], "jitter": "full" });
        target
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }
}

fn plain(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Ends with its connection.
fn stream(events: &[&str]) -> String {
    let events = events.concat();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}")
}

fn upper_case(steps: &mut Steps) {
    steps.push(UpperCase::default());
}

fn capitals(text: &str) -> String {
    text.replace("straße", "STRASSE").replace("ﬁn", "FIN")
}

fn check_plain(client: &LabClient) {
    assert_eq!((client.status(), client.text()), (200, capitals(BODY)));
    assert_eq!(client.header("content-length"), Some(&*capitals(BODY).len().to_string()));
    assert_eq!(client.header("x-upper-case"), Some("yes"));
}

/// Of a stream with as many events that were changed, in one attempt.
fn check_stream(client: &LabClient, events: &[&str], changed: usize) {
    let expected = capitals(&events.concat()) + &format!(": {changed} in capitals\n\n");
    assert_eq!((client.status(), client.text()), (200, expected));
    assert_eq!(client.header("x-upper-case"), Some("yes"));
}

#[tokio::test]
async fn a_retry_is_changed_from_its_beginning() {
    let services = services(None, upper_case);
    for failed in [plain(500, "{}"), plain(200, r#"{"error":{"code":500}}"#), plain(200, "{\"choices\":[")] {
        let provider = Provider::start(&[failed, plain(200, BODY)]).await;
        let client = chat(&services, &provider.retried(), false).await;
        check_plain(&client);
        assert_eq!((provider.asked(), client.header("x-gateway-retry-attempt-count")), (2, Some("1")));
    }
    for failed in [plain(500, "{}"), stream(&[ROLE, ERROR]), stream(&[ROLE])] {
        let provider = Provider::start(&[failed, stream(&[ROLE, SAID, SAID, DONE])]).await;
        let client = chat(&services, &provider.retried(), true).await;
        check_stream(&client, &[ROLE, SAID, SAID, DONE], 3);
        assert_eq!((provider.asked(), client.header("x-gateway-retry-attempt-count")), (2, Some("1")));
    }
}

#[tokio::test]
async fn another_target_takes_the_place_of_one_whose_answer_cannot_be_changed() {
    let services = services(None, upper_case);
    let unspeakable = BODY.replace("ﬁn straße", UNSPEAKABLE);
    for (failed, good, is_stream) in [
        (plain(200, &unspeakable), plain(200, BODY), false),
        (plain(503, "{}"), plain(200, BODY), false),
        (stream(&[ROLE, ERROR]), stream(&[SAID, DONE]), true),
    ] {
        let (first, second) = (Provider::start(&[failed]).await, Provider::start(&[good]).await);
        let config = json!({ "strategy": { "mode": "fallback" }, "targets": [first.target(), second.target()] });
        let client = chat(&services, &config, is_stream).await;
        match is_stream {
            true => check_stream(&client, &[SAID, DONE], 1),
            false => check_plain(&client),
        }
        assert_eq!((first.asked(), second.asked()), (1, 1));
        assert_eq!(client.header("x-gateway-last-used-option-index"), Some("config.targets[1]"));
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_changed_is_refused_when_nothing_is_left_to_try() {
    let provider = Provider::start(&[plain(200, &BODY.replace("ﬁn straße", UNSPEAKABLE))]).await;
    let client = chat(&services(None, upper_case), &provider.target(), false).await;
    let said: Value = serde_json::from_str(&client.text()).unwrap();
    assert_eq!((client.status(), &said["error"]["code"]), (502, &json!("invalid_upstream_response")), "{said}");
    assert_eq!(client.header("x-upper-case"), None);
}

#[tokio::test]
async fn a_stream_that_breaks_off_after_its_first_content_ends_in_one_error_event() {
    let provider = Provider::start(&[stream(&[ROLE, SAID])]).await;
    let client = chat(&services(None, upper_case), &provider.retried(), true).await;
    let text = client.text();
    let rest = text.strip_prefix(&capitals(&[ROLE, SAID].concat())).unwrap_or_else(|| panic!("{text}"));
    let error = rest.strip_prefix("data: ").and_then(|rest| rest.strip_suffix(&format!("\n\n{DONE}")));
    let error: Value = serde_json::from_str(error.unwrap_or_else(|| panic!("{text}"))).unwrap();
    assert_eq!(error["error"]["code"], "invalid_upstream_response", "{text}");
    assert_eq!((provider.asked(), client.is_ended), (1, true));
}

#[tokio::test]
async fn unasked_usage_is_wished_for_and_gone_before_other_steps_see_it() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start(&[stream(&[SAID, USAGE, DONE])]).await;
    let client = chat(&services(Some(folder.path()), upper_case), &provider.target(), true).await;
    check_stream(&client, &[SAID, DONE], 1);
    assert_eq!(provider.asked.lock()[0]["stream_options"], json!({ "include_usage": true }));
}

/// Everything that stands in the journal.
fn written(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

#[tokio::test]
async fn usage_is_what_the_provider_said_and_the_logged_answer_what_the_client_got() {
    for (answer, is_stream) in [(plain(200, BODY), false), (stream(&[SAID, USAGE, DONE]), true)] {
        let folder = tempfile::tempdir().unwrap();
        let provider = Provider::start(&[answer]).await;
        let client = chat(&services(Some(folder.path()), upper_case), &provider.target(), is_stream).await;
        let written = written(folder.path());
        assert!(client.text().contains("STRASSE") && !client.text().contains("total_tokens"), "{}", client.text());
        assert!(written.contains("STRASSE") && !written.contains("straße"), "{written}");
        assert_eq!(written.contains(r#"{"total_tokens":1}"#), is_stream, "{written}");
    }
}

#[tokio::test]
async fn without_steps_the_client_gets_the_providers_bytes() {
    let services = services(None, |_| ());
    let provider = Provider::start(&[plain(200, BODY), stream(&[ROLE, SAID, USAGE, DONE])]).await;
    let client = chat(&services, &provider.target(), false).await;
    assert_eq!(client.text(), BODY);
    let client = chat(&services, &provider.target(), true).await;
    assert_eq!(client.text(), [ROLE, SAID, USAGE, DONE].concat());
    assert_eq!(provider.asked.lock()[1].get("stream_options"), None, "nothing is logged, so nothing is wished for");
}
