//! The request's walk: what each stage decides, in order, for both lanes. Knows no socket of the client's: that side
//! is a `Downstream`.

mod admit;
mod asked_model;
mod attempts;
mod call;
mod hedge;
#[cfg(test)]
mod lab;
mod passage;
mod read_ahead;
mod relayed_body;
mod response_steps;
mod session;
mod turn;

pub use passage::{Ask, Passage};
pub use read_ahead::{Departure, MOST as MOST_READ_AHEAD};

use crate::bodies::Rules;
use crate::deployment::{self, Identity};
use crate::dial::Dialer;
use crate::downstream::Downstream;
use crate::explain::Asker;
use crate::fairness::Fairness;
use crate::headers::{Aliases, GatewayHeaders};
use crate::hosts::Hosts;
use crate::inline::InlineConfigs;
use crate::journal::Journal;
use crate::metrics::{Lane, Metrics, Outcome};
use crate::multipart::{self, Form};
use crate::plan::Plan;
use crate::providers::Providers;
use crate::refusal::Refusal;
use crate::routing::Facts;
use crate::routing::clock::Machine;
use crate::routing::course::Moment;
use crate::secrets::Secrets;
use crate::snapshot::Snapshot;
use crate::stages::admit::{Switches, Tariff};
use crate::stages::answer::{self, Ended};
use crate::stages::classify::{Endpoint, Route, classify, dialect};
use crate::stages::headers_to_metadata::HeadersToMetadata;
use crate::stages::identify::{INFERENCE, Identified, LISTING, Principal, identify};
use crate::stages::plan::{find, wished_retry};
use crate::stages::prepare::Meant;
use crate::stages::receive::{BodyMemory, Bounds, Pace, check_content_type};
use crate::stages::resolve::Resolver;
use crate::stages::settle::Log;
use crate::stages::trace::{metadata, trace_id};
use crate::target::Target;
use crate::tokens::{Refused, Tokens};
use crate::visit::Visit;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use ipnet::IpNet;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::client_ip::client_ip;
use shared::config::Retry;
use shared::jwt::failures::Failure as TokenFailure;
use shared::seal::Sealer;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Heads beyond this are refused with 431. Pingora itself gives up at 1 MiB or 256 headers.
const MAX_HEAD: usize = 64 << 10;

pub struct Engine {
    pub snapshot: Arc<Snapshot>,
    pub dialer: Arc<Dialer>,
    pub providers: Providers,
    /// Which deployment this proxy is, if it says so.
    pub deployment: Option<Identity>,
    pub hosts: Hosts,
    pub inline: InlineConfigs,
    pub sealer: Arc<Sealer>,
    pub secrets: Arc<Secrets>,
    pub metrics: Arc<Metrics>,
    /// None when calls are not logged.
    pub journal: Option<Arc<Journal>>,
    /// Rate limits and budgets, as this replica shares them with others.
    pub limits: Arc<crate::limits::Limits>,
    /// Whose turn it is at providers that limit their concurrency.
    pub fairness: Fairness,
    /// Which limits hold at all.
    pub switches: Switches,
    pub tariff: Arc<Tariff>,
    pub aliases: Aliases,
    pub headers_to_metadata: HeadersToMetadata,
    pub tokens: Tokens,
    /// Peers whose word about the client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
    pub body_memory: Arc<BodyMemory>,
    pub bounds: Limits,
    /// Steps that tests put behind those of the plan.
    #[cfg(test)]
    pub more_steps: fn(&mut answer::Steps),
}

/// The settings the walk needs.
#[derive(Debug, Clone)]
pub struct Limits {
    pub max_body: usize,
    pub body_timeout: Duration,
    /// How fast a large body must come.
    pub body_pace: Pace,
    pub first_byte: Duration,
    pub stream_idle: Duration,
    /// How much of each body is kept beside a log; none when bodies are not kept.
    pub log_body: Option<usize>,
}

