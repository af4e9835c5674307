//! Requests for batches that the gateway keeps itself. They are identified, counted by limits and logged like any other, and
//! answered from the rows; nothing is run here. Everything is of the caller's workspace: what others have does not exist.

mod create;

use super::file_endpoints::content::send_file;
use super::file_endpoints::deliver;
use super::files::FileOwner;
use super::files::ManagedFiles;
use super::files::managed::{SentId, names_managed, page};
use crate::batches::new_batch::MAX_BODY;
use crate::batches::query::{BatchPath, BatchQuery};
use crate::batches::record::{BatchRecord, Mode, PREFIX};
use crate::batches::records::BatchRecords;
use crate::context::Visit;
use crate::context::metrics::Lane;
use crate::context::metrics::Metrics;
use crate::engine::{Admitter, BodyLimits, Delivered, KnownRequest, Router, Services, refuse, wrong_path};
use crate::identity::identify::Principal;
use crate::net::downstream::{ClientGone, Downstream};
use crate::relay::RelayAsk;
use crate::request::headers::Aliases;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::{NotReceived, receive};
use crate::request::refusal::Refusal;
use crate::routing::plan::Plan;
use bytes::Bytes;
use http::Method;
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::providers::Family;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug)]
pub struct BatchesRequest {
    caller: Principal,
    path: BatchPath,
    /// Where it was read already, to learn whose file it means.
    body: Option<Bytes>,
}

/// Whether the gateway's own batches are meant: by an id of ours, by its name in place of a provider's, or because nothing
/// names anybody else. A new one may also be told by its file, see `relay::read_ahead` and `provider_objects`.
pub fn is_managed(path: &str, head: &RequestHeader, headers: &GatewayHeaders<'_>, plan: &Arc<Plan>) -> bool {
    let Some((Family::Batches, rest)) = Family::from_path(&head.method, path) else { return false };
    names_managed(PREFIX, rest) || headers.names_gateway() || (plan.is_nothing() && !wrong_path::names_target(headers))
}

fn owner(caller: &Principal) -> FileOwner {
    let workspace = &caller.workspace;
    FileOwner { organisation: workspace.organisation_id.uuid(), workspace: workspace.id.uuid() }
}

impl BatchesRequest {
    /// For a new batch over a file of ours, though a provider was named.
    pub fn creation(caller: Principal, body: Bytes) -> Self {
        Self { caller, path: BatchPath::All, body: Some(body) }
    }
}

/// Serves batches that the gateway keeps itself.
pub struct BatchEndpoints {
    metrics: Arc<Metrics>,
    aliases: Arc<Aliases>,
    body_limits: Arc<BodyLimits>,
    admitter: Arc<Admitter>,
    router: Arc<Router>,
    files: Option<Arc<ManagedFiles>>,
    batches: Arc<BatchRecords>,
}

impl BatchEndpoints {
    pub fn new(services: &Services, files: Option<Arc<ManagedFiles>>, batches: Arc<BatchRecords>) -> Self {
        let Services { metrics, aliases, body_limits, admitter, router, .. } = services.clone();
        Self { metrics, aliases, body_limits, admitter, router, files, batches }
    }

    pub async fn open(
        &self,
        path: String,
        head: &RequestHeader,
        known: KnownRequest,
        visit: &mut Visit,
    ) -> Result<Box<BatchesRequest>, Refusal> {
        visit.enter(Lane::Own, &self.metrics);
        let ask = RelayAsk::new(path, head, known)?;
        self.admitter.admit_own(head, visit, &ask).await?;
        let rest = Family::from_path(&head.method, &ask.path).map_or("", |(_, rest)| rest);
        let path = BatchPath::parse(rest);
        Ok(Box::new(BatchesRequest { caller: ask.caller, path, body: None }))
    }

    pub async fn run(&self, client: &mut impl Downstream, visit: &mut Visit, asked: &BatchesRequest) -> Delivered {
        let method = client.head().method.clone();
        if let (&Method::GET, BatchPath::Output(id)) = (&method, &asked.path) {
            return self.send_output(client, visit, owner(&asked.caller), id).await;
        }
        let answer = match (&method, &asked.path) {
            (&Method::POST, BatchPath::All) => self.take_creation(client, asked).await,
            (method, path) => {
                let query = client.head().uri.query().unwrap_or_default().to_owned();
                self.look_at_batches(owner(&asked.caller), method, path, &query).await.map_err(NotReceived::Refused)
            }
        };
        match answer {
            Ok(object) => match deliver(client, visit, &object).await {
                Ok(()) => Delivered::Answered,
                Err(ClientGone) => Delivered::ClientGone,
            },
            Err(NotReceived::Gone) => Delivered::ClientGone,
            Err(NotReceived::Refused(refusal)) => refuse(&self.metrics, client, visit, &refusal).await,
        }
    }

