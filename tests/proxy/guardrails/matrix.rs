//! Every way in which a guardrail can end, on every route that it reads: what the client gets, what the log keeps, what the trace is
//! told and what is paid for.

use crate::journal::calls::{status, text};
use crate::routing::{asked, client, target};
use harness::{Answer, GuardService, Says, Stack};
use serde_json::{Value, json};
use std::collections::HashMap;
use tokio_postgres::Row;

type Route = (&'static str, fn(&str) -> Value);

/// A route: its path, where `PROMPT` is one that says what it is given, and its body for a text. Each has a test of its own below.
const ROUTES: &[Route] = &[
    ("/chat/completions", |text| json!({ "model": "m", "messages": [{ "role": "user", "content": text }] })),
    ("/completions", |text| json!({ "model": "m", "prompt": text })),
    ("/messages", |text| json!({ "model": "m", "max_tokens": 50, "messages": [{ "role": "user", "content": text }] })),
    ("/responses", |text| json!({ "model": "m", "input": text })),
    ("/prompts/PROMPT/completions", |text| json!({ "variables": { "text": text } })),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

/// How a check ends. `Away` and `Late` ask a service: one that talks nonsense, and one that says nothing in time, which is to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Pass,
    Fail,
    Error,
    FailingError,
    Away,
    Late,
}

/// How an answer is delivered. A held stream lets nothing out before it was judged, so its checks are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Plain,
    Stream,
    HeldStream,
}

const ENDS: &[End] = &[End::Pass, End::Fail, End::Error, End::FailingError, End::Away, End::Late];

/// Whom checks ask.
struct Services {
    nonsense: GuardService,
    silent: GuardService,
}

impl Services {
    async fn start() -> Self {
        let nonsense = GuardService::start(Says::Garbage).await;
        Self { nonsense, silent: GuardService::start(Says::Silence).await }
    }
}

impl End {
    fn check(self, services: &Services) -> (&'static str, Value) {
        // Nobody is named by these rules, so that they cannot say anything.
        let silent = json!({ "defaults": [], "metadata": {} });
        match self {
            Self::Pass | Self::Fail => ("default.contains", json!({ "words": ["forbidden"], "operator": "none" })),
            Self::Error => ("default.modelRules", json!({ "rules": silent })),
            Self::FailingError => ("default.modelRules", json!({ "rules": silent, "failOnError": true })),
            Self::Away => ("default.webhook", json!({ "webhookURL": services.nonsense.url() })),
            Self::Late => {
                let url = services.silent.url();
                ("default.webhook", json!({ "webhookURL": url, "timeout": 50, "failOnError": true }))
            }
        }
    }

    fn fails(self) -> bool {
        matches!(self, Self::Fail | Self::FailingError | Self::Late)
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    number: usize,
    route: usize,
    side: Side,
    end: End,
    denies: bool,
    is_async: bool,
    delivery: Delivery,
}

impl Case {
    fn all_of(route: usize) -> Vec<Self> {
        let mut cases = Vec::new();
        for side in [Side::Input, Side::Output] {
            let deliveries = match side {
                Side::Input => &[Delivery::Plain, Delivery::Stream][..],
                Side::Output => &[Delivery::Plain, Delivery::Stream, Delivery::HeldStream],
            };
            for end in ENDS.iter().copied() {
                for delivery in deliveries.iter().copied() {
                    for bits in 0..4 {
                        let (number, denies, is_async) = (cases.len(), bits & 1 != 0, bits & 2 != 0);
                        cases.push(Self { number, route, side, end, denies, is_async, delivery });
                    }
                }
            }
        }
        cases
    }

    fn trace(self) -> String {
        format!("matrix-{}", self.number)
    }

    fn config(self, stack: &Stack, services: &Services) -> Value {
        let (check, parameters) = self.end.check(services);
        let feedback = |value: i32| json!({ "feedback": { "value": value } });
        let stream = if self.delivery == Delivery::HeldStream { "hold" } else { "report" };
        let hook = json!({ check: parameters, "id": "h", "deny": self.denies, "async": self.is_async, "stream": stream,
            "on_success": feedback(4), "on_fail": feedback(-4) });
        let list = if self.side == Side::Input { "input_guardrails" } else { "output_guardrails" };
        target(stack, json!({ list: [hook], "strict_open_ai_compliance": false }))
    }

    fn is_stream(self) -> bool {
        self.delivery != Delivery::Plain
    }

    fn is_denied(self) -> bool {
        let is_enforced = self.side == Side::Input || self.delivery != Delivery::Stream;
        self.end.fails() && self.denies && !self.is_async && is_enforced
    }

    fn status(self) -> u16 {
        // A stream's head is gone when its text is judged.
        let is_marked = self.end.fails() && !self.is_async && (self.side == Side::Input || !self.is_stream());
        match (self.is_denied(), is_marked) {
            (true, _) => 446,
            (false, true) => 246,
            (false, false) => 200,
        }
    }

    async fn ask(self, stack: &Stack, services: &Services, prompt: &str) -> Answer {
        let said = if self.end == End::Fail { "a forbidden word" } else { "a fine word" };
        let (path, body) = ROUTES[self.route];
        let mut body = body(if self.side == Side::Input { said } else { "Hello" });
        if self.is_stream() {
            body["stream"] = json!(true);
        }
        if self.side == Side::Output {
            stack.mock.script(json!([{ "reply": said }])).unwrap();
        }
        let path = path.replace("PROMPT", prompt);
        let config = self.config(stack, services);
        client(stack, &config).with("x-gateway-trace-id", self.trace()).post(&path, &body).await
    }

