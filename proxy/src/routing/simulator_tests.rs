//! Whole requests through whole plans, with scripted providers and a clock of our own: `scenarios.txt` says which
//! targets are called, in which order, after which waits, and what the client gets. See its head for how to read it.

use super::clock::{Clock as _, Still};
use super::course::RoutingInputs;
use super::{AfterAttempt, AttemptResult, Course, RequestFacts, Speaker};
use crate::request::body::Fields;
use crate::routing::plan::{Plan, compile};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use shared::config::{Strictness, parse_config};
use shared::settings::config_limits::ConfigLimits;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/routing/scenarios.txt");
/// How long a provider may take when nobody limits it.
const CEILING: Duration = Duration::from_secs(600);

#[test]
fn every_scenario_goes_as_it_is_written() {
    let text = std::fs::read_to_string(SCENARIOS).unwrap();
    let mut configs = HashMap::new();
    let mut failed = Vec::new();
    let mut names = HashSet::new();
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with('#')).collect();
        let Some((name, steps)) = lines.split_first() else { continue };
        if let Some(named) = name.strip_prefix("let ") {
            let (name, text) = named.split_once(" = ").unwrap_or_else(|| panic!("{named}"));
            let text = std::iter::once(text).chain(steps.iter().copied()).collect::<Vec<_>>().concat();
            configs
                .insert(name.to_owned(), serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")));
            continue;
        }
        assert!(names.insert(*name), "{name} is there twice");
        if std::panic::catch_unwind(|| play(name, steps, &configs)).is_err() {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "{} of {} failed: {failed:?}", failed.len(), names.len());
    assert!(names.len() >= 150, "only {} scenarios", names.len());
}

struct Stage {
    plan: Option<Plan>,
    now: Instant,
    unix_seconds: u64,
    request: Value,
    answers: Vec<String>,
    sent: String,
}

fn play(name: &str, steps: &[&str], configs: &HashMap<String, Value>) {
    let mut stage = Stage {
        plan: None,
        now: Instant::now(),
        unix_seconds: 0,
        request: json!({}),
        answers: Vec::new(),
        sent: String::new(),
    };
    for step in steps {
        let (verb, text) = step.trim().split_once(' ').unwrap_or((step.trim(), ""));
        let text = text.trim();
        let parsed = || serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{name}: {text}: {error}"));
        match verb {
            "config" => {
                let config = configs.get(text).cloned().unwrap_or_else(parsed);
                let config = parse_config(&config, Strictness::Inline, &ConfigLimits::default());
                stage.plan = Some(compile(&config.unwrap_or_else(|faults| panic!("{name}: {faults:?}"))));
            }
            "request" => stage.request = parsed(),
            "answers" => stage.answers = text.split_whitespace().map(str::to_owned).collect(),
            "later" => {
                stage.now += duration(text);
                stage.unix_seconds += duration(text).as_secs();
            }
            "expect" => assert_eq!(stage.run(name), text, "{name}"),
            "times" => {
                let (count, expected) = text.split_once(' ').unwrap_or_else(|| panic!("{name}: {text}"));
                let answers = stage.answers.clone();
                for turn in 0..count.parse().unwrap_or(0) {
                    stage.answers = answers.clone();
                    assert_eq!(stage.run(name), expected, "{name}, turn {turn}");
                }
            }
            "sent" => assert_eq!(stage.sent, text, "{name}"),
            other => panic!("{name}: nobody knows what `{other}` means"),
        }
    }
}

