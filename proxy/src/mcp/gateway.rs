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

use crate::context::Visit;
use crate::context::metrics::Metrics;
use crate::engine::{
    Admitter, Authenticator, BodyLimits, Delivered, Intake, KnownRequest, ProviderCalls, Recorder, Router, Services,
    refuse,
};
use crate::identity::identify::{Principal, service_key};
use crate::mcp::{
    Asker, Bridges, ChangedLists, CredentialSource, INVOKE, ListCache, McpCircuits, McpTarget, OpeningStreams,
    OwnCredentials, ResourceMetadata, SESSION_ID, SessionOwner, Sessions, UpstreamHeaders, person,
};
use crate::net::downstream::Downstream;
use crate::request::headers::{Aliases, GatewayHeaders};
use crate::request::refusal::Refusal;
use crate::routing::plan::Plan;
use crate::snapshot::Snapshot;
use answers::CallFailure;
use bytes::Bytes;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::guardrails::HeaderChange;
use shared::model::id::UserId;
use shared::secrets::seal::Sealer;
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
    snapshot: Arc<Snapshot>,
    metrics: Arc<Metrics>,
    aliases: Arc<Aliases>,
    body_limits: Arc<BodyLimits>,
    authenticator: Arc<Authenticator>,
    intake: Intake,
    recorder: Arc<Recorder>,
    admitter: Arc<Admitter>,
    router: Arc<Router>,
    calls: Arc<ProviderCalls>,
}

impl McpGateway {
    pub fn new(settings: &McpSettings, services: &Services, sealer: Arc<Sealer>) -> anyhow::Result<Self> {
        let intake = Intake::new(services);
        let Services { snapshot, metrics, aliases, body_limits, authenticator, .. } = services.clone();
        let Services { recorder, admitter, router, calls, .. } = services.clone();
        Ok(Self {
            sessions: Sessions { snapshot: snapshot.clone(), sealer: sealer.clone() },
            credentials: CredentialSource { snapshot: snapshot.clone(), sealer },
            circuits: McpCircuits::default(),
            lists: ListCache::default(),
            bridges: Arc::default(),
            drain: Arc::default(),
            opening: OpeningStreams::default(),
            changed: Arc::default(),
            metadata: ResourceMetadata::new(settings)?,
            call_timeout: Duration::from_millis(settings.mcp_call_timeout_ms),
            stream_idle: Duration::from_secs(settings.mcp_stream_idle_s),
            snapshot,
            metrics,
            aliases,
            body_limits,
            authenticator,
            intake,
            recorder,
            admitter,
            router,
            calls,
        })
    }
}

/// A request of an MCP client that may be served.
#[derive(Debug)]
pub enum McpCall {
    /// To one server.
    One(Box<McpRequest>),
    /// To all servers of a workspace.
    Merged(Box<MergedRequest>),
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

impl McpGateway {
    pub async fn open(
        &self,
        slug: Option<&str>,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<McpCall, Refusal> {
        visit.request.challenge = self.metadata.challenge(&head.uri, &head.headers);
        if !self.metadata.is_allowed(&head.headers) {
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
        let KnownRequest { caller, metadata, plan } = self.intake.learn_of(caller, head, headers, visit)?;
        let headers = ClientHeaders(Arc::new(head.headers.clone()));
        Ok(match target {
            Some(target) => {
                let claimed = Mutex::default();
                McpCall::One(Box::new(McpRequest { caller, user, metadata, plan, headers, claimed, target }))
            }
            None => {
                let targets = self.merged_targets(&caller, user);
                McpCall::Merged(Box::new(MergedRequest { caller, user, metadata, plan, headers, targets }))
            }
        })
    }

    /// What is told to clients that have no key yet.
    pub fn metadata_page(&self, resource: &str, head: &RequestHeader) -> Bytes {
        self.metadata.document(resource, &head.uri, &head.headers)
    }

    /// What verifies the identities that the gateway signs for an organisation. Public, like all such keys; of an
    /// organisation that does not exist there are none.
    pub fn public_keys(&self, organisation: &str) -> Result<Bytes, Refusal> {
        let organisation = organisation.parse().map_err(|_| Refusal::not_found())?;
        self.credentials.signer().public_keys(organisation).map_err(|_| Refusal::internal())
    }

    /// One exchange, from the body to the last byte of the answer.
    pub async fn run(&self, client: &mut impl Downstream, visit: &mut Visit, call: &McpCall) -> Delivered {
        match call {
            McpCall::One(asked) => self.run_one(client, visit, asked).await,
            McpCall::Merged(asked) => self.run_merged(client, visit, asked).await,
        }
    }

    async fn run_one(&self, client: &mut impl Downstream, visit: &mut Visit, asked: &McpRequest) -> Delivered {
        let method = client.head().method.clone();
        let session = match client.head().headers.get(&SESSION_ID) {
            None => None,
            Some(sent) => match self.sessions.open(&asked.owner(), sent) {
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
            _ => refuse(&self.metrics, client, visit, &Refusal::method_not_allowed(method.as_str())).await,
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
            self.changed.note(integration, changes, Instant::now());
        }
    }

    /// What goes to the server besides the message.
    async fn mcp_headers(&self, head: &RequestHeader, asked: &McpRequest) -> Result<UpstreamHeaders, CallFailure> {
        let mut configurations = self.credentials.configurations(&asked.target).map_err(CallFailure::no_credential)?;
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
        self.credentials.headers(&asked.target, &configurations, &asker).map_err(CallFailure::no_credential)
    }
}
