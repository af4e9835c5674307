//! Requests of MCP clients. Each is identified like any other, and finds a server of its workspace that it may use; what a
//! message asks for is judged, admitted by limits, guarded and logged where it is a call, and passed on. `mcp` says what
//! messages are; the files here are the order in which things happen to them.

mod admit_call;
mod answers;
mod batch;
mod bridged;
mod guard_call;
mod listen;
mod listening;
mod mapped_headers;
mod merged;
mod merged_listen;
mod merged_upstream;
mod messages;
mod receive_messages;
mod single;
mod stream;
mod upstream;
mod verify_token;

pub use listening::DrainNotice;
pub use merged::MergedRequest;

use super::{Delivered, Engine, NextStep};
use crate::identity::identify::{Principal, service_key};
use crate::mcp::{
    Asker, Bridges, ChangedLists, CredentialSource, INVOKE, ListCache, McpCircuits, McpTarget, OpeningStreams,
    OwnCredentials, ResourceMetadata, SESSION_ID, SessionOwner, Sessions, UpstreamHeaders, person,
};
use crate::net::downstream::Downstream;
use crate::refusal::Refusal;
use crate::request::headers::GatewayHeaders;
use crate::routing::plan::Plan;
use crate::snapshot::Snapshot;
use crate::visit::Visit;
use answers::CallFailure;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::guardrails::HeaderChange;
use shared::id::UserId;
use shared::seal::Sealer;
use shared::settings::McpSettings;
use shared::telemetry::LogLimit;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What requests of MCP clients need from the process.
pub struct McpGateway {
    pub sessions: Sessions,
    pub credentials: CredentialSource,
    pub circuits: McpCircuits,
    pub lists: ListCache,
    pub bridges: Arc<Bridges>,
    /// Ends the streams that are only listened to.
    pub drain: Arc<DrainNotice>,
    pub opening: OpeningStreams,
    pub changed: Arc<ChangedLists>,
    pub metadata: ResourceMetadata,
    /// Longest silence before and inside the answer to a call.
    pub call_timeout: Duration,
    /// The same of a stream that is listened to between calls.
    pub stream_idle: Duration,
}

impl McpGateway {
    pub fn new(settings: &McpSettings, snapshot: Arc<Snapshot>, sealer: Arc<Sealer>) -> anyhow::Result<Self> {
        Ok(Self {
            sessions: Sessions { snapshot: snapshot.clone(), sealer: sealer.clone() },
            credentials: CredentialSource { snapshot, sealer },
            circuits: McpCircuits::default(),
            lists: ListCache::default(),
            bridges: Arc::default(),
            drain: Arc::default(),
            opening: OpeningStreams::default(),
            changed: Arc::default(),
            metadata: ResourceMetadata::new(settings)?,
            call_timeout: Duration::from_millis(settings.mcp_call_timeout_ms),
            stream_idle: Duration::from_secs(settings.mcp_stream_idle_s),
        })
    }
}

#[derive(Debug)]
pub struct McpRequest {
    caller: Principal,
    /// The person that the caller is, if it is one.
    user: Option<UserId>,
    metadata: Map<String, Value>,
    plan: Arc<Plan>,
    headers: ClientHeaders,
    /// What checks of the arguments made of what a token claims, for those of the result.
    claimed: Mutex<Vec<HeaderChange>>,
    target: McpTarget,
}

/// What the client sent, for guardrails. It is never written out: keys are in it.
#[derive(Clone)]
struct ClientHeaders(Arc<HeaderMap>);

impl fmt::Debug for ClientHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientHeaders")
    }
}

impl McpRequest {
    fn owner(&self) -> SessionOwner {
        SessionOwner::new(&self.caller, self.target.server.id)
    }
}

