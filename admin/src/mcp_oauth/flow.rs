//! The way of a person to their tokens, in three steps. `begin` gives a link that serves once. The page behind it
//! serves a browser that is signed in as that person. `agree` redirects it to the authorisation server and sets a cookie;
//! only the browser with that cookie may come back (`finish`). A forwarded link therefore connects nobody, and an
//! intercepted answer is of no use: it is bound to the browser, the person, the MCP server, the client and, by the code
//! verifier that never leaves the gateway, to the request that was sent.

use super::access::may_use;
use super::client::{self, OAuthClient, of_integration};
use super::connection::{Owner, store};
use super::ensure::{OAuthIntegration, ensured};
use super::place;
use super::token_endpoint::{TokenError, tokens};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use shared::secrets::seal::{Sealed, SealedPlace, Secret};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};
use url::Url;
use uuid::Uuid;

/// How long a link serves, and how many of one person's may be open.
pub const LIFE: TimeDelta = TimeDelta::minutes(10);
const OPEN: i64 = 10;

/// Why nothing came of it, in words for the person.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    #[error("This link is not valid, or no longer, or belongs to another browser. Ask for a new one.")]
    Unknown,
    #[error("This link belongs to another person than the one who is signed in here, so nothing was connected.")]
    OtherPerson,
    #[error("You did not agree, so nothing was connected.")]
    Denied,
    #[error("The authorisation server refused, so nothing was connected.")]
    Refused,
    #[error("The answer came from another authorisation server than the one that was asked, so it was not used.")]
    WrongIssuer,
    #[error("You may not use this MCP server any more.")]
    NoAccess,
    #[error("Nothing was connected: {0}.")]
    Failed(String),
    #[error("Something failed here. Try again later.")]
    Internal,
}

impl<E: Into<ApiError>> From<E> for FlowError {
    fn from(error: E) -> Self {
        match error.into() {
            ApiError::NotFound(_) => Self::Unknown,
            _ => Self::Internal,
        }
    }
}

/// A link for a person, and until when it serves.
pub struct Link {
    pub url: String,
    pub expires_at: DateTime<Utc>,
}

/// Where people come back to.
pub fn redirect_uri(app: &App) -> String {
    format!("{}/mcp-oauth/callback", app.public_url)
}

/// A link for the owner. The authorisation server is found, and the gateway registered there, if that is not done yet.
pub async fn begin(app: &App, owner: Owner, integration: &OAuthIntegration) -> Result<Link, ApiError> {
    const TIDY: &str = "DELETE FROM mcp_oauth_states WHERE expires_at < now() OR id IN (SELECT id FROM mcp_oauth_states
        WHERE user_id = $1 AND organisation_id = $2 ORDER BY created_at DESC, id OFFSET $3)";
    const MAKE: &str =
        "INSERT INTO mcp_oauth_states (id, organisation_id, workspace_id, server_id, user_id, state_hash,
            verifier, client_row, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let redirect_uri = redirect_uri(app);
    let client = ensured(app, integration, Some(redirect_uri.as_str())).await?;
    if client.server.authorization_endpoint.is_none() {
        return Err(ApiError::invalid("the authorisation server names no authorization_endpoint"));
    }
    let (state, verifier, id) = (random(), random(), Uuid::new_v4());
    let expires_at = Utc::now() + LIFE;
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    tx.execute(TIDY, &[&owner.person, &owner.organisation, &(OPEN - 1)]).await?;
    let sealed = app.sealer.seal(&tx, &verifier_place(owner.organisation, id), verifier.as_bytes()).await?.to_vec();
    let hash = hash(&state);
    let values: [&(dyn ToSql + Sync); 9] = [
        &id,
        &owner.organisation,
        &owner.workspace,
        &owner.server,
        &owner.person,
        &hash.as_slice(),
        &sealed,
        &client.id,
        &expires_at,
    ];
    tx.execute(MAKE, &values).await?;
    tx.commit().await?;
    Ok(Link { url: format!("{}/mcp-oauth/start?state={state}", app.public_url), expires_at })
}

/// What the page says before somebody agrees.
#[derive(Debug)]
pub struct Question {
    pub person_id: Uuid,
    pub organisation_id: Uuid,
    pub person: String,
    pub server: String,
    pub organisation: String,
    pub asked: String,
}

