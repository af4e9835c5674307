//! `POST /explain`: what the gateway would do with a request, without doing it. Which config and version applies, which
//! targets would be tried in which order and why, with which settings, which of them would be refused, and which limits
//! speak of it. No provider is asked, no credential opened, nothing counted.
//!
//! What became of a request stands in the logs, which only admin reads: such a question is passed on to it.

mod asker;
pub mod circuits;
mod guardrails;
mod limits;
mod prompt;
mod settings;
pub mod survey;
mod translation;
mod warnings;

pub use asker::ExplainCaller;

use crate::catalog::choose_plan::ChosenPlan;
use crate::context::Visit;
use crate::context::metrics::Metrics;
use crate::engine::answer;
use crate::engine::native_call::NativeCall;
use crate::engine::translate::{explained, is_counted_here, own_address};
use crate::engine::{Admitter, Authenticator, BodyLimits, Delivered, Planner, Router, Services, refuse};
use crate::identity::identify::Principal;
use crate::net::downstream::Downstream;
use crate::relay::relayed_place::explained_place;
use crate::request::body::Fields;
use crate::request::classify::{Endpoint, Route, classify};
use crate::request::headers::Aliases;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::{NotReceived, receive};
use crate::request::refusal::Refusal;
use crate::routing::RequestFacts;
use crate::routing::plan::Leaf;
use crate::runtime::tenant_share::Tenant;
use crate::snapshot::Snapshot;
use asker::AllowedCaller;
use bytes::Bytes;
use chrono::Utc;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use limits::{ExplainedRequest, ExplainedTarget};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use settings::{millis, settings};
use shared::providers::{Family, NotOffered};
use shared::routes::{self, Lookup};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use survey::{Stop, SurveyInputs, survey};
use translation::{TrialBudget, TrialRequest};

/// A question about the past is not longer, and no more than this is read for somebody who may not ask another. It is less
/// than what Pingora keeps of a body, to send it on.
const MAX_PAST: usize = 8 << 10;

/// How a question was dealt with.
#[derive(Debug)]
pub enum Explained {
    Delivered(Delivered),
    /// It is about the past: admin answers.
    Past,
}

/// The request that is asked about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    #[serde(default = "post")]
    method: String,
    path: Option<String>,
    /// Whose request it would be; admin keys must say.
    workspace_id: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    body: Value,
}

fn post() -> String {
    "POST".to_owned()
}

/// The request, as the stages want it.
struct Hypothesis {
    method: Method,
    uri: Uri,
    route: ExplainedLane,
    headers: HeaderMap,
    body: Vec<u8>,
    /// The question came with one.
    has_body: bool,
    /// Of a call that runs a stored prompt: which one.
    prompt: Option<String>,
}

enum ExplainedLane {
    Engine(Endpoint),
    /// What the provider would be asked for.
    Relay(String),
}

/// Answers what would become of a request, without making it.
pub struct Explainer {
    snapshot: Arc<Snapshot>,
    metrics: Arc<Metrics>,
    aliases: Arc<Aliases>,
    body_limits: Arc<BodyLimits>,
    authenticator: Arc<Authenticator>,
    planner: Arc<Planner>,
    admitter: Arc<Admitter>,
    router: Arc<Router>,
}

impl Explainer {
    pub fn new(services: &Services) -> Self {
        let Services { snapshot, metrics, aliases, body_limits, authenticator, planner, admitter, router, .. } =
            services.clone();
        Self { snapshot, metrics, aliases, body_limits, authenticator, planner, admitter, router }
    }

    /// Answers a question that is sent as the body.
    pub async fn explain(&self, client: &mut impl Downstream, visit: &mut Visit, asker: ExplainCaller) -> Explained {
        let max_bytes = if asker.0.is_ok() { self.body_limits.max_bytes.min(longest_question()) } else { MAX_PAST };
        let bounds =
            self.body_limits.bounds(max_bytes, asker.0.as_ref().map_or(Tenant::GATEWAY, AllowedCaller::tenant));
        let explained = match (receive(client, &bounds).await, asker.0) {
            (Ok(body), _) if is_past(&body.bytes) => return Explained::Past,
            (Ok(body), Ok(asking)) => self.explanation(&body.bytes, asking).await,
            (Err(NotReceived::Gone), _) => return Explained::Delivered(Delivered::ClientGone),
            (Ok(_) | Err(NotReceived::Refused(_)), Err(refusal)) | (Err(NotReceived::Refused(refusal)), Ok(_)) => {
                Err(refusal)
            }
        };
        let written = match explained {
            Ok(explanation) => answer::own(client, visit, &explanation).await,
            Err(refusal) => return Explained::Delivered(refuse(&self.metrics, client, visit, &refusal).await),
        };
        Explained::Delivered(if written.is_ok() { Delivered::Answered } else { Delivered::ClientGone })
    }