/// Where a request goes after its head was read.
#[derive(Debug)]
pub enum Next {
    Greeting,
    Preflight,
    ControlPlane,
    Engine(Box<Errand>),
    /// A question about a request: what would become of it, or what became of it.
    Explain(Asker),
    /// To a provider, once it is known what its body asks for.
    Relay(Box<Departure>),
    /// To a provider that was found already.
    Pass(Box<Passage>),
    /// JSON of our own making.
    Page {
        status: u16,
        body: Bytes,
    },
}

/// What the engine lane knows of a request before it reads the body.
#[derive(Debug)]
pub struct Errand {
    endpoint: Endpoint,
    caller: Principal,
    plan: Arc<Plan>,
    metadata: Map<String, Value>,
    meant: Meant,
    /// How often the request wishes to be tried again, where its config says nothing of it.
    retry: Option<Retry>,
    /// Found already on the way to this lane.
    first: Option<Target>,
    /// Of a body that is one, once it was read.
    form: Option<Form>,
}

/// How an engine exchange left the client's connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Answered in full, by the provider or by us.
    Answered,
    /// Half an answer went out; the connection must be closed so that nobody takes it for whole.
    Torn,
    ClientGone,
}

impl Engine {
    /// Everything that is decided from the head alone. `peer` is the other end of the connection.
    pub async fn open(&self, head: &RequestHeader, peer: Option<IpAddr>, visit: &mut Visit) -> Result<Next, Refusal> {
        let path = head.uri.path();
        let route = classify(&head.method, path);
        visit.request.dialect = dialect(&route);
        visit.enter(lane(&route), &self.metrics);
        if head_size(head) > MAX_HEAD {
            return Err(Refusal::headers_too_large(MAX_HEAD));
        }
        let headers = GatewayHeaders::of(&head.headers, &self.aliases)?;
        visit.request.alias = headers.alias.clone();
        visit.request.trace_id = trace_id(&headers)?;
        match route {
            Route::Greeting => Ok(Next::Greeting),
            Route::Preflight => Ok(Next::Preflight),
            Route::ControlPlane => Ok(Next::ControlPlane),
            Route::Explain => Ok(Next::Explain(self.asker(head, peer, &headers, visit).await)),
            Route::Prompt => {
                self.identify(head, peer, &headers, &[INFERENCE], visit).await?;
                Err(Refusal::not_implemented("running a prompt"))
            }
            Route::Ambiguous(family) => Err(Refusal::ambiguous_path(family.path())),
            Route::NotFound => Err(Refusal::not_found()),
            Route::MethodNotAllowed => Err(Refusal::method_not_allowed(head.method.as_str())),
            Route::Engine(endpoint) => {
                let caller = self.identify(head, peer, &headers, &[INFERENCE], visit).await?;
                self.open_log(&caller, head, &headers, visit)?;
                self.open_engine(endpoint, head, &headers, caller, visit).await
            }
            Route::Relay(path) => {
                let caller = self.identify(head, peer, &headers, &[INFERENCE], visit).await?;
                self.open_log(&caller, head, &headers, visit)?;
                let metadata = metadata(headers.metadata, &head.headers, &caller, &self.headers_to_metadata)?;
                let plan = self.plan(&headers, &caller, &metadata, visit)?;
                let ask = Ask::new(path.into_owned(), head, caller, metadata, plan)?;
                self.admit_head(head, visit, &ask).await?;
                Ok(Next::Relay(Box::new(self.departure(ask, None, head, &headers))))
            }
            Route::Models { path, name } => {
                let caller = self.identify(head, peer, &headers, LISTING, visit).await?;
                Box::pin(self.models(path, name, head, &headers, caller, visit)).await
            }
        }
    }