impl Question {
    pub fn is_for(&self, organisation: Uuid, person: Uuid) -> bool {
        (self.organisation_id, self.person_id) == (organisation, person)
    }
}

/// Whom a link would connect with what.
pub async fn question(app: &App, state: &str) -> Result<Question, FlowError> {
    const FIND: &str =
        "SELECT t.user_id, t.organisation_id, u.email, s.name AS server, o.name AS organisation, c.metadata ->> 'authorization_endpoint' AS asked
        FROM mcp_oauth_states t JOIN users u ON u.id = t.user_id AND u.status = 'active'
        JOIN mcp_servers s ON s.id = t.server_id AND s.status = 'active'
        JOIN organisations o ON o.id = t.organisation_id JOIN mcp_clients c ON c.id = t.client_row
        WHERE t.state_hash = $1 AND t.expires_at > now() AND t.browser_hash IS NULL";
    let db = app.db.get().await?;
    let row = db.query_opt(FIND, &[&hash(state).as_slice()]).await?.ok_or(FlowError::Unknown)?;
    let endpoint: Option<&str> = row.try_get("asked")?;
    let asked = endpoint.and_then(|url| Url::parse(url).ok()).map(|url| url.origin().ascii_serialization());
    Ok(Question {
        person_id: row.try_get("user_id")?,
        organisation_id: row.try_get("organisation_id")?,
        person: row.try_get("email")?,
        server: row.try_get("server")?,
        organisation: row.try_get("organisation")?,
        asked: asked.ok_or(FlowError::Unknown)?,
    })
}

/// Binds the link to the browser with this cookie, and answers where to redirect it. A link of another person stays unused.
pub async fn agree(
    app: &App,
    (organisation, person): (Uuid, Uuid),
    state: &str,
    cookie: &str,
) -> Result<String, FlowError> {
    const BIND: &str = "UPDATE mcp_oauth_states SET browser_hash = $2
        WHERE state_hash = $1 AND expires_at > now() AND browser_hash IS NULL AND organisation_id = $3 AND user_id = $4
        RETURNING id, organisation_id, workspace_id, server_id, user_id, client_row, verifier";
    let db = app.db.get().await?;
    let (state_hash, browser_hash) = (hash(state), hash(cookie));
    let values: [&(dyn ToSql + Sync); 4] = [&state_hash.as_slice(), &browser_hash.as_slice(), &organisation, &person];
    let row = db.query_opt(BIND, &values).await?;
    let open = OpenState::read(app, &*db, &row.ok_or(FlowError::Unknown)?).await?;
    let url = authorization_url(&open.client, state, open.verifier()?);
    url.ok_or(FlowError::Internal)
}

/// What the browser brings back.
#[derive(Debug, Default)]
pub struct Return<'a> {
    pub state: &'a str,
    /// Organisation and person of its session.
    pub person: Option<(Uuid, Uuid)>,
    pub cookie: &'a str,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
    pub issuer: Option<&'a str>,
}

/// Whoever comes back with a code gets connected; the state is used up whatever comes of it.
pub async fn finish(app: &App, back: Return<'_>) -> Result<(), FlowError> {
    const TAKE: &str = "DELETE FROM mcp_oauth_states WHERE state_hash = $1
        RETURNING id, organisation_id, workspace_id, server_id, user_id, client_row, verifier,
                  browser_hash = $2 AND expires_at > now() AND organisation_id = $3 AND user_id = $4 AS is_valid";
    let open = {
        let db = app.db.get().await?;
        let (state, cookie) = (hash(back.state), hash(back.cookie));
        let (organisation, person) = back.person.unzip();
        let values: [&(dyn ToSql + Sync); 4] = [&state.as_slice(), &cookie.as_slice(), &organisation, &person];
        let row = db.query_opt(TAKE, &values).await?;
        let row = row.ok_or(FlowError::Unknown)?;
        if row.try_get::<_, Option<bool>>("is_valid")? != Some(true) {
            return Err(FlowError::Unknown);
        }
        OpenState::read(app, &*db, &row).await?
    };
    check_issuer(&open.client, back.issuer)?;
    let code = match (back.error, back.code) {
        (Some("access_denied"), _) => return Err(FlowError::Denied),
        (Some(_), _) | (None, None) => return Err(FlowError::Refused),
        (None, Some(code)) => code,
    };
    // It may have been taken away while the person was elsewhere.
    let Owner { organisation, server, person, .. } = open.owner;
    if !may_use(&*app.db.get().await?, organisation, server, person).await? {
        return Err(FlowError::NoAccess);
    }
    let redirect_uri = open.client.redirect_uri.clone().unwrap_or_default();
    let form = vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri.as_str()),
        ("code_verifier", open.verifier()?),
        ("resource", open.client.resource.as_str()),
    ];
    let got = match tokens(&app.outbound, &open.client, form, Utc::now()).await {
        Ok(got) => got,
        Err(TokenError::UnknownClient) => {
            client::forget(&*app.db.get().await?, open.owner.organisation, open.client.id).await?;
            return Err(FlowError::Refused);
        }
        Err(TokenError::Dead) => return Err(FlowError::Refused),
        Err(TokenError::Failed(sentence)) => return Err(FlowError::Failed(sentence)),
    };
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    store(app, &tx, open.owner, &got, Some(open.client.server.issuer.as_str())).await?;
    audit::record(&tx, &connected(&open)).await?;
    tx.commit().await?;
    Ok(())
}