    async fn explanation(&self, question: &[u8], asking: AllowedCaller) -> Result<Value, Refusal> {
        let question: Question = serde_json::from_slice(question).map_err(Refusal::invalid_json)?;
        let caller = asking.principal(
            question.workspace_id.as_deref(),
            self.authenticator.deployment.as_ref(),
            &self.snapshot,
        )?;
        let caller = &caller;
        let mut hypothesis = hypothesis(question)?;
        let run = self.render_hypothesis(&mut hypothesis, caller).await?;
        let hypothesis = hypothesis;
        let headers = GatewayHeaders::from_headers(&hypothesis.headers, &self.aliases)?;
        let headers = headers.or_provider(run.as_ref().map(|run| &run.version.provider));
        let found = self.planner.find(&headers, caller)?;
        let nothing = Fields::default();
        let fields = match hypothesis.route {
            ExplainedLane::Engine(_) => Fields::parse_object(&hypothesis.body)?,
            ExplainedLane::Relay(_) => Fields::parse_object(&hypothesis.body).unwrap_or_default(),
        };
        // Of a relayed body only the model is looked at.
        let params = if matches!(hypothesis.route, ExplainedLane::Engine(_)) { &fields } else { &nothing };
        let mut metadata = self.planner.metadata(&headers, &hypothesis.headers, caller)?;
        if let ExplainedLane::Engine(endpoint) = &hypothesis.route {
            self.planner.add_from_body(&mut metadata, endpoint.family(), params);
        }
        let view = SurveyInputs {
            facts: RequestFacts { metadata: &metadata, params, pathname: hypothesis.uri.path() },
            scope: caller.workspace.id.as_bytes(),
            now: Instant::now(),
            unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        };
        let stops = survey(&found.plan, &view);
        let mut budget = TrialBudget::default();
        let mut plan = Vec::with_capacity(stops.len());
        for stop in &stops {
            let leaf = found.plan.leaf(stop.at);
            let mut described = describe_stop(stop, &found, view.now);
            described["target"] = match &leaf.prompt_id {
                None => self.would_be(leaf, &headers, caller, &fields, &hypothesis, &mut budget),
                Some(reference) => self.would_be_prompted(leaf, reference, caller, &hypothesis, &mut budget).await,
            };
            plan.push(described);
        }
        let (lane, family) = match &hypothesis.route {
            ExplainedLane::Engine(endpoint) => ("engine", Some(endpoint.family())),
            ExplainedLane::Relay(path) => {
                ("relay", Family::from_path(&hypothesis.method, path).map(|(family, _)| family))
            }
        };
        let asked = ExplainedRequest {
            caller,
            metadata: &metadata,
            config: found.saved.as_deref(),
            family,
            endpoint: match &hypothesis.route {
                ExplainedLane::Engine(endpoint) => Some(*endpoint),
                ExplainedLane::Relay(_) => None,
            },
            body: matches!(hypothesis.route, ExplainedLane::Engine(_)).then_some(&hypothesis.body),
            fields: params,
        };
        let reached = stops.iter().filter(|stop| stop.is_reached);
        let possible = reached.filter_map(|stop| {
            let model = model(found.plan.leaf(stop.at), &fields);
            let resolved = self
                .router
                .resolver(Utc::now())
                .resolve(found.plan.leaf(stop.at), &headers, caller, model.as_deref())
                .ok()?;
            let (option, edits) = (&found.plan.node(stop.at).path, &found.plan.leaf(stop.at).edits);
            Some(ExplainedTarget { option, target: resolved.target, model: resolved.model.or(model), edits })
        });
        let limits = self.admitter.describe_limits(&asked, &possible.collect::<Vec<_>>()).await;
        Ok(json!({
            "object": "explanation",
            "lane": lane,
            "metadata": metadata,
            "config": config(&found),
            "prompt": run.as_ref().map(prompt::describe_run),
            "plan": plan,
            "limits": limits,
            "guardrails": self.describe_guardrails(&stops, &found, caller, (&hypothesis, params), &metadata),
            "warnings": self.warnings(&found, &headers, caller),
        }))
    }

