//! Asking a registered server: a test greets it, a sync stores what it offers. What vanished is removed, what is new
//! starts enabled, what was switched off stays so, and what is told otherwise than before waits for approval.

use super::push::Pushed;
use super::{McpIntegration, list, pins, place_of};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::crud::{Action, Answer, Change, Resource as _};
use crate::http::ApiError;
use crate::identity::Call;
use crate::mcp_oauth::ensure::OAuthIntegration;
use crate::mcp_oauth::own_token::own_token;
use crate::outbound::mcp::{EVERYTHING, GREETING, McpError, McpSession};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use shared::mcp::{Capability, Kind, ServerInfo};
use shared::model::Credentials;
use shared::secrets::seal::{Sealed, Secret};
use std::time::Instant;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// A server as it is called: its address, and the headers that authenticate.
pub struct Target {
    organisation: Uuid,
    pub id: Uuid,
    pub address: ServerAddress,
    headers: HeaderMap,
}

/// Where a server is and how it is spoken to.
pub struct ServerAddress {
    pub url: String,
    auth_type: String,
    transport: String,
    /// Some of its headers are in a secret manager.
    is_mapped: bool,
}

impl ServerAddress {
    /// Of a row with these columns.
    pub const COLUMNS: &str = "url, auth_type, transport, secret_mappings <> '[]' AS is_mapped";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            url: row.try_get("url")?,
            auth_type: row.try_get("auth_type")?,
            transport: row.try_get("transport")?,
            is_mapped: row.try_get("is_mapped")?,
        })
    }
}

pub type Learnt = Result<(ServerInfo, Vec<Capability>), McpError>;

impl Target {
    pub async fn open(
        app: &App,
        db: &impl GenericClient,
        (organisation, id): (Uuid, Uuid),
        address: ServerAddress,
        sealed: Option<&Sealed>,
    ) -> Result<Self, ApiError> {
        let mut headers = HeaderMap::new();
        if let Some(sealed) = sealed {
            let secret = app.sealer.open(db, &place_of(organisation, id), sealed).await?;
            let credentials = Credentials::parse(&secret).ok_or(ApiError::Internal)?;
            for group in ["custom_headers", "headers"] {
                let sent = credentials.configurations.get(group).and_then(Value::as_object);
                for (name, value) in sent.into_iter().flatten() {
                    let value = value.as_str().and_then(|value| HeaderValue::try_from(value).ok());
                    if let (Ok(name), Some(mut value)) = (HeaderName::try_from(name.as_str()), value) {
                        value.set_sensitive(true);
                        headers.insert(name, value);
                    }
                }
            }
        }
        Ok(Self { organisation, id, address, headers })
    }

    /// With somebody's token, if there is one.
    pub fn with_bearer(mut self, token: Option<&Secret>) -> Self {
        if let Some(value) = token.and_then(bearer) {
            self.headers.insert(header::AUTHORIZATION, value);
        }
        self
    }

    /// What authenticates now: with client credentials, the gateway's own token too.
    async fn credentials(&self, app: &App) -> Result<HeaderMap, McpError> {
        if self.address.is_mapped {
            let why = "its headers are in a secret manager, which only the proxy asks: send what it offers in the body";
            return Err(why.to_owned().into());
        }
        if self.address.auth_type != "oauth_client_credentials" {
            return Ok(self.headers.clone());
        }
        let token = async {
            let integration = OAuthIntegration::load(app, &*app.db.get().await?, self.organisation, self.id).await?;
            own_token(app, &integration).await
        };
        let token = token.await.map_err(|fault| match fault {
            ApiError::Invalid { message, .. } => message,
            _ => "there is no token for it".to_owned(),
        })?;
        let mut headers = self.headers.clone();
        if let Some(value) = bearer(&token) {
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(headers)
    }

    async fn greet<'a>(&'a self, app: &'a App) -> Result<McpSession<'a>, McpError> {
        let headers = self.credentials(app).await?;
        app.outbound.greet(&self.address.url, &self.address.transport, headers).await
    }

    /// Greets it and reads all its lists.
    pub async fn learn(&self, app: &App) -> Learnt {
        let all = async {
            let mut session = self.greet(app).await?;
            let mut offered = session.capabilities().await?;
            offered.extend(session.info.pinned_instructions.clone());
            Ok::<_, McpError>((session.info.clone(), offered))
        };
        let late = || Err(format!("it did not answer within {} s", EVERYTHING.as_secs()).into());
        tokio::time::timeout(EVERYTHING, all).await.unwrap_or_else(|_| late())
    }

    /// Greets it, and says how that went.
    pub async fn test(&self, app: &App) -> Value {
        let start = Instant::now();
        let met = tokio::time::timeout(GREETING, self.greet(app)).await;
        let met = met.unwrap_or_else(|_| Err(format!("it did not answer within {} s", GREETING.as_secs()).into()));
        let took = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (status, name, error) = match met {
            Ok(session) => (Some(session.status), session.info.name, None),
            Err(error) => (error.status, None, Some(error.message)),
        };
        json!({
            "success": error.is_none(), "status_code": status, "response_time_ms": took, "url": self.address.url,
            "server_name": name, "message": error.as_deref().unwrap_or("the server answered"), "error": error,
        })
    }
}

fn bearer(token: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_text()?)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// `POST /mcp-integrations/{id}/test`
pub async fn test(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let target = {
        let db = app.db.get().await?;
        let found = list::found(&*db, &call, &name).await?;
        found.may_change(&call)?;
        target_of(&app, &*db, &found).await?
    };
    Ok(Json(target.test(&app).await))
}

/// `POST /mcp-integrations/{id}/sync`: now, instead of when the job comes to it; with a body, what that says.
pub async fn sync(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    if let Some(pushed) = Pushed::read(&call)? {
        return push(&app, &call, &name, &pushed).await;
    }
    let target = {
        let mut db = app.db.get().await?;
        let mut action = Action::begin(&mut db, &app, &call).await?;
        let found = list::held(&mut action, &name).await?;
        target_of(&app, &action.tx, &found).await?
    };
    let learnt = target.learn(&app).await;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let found = list::held(&mut action, &name).await?;
    store(&action.tx, found.organisation_id, &target, &learnt).await?;
    let answer = outcome(&learnt);
    let change =
        Change { resource_id: found.id.to_string(), before: Some(found.metadata()), after: Some(answer.clone()) };
    action.commit(change).await?;
    Ok(Json(answer))
}

async fn push(app: &App, call: &Call, name: &str, pushed: &Pushed) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, app, call).await?;
    let found = list::held(&mut action, name).await?;
    pushed.store(&action.tx, found.organisation_id, found.id, pushed.info.as_ref().map(server_metadata)).await?;
    let answer = stored(pushed.offered.as_deref().unwrap_or_default());
    let change =
        Change { resource_id: found.id.to_string(), before: Some(found.metadata()), after: Some(answer.clone()) };
    action.commit(change).await?;
    Ok(Json(answer))
}

