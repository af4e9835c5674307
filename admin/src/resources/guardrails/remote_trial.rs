//! Checks of a trial that services outside answer: asked side by side, with the organisation's credentials, through admin's own
//! way out, whose rules for addresses are the proxy's.

use super::check_table::{self, describe_verdict, is_enabled};
use super::trial_subject::TrialSubject;
use crate::app::App;
use crate::http::ApiError;
use crate::http::backpressure::turns::Turns;
use crate::identity::Call;
use crate::outbound::{Outbound, PostError};
use axum::http::HeaderMap;
use futures::future::try_join_all;
use serde_json::{Map, Value};
use shared::guardrails::remote::{
    Answers, MAX_ANSWER, Question, RemoteAnswer, RemoteCall, RemoteContext, RemoteFailure, scrubbed,
};
use shared::guardrails::{Check, Hook, Verdict};
use shared::identity::jwt::WebKeySet;
use shared::identity::jwt::key_ring::MAX_SET;
use shared::model::Plugin;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Whatever a check says of itself: a person waits.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// Trials that wait for others at once: of all, and of one organisation.
static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns::new(8, 2, Duration::ZERO));

pub struct RemoteResult {
    pub result: Value,
    pub took: Duration,
}

/// A check that others answer: its place, and when it runs.
pub type RemoteTrial = (usize, Arc<dyn Check>, Hook);

type Credentials = HashMap<&'static str, Map<String, Value>>;

/// The checks of a trial that others answer. All are compiled for that, which is no work for a thread that others wait for.
pub fn remote_checks(checks: &Value, subject: &TrialSubject) -> Vec<RemoteTrial> {
    checks
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, check)| is_enabled(check))
        .filter_map(|(place, check)| {
            let (compiled, hook) = check_table::prepare(check, subject).ok()?;
            compiled.remote().is_some().then(|| (place, Arc::from(compiled), hook))
        })
        .collect()
}

/// What others say, by the places of their checks.
pub async fn asked(
    app: &App,
    call: &Call,
    remote: Vec<RemoteTrial>,
    subject: &Arc<TrialSubject>,
) -> Result<HashMap<usize, RemoteResult>, ApiError> {
    if remote.is_empty() {
        return Ok(HashMap::new());
    }
    let Some(_turn) = TURNS.enter(call.caller.organisation_id()).await else {
        return Err(ApiError::RateLimited {
            message: "Too many trials wait for services; try again shortly",
            retry_after: 5,
        });
    };
    let needed = remote.iter().filter_map(|(_, check, _)| check.remote()?.plugin()).collect();
    let credentials = Arc::new(opened(app, call.caller.organisation_id(), needed).await?);
    let asking = remote.into_iter().map(|(place, check, hook)| {
        let asked = AskedCheck { check, hook, subject: subject.clone() };
        ask(app, place, asked, credentials.clone())
    });
    try_join_all(asking).await.map(|answers| answers.into_iter().collect())
}

/// A check, and what it is asked about: bodies of strangers, written and read where nobody else waits.
#[derive(Clone)]
struct AskedCheck {
    check: Arc<dyn Check>,
    hook: Hook,
    subject: Arc<TrialSubject>,
}

impl AskedCheck {
    fn question(&self, credentials: &Credentials) -> Result<Question, Box<Verdict>> {
        let headers = HeaderMap::new();
        let Some(service) = self.check.remote() else { return Err(self.unasked().into()) };
        let context = RemoteContext {
            credentials: service.plugin().and_then(|plugin| credentials.get(plugin)),
            headers: Some(&headers),
            ..RemoteContext::default()
        };
        let subject = check_table::judged(&self.subject, &*self.check, self.hook, &headers);
        service.ask(&subject, &context).and_then(Question::bounded)
    }

    fn read(&self, answers: &Answers) -> Verdict {
        let headers = HeaderMap::new();
        let subject = check_table::judged(&self.subject, &*self.check, self.hook, &headers);
        match self.check.remote() {
            Some(service) => service.read(&subject, answers),
            None => self.unasked(),
        }
    }

    /// What it says by itself.
    fn unasked(&self) -> Verdict {
        self.check.run(&check_table::judged(&self.subject, &*self.check, self.hook, &HeaderMap::new()))
    }