    /// Whom a target would ask, or why it would not.
    fn would_be(
        &self,
        leaf: &Leaf,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        fields: &Fields<'_>,
        hypothesis: &Hypothesis,
        budget: &mut TrialBudget,
    ) -> Value {
        let asked = model(leaf, fields);
        let resolver = self.router.resolver(Utc::now());
        let resolved = match resolver.resolve(leaf, headers, caller, asked.as_deref()) {
            Ok(resolved) => resolved,
            Err(refusal) => return refused(&refusal),
        };
        let row = &resolved.target.provider.row;
        let named = resolved.model.as_deref().or(asked.as_deref()).unwrap_or_default();
        let mut translated_to = None;
        let path = match &hypothesis.route {
            ExplainedLane::Engine(endpoint) if is_counted_here(row, *endpoint, named) => {
                let mut own = blank();
                own["provider"] = resolved.target.provider.name.as_str().into();
                own["model"] = named.into();
                own["translated_to"] = "estimate".into();
                return own;
            }
            ExplainedLane::Engine(endpoint) => match explained(&resolved.target, *endpoint, fields, named) {
                Some(Ok((path, codec))) => {
                    translated_to = codec;
                    Ok(path)
                }
                Some(Err(refusal)) => return refused(&refusal),
                None if endpoint.native_route().is_some() => {
                    let why = NotOffered::Missing(endpoint.family());
                    return refused(&Refusal::endpoint_not_supported(&resolved.target.provider.name, why));
                }
                None => row.native_path(endpoint.family()).map(str::to_owned).ok_or(endpoint.path()),
            },
            ExplainedLane::Relay(path) => match explained_place(&resolved.target, &hypothesis.method, path, named) {
                Some(Ok((path, codec))) => {
                    translated_to = codec;
                    Ok(path)
                }
                Some(Err(refusal)) => return refused(&refusal),
                None => Err(&**path),
            },
        };
        // What a row does not list may still pass under its own path.
        let path = path.or_else(|path| match row.upstream_path(&Method::POST, path) {
            Ok(place) => Ok(place.into_owned()),
            Err(_) => Err(path),
        });
        let name = &resolved.target.provider.name;
        let path = match path {
            Ok(path) => path,
            Err(path) => return refused(&Refusal::endpoint_not_supported(name, format!("it has no {path}"))),
        };
        let moved = match &hypothesis.route {
            ExplainedLane::Engine(endpoint) => match own_address(&resolved.target, endpoint.family(), named) {
                Some(url) => self.router.at_address(&resolved.target, url),
                None => Ok(None),
            },
            ExplainedLane::Relay(path) => {
                let family = Family::from_path(&hypothesis.method, path).map(|(family, _)| family);
                let base = family.and_then(|family| row.base(family));
                self.router.at_base(resolved.target.clone(), base).map(Some)
            }
        };
        let moved = match moved {
            Ok(moved) => moved,
            Err(refusal) => return refused(&refusal),
        };
        let tried = match &hypothesis.route {
            ExplainedLane::Engine(endpoint) if hypothesis.has_body => {
                let asked = TrialRequest {
                    endpoint: *endpoint,
                    leaf,
                    target: &resolved.target,
                    headers,
                    body: &hypothesis.body,
                    fields,
                    model: resolved.model.as_deref().or(asked.as_deref()),
                    renamed: resolved.model.as_deref(),
                    tenant: caller.tenant(),
                };
                self.try_out(&asked, budget)
            }
            _ => None,
        };
        let is_named = headers.provider.is_some() || headers.virtual_key.is_some() || headers.named_by_mode().is_some();
        let is_named = is_named || resolved.model.is_some();
        let found_at = (!is_named).then(|| resolver.plain_name(leaf, headers, caller, asked.as_deref())).flatten();
        let origin = &moved.as_ref().unwrap_or(&resolved.target).origin;
        json!({
            "provider": name,
            "url": format!("{}://{}{}{path}", origin.scheme().text(), origin.authority(), origin.base_path()),
            "model": resolved.model.or(asked),
            "found_at": found_at.map(|provider| format!("@{}", provider.slug)),
            "translated_to": translated_to,
            "dropped_params": tried.as_ref().and_then(|tried| tried.as_ref().ok()),
            "request_timeout": millis(Some(resolved.target.timeout)),
            "stream_idle_timeout": millis(Some(resolved.target.stream_idle)),
            "refusal": tried.as_ref().and_then(|tried| tried.as_ref().err()).map(why),
        })
    }
}