impl Stage {
    fn run(&mut self, name: &str) -> String {
        let plan = self.plan.as_ref().unwrap_or_else(|| panic!("{name} has no config"));
        let metadata: Map<String, Value> = self.request["metadata"].as_object().cloned().unwrap_or_default();
        let body = match &self.request["body"] {
            Value::Null => Bytes::from_static(b"{}"),
            Value::String(text) => Bytes::from(text.clone()),
            other => Bytes::from(other.to_string()),
        };
        let fields = Fields::parse_object(&body).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        let pathname = self.request["path"].as_str().unwrap_or("/v1/chat/completions");
        let facts = RequestFacts { metadata: &metadata, params: &fields, pathname };
        let scope = self.request["workspace"].as_str().unwrap_or("w").as_bytes();
        let chance = self.request["chance"].as_f64().unwrap_or(0.0);
        let mut chance = || chance;
        let mut answers = std::mem::take(&mut self.answers).into_iter();
        let began = self.now;
        let clock = Still { unix_seconds: self.unix_seconds, ..Still::at(began) };
        let mut moment = RoutingInputs { facts, scope, clock: &clock, chance: &mut chance };
        let mut course = match Course::begin(plan, &mut moment) {
            Ok(course) => course,
            Err(refusal) => return format!("{} {}", refusal.status, refusal.code.as_str()),
        };
        let mut told = Vec::new();
        let status = loop {
            told.push(short(&course.node().path));
            let leaf = course.leaf();
            self.sent = String::from_utf8_lossy(&leaf.edits.apply(&body, &fields, None)).into_owned();
            let answer =
                answers.next().unwrap_or_else(|| panic!("{name}: nothing is scripted after {}", told.join(" ")));
            let total = leaf.total_timeout.unwrap_or(Duration::MAX);
            let limit = leaf.request_timeout.unwrap_or(CEILING).min(total.saturating_sub(clock.now() - began));
            let (mut outcome, took) = attempt(&answer, limit, name);
            clock.pass(took);
            outcome.left = total.saturating_sub(clock.now() - began);
            match course.after(&outcome, &mut moment) {
                Ok(AfterAttempt::Deliver) => break outcome.status,
                Ok(AfterAttempt::Again(wait)) => {
                    told.push(format!("+{}", written(wait)));
                    clock.pass(wait);
                }
                Ok(AfterAttempt::Elsewhere) => {}
                Err(refusal) => break refusal.status,
            }
        };
        self.unix_seconds += (clock.now() - began).as_secs();
        self.now = clock.now();
        let unused: Vec<String> = answers.collect();
        assert!(unused.is_empty(), "{name}: after {} nobody asked for {unused:?}", told.join(" "));
        format!("{} = {status} r{}", told.join(" "), course.retry_count())
    }
}

/// `500`, `429~3s` (asks for a wait), `500@2s` (takes so long), `net`, `never`, `ours:429`, `fault`.
fn attempt(answer: &str, limit: Duration, name: &str) -> (AttemptResult, Duration) {
    let (answer, took) =
        answer.split_once('@').map_or((answer, Duration::ZERO), |(answer, took)| (answer, duration(took)));
    let (answer, asks) = answer.split_once('~').map_or((answer, None), |(answer, asks)| (answer, Some(duration(asks))));
    if answer == "never" || took >= limit {
        return (AttemptResult { status: 408, ..AttemptResult::default() }, limit);
    }
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{name}: {text} is no status"));
    let (status, speaker) = match answer {
        "net" => (503, Speaker::Network),
        "fault" => (500, Speaker::Fault),
        _ => match answer.strip_prefix("ours:") {
            Some(status) => (number(status), Speaker::Gateway),
            None => (number(answer), Speaker::Provider),
        },
    };
    (AttemptResult { status, speaker, retry_after: asks, left: Duration::MAX }, took)
}

/// `config.targets[1].targets[0]` is `1.0`; the config itself is `.`.
fn short(path: &str) -> String {
    let steps: Vec<&str> = path.split(".targets[").skip(1).map(|step| step.trim_end_matches(']')).collect();
    if steps.is_empty() { ".".to_owned() } else { steps.join(".") }
}

fn duration(text: &str) -> Duration {
    let millis = text.strip_suffix("ms").and_then(|number| number.parse().ok()).map(Duration::from_millis);
    let seconds = || text.strip_suffix('s').and_then(|number| number.parse().ok()).map(Duration::from_secs_f64);
    millis.or_else(seconds).unwrap_or_else(|| panic!("{text} is no duration"))
}

fn written(wait: Duration) -> String {
    match wait.subsec_millis() {
        0 => format!("{}s", wait.as_secs()),
        _ => format!("{}ms", wait.as_millis()),
    }
}