    fn limit(&self) -> Duration {
        self.check.remote().map_or(MAX_WAIT, |service| service.timeout().min(MAX_WAIT))
    }
}

async fn off_threads<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::Internal)
}

/// The stored credentials of these vendors, as far as there are any.
async fn opened(app: &App, organisation: Uuid, needed: HashSet<&'static str>) -> Result<Credentials, ApiError> {
    let mut found = Credentials::new();
    if needed.is_empty() {
        return Ok(found);
    }
    let sql = format!("SELECT {} FROM plugins WHERE organisation_id = $1 AND sealed IS NOT NULL", Plugin::COLUMNS);
    let db = app.db.get().await?;
    for row in db.query(&sql, &[&organisation]).await? {
        let plugin = Plugin::from_row(&row)?;
        let (Some(name), Some(sealed)) = (needed.get(plugin.plugin.as_str()), &plugin.sealed) else { continue };
        let secret = app.sealer.open(&*db, &plugin.place(), sealed).await?;
        if let Some(fields) = Plugin::credentials(&secret) {
            found.insert(*name, fields);
        }
    }
    Ok(found)
}

async fn ask(
    app: &App,
    place: usize,
    asked: AskedCheck,
    credentials: Arc<Credentials>,
) -> Result<(usize, RemoteResult), ApiError> {
    let began = Instant::now();
    let verdict = verdict(app, asked, credentials).await?;
    let result = off_threads(move || describe_verdict(verdict)).await?;
    Ok((place, RemoteResult { result, took: began.elapsed() }))
}

async fn verdict(app: &App, asked: AskedCheck, credentials: Arc<Credentials>) -> Result<Verdict, ApiError> {
    let asking = asked.clone();
    let question = match off_threads(move || asking.question(&credentials)).await? {
        Ok(question) => question,
        Err(verdict) => return Ok(*verdict),
    };
    let secrets = question.secrets();
    let verdict = match tokio::time::timeout(asked.limit(), answered(&app.outbound, question)).await {
        Ok(Ok(answers)) => off_threads(move || asked.read(&answers)).await?,
        Ok(Err(failure)) => failure.verdict(),
        Err(_) => RemoteFailure::TimedOut.verdict(),
    };
    Ok(scrubbed(verdict, &secrets))
}

async fn answered(outbound: &Outbound, question: Question) -> Result<Answers, RemoteFailure> {
    match question {
        Question::Calls(calls) => {
            Ok(Answers::Calls(try_join_all(calls.into_iter().map(|call| post(outbound, call))).await?))
        }
        // A trial asks anew.
        Question::CachedCall { call, .. } => Ok(Answers::Calls(vec![post(outbound, call).await?])),
        Question::KeySet { url, .. } => {
            let unusable = |why: String| RemoteFailure::Unreachable(format!("the key set cannot be fetched: {why}"));
            let body = outbound.get(&url, MAX_SET).await.map_err(unusable)?;
            let keys = WebKeySet::parse(&body).map_err(|why| unusable(why.to_owned()))?;
            Ok(Answers::KeySet(Arc::new(keys)))
        }
        Question::Images { .. } => {
            Err(RemoteFailure::Unreachable("a trial fetches no images: only the proxy does".into()))
        }
        Question::Addresses { .. } => {
            Err(RemoteFailure::Unreachable("a trial calls no address of a text: only the proxy does".into()))
        }
        // Its limits, its log and its price are the proxy's.
        Question::Model(_) => Err(RemoteFailure::Unreachable(
            "a trial asks no model: only the proxy does, for a request of the workspace".into(),
        )),
    }
}

async fn post(outbound: &Outbound, call: RemoteCall) -> Result<RemoteAnswer, RemoteFailure> {
    let headers: HeaderMap = call.headers.into_iter().collect();
    match outbound.post(&call.url, &headers, call.body, MAX_ANSWER).await {
        Ok((status, body)) => Ok(RemoteAnswer::new(status, body)),
        Err(PostError::Forbidden(rule)) => Err(RemoteFailure::Forbidden(rule)),
        Err(PostError::TooLong) => Err(RemoteFailure::TooLong),
        Err(PostError::Broken(why)) => Err(RemoteFailure::Unreachable(why)),
    }
}
