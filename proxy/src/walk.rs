//! The request's walk: what each stage decides, in order, for both lanes. Knows no socket of the client's: that side
//! is a `Downstream`.
//!
//! In order: `request::classify` says what the path is, `identity` who is asking, `request::receive` takes the body,
//! (`native_call` puts into it what a vendor's own route says in its path, `prompt_call` makes it of a stored prompt), `catalog::choose_plan` finds the config, `admit` asks the limits that apply, `catalog::resolve` makes a target of a
//! leaf of the plan, `translate` writes the body for a target that speaks another format, `look_up` asks the cache, `prepare` builds the head that
//! goes upstream, `call` sends it, `answer` passes the answer on, `visit::settle` writes the record. The relay lane has the same first steps, then leaves the bytes to Pingora, with
//! the heads edited by `relay`; where guardrails judge what is relayed, `held_relay` carries it.
//!
//! What stages need from the process stands in services, each with what it needs and no more: `Authenticator` (who asks),
//! `Recorder` (what is logged), `Planner` (which config), `Admitter` (which limits), `Router` (which target),
//! `ProviderCalls` (the call). The walk hands a request from one to the next.

mod admit;
mod admit_head;
mod admit_passage;
mod admitter;
mod asked_model;
mod attempt_outcome;
mod attempts;
mod authenticator;
mod batch_row;
pub mod batches;
mod betas;
mod body_limits;
mod call;
pub mod circuits;
mod conclude;
mod counted_tokens;
mod engine_request;
pub mod explain;
mod fair_turn;
pub mod files;
mod foundation_model;
mod guard;
pub mod guards;
mod hedge;
mod held_relay;
mod ignored_headers;
mod intake;
mod judge_relay;
#[cfg(test)]
mod lab;
pub mod list_models;
mod look_up;
mod mcp;
mod media_fetch;
mod native_call;
mod own_request;
mod passage;
mod planner;
pub mod prepare;
mod prompt_call;
pub mod provider_jobs;
pub mod provider_objects;
mod read_ahead;
mod recorder;
pub mod relay;
mod relay_signature;
mod relayed_answer;
mod relayed_body;
mod relayed_place;
mod remote_media;
mod repair;
mod response_steps;
mod router;
pub mod row_guard;
mod sent_mark;
mod services;
mod session;
mod translate;
mod upgrade;
pub mod wrong_path;

pub use admitter::Admitter;
pub use authenticator::Authenticator;
pub use batch_row::{BatchRow, RowAnswer};
pub use batches::{BatchEndpoints, BatchesRequest};
pub use body_limits::BodyLimits;
pub use call::ProviderCalls;
pub use conclude::{Delivered, refuse};
pub use engine_request::{BatchSwitch, EngineRequest};
pub use explain::Explainer;
pub use files::{FileEndpoints, FilesRequest};
pub use guards::Guards;
pub use intake::{Intake, KnownRequest};
pub use list_models::ModelLists;
pub use mcp::{DrainNotice, McpCall, McpGateway};
pub use own_request::OwnRequest;
pub use passage::{Passage, RelayAsk, RelayStep};
pub use planner::Planner;
pub use provider_jobs::ProviderJobs;
pub use provider_objects::{ObjectStep, ProviderObjectRequest, ProviderObjects};
pub use read_ahead::{Departed, Departure, MAX_READ_AHEAD, RelayLane};
pub use recorder::Recorder;
pub use router::Router;
pub use row_guard::RowGuards;
pub use services::Services;

use crate::cache::Cache;
use crate::catalog::choose_plan::wished_retry;
use crate::catalog::target::Target;
use crate::guardrails::shape;
use crate::identity::identify::Principal;
use crate::metrics::{Lane, Metrics};
use crate::net::downstream::Downstream;
use crate::refusal::Refusal;
use crate::request::classify::Endpoint;
use crate::request::headers::{Aliases, GatewayHeaders};
use crate::request::multipart;
use crate::request::native_route;
use crate::request::receive::check_content_type;
use crate::routing::RequestFacts;
use crate::routing::clock::Machine;
use crate::routing::course::RoutingInputs;
use crate::snapshot::Snapshot;
use crate::visit::Visit;
use crate::walk::native_call::NativeCall;
use crate::walk::prepare::ProviderHeaders;
use conclude::conclude;
use foundation_model::FoundationModels;
use pingora_http::RequestHeader;
use shared::guardrails::Shape;
use std::sync::Arc;

/// The engine lane: calls that are understood, tried at targets one after the other, and answered in the words of the caller.
pub struct Engine {
    pub snapshot: Arc<Snapshot>,
    pub metrics: Arc<Metrics>,
    pub aliases: Arc<Aliases>,
    pub body_limits: Arc<BodyLimits>,
    pub intake: Intake,
    pub recorder: Arc<Recorder>,
    pub planner: Arc<Planner>,
    pub admitter: Arc<Admitter>,
    pub router: Arc<Router>,
    pub cache: Arc<Cache>,
    pub calls: Arc<ProviderCalls>,
    foundation: FoundationModels,
}