impl Engine {
    pub(super) async fn open_mcp(
        &self,
        slug: Option<&str>,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<NextStep, Refusal> {
        visit.request.challenge = self.mcp.metadata.challenge(&head.uri, &head.headers);
        if !self.mcp.metadata.is_allowed(&head.headers) {
            return Err(Refusal::origin_not_allowed());
        }
        let caller = self.authenticator.identify(head, peer, headers, &[INVOKE], visit).await?;
        visit.request.workspace_id = Some(caller.workspace.id.uuid());
        let user = person(&self.snapshot, &caller);
        let target = slug.map(|slug| {
            let found = McpTarget::find(&self.snapshot, &caller, user, slug);
            found.ok_or_else(|| Refusal::unknown_mcp_server(slug))
        });
        let target = target.transpose()?;
        self.recorder.open_log(&caller, head, headers, visit)?;
        let metadata = self.planner.metadata(headers, &head.headers, &caller)?;
        let found = self.planner.find(headers, &caller)?;
        let plan = self.planner.follow(found, headers, &metadata, visit);
        let headers = ClientHeaders(Arc::new(head.headers.clone()));
        Ok(match target {
            Some(target) => {
                let claimed = Mutex::default();
                NextStep::Mcp(Box::new(McpRequest { caller, user, metadata, plan, headers, claimed, target }))
            }
            None => {
                let targets = self.merged_targets(&caller, user);
                NextStep::MergedMcp(Box::new(MergedRequest { caller, user, metadata, plan, headers, targets }))
            }
        })
    }

    /// What is told to clients that have no key yet.
    pub(super) fn mcp_metadata(&self, resource: &str, head: &RequestHeader) -> NextStep {
        NextStep::Page { status: 200, body: self.mcp.metadata.document(resource, &head.uri, &head.headers) }
    }

    /// What verifies the identities that the gateway signs for an organisation. Public, like all such keys; of an
    /// organisation that does not exist there are none.
    pub(super) fn mcp_keys(&self, organisation: &str) -> Result<NextStep, Refusal> {
        let organisation = organisation.parse().map_err(|_| Refusal::not_found())?;
        let body = self.mcp.credentials.signer().public_keys(organisation).map_err(|_| Refusal::internal())?;
        Ok(NextStep::Page { status: 200, body })
    }

    pub async fn run_mcp(&self, client: &mut impl Downstream, visit: &mut Visit, asked: &McpRequest) -> Delivered {
        let method = client.head().method.clone();
        let session = match client.head().headers.get(&SESSION_ID) {
            None => None,
            Some(sent) => match self.mcp.sessions.open(&asked.owner(), sent) {
                Some(id) => Some(id),
                None => {
                    visit.observer.log = None;
                    return self.tell_failure(client, visit, None, &CallFailure::unknown_session()).await;
                }
            },
        };
        let session = session.as_deref();
        if asked.target.integration.transport == "sse" {
            return Box::pin(self.run_bridged(client, visit, asked, session)).await;
        }
        match method {
            Method::POST => self.post_message(client, visit, asked, session).await,
            Method::GET => self.listen(client, visit, asked, session).await,
            Method::DELETE => self.end_session(client, visit, asked, session).await,
            _ => self.refuse(client, visit, &Refusal::method_not_allowed(method.as_str())).await,
        }
    }

    /// After a list has passed: what it told otherwise than was approved is for admin to know.
    fn report_changes(&self, target: &McpTarget) {
        if let Some(changes) = target.visible.take_changes() {
            let (integration, slug) = (target.integration.id, &target.integration.slug);
            static CHANGED: LogLimit = LogLimit::new();
            if let Some(skipped) = CHANGED.pass() {
                tracing::warn!(
                    integration = slug,
                    skipped,
                    "an MCP server tells something else of its tools than was approved"
                );
            }
            self.mcp.changed.note(integration, changes, Instant::now());
        }
    }

    /// What goes to the server besides the message.
    async fn mcp_headers(&self, head: &RequestHeader, asked: &McpRequest) -> Result<UpstreamHeaders, CallFailure> {
        let mut configurations =
            self.mcp.credentials.configurations(&asked.target).map_err(CallFailure::no_credential)?;
        if asked.target.integration.secret_mappings.as_array().is_some_and(|all| !all.is_empty()) {
            Box::pin(self.add_mapped_headers(asked, &mut configurations)).await?;
        }
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases).map_err(CallFailure::refused)?;
        let service_key = service_key(&headers).unwrap_or_default();
        let own = OwnCredentials { snapshot: &self.snapshot, tokens: &self.authenticator.tokens, service_key };
        if let Some(rules) = configurations.get("jwt_validation").filter(|rules| !rules.is_null()) {
            Box::pin(self.verify_token(rules, &head.headers, &own, asked)).await?;
        }
        let asker = Asker {
            caller: &asked.caller,
            user: asked.user,
            head: &head.headers,
            own,
            aliases: &self.aliases,
            now: chrono::Utc::now(),
        };
        self.mcp.credentials.headers(&asked.target, &configurations, &asker).map_err(CallFailure::no_credential)
    }
}
