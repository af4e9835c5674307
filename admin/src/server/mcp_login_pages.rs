//! The authorisation server for MCP clients, as they and browsers meet it: its metadata, registration, the page on which
//! a person who is signed in agrees, and the token endpoint. What is decided is in `resources::mcp_login`.

use crate::app::App;
use crate::http::{ApiError, Query};
use crate::identity::cookies::{CallerSession, Cookie};
use crate::identity::session::{self, CookieRequest};
use crate::resources::mcp_login::client_id::McpClient;
use crate::resources::mcp_login::codes::{self, Redemption, SCOPE};
use crate::resources::mcp_login::request::{BadLogin, LoginRequest};
use crate::resources::mcp_login::{Person, workspace_of};
use crate::server::plain_page::{escaped, is_own_form, page};
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chrono::Utc;
use serde_json::{Value, json};
use shared::routes::{Method, SessionReach};
use shared::telemetry::{Brief, LogLimit};
use std::sync::Arc;

const MAX_BODY: usize = 16 << 10;
/// Of where a person comes back to after signing in.
const MAX_RETURN: usize = 2048;

/// `GET /.well-known/oauth-authorization-server` (RFC 8414).
pub async fn metadata(State(app): State<App>) -> Response {
    let at = |path: &str| format!("{}/oauth/{path}", app.public_url);
    let metadata = json!({
        "issuer": &*app.public_url, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "registration_endpoint": at("register"), "scopes_supported": [SCOPE], "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"], "authorization_response_iss_parameter_supported": true,
    });
    Json(metadata).into_response()
}

/// `POST /oauth/register` (RFC 7591).
pub async fn register(body: Bytes) -> Response {
    let asked = match body.len() <= MAX_BODY {
        true => serde_json::from_slice::<Value>(&body).unwrap_or_default(),
        false => Value::Null,
    };
    match McpClient::register(&asked) {
        Err(why) => {
            answer(StatusCode::BAD_REQUEST, json!({ "error": "invalid_client_metadata", "error_description": why }))
        }
        Ok(client) => answer(
            StatusCode::CREATED,
            json!({
                "client_id": client.id(), "client_name": client.name, "redirect_uris": client.redirect_uris,
                "grant_types": ["authorization_code"], "response_types": ["code"],
                "token_endpoint_auth_method": "none",
            }),
        ),
    }
}

/// `GET /oauth/authorize`: asks a person who is signed in, and others to sign in.
pub async fn authorize(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let raw = query.unwrap_or_default();
    let request = match parse(&app, &raw) {
        Ok(request) => request,
        Err(bad) => return login_error_page(bad),
    };
    match signed_in(&app, &headers).await {
        Ok(Some((person, session))) => match question(&app, person, &request, &session, &raw).await {
            Ok(shown) => with_cookie(shown, &session),
            Err(fault) => failed(&fault),
        },
        Ok(None) => page(StatusCode::OK, "Sign in", &sign_in(&raw)),
        Err(fault) => failed(&fault),
    }
}