async fn target_of(app: &App, db: &impl GenericClient, of: &McpIntegration) -> Result<Target, ApiError> {
    let address = ServerAddress {
        url: of.url.clone(),
        auth_type: of.auth_type.clone(),
        transport: of.transport.clone(),
        is_mapped: of.secret_mappings.as_array().is_some_and(|all| !all.is_empty()),
    };
    Target::open(app, db, (of.organisation_id, of.id), address, of.sealed.as_ref()).await
}

pub fn outcome(learnt: &Learnt) -> Value {
    match learnt {
        Ok((_, offered)) => stored(offered),
        Err(error) => sync_outcome(false, &error.message, &[]),
    }
}

fn stored(offered: &[Capability]) -> Value {
    sync_outcome(true, "what the server offers is stored", offered)
}

fn sync_outcome(success: bool, message: &str, offered: &[Capability]) -> Value {
    let count = |kind: Kind| offered.iter().filter(|one| one.kind == kind).count();
    json!({
        "success": success, "message": message,
        "details": {
            "tools": count(Kind::Tool), "prompts": count(Kind::Prompt), "resources": count(Kind::Resource),
            "resource_templates": count(Kind::ResourceTemplate),
        },
    })
}

/// Writes what was learnt, unless the integration leads elsewhere by now.
pub async fn store(
    db: &impl GenericClient,
    organisation: Uuid,
    target: &Target,
    learnt: &Learnt,
) -> Result<(), tokio_postgres::Error> {
    // A server that answered before is asked again, so that what changes on it is noticed.
    const FAILED: &str = "UPDATE mcp_integrations SET sync_status = 'failed', sync_error = $4,
            sync_due_at = CASE WHEN last_synced_at IS NOT NULL THEN now() + interval '1 hour' END
        WHERE id = $1 AND organisation_id = $2 AND url = $3";
    const SYNCED: &str = "UPDATE mcp_integrations SET sync_status = 'synced', sync_error = NULL,
            sync_due_at = now() + interval '1 hour', last_synced_at = now(), metadata = $4
        WHERE id = $1 AND organisation_id = $2 AND url = $3";
    let (info, offered) = match learnt {
        Ok(learnt) => learnt,
        Err(error) => {
            db.execute(FAILED, &[&target.id, &organisation, &target.address.url, &error.message]).await?;
            return Ok(());
        }
    };
    if db.execute(SYNCED, &[&target.id, &organisation, &target.address.url, &server_metadata(info)]).await? == 0 {
        return Ok(());
    }
    let changed = pins::store(db, organisation, target.id, offered).await?;
    if changed.is_empty() {
        return Ok(());
    }
    let mut record = AuditRecord::by_system(organisation, "mcp_integrations", "update");
    record.resource_id = Some(target.id.to_string());
    (record.before, record.after) = pins::describe_changes(&changed);
    audit::record(db, &record).await
}

/// As `metadata` stores it.
fn server_metadata(info: &ServerInfo) -> Value {
    json!({
        "title": info.title, "icons": info.icons.as_ref().map(|icons| json!({ "icons": icons })),
        "server_name": info.name, "server_version": info.version, "protocol_version": info.protocol_version,
        "website_url": info.website_url, "instructions": info.instructions, "capability_flags": info.flags,
    })
}

/// The integration of this id as it is called, for servers that are instances of it, if their workspace may use it.
pub async fn target_by_id(
    app: &App,
    db: &impl GenericClient,
    (organisation, workspace): (Uuid, Uuid),
    id: Uuid,
) -> Result<Target, ApiError> {
    const FIND: &str = "sealed FROM mcp_integrations i
        WHERE id = $1 AND organisation_id = $2 AND status = 'active'
          AND (workspace_id = $3 OR (workspace_id IS NULL AND EXISTS (SELECT FROM mcp_integration_workspaces g
               WHERE g.integration_id = i.id AND g.workspace_id = $3 AND g.enabled)))";
    const CLOSED: ApiError = ApiError::Forbidden("The workspace has no access to this MCP integration any more");
    let find = format!("SELECT {}, {FIND}", ServerAddress::COLUMNS);
    let row = db.query_opt(&find, &[&id, &organisation, &workspace]).await?.ok_or(CLOSED)?;
    let sealed = row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from);
    Target::open(app, db, (organisation, id), ServerAddress::from_row(&row)?, sealed.as_ref()).await
}