/// What the engine makes of a head.
#[derive(Debug)]
pub enum Opened {
    Call(Box<EngineRequest>),
    /// Its bytes go to the provider as they are.
    Relayed(Box<Relayed>),
}

/// A call at a path of the engine whose bytes nobody has to understand.
#[derive(Debug)]
pub struct Relayed {
    pub path: String,
    /// If it is known already.
    pub target: Option<Target>,
    pub known: KnownRequest,
}

impl Engine {
    pub fn new(services: &Services, cache: Arc<Cache>) -> Self {
        let (intake, foundation) = (Intake::new(services), FoundationModels::new(services));
        let Services { snapshot, metrics, aliases, body_limits, .. } = services.clone();
        let Services { recorder, planner, admitter, router, calls, .. } = services.clone();
        Self {
            snapshot,
            metrics,
            aliases,
            body_limits,
            intake,
            recorder,
            planner,
            admitter,
            router,
            cache,
            calls,
            foundation,
        }
    }

    /// What the head alone decides.
    pub fn open(
        &self,
        endpoint: Endpoint,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        known: KnownRequest,
        visit: &mut Visit,
    ) -> Result<Opened, Refusal> {
        let path = || match endpoint.native_route() {
            None => endpoint.path().to_owned(),
            Some(_) => native_route::within_v1(head.uri.path()).to_owned(),
        };
        let plan = &known.plan;
        let needs_model = || self.router.may_need_model(plan, headers, &known.caller);
        if endpoint.takes_forms() && !multipart::is_held(&head.headers, headers, !plan.is_nothing(), needs_model()) {
            visit.enter(Lane::Relay, &self.metrics);
            return Ok(Opened::Relayed(Box::new(Relayed { path: path(), target: None, known })));
        }
        let mut first = None;
        // A form may name another provider than the headers do.
        if !endpoint.takes_forms()
            && plan.is_nothing()
            && headers.names_plain_provider()
            && headers.virtual_key.is_none()
        {
            let resolver = self.router.resolver(visit.request.began_at);
            let target = resolver.resolve(plan.leaf(0), headers, &known.caller, None)?.target;
            visit.routing.provider = Some(target.provider.label.clone());
            // A provider that has no place of its own for this endpoint takes the caller's bytes as they are, unless somebody
            // must look into them.
            if translate::way(&target.provider.row, endpoint, "").is_none()
                && !translate::is_counted_here(&target.provider.row, endpoint, "")
            {
                if !matches!(shape(endpoint.family(), endpoint.native_route()), Shape::Other | Shape::Unread)
                    && self.router.guards.defaults(&known.caller).is_some()
                {
                    let why = "guardrails of the workspace must look into it, and its form is not known";
                    return Err(Refusal::endpoint_not_supported(&target.provider.name, why));
                }
                return Ok(Opened::Relayed(Box::new(Relayed { path: path(), target: Some(target), known })));
            }
            // Of one with variants the model may choose another.
            first = Some(target).filter(|target| target.provider.row.variants.is_empty());
        }
        if !endpoint.takes_forms() {
            check_content_type(headers.content_type)?;
        }
        let KnownRequest { caller, metadata, plan } = known;
        Ok(Opened::Call(Box::new(EngineRequest {
            endpoint,
            caller,
            plan,
            metadata,
            meant: ProviderHeaders::from_headers(headers),
            is_strict: headers.is_strict(),
            retry: wished_retry(headers)?,
            cache: look_up::cache_headers(headers)?,
            is_untracked: !headers.is_debug(),
            first,
            form: None,
            native: endpoint.native_route().and_then(|_| NativeCall::from_uri(&head.uri)).map(Box::new),
            prompt: None,
            is_own: false,
            batch: None,
        })))
    }

    /// One exchange on the engine lane, from the body to the last byte of the answer.
    pub async fn run(&self, client: &mut impl Downstream, visit: &mut Visit, request: &mut EngineRequest) -> Delivered {
        let ended = self.exchange(client, visit, request).await;
        conclude(&self.metrics, client, visit, ended).await
    }
}

/// What routing decisions depend on.
fn moment<'m>(facts: RequestFacts<'m>, caller: &'m Principal, chance: &'m mut dyn FnMut() -> f64) -> RoutingInputs<'m> {
    RoutingInputs { facts, scope: caller.workspace.id.as_bytes(), clock: &Machine, chance }
}

fn path_and_query(path: &str, head: &RequestHeader) -> String {
    match head.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}