/// The model that a target would be asked for.
fn model(leaf: &Leaf, fields: &Fields<'_>) -> Option<String> {
    let own = leaf.edits.model().and_then(|json| serde_json::from_str::<String>(json).ok());
    own.or_else(|| fields.text("model").map(|model| model.into_owned()))
}

/// As long as the control plane's table says.
fn longest_question() -> usize {
    match routes::find("POST", "/explain") {
        Lookup::Operation(operation) => operation.body_limit,
        Lookup::WrongMethod | Lookup::Unknown | Lookup::NotControlPlane => MAX_PAST,
    }
}

/// Whether a question is about a request that was made.
fn is_past(question: &[u8]) -> bool {
    if question.len() > MAX_PAST {
        return false;
    }
    serde_json::from_slice::<Map<String, Value>>(question)
        .is_ok_and(|fields| fields.contains_key("request_id") || fields.contains_key("trace_id"))
}

fn hypothesis(question: Question) -> Result<Hypothesis, Refusal> {
    let path = question.path.ok_or_else(|| Refusal::invalid_json("`path`, `request_id` or `trace_id` is missing"))?;
    let uri: Uri = path.parse().map_err(|_| Refusal::invalid_json("`path` is no path"))?;
    let method =
        Method::from_bytes(question.method.as_bytes()).map_err(|_| Refusal::invalid_json("`method` is none"))?;
    let mut prompt = None;
    let route = match classify(&method, uri.path()) {
        Route::Engine(endpoint) => ExplainedLane::Engine(endpoint),
        Route::Prompt(reference) => {
            prompt = Some(reference);
            ExplainedLane::Engine(Endpoint::of(Family::Chat))
        }
        Route::Relay(path) => ExplainedLane::Relay(path.into_owned()),
        _ => return Err(Refusal::invalid_json("`path` is not one that goes to a provider: begin it with /v1/")),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &question.headers {
        let wrong = || Refusal::invalid_json(format!("`headers.{name}` is no header"));
        // A header that is JSON may be written as JSON.
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        headers.append(
            HeaderName::try_from(name).map_err(|_| wrong())?,
            HeaderValue::try_from(text).map_err(|_| wrong())?,
        );
    }
    let has_body = !question.body.is_null();
    let body = match question.body {
        Value::Null => b"{}".to_vec(),
        Value::String(text) => text.into_bytes(),
        other => other.to_string().into_bytes(),
    };
    let body = match NativeCall::from_uri(&uri).filter(|_| matches!(route, ExplainedLane::Engine(_))) {
        Some(native) => native.complete(&Bytes::from(body))?.to_vec(),
        None => body,
    };
    Ok(Hypothesis { method, uri, route, headers, body, has_body, prompt })
}

fn config(found: &ChosenPlan) -> Value {
    let row = found.saved.as_ref().map(|saved| &saved.row);
    json!({
        "source": found.source.text(),
        "id": row.map(|row| row.id),
        "slug": row.map(|row| &row.slug),
        "version_id": row.map(|row| row.version_id),
    })
}

fn describe_stop(stop: &Stop, found: &ChosenPlan, now: Instant) -> Value {
    let (node, leaf) = (found.plan.node(stop.at), found.plan.leaf(stop.at));
    json!({
        "option": node.path,
        "is_reached": stop.is_reached,
        "share": stop.share,
        "why": stop.why,
        "settings": settings(leaf, now),
    })
}

fn refused(refusal: &Refusal) -> Value {
    let mut target = blank();
    target["refusal"] = why(refusal);
    target
}

/// A target that is asked nothing.
fn blank() -> Value {
    json!({
        "provider": null, "url": null, "model": null, "found_at": null, "translated_to": null, "dropped_params": null,
        "request_timeout": null, "stream_idle_timeout": null, "refusal": null,
    })
}

fn why(refusal: &Refusal) -> Value {
    json!({
        "status": refusal.status, "code": refusal.code.as_str(), "message": refusal.message, "param": refusal.param,
    })
}
