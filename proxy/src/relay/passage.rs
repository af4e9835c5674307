//! The relay lane's way through its plan. A body that is streamed cannot be sent twice, so a request has one target;
//! the next one takes its place only while nothing has been sent: when a target cannot be asked, or not be reached.

use super::asked_model::{AskedModel, Splice};
use super::head_edits;
use super::relayed_body::RelayedBody;
use super::relayed_place::relayed_place;
use super::{relay_signature, upgrade};
use crate::catalog::resolve::Resolved;
use crate::catalog::signing::{AccountCredential, Signing};
use crate::catalog::target::{Credential, Target};
use crate::context::Visit;
use crate::engine::{KnownRequest, Router, moment, prepare};
use crate::identity::identify::Principal;
use crate::limits::admission::Admission;
use crate::limits::fairness::Permit;
use crate::net::downstream::Contention;
use crate::request::body::Fields;
use crate::request::headers::{Aliases, GatewayHeaders};
use crate::request::past_the_gateway::leads_past_the_gateway;
use crate::request::realtime_head;
use crate::request::refusal::Refusal;
use crate::routing::plan::{Leaf, Plan};
use crate::routing::{AfterAttempt, AttemptResult, Course, RequestFacts, Speaker, Way};
use bytes::Bytes;
use chrono::Utc;
use http::{HeaderValue, StatusCode, header};
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::providers::{Address, Family, ProviderEntry, Way as FamilyWay};
use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// What becomes of a question that may be answered before its bytes are passed on.
#[derive(Debug)]
pub enum RelayStep {
    Passage(Box<Passage>),
    /// JSON of our own making.
    Page {
        status: u16,
        body: Bytes,
    },
}

/// A request on the relay lane: where it goes, and what decides where it would go next.
pub struct Passage {
    pub target: Target,
    pub path_and_query: String,
    /// The model, as the target is asked for it.
    pub model: Option<String>,
    /// It asks which models there are: no call that limits count.
    pub is_listing: bool,
    ask: RelayAsk,
    body: RelayedBody,
    way: Way,
    /// Addresses of the target that could not be reached.
    pub tried: Vec<IpAddr>,
    /// Its place among those under way to the target, where these are limited.
    pub(crate) permit: Option<Permit>,
    /// Of a realtime session: what its next responses may use.
    pub(super) promised: VecDeque<Option<Box<Admission>>>,
    /// When the caller of a session was last looked at.
    pub(super) checked: Instant,
    /// What could not be asked when something happened in a session.
    pub(super) owed: Owed,
    /// A computed credential, and the token that stood for it in the head that was sent.
    signed: Option<(Arc<AccountCredential>, Option<HeaderValue>)>,
}

/// Limits that a session must be asked about before its client goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Owed {
    #[default]
    Nothing,
    Budgets,
    All,
}

/// What is known of a request before it has a target.
#[derive(Debug)]
pub struct RelayAsk {
    /// What the client asks for, as classified.
    pub path: String,
    pub caller: Principal,
    pub metadata: Map<String, Value>,
    pub plan: Arc<Plan>,
    pub(super) model: AskedModel,
}

impl RelayAsk {
    pub fn new(path: String, head: &RequestHeader, known: KnownRequest) -> Result<Self, Refusal> {
        let model = AskedModel::in_head(&path, head.uri.query())?;
        let KnownRequest { caller, metadata, plan } = known;
        Ok(Self { path, caller, metadata, plan, model })
    }

    /// The same request for another path, which names no model.
    pub(crate) fn at(&self, path: String) -> Self {
        let Self { caller, metadata, plan, .. } = self;
        let (caller, metadata, plan) = (caller.clone(), metadata.clone(), plan.clone());
        Self { path, caller, metadata, plan, model: AskedModel::Nothing }
    }
}

/// A target, and what it is asked for.
struct Turned {
    target: Target,
    path_and_query: String,
    model: Option<String>,
    splice: Option<Splice>,
}

impl fmt::Debug for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passage").field("target", &self.target).field("path", &self.ask.path).finish_non_exhaustive()
    }
}

impl Passage {
    fn new(turned: Turned, ask: RelayAsk, way: Way) -> Self {
        let Turned { target, path_and_query, model, splice } = turned;
        Self {
            target,
            path_and_query,
            model,
            is_listing: false,
            ask,
            body: RelayedBody { splice, ..RelayedBody::default() },
            way,
            tried: Vec::new(),
            permit: None,
            promised: VecDeque::new(),
            checked: Instant::now(),
            owed: Owed::Nothing,
            signed: None,
        }
    }

    fn turn(&mut self, turned: Turned) {
        self.target = turned.target;
        self.path_and_query = turned.path_and_query;
        self.model = turned.model;
        self.body.splice = turned.splice;
        self.tried.clear();
    }

    /// What is asked for, by whom, and what the request says of itself.
    pub(crate) fn asked(&self) -> (&str, &Principal, &Map<String, Value>) {
        (&self.ask.path, &self.ask.caller, &self.ask.metadata)
    }

