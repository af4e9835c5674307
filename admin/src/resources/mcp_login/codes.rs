//! Codes: what a person agreed to, kept for a minute until the MCP client that was meant fetches its token with the
//! verifier that nobody else has. A code serves once, whatever comes of it.

use super::Person;
use super::request::LoginRequest;
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::ApiError;
use crate::resources::api_keys::issue::{NewMemberKey, PromisedKey, for_joiner};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use shared::identity::api_key;
use shared::secrets::seal::Secret;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row, Transaction};
use uuid::Uuid;

/// How long a client is logged in.
const LIFE: TimeDelta = TimeDelta::hours(8);
pub const SCOPE: &str = "mcp.invoke";

/// A code for a request that somebody agreed to.
pub async fn issue(
    db: &impl GenericClient,
    person: Person,
    workspace: Uuid,
    request: &LoginRequest,
) -> Result<String, ApiError> {
    const TIDY: &str = "DELETE FROM mcp_login_codes WHERE expires_at < now()";
    const MAKE: &str = "INSERT INTO mcp_login_codes (code_hash, organisation_id, workspace_id, user_id, client_hash,
            client_name, redirect_uri, challenge, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + interval '1 minute')";
    let code = api_key::generate("");
    let (code_hash, client_hash) = (hash(&code), hash(&request.client_id));
    let values: [&(dyn ToSql + Sync); 8] = [
        &code_hash.as_slice(),
        &person.organisation,
        &workspace,
        &person.user,
        &client_hash.as_slice(),
        &request.client.name,
        &request.redirect_uri,
        &request.challenge,
    ];
    db.execute(TIDY, &[]).await?;
    db.execute(MAKE, &values).await?;
    Ok(code)
}

/// What a client brings to fetch its token.
#[derive(Debug)]
pub struct Redemption<'a> {
    pub code: &'a str,
    pub client_id: &'a str,
    pub redirect_uri: &'a str,
    pub verifier: &'a str,
}

#[derive(Debug)]
pub struct McpToken {
    pub key: Secret,
    pub expires_at: DateTime<Utc>,
}

/// A key for the client, if the code is its own. None tells nobody why not.
pub async fn redeem(app: &App, brought: Redemption<'_>) -> Result<Option<McpToken>, ApiError> {
    const TAKE: &str = "DELETE FROM mcp_login_codes WHERE code_hash = $1
        RETURNING organisation_id, workspace_id, user_id, client_hash = $2 AND redirect_uri = $3 AND challenge = $4
                  AND expires_at > now() AS is_valid, client_name";
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(brought.verifier));
    let (code_hash, client_hash) = (hash(brought.code), hash(brought.client_id));
    let values: [&(dyn ToSql + Sync); 4] =
        [&code_hash.as_slice(), &client_hash.as_slice(), &brought.redirect_uri, &challenge];
    let mut db = app.db.get().await?;
    // Used up also when nothing comes of it.
    let Some(row) = db.query_opt(TAKE, &values).await? else { return Ok(None) };
    if !row.try_get::<_, bool>("is_valid")? {
        return Ok(None);
    }
    let tx = db.transaction().await?;
    let minted = mint(app, &tx, &row).await?;
    tx.commit().await?;
    Ok(minted)
}

async fn mint(app: &App, tx: &Transaction<'_>, row: &Row) -> Result<Option<McpToken>, ApiError> {
    // They may have been removed since they agreed, or left the workspace.
    const HOLD: &str = "SELECT FROM users u WHERE u.id = $1 AND u.organisation_id = $2 AND u.status = 'active'
        AND (u.role IN ('owner', 'admin')
             OR EXISTS (SELECT FROM workspace_members m WHERE m.workspace_id = $3 AND m.user_id = u.id))
        FOR SHARE OF u";
    const ENDS: &str = "SELECT expires_at FROM api_keys WHERE id = $1 AND organisation_id = $2";
    let (organisation, workspace, user): (Uuid, Uuid, Uuid) =
        (row.try_get("organisation_id")?, row.try_get("workspace_id")?, row.try_get("user_id")?);
    if tx.query_opt(HOLD, &[&user, &organisation, &workspace]).await?.is_none() {
        return Ok(None);
    }
    let name = format!("MCP: {}", row.try_get::<_, &str>("client_name")?);
    let expires_at = Utc::now() + LIFE;
    let promise =
        PromisedKey { scopes: vec![SCOPE.into()], name: Some(name.clone()), expiry: Some(expires_at), metadata: None };
    let promised = NewMemberKey { organisation, workspace, user, by: user, promise: Some(promise), is_shown: true };
    let Some((id, key)) = for_joiner(tx, &app.api_key_prefix, promised).await? else { return Ok(None) };
    // The workspace may want keys to end earlier.
    let expires_at: DateTime<Utc> = tx.query_one(ENDS, &[&id, &organisation]).await?.try_get(0)?;
    let mut record = AuditRecord::by_system(organisation, "api_keys", "create");
    record.user_type = "user";
    record.user_id = Some(user);
    record.workspace_id = Some(workspace);
    record.method = "POST";
    record.uri = "/oauth/token".into();
    record.resource_id = Some(id.to_string());
    record.after = Some(json!({ "name": name, "scopes": [SCOPE], "expires_at": expires_at }));
    audit::record(tx, &record).await?;
    Ok(Some(McpToken { key: Secret::from(key), expires_at }))
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
