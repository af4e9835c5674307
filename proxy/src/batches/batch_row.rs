//! A row of a batch: an ordinary request without a socket, of the key that made the batch as that key is now, or of what a token
//! said that made it. Configs, guardrails,
//! cache, limits and the journal hold for it as for any other; its log says of which batch and which row it is.

use crate::batches::record::BatchRecord;
use crate::context::Visit;
use crate::context::metrics::Lane;
use crate::context::settle::RecordCopies;
use crate::engine::{Authenticator, BatchSwitch, Engine, EngineRequest, KnownRequest, Opened, refuse};
use crate::identity::identify::{INFERENCE, Principal, has_one};
use crate::identity::metadata::trace_id;
use crate::identity::tokens;
use crate::net::downstream::Downstream as _;
use crate::net::in_memory::InMemoryClient;
use crate::request::classify::{Route, classify, dialect};
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::{Refusal, RefusalCode};
use chrono::{DateTime, Utc};
use pingora_http::RequestHeader;
use serde::Deserialize as _;
use serde_json::Value;
use shared::identity::jwt::VerifiedToken;
use shared::model::{AccessStatus, Status};
use std::sync::Arc;
use uuid::Uuid;

/// In the metadata of its log, by which the logs of a batch are found.
const BATCH: &str = "_batch_id";
const ROW: &str = "_batch_row";

pub struct BatchRow {
    pub caller: Principal,
    /// As the API shows it.
    pub batch: String,
    pub number: i32,
    pub cancelled: BatchSwitch,
}

/// What became of a row, beside the answer that its client has.
pub struct RowAnswer {
    pub request_id: String,
    /// Why the gateway itself answered.
    pub code: Option<RefusalCode>,
    /// Whether a provider was asked.
    pub is_asked: bool,
    /// Whether its config had it tried again already.
    pub is_retried: bool,
    /// What the journal says of it.
    pub records: Vec<Vec<u8>>,
}

impl Engine {
    /// From the head to the last byte of the answer, and its record. Refusals are answers too.
    pub async fn run_batch_row(&self, client: &mut InMemoryClient, row: BatchRow) -> RowAnswer {
        let mut visit = Visit::begin();
        let copies = Arc::new(RecordCopies::default());
        match self.open_batch_row(client.head(), row, &copies, &mut visit) {
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
        let (code, routing) = (visit.answer.error_code, &visit.routing);
        let (is_asked, is_retried) = (routing.attempts > 0, routing.retries != 0);
        let request_id = visit.id().to_owned();
        visit.settle(&self.metrics);
        RowAnswer { request_id, code, is_asked, is_retried, records: copies.take() }
    }

    fn open_batch_row(
        &self,
        head: &RequestHeader,
        row: BatchRow,
        copies: &Arc<RecordCopies>,
        visit: &mut Visit,
    ) -> Result<Box<EngineRequest>, Refusal> {
        let route = classify(&head.method, head.uri.path());
        visit.request.dialect = dialect(&route);
        visit.enter(Lane::Engine, &self.metrics);
        let Route::Engine(endpoint) = route else { return Err(Refusal::internal()) };
        let headers = GatewayHeaders::from_headers(&head.headers, &self.aliases)?;
        visit.request.trace_id = trace_id(&headers)?;
        let BatchRow { caller, batch, number, cancelled } = row;
        visit.request.workspace_id = Some(caller.workspace.id.uuid());
        self.recorder.open_log(&caller, head, &headers, visit)?;
        if let Some(log) = &mut visit.observer.log {
            log.copy_to(copies);
        }
        let mut metadata = self.planner.metadata(&headers, &head.headers, &caller)?;
        metadata.insert(BATCH.into(), batch.into());
        metadata.insert(ROW.into(), number.to_string().into());
        let found = self.planner.find(&headers, &caller)?;
        let plan = self.planner.follow(found, &headers, &metadata, visit);
        let known = KnownRequest { caller, metadata, plan };
        match self.open(endpoint, head, &headers, known, visit)? {
            Opened::Call(mut request) => {
                request.batch = Some(cancelled);
                Ok(request)
            }
            // A provider that takes this endpoint only as bytes that pass through.
            Opened::Relayed(_) => {
                Err(Refusal::endpoint_not_supported("the provider", "rows of batches cannot be relayed to it"))
            }
        }
    }
}

impl Authenticator {
    /// Whoever made a batch, if they may still ask models here: the holder of a key, or of what a token said.
    pub fn holder(&self, batch: &BatchRecord, now: DateTime<Utc>) -> Result<Principal, Refusal> {
        if !self.snapshot.is_loaded() {
            return Err(Refusal::not_ready());
        }
        match &batch.token {
            None => self.holder_of_key(batch.api_key, now),
            Some(stored) => {
                let token = token(stored).ok_or_else(Refusal::invalid_api_key)?;
                let holder = self.tokens.holder(token, batch.owner.workspace.into(), &self.snapshot, &[INFERENCE]);
                holder.map_err(|rejection| Refusal::rejected_token(&rejection))
            }
        }
    }

    fn holder_of_key(&self, key: Uuid, now: DateTime<Utc>) -> Result<Principal, Refusal> {
        let key = self.snapshot.api_key_with_id(key).ok_or_else(Refusal::invalid_api_key)?;
        if key.is_expired(now) {
            return Err(Refusal::expired_api_key());
        }
        if key.status == AccessStatus::Archived {
            return Err(Refusal::invalid_api_key());
        }
        let workspace = key.workspace_id.and_then(|id| self.snapshot.workspace(&id));
        let workspace = workspace.filter(|workspace| workspace.status == Status::Active);
        let workspace = workspace.ok_or_else(Refusal::invalid_api_key)?;
        if !has_one(&key.scopes, &[INFERENCE]) {
            return Err(Refusal::insufficient_scope(INFERENCE));
        }
        Ok(Principal { key, workspace, token: None })
    }

    /// Who held a key that may be expired or archived since, as long as it is known: for whom what was begun is ended.
    pub fn former_holder(&self, batch: &BatchRecord) -> Option<Principal> {
        if let Some(stored) = &batch.token {
            return tokens::former_holder(token(stored)?, batch.owner.workspace.into(), &self.snapshot);
        }
        let key = self.snapshot.api_key_with_id(batch.api_key)?;
        let workspace = key.workspace_id.and_then(|id| self.snapshot.workspace(&id))?;
        Some(Principal { key, workspace, token: None })
    }

    /// Whether this proxy runs anything of a workspace. What is not known yet it does not.
    pub fn serves(&self, workspace: Uuid) -> bool {
        let Some(workspace) = self.snapshot.workspace(&workspace.into()) else { return self.deployment.is_none() };
        self.deployment.as_ref().is_none_or(|deployment| deployment.admit(&workspace, &self.snapshot).is_ok())
    }
}

/// None for what another version wrote and this one cannot hold to.
fn token(stored: &Value) -> Option<VerifiedToken> {
    VerifiedToken::deserialize(stored).ok()
}