    pub(crate) async fn identify(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        scopes: &[&str],
        visit: &Visit,
    ) -> Result<Principal, Refusal> {
        let now = visit.request.began_at;
        let caller = match identify(headers, &self.snapshot, scopes, now)? {
            Identified::Key(caller) => caller,
            Identified::Token { text, hash } => {
                // Boxed, or its state would be part of every request's.
                let identified = Box::pin(self.tokens.identify(text, hash, &self.snapshot, scopes, now)).await;
                identified.map_err(|refused| self.reject(refused, text, head, peer, visit))?
            }
        };
        if let Some(deployment) = &self.deployment {
            deployment.admit(&caller.workspace, &self.snapshot)?;
        }
        if let Some(token) = headers.client_auth {
            deployment::admit(token.as_bytes(), &caller.workspace, &self.snapshot)?;
        }
        Ok(caller)
    }

    /// From here on the request is somebody's, and is noted however it ends.
    pub(crate) fn open_log(
        &self,
        caller: &Principal,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<(), Refusal> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if journal.is_refusing() {
            return Err(Refusal::journal_full());
        }
        let rules = self.bounds.log_body.filter(|_| !self.is_metrics_only(caller));
        let rules = rules.map(|most| Rules { most, is_debug: headers.is_debug() });
        visit.observer.log = Some(Log::open(journal, caller, head, headers, rules));
        Ok(())
    }

    /// Whether its workspace or its organisation wants nothing kept of what is said.
    fn is_metrics_only(&self, caller: &Principal) -> bool {
        caller.workspace.is_metrics_only
            || self
                .snapshot
                .organisation(&caller.workspace.organisation_id)
                .is_some_and(|organisation| organisation.is_metrics_only)
    }

    fn plan(
        &self,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        metadata: &Map<String, Value>,
        visit: &mut Visit,
    ) -> Result<Arc<Plan>, Refusal> {
        let found = find(headers, caller, &self.snapshot, &self.inline)?;
        if let Some(log) = &mut visit.observer.log {
            log.planned(&found, metadata);
        }
        visit.routing.config = found.saved;
        Ok(found.plan)
    }

    /// Tells the audit trail of the organisation, later and elsewhere, and the client at once.
    fn reject(
        &self,
        refused: Refused,
        text: &[u8],
        head: &RequestHeader,
        peer: Option<IpAddr>,
        visit: &Visit,
    ) -> Refusal {
        const LONGEST_PATH: usize = 2048;
        let refusal = Refusal::rejected_token(&refused.rejection);
        self.tokens.trail.note(refused.organisation_id.map(|organisation_id| TokenFailure {
            organisation_id,
            rejection: refused.rejection,
            mask: shared::jwt::mask(&String::from_utf8_lossy(text)),
            method: head.method.as_str().to_owned(),
            path: head.uri.path().chars().take(LONGEST_PATH).collect(),
            request_id: visit.id().parse().ok(),
            client_ip: peer.map(|peer| client_ip(peer, &head.headers, &self.trusted_proxies)),
        }));
        refusal
    }

