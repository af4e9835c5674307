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
mod admitter;
mod asked_model;
mod attempt_outcome;
mod attempts;
mod authenticator;
mod batch_row;
mod batches;
mod betas;
mod body_limits;
mod call;
pub mod circuits;
mod counted_tokens;
pub mod explain;
mod fair_turn;
mod files;
mod foundation_model;
mod guard;
pub mod guards;
mod hedge;
mod held_relay;
mod ignored_headers;
mod judge_relay;
#[cfg(test)]
mod lab;
pub(crate) mod list_models;
mod look_up;
mod mcp;
mod media_fetch;
mod native_call;
mod next_step;
mod own_request;
mod passage;
mod planner;
pub mod prepare;
mod prompt_call;
pub(crate) mod provider_jobs;
pub(crate) mod provider_objects;
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
pub(crate) mod row_guard;
mod sent_mark;
mod session;
mod translate;
mod upgrade;
mod wrong_path;

pub use admitter::Admitter;
pub use authenticator::Authenticator;
pub use batch_row::{BatchRow, RowAnswer};
pub use batches::BatchesRequest;
pub use body_limits::BodyLimits;
pub use call::ProviderCalls;
pub use files::FilesRequest;
pub use guards::Guards;
pub use mcp::{DrainNotice, McpGateway, McpRequest, MergedRequest};
pub use next_step::{BatchSwitch, Delivered, EngineRequest, KnownRequest, NextStep};
pub use own_request::OwnRequest;
pub use passage::{Passage, RelayAsk};
pub use planner::Planner;
pub use provider_objects::ProviderObjectRequest;
pub use read_ahead::{Departed, Departure, MAX_READ_AHEAD};
pub use recorder::Recorder;
pub use router::Router;

use crate::answer::{self, Ended};
use crate::batches::records::BatchRecords;
use crate::cache::Cache;
use crate::catalog::choose_plan::wished_retry;
use crate::catalog::target::Target;
use crate::files::ManagedFiles;
use crate::guardrails::shape;
use crate::identity::identify::{INFERENCE, LISTING, Principal};
use crate::identity::metadata::trace_id;
use crate::metrics::{Lane, Metrics, Outcome};
use crate::net::downstream::Downstream;
use crate::refusal::Refusal;
use crate::request::classify::{Endpoint, Route, classify, dialect};
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
use pingora_http::RequestHeader;
use shared::guardrails::Shape;
use std::net::IpAddr;
use std::sync::Arc;

/// Heads beyond this are refused with 431. Pingora itself gives up at 1 MiB or 256 headers.
const MAX_HEAD: usize = 64 << 10;

pub struct Engine {
    pub snapshot: Arc<Snapshot>,
    pub metrics: Arc<Metrics>,
    pub aliases: Arc<Aliases>,
    pub body_limits: BodyLimits,
    pub authenticator: Authenticator,
    pub recorder: Recorder,
    pub planner: Planner,
    pub admitter: Admitter,
    pub router: Router,
    pub cache: Arc<Cache>,
    pub calls: ProviderCalls,
    /// None when their store cannot be opened.
    pub files: Option<Arc<ManagedFiles>>,
    pub batches: Arc<BatchRecords>,
    pub mcp: McpGateway,
}

