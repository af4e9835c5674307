//! `POST /guardrails/test`: what checks say of a text, a request or an answer, without a provider and without saving
//! anything. The checks are the ones that the proxy runs. Services outside are asked only where the trial says so
//! (`run_remote`).

use super::check_table::is_enabled;
use super::remote_trial::{RemoteResult, RemoteTrial};
use super::trial_subject::TrialSubject;
use super::{check_table, content, remote_trial};
use crate::app::App;
use crate::crud::Answer;
use crate::http::ApiError;
use crate::http::backpressure::turns::Turns;
use crate::identity::Call;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Trials that run at once, of all and of one organisation. They take a core each.
static TURNS: LazyLock<Turns> = LazyLock::new(|| Turns::new(2, 1, MAX_WAIT));
/// As long as a trial waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// As long as all its checks may take together.
const MAX_RUN: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Trial {
    checks: Value,
    text: Option<String>,
    request: Option<Value>,
    response: Option<Value>,
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    run_remote: Option<bool>,
}

pub async fn try_checks(State(app): State<App>, call: Call) -> Answer {
    let trial: Trial = call.body()?;
    let organisation = call.caller.organisation_id();
    let (checks, subject, remote) = off_threads(organisation, move || prepared(trial)).await??;
    let subject = Arc::new(subject);
    let answers = remote_trial::asked(&app, &call, remote, &subject).await?;
    off_threads(organisation, move || run(&checks, &subject, &answers, Instant::now() + MAX_RUN)).await.map(Json)
}

/// Patterns and schemas of strangers on texts of strangers: not on a thread that others wait for.
async fn off_threads<T: Send + 'static>(
    organisation: Uuid,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let turn = TURNS.enter(organisation).await.ok_or(TOO_MANY)?;
    let working = tokio::task::spawn_blocking(move || {
        // Kept to the end, also when nobody waits for the answer any more.
        let _turn = turn;
        work()
    });
    working.await.map_err(|_| ApiError::Internal)
}

const TOO_MANY: ApiError =
    ApiError::RateLimited { message: "Too many checks are being tried; try again shortly", retry_after: 5 };

/// The checks, what they look at, and those of them that others are to be asked for.
fn prepared(trial: Trial) -> Result<(Value, TrialSubject, Vec<RemoteTrial>), ApiError> {
    let faults = content::check_faults(&trial.checks)?;
    if !faults.is_empty() {
        return Err(ApiError::Faults(faults));
    }
    let subject = TrialSubject::new(trial.text, trial.request, trial.response, trial.metadata)?;
    let remote = match trial.run_remote == Some(true) {
        true => remote_trial::remote_checks(&trial.checks, &subject),
        false => Vec::new(),
    };
    Ok((trial.checks, subject, remote))
}

/// Each check by itself; an error counts as passed unless the check says `failOnError`, as it does in the proxy.
/// What others said of some stands in `said`, by their places.
fn run(checks: &Value, subject: &TrialSubject, answers: &HashMap<usize, RemoteResult>, deadline: Instant) -> Value {
    let all = checks.as_array().into_iter().flatten().enumerate();
    let results: Vec<Value> = all
        .filter(|(_, check)| is_enabled(check))
        .map(|(place, check)| {
            let started = Instant::now();
            let (mut result, waited) = match (answers.get(&place), started < deadline) {
                (Some(answer), _) => (answer.result.clone(), answer.took),
                (None, true) => (check_table::run(check, subject), Duration::ZERO),
                (None, false) => {
                    let late = check_table::error("TooLate", "the checks before this one took all the time of a trial");
                    (late, Duration::ZERO)
                }
            };
            result["id"] = check["id"].clone();
            let took = started.elapsed() + waited;
            result["execution_time"] = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).into();
            let id = check["id"].as_str().unwrap_or_default();
            let setting = check["parameters"]["failOnError"].as_bool();
            result["fail_on_error"] = setting.unwrap_or_else(|| shared::guardrails::fails_on_error(id)).into();
            result
        })
        .collect();
    let passes = |result: &Value| {
        let is_excused = result.get("error").is_some() && result["fail_on_error"] == json!(false);
        result["verdict"] == json!(true) || is_excused
    };
    json!({ "object": "guardrail-test", "verdict": results.iter().all(passes), "checks": results })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_comes_too_late_says_so() {
        let checks = json!([{ "id": "default.contains", "parameters": { "operator": "any", "words": ["t"] } }]);
        let subject = TrialSubject::new(Some("t".to_owned()), None, None, None).unwrap();
        let in_time = run(&checks, &subject, &HashMap::new(), Instant::now() + Duration::from_secs(3600));
        assert_eq!((&in_time["checks"][0]["verdict"], in_time["checks"][0].get("error")), (&json!(true), None));
        let late = run(&checks, &subject, &HashMap::new(), Instant::now());
        assert_eq!(late["checks"][0]["error"]["name"], "TooLate", "{late}");
        assert_eq!(late["checks"][0]["id"], "default.contains", "{late}");
    }
}