    async fn open_engine(
        &self,
        endpoint: Endpoint,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        caller: Principal,
        visit: &mut Visit,
    ) -> Result<Next, Refusal> {
        let metadata = metadata(headers.metadata, &head.headers, &caller, &self.headers_to_metadata)?;
        let plan = self.plan(headers, &caller, &metadata, visit)?;
        let needs_model = || self.may_need_model(&plan, headers, &caller);
        if endpoint.takes_forms() && !multipart::is_held(&head.headers, headers, !plan.is_nothing(), needs_model()) {
            visit.enter(Lane::Relay, &self.metrics);
            let ask = Ask::new(endpoint.path().to_owned(), head, caller, metadata, plan)?;
            self.admit_head(head, visit, &ask).await?;
            return Ok(Next::Relay(Box::new(self.departure(ask, None, head, headers))));
        }
        let mut first = None;
        // A form may name another provider than the headers do.
        if !endpoint.takes_forms()
            && plan.is_nothing()
            && headers.names_plain_provider()
            && headers.virtual_key.is_none()
        {
            let target = self.resolver(visit.request.began_at).resolve(plan.leaf(0), headers, &caller, None)?.target;
            visit.routing.provider = Some(target.provider.label.clone());
            // A provider that keeps this endpoint elsewhere or not at all takes the caller's bytes as they are.
            if target.provider.row.native_path(endpoint.family()).is_none() {
                let ask = Ask::new(endpoint.path().to_owned(), head, caller, metadata, plan)?;
                self.admit_head(head, visit, &ask).await?;
                return Ok(Next::Relay(Box::new(self.departure(ask, Some(target), head, headers))));
            }
            first = Some(target);
        }
        if !endpoint.takes_forms() {
            check_content_type(headers.content_type)?;
        }
        Ok(Next::Engine(Box::new(Errand {
            endpoint,
            caller,
            plan,
            metadata,
            meant: Meant::of(headers),
            retry: wished_retry(headers)?,
            first,
            form: None,
        })))
    }

    pub(crate) fn resolver(&self, now: DateTime<Utc>) -> Resolver<'_> {
        Resolver {
            snapshot: &self.snapshot,
            providers: &self.providers,
            hosts: &self.hosts,
            dialer: &self.dialer,
            sealer: &self.sealer,
            first_byte: self.bounds.first_byte,
            stream_idle: self.bounds.stream_idle,
            now,
        }
    }

    /// What bounds a body of the workspace.
    pub(crate) fn body_bounds(&self, max_bytes: usize, workspace: Uuid) -> Bounds<'_> {
        let Limits { body_timeout: timeout, body_pace: pace, .. } = self.bounds;
        Bounds { max_bytes, timeout, pace, memory: &self.body_memory, workspace }
    }

    /// One exchange on the engine lane, from the body to the last byte of the answer.
    pub async fn run(&self, client: &mut impl Downstream, visit: &mut Visit, errand: &mut Errand) -> Delivered {
        match self.exchange(client, visit, errand).await {
            Ended::Complete => {
                self.metrics.attempt(Outcome::Answered);
                Delivered::Answered
            }
            Ended::BrokenOff(class) => {
                self.metrics.attempt(Outcome::Failed(class));
                Delivered::Answered
            }
            Ended::Torn(class) => {
                self.metrics.attempt(Outcome::Failed(class));
                Delivered::Torn
            }
            Ended::ClientGone => {
                self.metrics.attempt(Outcome::ClientLeft);
                visit.answer.status = 499;
                Delivered::ClientGone
            }
            Ended::Failed(failure) => {
                if let Some(outcome) = failure.outcome {
                    self.metrics.attempt(outcome);
                }
                self.refuse(client, visit, &failure.refusal).await
            }
        }
    }

    /// Answers for the gateway itself, and counts why.
    pub async fn refuse(&self, client: &mut impl Downstream, visit: &mut Visit, refusal: &Refusal) -> Delivered {
        self.metrics.refused(refusal.code);
        tracing::debug!(request_id = visit.id(), code = refusal.code, status = refusal.status, "refused");
        match answer::refuse(client, visit, refusal).await {
            Ok(()) => Delivered::Answered,
            Err(_) => Delivered::ClientGone,
        }
    }
}

/// What routing decisions depend on.
fn moment<'m>(facts: Facts<'m>, caller: &'m Principal, chance: &'m mut dyn FnMut() -> f64) -> Moment<'m> {
    Moment { facts, scope: caller.workspace.id.as_bytes(), clock: &Machine, chance }
}

fn lane(route: &Route<'_>) -> Lane {
    match route {
        Route::Engine(_) => Lane::Engine,
        Route::Relay(_) | Route::Models { .. } => Lane::Relay,
        Route::ControlPlane => Lane::ControlPlane,
        Route::Explain
        | Route::Prompt
        | Route::Greeting
        | Route::Preflight
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
