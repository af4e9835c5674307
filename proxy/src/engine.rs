//! The engine lane: calls whose body is understood. Knows no socket of the client's: that side is a `Downstream`.
//!
//! In order: `intake` learns who asks and by which config, `open` what the head says, `attempts` takes the body and tries targets one
//! after the other. `native_call` puts into a body what a vendor's own route says in its path, `prompt_call` makes it of a stored
//! prompt, `guard` asks the hooks, `admit` the limits, `translate` writes it for a target that speaks another format, `look_up`
//! asks the cache, `prepare` builds the head that goes upstream, `call` sends it. `answer` is the way back; `context::settle`
//! writes the record.
//!
//! What stages need from the process stands in services (`Services`), each with what it needs and no more: `Authenticator` (who
//! asks), `Recorder` (what is logged), `Planner` (which config), `Admitter` (which limits), `Router` (which target),
//! `ProviderCalls` (the call). The capabilities above this room take the same services.

mod admit;
mod admitter;
pub mod answer;
mod attempt_outcome;
mod attempts;
mod authenticator;
pub(crate) mod betas;
mod body_limits;
pub(crate) mod call;
pub(crate) mod conclude;
mod counted_tokens;
mod engine_request;
pub(crate) mod fair_turn;
mod foundation_model;
pub(crate) mod guard;
pub mod guards;
mod hedge;
pub(crate) mod ignored_headers;
mod intake;
#[cfg(test)]
mod lab;
mod look_up;
mod media_fetch;
pub(crate) mod native_call;
mod own_request;
mod planner;
pub mod prepare;
mod prompt_call;
mod recorder;
mod remote_media;
pub(crate) mod repair;
mod response_steps;
pub(crate) mod router;
pub(crate) mod sent_mark;
mod services;
pub(crate) mod translate;
pub mod wrong_path;

pub use admitter::Admitter;
pub use authenticator::Authenticator;
pub use body_limits::BodyLimits;
pub use call::ProviderCalls;
pub use conclude::{Delivered, refuse};
pub use engine_request::{BatchSwitch, EngineRequest};
pub use guards::Guards;
pub use intake::{Intake, KnownRequest};
pub use own_request::OwnRequest;
pub use planner::Planner;
pub use recorder::Recorder;
pub use router::Router;
pub use services::Services;

use crate::cache::Cache;
use crate::catalog::choose_plan::wished_retry;
use crate::catalog::target::Target;
use crate::context::Visit;
use crate::context::metrics::{Lane, Metrics};
use crate::guardrails::shape;
use crate::identity::identify::Principal;
use crate::net::downstream::Downstream;
use crate::request::classify::Endpoint;
use crate::request::headers::{Aliases, GatewayHeaders};
use crate::request::multipart;
use crate::request::native_route;
use crate::request::receive::check_content_type;
use crate::request::refusal::Refusal;
use crate::routing::RequestFacts;
use crate::routing::clock::Machine;
use crate::routing::course::RoutingInputs;
use crate::snapshot::Snapshot;
pub(crate) use conclude::conclude;
use foundation_model::FoundationModels;
use native_call::NativeCall;
use pingora_http::RequestHeader;
use prepare::ProviderHeaders;
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
pub(crate) fn moment<'m>(
    facts: RequestFacts<'m>,
    caller: &'m Principal,
    chance: &'m mut dyn FnMut() -> f64,
) -> RoutingInputs<'m> {
    RoutingInputs { facts, scope: caller.workspace.id.as_bytes(), clock: &Machine, chance }
}

pub(crate) fn path_and_query(path: &str, head: &RequestHeader) -> String {
    match head.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}
