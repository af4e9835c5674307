//! A request of the gateway's own: an ordinary request of a caller without a socket, with the caller's limits, budgets, prices and
//! log, marked by `_internal` in its metadata. It passes no guardrail and asks no cache: a guardrail makes it, and would wait
//! for itself.

use super::{Engine, EngineRequest, KnownRequest, Opened, refuse};
use crate::catalog::choose_plan::{ChosenPlan, ConfigSource, find_named};
use crate::context::Visit;
use crate::context::metrics::Lane;
use crate::identity::identify::Principal;
use crate::identity::metadata::trace_id;
use crate::net::downstream::Downstream as _;
use crate::net::in_memory::InMemoryClient;
use crate::request::classify::{Route, classify, dialect};
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::routing::plan::Plan;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};

pub struct OwnRequest {
    pub caller: Principal,
    /// What it is for, as its log says.
    pub purpose: &'static str,
    /// A saved config of the caller's workspace; without one the head names a provider.
    pub config: Option<String>,
    /// Of the request that it is made for.
    pub metadata: Map<String, Value>,
}

impl Engine {
    /// From the head to the last byte of the answer, and its record. Refusals are answers too.
    pub async fn run_own(&self, client: &mut InMemoryClient, own: OwnRequest) {
        let mut visit = Visit::begin();
        match self.open_own(client.head(), own, &mut visit) {
            Ok(mut request) => {
                self.run(client, &mut visit, &mut request).await;
            }
            Err(refusal) => {
                refuse(&self.metrics, client, &mut visit, &refusal).await;
            }
        }
        if visit.answer.status == 0 {
            visit.answer.status = 499;
        }
        visit.settle(&self.metrics);
    }

    fn open_own(
        &self,
        head: &RequestHeader,
        own: OwnRequest,
        visit: &mut Visit,
    ) -> Result<Box<EngineRequest>, Refusal> {
        let route = classify(&head.method, head.uri.path());
        visit.request.dialect = dialect(&route);
        visit.enter(Lane::Engine, &self.metrics);
        let Route::Engine(endpoint) = route else { return Err(Refusal::internal()) };
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        visit.request.trace_id = trace_id(&headers)?;
        let OwnRequest { caller, purpose, config, mut metadata } = own;
        visit.request.workspace_id = Some(caller.workspace.id.uuid());
        self.recorder.open_log(&caller, head, &headers, visit)?;
        metadata.insert("_internal".into(), purpose.into());
        // What its key says of configs holds for the requests of its holder alone.
        let found = match config {
            Some(name) => find_named(&self.snapshot, &caller, &name)?,
            None => ChosenPlan { plan: Plan::of_nothing().clone(), source: ConfigSource::Nobody, saved: None },
        };
        let plan = self.planner.follow(found, &headers, &metadata, visit);
        let known = KnownRequest { caller, metadata, plan };
        match self.open(endpoint, head, &headers, known, visit)? {
            Opened::Call(mut request) => {
                request.is_own = true;
                Ok(request)
            }
            Opened::Relayed(_) => Err(Refusal::internal()),
        }
    }
}
