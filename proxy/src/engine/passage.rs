//! The relay lane's way through its plan. A body that is streamed cannot be sent twice, so a request has one target;
//! the next one takes its place only while nothing has been sent: when a target cannot be asked, or not be reached.

use super::{Engine, moment, path_and_query};
use crate::body::Fields;
use crate::fairness::Permit;
use crate::headers::GatewayHeaders;
use crate::plan::Plan;
use crate::realtime;
use crate::refusal::Refusal;
use crate::routing::{Course, Facts, Next, Outcome, Speaker, Way};
use crate::stages::admit::Admission;
use crate::stages::identify::Principal;
use crate::stages::resolve::Resolved;
use crate::target::{Credential, Target};
use crate::visit::Visit;
use chrono::Utc;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// A request on the relay lane: where it goes, and what decides where it would go next.
pub struct Passage {
    pub target: Target,
    pub path_and_query: String,
    /// The model, where the head names it.
    pub model: Option<String>,
    /// What the client asks for, as classified.
    path: String,
    caller: Principal,
    metadata: Map<String, Value>,
    plan: Arc<Plan>,
    way: Way,
    /// Its place among those under way to the target, where these are limited.
    pub(super) permit: Option<Permit>,
    /// Of a realtime session: what its next responses may use.
    pub(super) promised: VecDeque<Option<Box<Admission>>>,
    /// When the caller of a session was last looked at.
    pub(super) checked: Instant,
    /// What could not be asked when something happened in a session.
    pub(super) owed: Owed,
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
pub struct Ask {
    pub path: String,
    pub caller: Principal,
    pub metadata: Map<String, Value>,
    pub plan: Arc<Plan>,
}

impl fmt::Debug for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passage").field("target", &self.target).field("path", &self.path).finish_non_exhaustive()
    }
}

impl Passage {
    /// Of a request whose target is known already.
    pub(super) fn to(target: Target, head: &RequestHeader, ask: Ask) -> Result<Self, Refusal> {
        let path_and_query = place(&target, &ask.path, head)?;
        Ok(Self::new(target, path_and_query, None, ask, Way::default()))
    }

    fn new(target: Target, path_and_query: String, model: Option<String>, ask: Ask, way: Way) -> Self {
        let Ask { path, caller, metadata, plan } = ask;
        let (promised, checked) = (VecDeque::new(), Instant::now());
        let (permit, owed) = (None, Owed::Nothing);
        Self { target, path_and_query, model, path, caller, metadata, plan, way, permit, promised, checked, owed }
    }

    /// What is asked for, by whom, and what the request says of itself.
    pub(super) fn asked(&self) -> (&str, &Principal, &Map<String, Value>) {
        (&self.path, &self.caller, &self.metadata)
    }

    pub(super) fn caller_mut(&mut self) -> &mut Principal {
        &mut self.caller
    }

    /// Tells the target's breaker how the provider answered.
    pub fn answered(&self, status: u16) {
        if let Some(breaker) = &self.plan.leaf(self.way.at()).breaker {
            breaker.record(status, Instant::now());
        }
    }
}

impl Engine {
    /// To the first target that can be asked.
    pub(crate) fn passage(
        &self,
        ask: Ask,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<Passage, Refusal> {
        let Ask { path, caller, metadata, plan } = ask;
        let params = Fields::default();
        let facts = Facts { metadata: &metadata, params: &params, pathname: head.uri.path() };
        let mut course = Course::begin(&plan, &mut moment(facts, &caller, &mut rand::random::<f64>))?;
        loop {
            let refusal = match self.at_leaf(&course, &path, head, headers, &caller, visit) {
                Ok((target, path_and_query, model)) => {
                    let way = course.pause();
                    let ask = Ask { path, caller, metadata, plan };
                    return Ok(Passage::new(target, path_and_query, model, ask, way));
                }
                Err(refusal) => refusal,
            };
            let next = course.leave(&refused(&refusal), &mut moment(facts, &caller, &mut rand::random::<f64>))?;
            if next != Next::Elsewhere {
                return Err(refusal);
            }
        }
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
        let headers = GatewayHeaders::of(&head.headers, &self.aliases)?;
        let plan = passage.plan.clone();
        let params = Fields::default();
        let facts = Facts { metadata: &passage.metadata, params: &params, pathname: head.uri.path() };
        let mut course = Course::resume(&plan, std::mem::take(&mut passage.way));
        let unreached = Outcome { status: 503, speaker: Speaker::Network, ..Outcome::default() };
        let mut outcome = why.map_or(unreached, refused);
        let mut last = None;
        loop {
            let next = course.leave(&outcome, &mut moment(facts, &passage.caller, &mut rand::random::<f64>))?;
            if next != Next::Elsewhere {
                passage.way = course.pause();
                return last.map_or(Ok(false), Err);
            }
            match self.at_leaf(&course, &passage.path, head, &headers, &passage.caller, visit) {
                Ok((target, path_and_query, model)) => {
                    (passage.target, passage.path_and_query, passage.model) = (target, path_and_query, model);
                    passage.way = course.pause();
                    return Ok(true);
                }
                Err(refusal) => {
                    outcome = refused(&refusal);
                    last = Some(refusal);
                }
            }
        }
    }

    fn at_leaf(
        &self,
        course: &Course<'_>,
        path: &str,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        caller: &Principal,
        visit: &mut Visit,
    ) -> Result<(Target, String, Option<String>), Refusal> {
        visit.option = course.node().option.clone();
        let leaf = course.leaf();
        visit.deadline = leaf.total_timeout.map(|total| visit.started + total);
        let insisted = leaf.edits.model().and_then(|json| serde_json::from_str::<String>(json).ok());
        let named = realtime::model(path, head.uri.query())?;
        let asked = named.clone().map(|asked| insisted.map_or(asked, Into::into));
        let Resolved { target, model } = self.resolver(Utc::now()).resolve(leaf, headers, caller, asked.as_deref())?;
        visit.provider = Some(target.provider.label.clone());
        if realtime::leads_past_the_gateway(path) && matches!(target.credential, Credential::Stored(_)) {
            let why = "it would hand out a credential, or a session, that no limit holds for";
            return Err(Refusal::endpoint_not_supported(&target.provider.name, why));
        }
        let place = place(&target, path, head)?;
        visit.turn_to(&target, model.as_deref().or(asked.as_deref()));
        let model = model.or_else(|| asked.map(|asked| asked.into_owned()));
        match &model {
            Some(wanted) if named.as_deref() != Some(wanted) => {
                let place = realtime::asking(&place, wanted);
                Ok((target, place, model))
            }
            _ => Ok((target, place, model)),
        }
    }
}

/// Where the provider has what the path means.
fn place(target: &Target, path: &str, head: &RequestHeader) -> Result<String, Refusal> {
    match target.provider.row.upstream_path(&head.method, path) {
        Ok(place) => Ok(path_and_query(&place, head)),
        Err(why) => Err(Refusal::endpoint_not_supported(&target.provider.name, why)),
    }
}

fn refused(refusal: &Refusal) -> Outcome {
    let speaker = if refusal.is_fault() { Speaker::Fault } else { Speaker::Gateway };
    Outcome { status: refusal.status, speaker, ..Outcome::default() }
}
