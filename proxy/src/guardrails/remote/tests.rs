//! Checks that ask services, with one that answers as it is told.

use super::*;
use crate::guardrails::{GuardMeters, RemoteSide, SideJob, SideResult};
use futures::FutureExt as _;
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::json;
use shared::guardrails::remote::{Answers, RemoteAnswer};
use shared::guardrails::{Hook, Shape};
use tokio::sync::Barrier;
use uuid::Uuid;

type Script = dyn Fn(&Value) -> Option<Value> + Send + Sync;

/// Answers what it is told to, and keeps what it was asked.
struct Scripted {
    says: Box<Script>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl RemoteAsker for Scripted {
    fn credentials(&self, _: OrganisationId, _: &str) -> Result<Option<Map<String, Value>>, RemoteFailure> {
        Ok(None)
    }

    fn ask(
        &self,
        _: OrganisationId,
        _: WorkspaceId,
        question: Question,
        _: Instant,
    ) -> BoxFuture<'static, Result<Answers, RemoteFailure>> {
        let Question::Calls(calls) = question else { panic!("only calls here") };
        let body: Value = serde_json::from_slice(&calls[0].body).unwrap();
        self.asked.lock().push(body.clone());
        match (self.says)(&body) {
            Some(says) => async move { Ok(Answers::Calls(vec![RemoteAnswer::new(200, says.to_string())])) }.boxed(),
            None => std::future::pending().boxed(),
        }
    }
}

fn chat(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

async fn run(hooks: Value, says: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static) -> (SideResult, Vec<Value>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let asker = Scripted { says: Box::new(says), asked: asked.clone() };
    let hooks = hooks.as_array().unwrap().iter();
    let hooks = hooks.map(|hook| Arc::new(CompiledHook::from_hook(hook.as_object().unwrap()))).collect();
    let side = run_with(hooks, Arc::new(asker)).await;
    let asked = asked.lock().clone();
    (side, asked)
}

async fn run_with(hooks: Vec<Arc<CompiledHook>>, asker: Arc<dyn RemoteAsker>) -> SideResult {
    let request = Arc::new(chat("an x"));
    let job = SideJob {
        hooks,
        hook: Hook::BeforeRequest,
        shape: Shape::Chat,
        request_type: "chatComplete",
        request: request.clone(),
        body: request,
        metadata: Arc::default(),
        headers: Arc::default(),
        text: None,
        status: None,
        size: 100,
        meters: Arc::new(GuardMeters::unregistered()),
    };
    let remote = RemoteSide {
        asker,
        organisation: Uuid::from_u128(1).into(),
        workspace: Uuid::from_u128(2).into(),
        models: None,
        provider: "openai".into(),
        trace_id: "t".into(),
        headers: HeaderMap::new(),
    };
    job.run(Arc::new(remote)).await.unwrap()
}

fn webhook(more: Value) -> Value {
    let mut parameters = json!({ "webhookURL": "https://hooks.test/x", "timeout": 1000 });
    parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "id": "webhook", "parameters": parameters })
}

fn replace(rule: &str) -> Value {
    json!({ "id": "regexReplace", "parameters": { "rule": rule, "redactText": "-" } })
}