impl Engine {
    /// Everything that is decided from the head alone. `peer` is the other end of the connection.
    pub async fn open(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        let path = head.uri.path();
        let route = classify(&head.method, path);
        visit.request.dialect = dialect(&route);
        visit.enter(lane(&route), &self.metrics);
        if head_size(head) > MAX_HEAD {
            return Err(Refusal::headers_too_large(MAX_HEAD));
        }
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        visit.request.alias = headers.alias.clone();
        visit.request.trace_id = trace_id(&headers)?;
        match route {
            Route::Greeting => Ok(NextStep::Greeting),
            Route::Preflight => Ok(NextStep::Preflight),
            Route::ControlPlane => Ok(NextStep::ControlPlane),
            Route::Explain => Ok(NextStep::Explain(self.asker(head, peer, &headers, visit).await)),
            Route::Prompt(reference) => {
                let known = self.learn(head, peer, &headers, visit).await?;
                self.open_prompt(reference, &headers, known)
            }
            Route::Mcp(slug) => Box::pin(self.open_mcp(slug, head, peer, &headers, visit)).await,
            Route::McpMetadata(resource) => Ok(self.mcp_metadata(resource, head)),
            Route::McpKeys(organisation) => self.mcp_keys(organisation),
            Route::Ambiguous(endpoint) => Err(Refusal::ambiguous_path(endpoint.path())),
            Route::NotFound => Err(wrong_path::outside(&head.method, path)),
            Route::MethodNotAllowed => Err(Refusal::method_not_allowed(head.method.as_str())),
            Route::Engine(endpoint) => {
                let known = self.learn(head, peer, &headers, visit).await?;
                self.open_engine(endpoint, head, &headers, known, visit).await
            }
            Route::Relay(path) => {
                let known = self.learn_relayed(&path, head, peer, &headers, visit).await?;
                if files::is_managed(&path, head, &headers, &known.plan) {
                    return self.open_files(path.into_owned(), head, known, visit).await;
                }
                if batches::is_managed(&path, head, &headers, &known.plan) {
                    return self.open_batches(path.into_owned(), head, known, visit).await;
                }
                self.open_relay(path.into_owned(), None, head, &headers, known, visit).await
            }
            Route::Models { path, name } => {
                let caller = self.authenticator.identify(head, peer, &headers, LISTING, visit).await?;
                Box::pin(self.models(path, name, head, &headers, caller, visit)).await
            }
        }
    }

