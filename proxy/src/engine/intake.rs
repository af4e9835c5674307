//! What every lane learns from the head of a request, in this order: who asks, what the request says of itself, which
//! config it follows. From the first of these on it is logged.

use super::{Authenticator, Planner, Recorder, Services};
use crate::context::Visit;
use crate::identity::identify::{INFERENCE, Principal};
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::routing::plan::Plan;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::Arc;

/// What every lane knows of a request once its head was read.
#[derive(Debug)]
pub struct KnownRequest {
    pub caller: Principal,
    pub metadata: Map<String, Value>,
    pub plan: Arc<Plan>,
}

#[derive(Clone)]
pub struct Intake {
    authenticator: Arc<Authenticator>,
    recorder: Arc<Recorder>,
    planner: Arc<Planner>,
}

impl Intake {
    pub fn new(services: &Services) -> Self {
        let Services { authenticator, recorder, planner, .. } = services.clone();
        Self { authenticator, recorder, planner }
    }

    /// `peer` is the other end of the connection.
    pub async fn learn(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<KnownRequest, Refusal> {
        let caller = self.authenticator.identify(head, peer, headers, &[INFERENCE], visit).await?;
        self.learn_of(caller, head, headers, visit)
    }

    /// The same once the caller is known.
    pub fn learn_of(
        &self,
        caller: Principal,
        head: &RequestHeader,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<KnownRequest, Refusal> {
        visit.request.workspace_id = Some(caller.workspace.id.uuid());
        self.recorder.open_log(&caller, head, headers, visit)?;
        let metadata = self.planner.metadata(headers, &head.headers, &caller)?;
        let found = self.planner.find(headers, &caller)?;
        let plan = self.planner.follow(found, headers, &metadata, visit);
        Ok(KnownRequest { caller, metadata, plan })
    }
}