/// A state that was taken up, opened.
struct OpenState {
    owner: Owner,
    verifier: Secret,
    client: OAuthClient,
}

impl OpenState {
    async fn read(app: &App, db: &impl GenericClient, row: &Row) -> Result<Self, FlowError> {
        const INTEGRATION: &str = "SELECT integration_id FROM mcp_clients WHERE id = $1 AND organisation_id = $2";
        let owner = Owner {
            organisation: row.try_get("organisation_id")?,
            workspace: row.try_get("workspace_id")?,
            server: row.try_get("server_id")?,
            person: row.try_get("user_id")?,
        };
        let id: Uuid = row.try_get("client_row")?;
        let found = db.query_opt(INTEGRATION, &[&id, &owner.organisation]).await?.ok_or(FlowError::Unknown)?;
        let client = of_integration(app, db, owner.organisation, found.try_get(0)?).await?;
        // Another client took its place meanwhile.
        let client = client.filter(|client| client.id == id).ok_or(FlowError::Unknown)?;
        let sealed = Sealed::from(row.try_get::<_, &[u8]>("verifier")?);
        let place = verifier_place(owner.organisation, row.try_get("id")?);
        let verifier = app.sealer.open(db, &place, &sealed).await?;
        Ok(Self { owner, verifier, client })
    }

    fn verifier(&self) -> Result<&str, FlowError> {
        self.verifier.expose_text().ok_or(FlowError::Internal)
    }
}

/// A mix-up of servers is noticed by the name that the answer carries (RFC 9207).
fn check_issuer(client: &OAuthClient, issuer: Option<&str>) -> Result<(), FlowError> {
    match issuer {
        Some(issuer) if issuer == client.server.issuer => Ok(()),
        None if !client.server.names_issuer => Ok(()),
        _ => Err(FlowError::WrongIssuer),
    }
}

fn connected(open: &OpenState) -> AuditRecord {
    let owner = open.owner;
    let mut record = AuditRecord::by_system(owner.organisation, "mcp_servers", "update");
    record.user_type = "user";
    record.user_id = Some(owner.person);
    record.workspace_id = Some(owner.workspace);
    record.method = "GET";
    record.uri = "/mcp-oauth/callback".into();
    record.resource_id = Some(owner.server.to_string());
    record.after = Some(json!({ "connected": true, "user_id": owner.person, "issuer": open.client.server.issuer }));
    record
}

fn authorization_url(client: &OAuthClient, state: &str, verifier: &str) -> Option<String> {
    let mut url = Url::parse(client.server.authorization_endpoint.as_deref()?).ok()?;
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.client_id)
        .append_pair("redirect_uri", client.redirect_uri.as_deref()?)
        .append_pair("state", state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &client.resource);
    if let Some(scope) = &client.scope {
        url.query_pairs_mut().append_pair("scope", scope);
        // Without it, servers that speak OpenID give no refresh token.
        if scope.split(' ').any(|one| one == "offline_access") {
            url.query_pairs_mut().append_pair("prompt", "consent");
        }
    }
    Some(url.into())
}

fn verifier_place(organisation: Uuid, id: Uuid) -> SealedPlace {
    place(organisation, "mcp_oauth_states", id, "verifier")
}

/// 256 bits as 43 characters, which is also what a code verifier needs.
pub fn random() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests;