    fn check_answer(self, answer: &Answer) {
        let told = answer.text();
        assert_eq!(answer.status, self.status(), "{self:?} {told}");
        assert_eq!(told.contains("hook_results"), !self.is_async, "{self:?} {told}");
        let kind = if self.is_stream() && !self.is_denied() { "text/event-stream" } else { "application/json" };
        assert!(answer.header("content-type").starts_with(kind), "{self:?} {}", answer.header("content-type"));
        if self.is_denied() {
            let body = answer.json();
            assert_eq!(body["error"]["type"], "hooks_failed", "{self:?} {body}");
            assert!(!told.contains("a forbidden word"), "{self:?}: what was denied is withheld");
        }
        if !self.is_stream() && !self.is_async {
            self.check_results(&answer.json()["hook_results"]);
        }
    }

    fn check_results(self, results: &Value) {
        let (own, other) = match self.side {
            Side::Input => ("before_request_hooks", "after_request_hooks"),
            Side::Output => ("after_request_hooks", "before_request_hooks"),
        };
        assert_eq!(results[other], json!([]), "{self:?} {results}");
        let hooks = results[own].as_array().map(Vec::as_slice).unwrap_or_default();
        let [hook] = hooks else { panic!("{self:?} {results}") };
        let expected = json!([!self.end.fails(), self.is_async, self.end.fails() && self.denies && !self.is_async]);
        assert_eq!(json!([hook["verdict"], hook["async"], hook["deny"]]), expected, "{self:?} {hook}");
        let has_error = !matches!(self.end, End::Pass | End::Fail);
        assert_eq!(hook["checks"][0].get("error").is_some(), has_error, "{self:?} {hook}");
    }

    fn check_row(self, row: &Row) {
        assert_eq!(status(row), i32::from(self.status()), "{self:?}");
        self.check_results(&row.get::<_, Value>("hook_results"));
        // What was answered is paid for, also when nobody gets to see it.
        let was_asked = !(self.side == Side::Input && self.is_denied());
        assert_eq!(row.get::<_, i64>("res_units") > 0, was_asked, "{self:?}");
        let code = text(row, "error_code");
        assert_eq!(code.is_some(), self.is_denied(), "{self:?} {code:?}");
    }
}

/// A prompt that is the text it is given, known to the proxy.
async fn prompt(stack: &Stack) -> String {
    let content = json!([{ "role": "user", "content": "{{text}}" }]).to_string();
    let body =
        json!({ "name": "Echo", "string": content, "virtual_key": "of-the-config", "parameters": { "model": "m" } });
    let made = stack.anonymous().with_key(&stack.home.workspace_key).post("/prompts", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let slug = made.json()["slug"].as_str().unwrap().to_owned();
    let (path, client) = (format!("/prompts/{slug}/completions"), client(stack, &target(stack, json!({}))));
    let sent = json!({ "variables": { "text": "Hello" } });
    stack.until("the prompt is known", async || client.post(&path, &sent).await.status == 200).await;
    stack.mock.reset();
    slug
}

#[tokio::test]
async fn every_end_is_answered_logged_and_paid_as_contracted_for_chats() {
    every_end_is_as_contracted(0).await;
}

#[tokio::test]
async fn every_end_is_answered_logged_and_paid_as_contracted_for_completions() {
    every_end_is_as_contracted(1).await;
}

#[tokio::test]
async fn every_end_is_answered_logged_and_paid_as_contracted_for_messages() {
    every_end_is_as_contracted(2).await;
}

#[tokio::test]
async fn every_end_is_answered_logged_and_paid_as_contracted_for_responses() {
    every_end_is_as_contracted(3).await;
}

#[tokio::test]
async fn every_end_is_answered_logged_and_paid_as_contracted_for_prompts() {
    every_end_is_as_contracted(4).await;
}

/// On one route: a workspace's logs wait for its `async` guardrails only so many seconds in a minute.
async fn every_end_is_as_contracted(route: usize) {
    let stack = Stack::start().await;
    let prompt = prompt(&stack).await;
    let services = Services::start().await;
    let cases = Case::all_of(route);
    let mut expected = 0;
    for case in &cases {
        let answer = case.ask(&stack, &services, &prompt).await;
        case.check_answer(&answer);
        expected += u64::from(!(case.side == Side::Input && case.is_denied()));
        assert_eq!(asked(&stack), expected, "{case:?}");
    }
    let database = stack.database.client().await;
    const ROWS: &str = "SELECT * FROM request_logs WHERE trace_id LIKE 'matrix-%'";
    let found = async || database.query(ROWS, &[]).await.unwrap();
    stack.until("every call is logged", async || found().await.len() >= cases.len()).await;
    let rows = found().await;
    assert_eq!(rows.len(), cases.len());
    let by_trace: HashMap<&str, &Row> = rows.iter().filter_map(|row| Some((text(row, "trace_id")?, row))).collect();
    for case in &cases {
        case.check_row(by_trace[case.trace().as_str()]);
    }
    let feedback = database.query("SELECT trace_id, value FROM feedback", &[]).await.unwrap();
    let told: HashMap<String, i32> = feedback.iter().map(|row| (row.get("trace_id"), row.get("value"))).collect();
    for case in &cases {
        // A check that could not look is no failure on the trace.
        let value = if case.end == End::Fail { -4 } else { 4 };
        assert_eq!(told.get(&case.trace()), Some(&value), "{case:?}");
    }
    assert_eq!(feedback.len(), cases.len());
}