    /// With what was read of its body already.
    pub(super) fn begin_body(&mut self, body: RelayedBody) {
        self.body = RelayedBody { splice: self.body.splice.take(), ..body };
    }

    /// A connection is about to be sent this head, and the body after it.
    pub async fn send_head(
        &mut self,
        head: &mut RequestHeader,
        aliases: &Aliases,
        signing: &Signing,
    ) -> Result<(), Refusal> {
        self.body.begin();
        if upgrade::is_opaque(head, &self.ask.path) && matches!(self.target.credential, Credential::Stored(_)) {
            head.remove_header(&header::UPGRADE);
        }
        let unsigned = head_edits::towards_provider(head, &self.target, &self.path_and_query, aliases)?;
        if self.is_listing {
            head_edits::without_body(head);
        }
        if self.body.is_permitted {
            head.remove_header(&header::EXPECT);
        }
        if let Some(splice) = &self.body.splice {
            head_edits::set_length(head, |length| splice.length(length))?;
        }
        match unsigned {
            Some(credential) => {
                let body = self.body.to_sign();
                Box::pin(relay_signature::put(signing, &credential, &self.target, head, body.as_deref())).await?;
                self.signed = Some((credential, head.headers.get(header::AUTHORIZATION).cloned()));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The provider has answered with this status.
    pub fn note_answer(&self, status: StatusCode, signing: &Signing) {
        self.answered(status.as_u16());
        if status == StatusCode::UNAUTHORIZED {
            self.retire_token(signing);
        }
    }

    /// The provider answered 401. What was relayed unread cannot be sent again, but the next request gets a new token.
    fn retire_token(&self, signing: &Signing) {
        if let Some((credential, sent)) = &self.signed {
            signing.retire(credential, sent.as_ref());
        }
    }

    /// Whether the target's credential can be had, where one must be computed: before a connection is made, so that
    /// another target can take its place.
    pub async fn await_credential(&self, signing: &Signing, sent: &RequestHeader) -> Result<(), Refusal> {
        match prepare::computed(&self.target)? {
            Some(credential) => {
                let body = self.body.to_sign();
                Box::pin(relay_signature::ready(signing, &credential, &self.target, sent, body.as_deref())).await
            }
            None => Ok(()),
        }
    }

    /// A piece of the client's body, with what was read before it.
    pub fn rejoin(&mut self, body: &mut Option<Bytes>) {
        self.body.rejoin(body);
    }

    /// The piece is about to be sent.
    pub fn pass(&mut self, body: &mut Option<Bytes>) -> Result<(), Refusal> {
        if self.is_listing {
            *body = None;
            return Ok(());
        }
        self.body.pass(body)
    }

    /// Where it stands in its plan.
    pub(crate) fn leaf(&self) -> &Leaf {
        self.ask.plan.leaf(self.way.at())
    }

    pub(super) fn caller_mut(&mut self) -> &mut Principal {
        &mut self.ask.caller
    }

    /// Resolves when somebody waits for its place at the provider; none where it has none.
    pub fn contention(&self) -> Option<Contention> {
        self.permit.as_ref().map(Permit::contention)
    }

    /// Tells the target's breaker how the provider answered.
    pub fn answered(&self, status: u16) {
        if let Some(breaker) = &self.ask.plan.leaf(self.way.at()).breaker {
            breaker.record(status, Instant::now());
        }
    }
}

impl Router {
    /// To the first target that can be asked.
    pub(crate) fn passage(
        &self,
        ask: RelayAsk,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<Passage, Refusal> {
        let plan = ask.plan.clone();
        let params = Fields::default();
        let facts = RequestFacts { metadata: &ask.metadata, params: &params, pathname: head.uri.path() };
        let mut course = Course::begin(&plan, &mut moment(facts, &ask.caller, &mut rand::random::<f64>))?;
        let turned = loop {
            let refusal = match self.at_leaf(&course, &ask, head, headers, visit) {
                Ok(turned) => break turned,
                Err(refusal) => refusal,
            };
            let next = course.leave(&refused(&refusal), &mut moment(facts, &ask.caller, &mut rand::random::<f64>))?;
            if next != AfterAttempt::Elsewhere {
                return Err(refusal);
            }
            visit.routing.passes_over(&refusal);
        };
        let way = course.pause();
        Ok(Passage::new(turned, ask, way))
    }

    /// To a target that is known already.
    pub(super) fn passage_to(
        &self,
        target: Target,
        ask: RelayAsk,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> Result<Passage, Refusal> {
        let kind = (Family::from_path(&head.method, &ask.path), &head.method);
        // Without a config its plan is one leaf, which has the hooks that run by default.
        self.guards.judge_kind(ask.plan.leaf(0), &ask.caller, kind, &ask.metadata, visit)?;
        self.check_model(&ask, &target)?;
        let model = ask.model.insisting(None).map(|model| model.into_owned());
        let row = target.provider.row.clone();
        let target = self.at_base(target, base(&row, &ask.path, head))?;
        let place = relayed_place(&target, &ask.path, head, model.as_deref())?;
        visit.turn_to(&target, model.as_deref());
        Ok(Passage::new(
            Turned { target, path_and_query: place.path_and_query, model, splice: None },
            ask,
            Way::default(),
        ))
    }

    /// Turns to the next target after the present one could not be reached, or was refused by a limit. False when there is
    /// none, and an error when the last one cannot be asked.
    pub fn reroute(
        &self,
        passage: &mut Passage,
        why: Option<&Refusal>,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> Result<bool, Refusal> {
        passage.permit = None;
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        let plan = passage.ask.plan.clone();
        let params = Fields::default();
        let mut course = Course::resume(&plan, std::mem::take(&mut passage.way));
        let unreached = AttemptResult { status: 503, speaker: Speaker::Network, ..AttemptResult::default() };
        let mut outcome = why.map_or(unreached, refused);
        let mut last = None;
        loop {
            let ask = &passage.ask;
            let facts = RequestFacts { metadata: &ask.metadata, params: &params, pathname: head.uri.path() };
            let next = course.leave(&outcome, &mut moment(facts, &ask.caller, &mut rand::random::<f64>));
            if !matches!(next, Ok(AfterAttempt::Elsewhere)) {
                // It stays where it stood, which is a leaf.
                passage.way = course.pause();
                next?;
                return last.map_or(Ok(false), Err);
            }
            match self.at_leaf(&course, ask, head, &headers, visit) {
                Ok(turned) => {
                    passage.turn(turned);
                    passage.way = course.pause();
                    return Ok(true);
                }
                Err(refusal) => {
                    visit.routing.passes_over(&refusal);
                    outcome = refused(&refusal);
                    last = Some(refusal);
                }
            }
        }
    }

    fn at_leaf(
        &self,
        course: &Course<'_>,
        ask: &RelayAsk,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<Turned, Refusal> {
        visit.routing.option = course.node().option.clone();
        let leaf = course.leaf();
        visit.routing.deadline = leaf.total_timeout.map(|total| visit.request.started + total);
        if let Some(reference) = &leaf.prompt_id {
            return Err(Refusal::misplaced_prompt(reference, "/v1/chat/completions or /v1/completions"));
        }
        let kind = (Family::from_path(&head.method, &ask.path), &head.method);
        self.guards.judge_kind(leaf, &ask.caller, kind, &ask.metadata, visit)?;
        let insisted = leaf.edits.model().and_then(|json| serde_json::from_str::<String>(json).ok());
        let asked = ask.model.insisting(insisted);
        let resolved = self.resolver(Utc::now()).resolve(leaf, headers, &ask.caller, asked.as_deref())?;
        let Resolved { target, model } = resolved;
        self.check_model(ask, &target)?;
        visit.routing.provider = Some(target.provider.label.clone());
        let is_stored = matches!(target.credential, Credential::Stored(_));
        if is_stored && leads_past_the_gateway(&head.method, &ask.path) {
            return Err(Refusal::leads_past_the_gateway());
        }
        if is_stored && upgrade::is_opaque(head, &ask.path) {
            return Err(Refusal::upgrade_refused());
        }
        let row = target.provider.row.clone();
        let target = self.at_base(target, base(&row, &ask.path, head))?;
        let model = model.or_else(|| asked.map(|asked| asked.into_owned()));
        let place = relayed_place(&target, &ask.path, head, model.as_deref())?;
        visit.turn_to(&target, model.as_deref());
        let (path_and_query, splice) = match place.names_deployment {
            true => (place.path_and_query, None),
            false => {
                // A session asks for a deployment; other bodies may mean the model itself.
                let deployment = target.deployment().filter(|_| realtime_head::is_session(&ask.path));
                ask.model.rename(deployment.or(model.as_deref()), place.path_and_query)
            }
        };
        Ok(Turned { target, path_and_query, model, splice })
    }

    /// Where it depends on the model whether a request may pass, it must be known.
    fn check_model(&self, ask: &RelayAsk, target: &Target) -> Result<(), Refusal> {
        match &ask.model {
            AskedModel::Unknown(why) if self.is_model_deciding(target, &ask.caller) => Err(Refusal::unknown_model(why)),
            _ => Ok(()),
        }
    }
}

/// The address of the family that a path belongs to, where the row has one for it. What is kept in a form of its own is
/// asked question by question, each at its address.
fn base<'r>(row: &'r ProviderEntry, path: &str, head: &RequestHeader) -> Option<&'r Address> {
    let (family, _) = Family::from_path(&head.method, path)?;
    row.base(family).filter(|_| !matches!(row.way(family, ""), Some(FamilyWay::Mapped(_))))
}

fn refused(refusal: &Refusal) -> AttemptResult {
    let speaker = if refusal.is_fault() { Speaker::Fault } else { Speaker::Gateway };
    AttemptResult { status: refusal.status, speaker, ..AttemptResult::default() }
}