#[tokio::test]
async fn what_others_say_counts_as_what_a_check_says() {
    for (says, more, denied, failed) in [
        (json!({ "verdict": true }), json!({}), false, false),
        (json!({ "verdict": false }), json!({}), true, true),
        (json!("rubbish"), json!({}), false, false),
        (json!("rubbish"), json!({ "failOnError": true }), true, true),
    ] {
        let said = says.clone();
        let hook = json!([{ "id": "h", "deny": true, "checks": [webhook(more.clone())] }]);
        let (side, asked) = run(hook, move |_| Some(said.clone())).await;
        assert_eq!((side.denied_by.is_some(), side.is_failed), (denied, failed), "{says} {more}");
        assert_eq!(asked.len(), 1, "{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_is_left_at_its_deadline_and_the_others_are_heard() {
    let hooks = json!([{ "id": "h", "checks": [webhook(json!({})), webhook(json!({ "timeout": 5000 }))] },
                       { "id": "i", "deny": true, "checks": [webhook(json!({}))] }]);
    let (side, asked) = run(hooks, |_| None).await;
    assert_eq!((asked.len(), side.denied_by), (3, None));
    let told: Value = serde_json::from_str(&side.hooks[0].json).unwrap();
    let told = &told["checks"];
    assert_eq!(
        (&told[0]["error"]["name"], &told[1]["error"]["name"]),
        (&json!("TimeoutError"), &json!("TimeoutError"))
    );
}

/// Says nothing before so many have asked.
struct Together(Arc<Barrier>);

impl RemoteAsker for Together {
    fn credentials(&self, _: OrganisationId, _: &str) -> Result<Option<Map<String, Value>>, RemoteFailure> {
        Ok(None)
    }

    fn ask(
        &self,
        _: OrganisationId,
        _: WorkspaceId,
        _: Question,
        _: Instant,
    ) -> BoxFuture<'static, Result<Answers, RemoteFailure>> {
        let all = self.0.clone();
        let says = json!({ "verdict": true }).to_string();
        async move {
            all.wait().await;
            Ok(Answers::Calls(vec![RemoteAnswer::new(200, says)]))
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_wait_at_a_time_on_one_thread() {
    const MANY: usize = 1000;
    let hook = json!({ "id": "h", "deny": true, "checks": [webhook(json!({ "failOnError": true }))] });
    let hook = Arc::new(CompiledHook::from_hook(hook.as_object().unwrap()));
    let asker = Arc::new(Together(Arc::new(Barrier::new(MANY))));
    let all = (0..MANY).map(|_| run_with(vec![hook.clone()], asker.clone()));
    let said = futures::future::join_all(all).await;
    assert!(said.iter().all(|side| side.denied_by.is_none() && !side.is_failed), "each was answered in its time");
}

#[tokio::test]
async fn in_order_each_sees_what_was_made_before_it_and_otherwise_what_was_sent() {
    for (sequential, seen) in [(true, ["an -", "a- -"]), (false, ["an x", "an x"])] {
        let checks = json!([replace("x"), webhook(json!({})), replace("n"), webhook(json!({}))]);
        let hooks = json!([{ "id": "h", "sequential": sequential, "checks": checks }]);
        let (side, asked) = run(hooks, |_| Some(json!({ "verdict": true }))).await;
        let texts: Vec<&str> = asked.iter().map(|asked| asked["request"]["text"].as_str().unwrap()).collect();
        assert_eq!(texts, seen, "{sequential}");
        assert_eq!(side.transformed, Some(chat("a- -")), "{sequential}");
    }
}

#[tokio::test]
async fn one_that_transforms_is_asked_again_about_what_others_made_so_that_nothing_is_undone() {
    let says = |asked: &Value| {
        let text = asked["request"]["text"].as_str().unwrap().replace("an", "the");
        Some(json!({ "verdict": true, "transformedData": { "request": { "json": chat(&text) } } }))
    };
    let hooks = json!([{ "id": "a", "checks": [replace("x")] }, { "id": "b", "checks": [webhook(json!({}))] }]);
    let (side, asked) = run(hooks, says).await;
    assert_eq!(side.transformed, Some(chat("the -")));
    assert_eq!(asked.len(), 2);
    assert_eq!(
        (&asked[0]["request"]["isTransformed"], &asked[1]["request"]["isTransformed"]),
        (&json!(false), &json!(true))
    );
}

#[tokio::test]
async fn a_mutator_only_transforms_and_a_vendor_without_credentials_lets_pass() {
    let says = |_: &Value| Some(json!({ "verdict": false }));
    let (side, _) =
        run(json!([{ "id": "m", "type": "mutator", "deny": true, "checks": [webhook(json!({}))] }]), says).await;
    assert_eq!((side.denied_by, side.is_failed), (None, false));
    for (fails, denied) in [(false, None), (true, Some(0))] {
        let vendor = json!({ "id": "aiguard.scan", "parameters": { "policyId": "7", "failOnError": fails } });
        let (side, asked) = run(json!([{ "id": "v", "deny": true, "checks": [vendor] }]), says).await;
        assert_eq!((side.denied_by, asked.len()), (denied, 0), "{fails}");
    }
}

#[tokio::test]
async fn beyond_twenty_nobody_is_asked_and_the_rest_fails() {
    for (sequential, hooks) in [(false, 3), (true, 3), (false, 2)] {
        let hook = json!({ "id": "h", "sequential": sequential, "checks": vec![webhook(json!({})); 10] });
        let (side, asked) = run(json!(vec![hook; hooks]), |_| Some(json!({ "verdict": true }))).await;
        assert_eq!(asked.len(), 20, "{sequential} {hooks}");
        let verdicts: Vec<bool> = side.hooks.iter().map(|hook| hook.verdict).collect();
        assert_eq!(verdicts, [true, true, false][..hooks], "{sequential}");
        if let Some(last) = side.hooks.get(2) {
            let told: Value = serde_json::from_str(&last.json).unwrap();
            assert_eq!(told["checks"][0]["error"]["name"], "TooMany");
        }
    }
}