/// `POST /oauth/authorize`: what the person decided.
pub async fn decide(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Response {
    const STALE: &str =
        "<p>This page is not valid any more. Go back to the program that sent you, and begin again.</p>";
    let form = std::str::from_utf8(&body).ok().filter(|form| form.len() <= MAX_BODY);
    let form = form.and_then(|form| Query::parse(Some(form)).ok()).unwrap_or_default();
    let raw = form.text("request").unwrap_or_default();
    let request = match parse(&app, raw) {
        Ok(request) => request,
        Err(bad) => return login_error_page(bad),
    };
    let (person, session) = match signed_in(&app, &headers).await {
        Ok(Some(found)) => found,
        Ok(None) => return page(StatusCode::FORBIDDEN, "Sign in", &sign_in(raw)),
        Err(fault) => return failed(&fault),
    };
    if !has_csrf_token(form.text("csrf_token"), &session) || !is_own_form(&headers, &app.public_url) {
        return page(StatusCode::FORBIDDEN, "Not logged in", STALE);
    }
    let url = match form.text("choice") {
        Some("allow") => granted(&app, person, &request).await,
        _ => Ok(request.refused("access_denied", &app.public_url)),
    };
    match url {
        Ok(url) => with_cookie(sent_to(&url), &session),
        Err(fault) => failed(&fault),
    }
}

/// `POST /oauth/token`
pub async fn token(State(app): State<App>, body: Bytes) -> Response {
    let refused = |status, error: &str| answer(status, json!({ "error": error }));
    let form = std::str::from_utf8(&body).ok().filter(|form| form.len() <= MAX_BODY);
    let form = form.and_then(|form| Query::parse(Some(form)).ok()).unwrap_or_default();
    if form.text("grant_type") != Some("authorization_code") {
        return refused(StatusCode::BAD_REQUEST, "unsupported_grant_type");
    }
    let text = |name: &str| form.text(name);
    let (Some(code), Some(client_id), Some(redirect_uri), Some(verifier)) =
        (text("code"), text("client_id"), text("redirect_uri"), text("code_verifier"))
    else {
        return refused(StatusCode::BAD_REQUEST, "invalid_request");
    };
    match codes::redeem(&app, Redemption { code, client_id, redirect_uri, verifier }).await {
        Ok(Some(token)) => answer(
            StatusCode::OK,
            json!({
                "access_token": token.key.expose_text(), "token_type": "Bearer", "scope": SCOPE,
                "expires_in": (token.expires_at - Utc::now()).num_seconds().max(0),
            }),
        ),
        Ok(None) => refused(StatusCode::BAD_REQUEST, "invalid_grant"),
        Err(fault) => {
            static NO_TOKEN: LogLimit = LogLimit::new();
            if let Some(skipped) = NO_TOKEN.pass() {
                tracing::error!(fault = %Brief(fault), skipped, "an MCP client got no token");
            }
            refused(StatusCode::INTERNAL_SERVER_ERROR, "server_error")
        }
    }
}

fn parse(app: &App, raw: &str) -> Result<LoginRequest, BadLogin> {
    LoginRequest::parse(&Query::parse(Some(raw)).unwrap_or_default(), &app.public_url)
}

fn login_error_page(bad: BadLogin) -> Response {
    match bad {
        BadLogin::Page(sentence) => page(StatusCode::BAD_REQUEST, "Not logged in", &format!("<p>{sentence}</p>")),
        BadLogin::Back(url) => sent_to(&url),
    }
}

/// The person behind the browser's cookie; none when they must sign in first.
pub(super) async fn signed_in(
    app: &App,
    headers: &HeaderMap,
) -> Result<Option<(Person, Arc<CallerSession>)>, ApiError> {
    let Some(token) = app.cookies.sent(headers, Cookie::Session) else { return Ok(None) };
    // A form repeats the token against other sites in a field; `decide` compares it.
    let request = CookieRequest {
        method: Method::Get,
        headers,
        cookies: app.cookies,
        aliases: &app.aliases,
        public_url: &app.public_url,
        reach: SessionReach::Workspace,
    };
    let caller = match session::authenticate(&request, token, &*app.db.get().await?).await {
        Ok(caller) => caller,
        Err(failure) if matches!(failure.refused, ApiError::Unauthenticated(_)) => return Ok(None),
        Err(failure) => return Err(failure.refused),
    };
    let (Some(user), Some(session)) = (caller.user_id(), caller.session.clone()) else { return Ok(None) };
    let person = Person { organisation: caller.organisation_id(), user, workspace: caller.workspace_id() };
    Ok(Some((person, session)))
}

async fn question(
    app: &App,
    person: Person,
    request: &LoginRequest,
    session: &CallerSession,
    raw: &str,
) -> Result<Response, ApiError> {
    const NAMES: &str = "SELECT u.email, w.name AS workspace, o.name AS organisation
        FROM users u JOIN organisations o ON o.id = u.organisation_id
        JOIN workspaces w ON w.organisation_id = o.id AND w.id = $3 WHERE u.id = $1 AND u.organisation_id = $2";
    let db = app.db.get().await?;
    let workspace = workspace_of(app, &*db, person, request.resource.as_deref()).await?;
    let Some(workspace) = workspace else {
        let sentence = "<p>There is no such MCP server, or you may not use it.</p>";
        return Ok(page(StatusCode::FORBIDDEN, "Not logged in", sentence));
    };
    let row = db.query_one(NAMES, &[&person.user, &person.organisation, &workspace]).await?;
    let destination = request.destination();
    let texts: [&str; 7] = [
        &request.client.name,
        row.try_get("workspace")?,
        row.try_get("organisation")?,
        row.try_get("email")?,
        &destination,
        raw,
        &session.csrf_token,
    ];
    let [client, workspace, organisation, email, destination, raw, csrf] = texts.map(escaped);
    let content = format!(
        "<p>A program that calls itself <strong>{client}</strong> asks to use the MCP servers of <strong>{workspace}</strong> \
         ({organisation}) as <strong>{email}</strong>, for some hours. You will be sent back to \
         <strong>{destination}</strong>.</p><p>Agree only if you started this yourself.</p>\
         <form method=\"post\" action=\"authorize\"><input type=\"hidden\" name=\"request\" value=\"{raw}\">\
         <input type=\"hidden\" name=\"csrf_token\" value=\"{csrf}\">\
         <button type=\"submit\" name=\"choice\" value=\"allow\">Agree</button> \
         <button type=\"submit\" name=\"choice\" value=\"refuse\">Refuse</button></form>"
    );
    Ok(page(StatusCode::OK, "Log in", &content))
}

async fn granted(app: &App, person: Person, request: &LoginRequest) -> Result<String, ApiError> {
    let db = app.db.get().await?;
    let Some(workspace) = workspace_of(app, &*db, person, request.resource.as_deref()).await? else {
        return Ok(request.refused("invalid_target", &app.public_url));
    };
    let code = codes::issue(&*db, person, workspace, request).await?;
    Ok(request.granted(&code, &app.public_url))
}

/// Whether a form carries the CSRF token of the session, which no other site knows.
pub(super) fn has_csrf_token(sent: Option<&str>, session: &CallerSession) -> bool {
    let (sent, own) = (sent.unwrap_or_default().as_bytes(), session.csrf_token.as_bytes());
    sent.len() == own.len() && openssl::memcmp::eq(sent, own)
}

fn sign_in(raw: &str) -> String {
    sign_in_form(&format!("/oauth/authorize?{raw}"))
}

/// The form for a browser that is not signed in. After sign-in it returns to this path.
pub(super) fn sign_in_form(back: &str) -> String {
    if back.len() > MAX_RETURN {
        return "<p>Sign in to the gateway first, then begin again.</p>".into();
    }
    format!(
        "<p>Sign in to the gateway first. You come back here.</p><form method=\"get\" action=\"/v1/auth/login\">\
         <label>E-mail address <input name=\"email\" type=\"email\" required></label>\
         <input type=\"hidden\" name=\"return_to\" value=\"{}\"><button type=\"submit\">Sign in</button></form>",
        escaped(back)
    )
}

fn sent_to(url: &str) -> Response {
    let Ok(location) = HeaderValue::try_from(url) else { return failed(&ApiError::Internal) };
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn answer(status: StatusCode, body: Value) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

pub(super) fn with_cookie(mut response: Response, session: &CallerSession) -> Response {
    if let Some(cookie) = &session.renewed {
        response.headers_mut().append(header::SET_COOKIE, cookie.clone());
    }
    response
}

fn failed(fault: &ApiError) -> Response {
    page(fault.status(), "Not logged in", &format!("<p>{}</p>", escaped(&fault.to_string())))
}
