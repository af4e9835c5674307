//! Requests for files that the gateway keeps itself. They are identified, counted by limits and logged like any other; what
//! the files hold is in no log. Everything is of the caller's workspace: what others have does not exist.

pub(super) mod content;
mod upload;

use super::files::managed::names_managed;
use super::files::{FileOwner, FilePath, FilesAway, ListQuery, ManagedFile, ManagedFiles, PREFIX, deleted, list};
use crate::context::Visit;
use crate::context::metrics::Lane;
use crate::context::metrics::Metrics;
use crate::engine::{Admitter, BodyLimits, Delivered, KnownRequest, Services, refuse, wrong_path};
use crate::net::downstream::{ClientGone, Downstream};
use crate::relay::RelayAsk;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::NotReceived;
use crate::request::refusal::Refusal;
use crate::routing::plan::Plan;
use bytes::Bytes;
use content::send_file;
use http::{HeaderValue, Method, StatusCode, header};
use pingora_http::{RequestHeader, ResponseHeader};
use serde_json::Value;
use shared::providers::Family;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug)]
pub struct FilesRequest {
    owner: FileOwner,
    /// Of whoever asks.
    key: Uuid,
    path: FilePath,
}

impl From<FilesAway> for NotReceived {
    fn from(away: FilesAway) -> Self {
        Self::Refused(away.into())
    }
}

/// Whether the gateway's own store is meant: by an id of ours, by its name in place of a provider's, or because nothing
/// names anybody else.
pub fn is_managed(path: &str, head: &RequestHeader, headers: &GatewayHeaders<'_>, plan: &Arc<Plan>) -> bool {
    let Some((Family::Files, rest)) = Family::from_path(&head.method, path) else { return false };
    names_managed(PREFIX, rest) || headers.names_gateway() || (plan.is_nothing() && !wrong_path::names_target(headers))
}

/// Serves files that the gateway keeps itself.
pub struct FileEndpoints {
    metrics: Arc<Metrics>,
    body_limits: Arc<BodyLimits>,
    admitter: Arc<Admitter>,
    files: Option<Arc<ManagedFiles>>,
}

impl FileEndpoints {
    pub fn new(services: &Services, files: Option<Arc<ManagedFiles>>) -> Self {
        let Services { metrics, body_limits, admitter, .. } = services.clone();
        Self { metrics, body_limits, admitter, files }
    }

    pub async fn open(
        &self,
        path: String,
        head: &RequestHeader,
        known: KnownRequest,
        visit: &mut Visit,
    ) -> Result<Box<FilesRequest>, Refusal> {
        visit.enter(Lane::Own, &self.metrics);
        let ask = RelayAsk::new(path, head, known)?;
        self.admitter.admit_own(head, visit, &ask).await?;
        let rest = Family::from_path(&head.method, &ask.path).map_or("", |(_, rest)| rest);
        let (key, workspace) = (&ask.caller.key, &ask.caller.workspace);
        let owner = FileOwner { organisation: workspace.organisation_id.uuid(), workspace: workspace.id.uuid() };
        Ok(Box::new(FilesRequest { owner, key: key.id.uuid(), path: FilePath::parse(rest) }))
    }

    pub async fn run(&self, client: &mut impl Downstream, visit: &mut Visit, asked: &FilesRequest) -> Delivered {
        let Some(files) = &self.files else {
            return refuse(&self.metrics, client, visit, &Refusal::files_unavailable()).await;
        };
        let method = client.head().method.clone();
        if let (&Method::GET, FilePath::Content(id)) = (&method, &asked.path) {
            return match find(files, asked.owner, id).await {
                Ok(file) => send_file(&self.metrics, client, visit, files, asked.owner, &file).await,
                Err(refusal) => refuse(&self.metrics, client, visit, &refusal).await,
            };
        }
        let answer = match (&method, &asked.path) {
            (&Method::POST, FilePath::All) => self.upload(client, files, asked).await,
            (method, path) => {
                let query = client.head().uri.query().unwrap_or_default().to_owned();
                look(files, asked.owner, method, path, &query).await.map_err(NotReceived::Refused)
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
}

/// What needs no body.
async fn look(
    files: &ManagedFiles,
    owner: FileOwner,
    method: &Method,
    path: &FilePath,
    query: &str,
) -> Result<Value, Refusal> {
    match (method, path) {
        (&Method::GET, FilePath::All) => {
            let (found, has_more) = files.rows.list(owner, &ListQuery::parse(query)?).await?;
            Ok(list(&found, has_more))
        }
        (&Method::GET, FilePath::One(id)) => Ok(find(files, owner, id).await?.to_json()),
        (&Method::DELETE, FilePath::One(id)) => {
            let id = known_id(id)?;
            match files.rows.delete(owner, id).await? {
                true => Ok(deleted(id)),
                false => Err(Refusal::file_not_found(&format!("{PREFIX}{id}"))),
            }
        }
        (_, FilePath::Other) => Err(Refusal::not_found()),
        (method, _) => Err(Refusal::method_not_allowed(method.as_str())),
    }
}

async fn find(files: &ManagedFiles, owner: FileOwner, id: &Result<Uuid, String>) -> Result<ManagedFile, Refusal> {
    let id = known_id(id)?;
    let found = files.rows.find(owner, id).await?;
    found.ok_or_else(|| Refusal::file_not_found(&format!("{PREFIX}{id}")))
}

fn known_id(id: &Result<Uuid, String>) -> Result<Uuid, Refusal> {
    id.as_ref().copied().map_err(|sent| Refusal::file_not_found(sent))
}

pub(super) async fn deliver(client: &mut impl Downstream, visit: &mut Visit, object: &Value) -> Result<(), ClientGone> {
    let body = Bytes::from(object.to_string());
    let mut head = ResponseHeader::build_no_case(StatusCode::OK, Some(8)).expect("a status code is a status");
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    visit.answer.status = 200;
    visit.stamp(&mut head);
    visit.answers(&head.headers);
    visit.ends_with(&body);
    client.write_head(head).await?;
    client.write_body(body, true).await
}