    /// What both lanes learn from the head, in this order: who asks, what the request says of itself, which config it
    /// follows. From the first of these on it is logged.
    async fn learn(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<KnownRequest, Refusal> {
        let caller = self.authenticator.identify(head, peer, headers, &[INFERENCE], visit).await?;
        visit.request.workspace_id = Some(caller.workspace.id.uuid());
        self.recorder.open_log(&caller, head, headers, visit)?;
        let metadata = self.planner.metadata(headers, &head.headers, &caller)?;
        let found = self.planner.find(headers, &caller)?;
        let plan = self.planner.follow(found, headers, &metadata, visit);
        Ok(KnownRequest { caller, metadata, plan })
    }

    /// The same for a path that only a provider could know. Of a request that names none it is probably a slip.
    async fn learn_relayed(
        &self,
        path: &str,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<KnownRequest, Refusal> {
        let known = self.learn(head, peer, headers, visit).await;
        if let Ok(known) = &known {
            self.router.check_upgrade(path, head, headers, known)?;
        }
        let is_lost = match &known {
            Ok(known) => known.plan.is_nothing(),
            // An administrator's key, which is no workspace's: it cannot mean a provider.
            Err(refusal) => refusal.status == 403,
        };
        if is_lost
            && !wrong_path::names_target(headers)
            && let Some(refusal) = wrong_path::without_provider(&head.method, path)
        {
            return Err(refusal);
        }
        if wrong_path::without_second_version(&head.method, path).is_some() {
            visit.routing.warn(wrong_path::DOUBLED);
        }
        known
    }

    /// To the relay lane, with its target if that is known already.
    async fn open_relay(
        &self,
        path: String,
        target: Option<Target>,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        known: KnownRequest,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        let ask = RelayAsk::new(path, head, known)?;
        self.admit_head(head, visit, &ask).await?;
        let judge = self.router.relay_judge(&ask, head)?;
        if let Some(family) = provider_objects::provider_object_family(head, &ask.path)
            && self.router.may_be_mapped(&ask, family, headers)
        {
            return self.open_provider_object(family, ask, judge, head, headers, visit);
        }
        if batches::asked_output(head, &ask.path).is_some() {
            return Box::pin(self.open_native_output(ask, head, headers, visit)).await;
        }
        Ok(NextStep::Relay(Box::new(self.router.departure(ask, target, judge, head, headers))))
    }

    async fn open_engine(
        &self,
        endpoint: Endpoint,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        known: KnownRequest,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        let path = || match endpoint.native_route() {
            None => endpoint.path().to_owned(),
            Some(_) => native_route::within_v1(head.uri.path()).to_owned(),
        };
        let plan = &known.plan;
        let needs_model = || self.router.may_need_model(plan, headers, &known.caller);
        if endpoint.takes_forms() && !multipart::is_held(&head.headers, headers, !plan.is_nothing(), needs_model()) {
            visit.enter(Lane::Relay, &self.metrics);
            return self.open_relay(path(), None, head, headers, known, visit).await;
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
                return self.open_relay(path(), Some(target), head, headers, known, visit).await;
            }
            // Of one with variants the model may choose another.
            first = Some(target).filter(|target| target.provider.row.variants.is_empty());
        }
        if !endpoint.takes_forms() {
            check_content_type(headers.content_type)?;
        }
        let KnownRequest { caller, metadata, plan } = known;
        Ok(NextStep::Engine(Box::new(EngineRequest {
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
        self.conclude(client, visit, ended).await
    }

    /// Counts how an exchange ended, and answers one of which the client has had nothing.
    async fn conclude(&self, client: &mut impl Downstream, visit: &mut Visit, ended: Ended) -> Delivered {
        let provider = visit.routing.provider_number;
        let is_hit = visit.routing.cache.status.is_hit();
        match ended {
            Ended::Complete if is_hit => Delivered::Answered,
            Ended::Complete => {
                self.metrics.attempt(provider, visit.answer.status, Outcome::Answered);
                Delivered::Answered
            }
            Ended::BrokenOff(class) => {
                class.into_iter().for_each(|class| self.metrics.attempt(provider, 0, Outcome::Failed(class)));
                Delivered::Answered
            }
            Ended::Torn(class) => {
                class.into_iter().for_each(|class| self.metrics.attempt(provider, 0, Outcome::Failed(class)));
                Delivered::Torn
            }
            Ended::ClientGone => {
                if !is_hit {
                    self.metrics.attempt(provider, 0, Outcome::ClientLeft);
                }
                visit.answer.status = 499;
                Delivered::ClientGone
            }
            Ended::Failed(failure) => {
                if let Some(outcome) = failure.outcome {
                    self.metrics.attempt(provider, 0, outcome);
                }
                self.refuse(client, visit, &failure.refusal).await
            }
        }
    }

    /// Answers for the gateway itself, and counts why.
    pub async fn refuse(&self, client: &mut impl Downstream, visit: &mut Visit, refusal: &Refusal) -> Delivered {
        self.metrics.refused(refusal.code);
        tracing::debug!(request_id = visit.id(), code = refusal.code.as_str(), status = refusal.status, "refused");
        match answer::refuse(client, visit, refusal).await {
            Ok(()) => Delivered::Answered,
            Err(_) => Delivered::ClientGone,
        }
    }
}

/// What routing decisions depend on.
fn moment<'m>(facts: RequestFacts<'m>, caller: &'m Principal, chance: &'m mut dyn FnMut() -> f64) -> RoutingInputs<'m> {
    RoutingInputs { facts, scope: caller.workspace.id.as_bytes(), clock: &Machine, chance }
}

fn lane(route: &Route<'_>) -> Lane {
    match route {
        Route::Engine(_) | Route::Prompt(_) => Lane::Engine,
        Route::Relay(_) | Route::Models { .. } | Route::Mcp(_) => Lane::Relay,
        Route::ControlPlane => Lane::ControlPlane,
        Route::Explain
        | Route::Greeting
        | Route::Preflight
        | Route::McpMetadata(_)
        | Route::McpKeys(_)
        | Route::Ambiguous(_)
        | Route::NotFound
        | Route::MethodNotAllowed => Lane::Own,
    }
}

fn head_size(head: &RequestHeader) -> usize {
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    headers.sum::<usize>() + head.uri.path_and_query().map_or(0, |path| path.as_str().len())
}

fn path_and_query(path: &str, head: &RequestHeader) -> String {
    match head.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}