    async fn take_creation(&self, client: &mut impl Downstream, asked: &BatchesRequest) -> Result<Value, NotReceived> {
        let tenant = asked.caller.tenant();
        let (body, _received) = match &asked.body {
            Some(body) => (body.clone(), None),
            None => {
                let received = receive(client, &self.body_limits.bounds(MAX_BODY, tenant)).await?;
                (received.bytes.clone(), Some(received))
            }
        };
        Ok(self.create_batch(&asked.caller, client.head(), &body).await?)
    }

    /// Of a request for a batch at a provider that is named: the batch, if the file is one of ours. What only the gateway does
    /// is refused for others.
    pub(super) async fn divert_creation(
        &self,
        caller: &Principal,
        head: &RequestHeader,
        text: &[u8],
        body: &Map<String, Value>,
    ) -> Result<Option<Value>, Refusal> {
        let field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        match field("input_file_id").starts_with(super::files::PREFIX) {
            true if text.len() > MAX_BODY => Err(Refusal::body_too_large(MAX_BODY)),
            true => self.create_batch(caller, head, text).await.map(Some),
            false if field("completion_window") == Mode::Immediate.as_str() => {
                Err(Refusal::only_managed_is_immediate())
            }
            false => Ok(None),
        }
    }

    /// What needs no body.
    async fn look_at_batches(
        &self,
        owner: FileOwner,
        method: &Method,
        path: &BatchPath,
        query: &str,
    ) -> Result<Value, Refusal> {
        let query = BatchQuery::parse(query)?;
        match (method, path) {
            (&Method::GET, BatchPath::All) => {
                let (found, has_more) = self.batches.list(owner, query.limit, query.after).await?;
                let shown = found.iter().map(|batch| batch.to_json(query.with_provider_details));
                Ok(page(shown.collect(), has_more))
            }
            (&Method::GET, BatchPath::One(id)) => {
                Ok(self.find_batch(owner, id).await?.to_json(query.with_provider_details))
            }
            (&Method::POST, BatchPath::Cancel(id)) => {
                let id = known_id(id)?;
                let found = self.batches.cancel(owner, id).await?;
                let found = found.ok_or_else(|| Refusal::batch_not_found(&format!("{PREFIX}{id}")))?;
                Ok(found.to_json(query.with_provider_details))
            }
            (_, BatchPath::Other) => Err(Refusal::not_found()),
            (method, _) => Err(Refusal::method_not_allowed(method.as_str())),
        }
    }

    async fn find_batch(&self, owner: FileOwner, id: &SentId) -> Result<BatchRecord, Refusal> {
        let id = known_id(id)?;
        let found = self.batches.find(owner, id).await?;
        found.ok_or_else(|| Refusal::batch_not_found(&format!("{PREFIX}{id}")))
    }

    async fn send_output(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        owner: FileOwner,
        id: &SentId,
    ) -> Delivered {
        let Some(files) = &self.files else {
            return refuse(&self.metrics, client, visit, &Refusal::files_unavailable()).await;
        };
        let found = async {
            let batch = self.find_batch(owner, id).await?;
            let output = batch.output_file.ok_or_else(|| match batch.status.is_final() {
                true => Refusal::batch_without_output(),
                false => Refusal::no_batch_output(),
            })?;
            let file = files.rows.find(owner, output).await?;
            file.ok_or_else(|| Refusal::file_not_found(&format!("{}{output}", super::files::PREFIX)))
        };
        match found.await {
            Ok(file) => send_file(&self.metrics, client, visit, files, owner, &file).await,
            Err(refusal) => refuse(&self.metrics, client, visit, &refusal).await,
        }
    }
}

fn known_id(id: &SentId) -> Result<Uuid, Refusal> {
    id.as_ref().copied().map_err(|sent| Refusal::batch_not_found(sent))
}
