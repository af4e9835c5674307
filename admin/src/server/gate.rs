//! The gate before all handlers: is this an operation, who calls, may they. No handler can be reached by a caller whom
//! the route table does not admit, and none can forget to check.

mod replay;

use crate::app::App;
use crate::audit;
use crate::http::{ApiError, ErrorExtension, Query, body, dry_run};
use crate::identity::call::{ClientInfo, RequestOrigin};
use crate::identity::caller::{AuthFailure, authenticate};
use crate::identity::cookies::{CallerSession, Cookie};
use crate::identity::credential::{self, Credential};
use crate::identity::session::{self, CookieRequest};
use crate::identity::{Call, Caller, scim_token};
use crate::resources::{accepted, is_built};
use crate::server::conform::conform;
use crate::server::panics::shielded;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use shared::model::ApiKey;
use shared::routes::{self, Access, KeySet, Lookup, Operation};
use shared::settings::Features;
use std::sync::Arc;
use tracing::Instrument as _;

/// What the caller should know beside the answer; `observe` writes it into a header.
#[derive(Clone)]
pub struct WarningsExtension(pub Arc<[String]>);

/// On the answer of a dry run; `observe` writes it into a header.
#[derive(Clone, Copy)]
pub struct DryRunExtension;

const VOID: &str = "nothing was changed (dry_run): ids, slugs, links and secrets of this answer will never be valid";

/// What the gate learned, for the log line and the metrics.
#[derive(Clone)]
pub struct GateOutcome {
    pub operation: &'static Operation,
    pub key: Option<Arc<ApiKey>>,
}

pub async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    let operation = match operation_of(&request) {
        Ok(operation) => operation,
        Err(refused) => return refuse(refused, request),
    };
    let answered = answered(app, operation, request, next);
    if operation.audit.is_none() {
        return answered.await;
    }
    // In a task of its own: a client that leaves before its answer would otherwise take the record of its attempt along.
    let answered = tokio::spawn(answered.in_current_span()).await;
    answered.unwrap_or_else(|_| ApiError::Internal.into_response())
}

async fn answered(app: App, operation: &'static Operation, request: Request, next: Next) -> Response {
    let mut origin = origin_of(&app, operation, &request);
    let admitted = admit(&app, operation, request.headers()).await;
    let session = admitted.as_ref().ok().and_then(Option::as_ref).and_then(|caller| caller.session.clone());
    if let (Some(_), Some(origin)) = (&session, Arc::get_mut(&mut origin)) {
        origin.is_by_session = true;
    }
    let (mut response, key) = match admitted {
        Err(stranger) => {
            audit::token(&app, &origin, stranger.organisation_id, &stranger.refused).await;
            if let Some(session) = stranger.replayed {
                replay::end(&app, &origin, session).await;
            }
            (refuse(stranger.refused, request), stranger.key.map(Arc::new))
        }
        Ok(caller) => {
            let key = caller.as_ref().map(|caller| caller.key.clone());
            let is_within_limit = key.as_ref().map_or(Ok(()), |key| app.request_limit.take(key.id.uuid(), Utc::now()));
            match is_within_limit.and_then(|()| permit(operation, caller.as_ref(), &app.features)) {
                // Left out of the audit trail: whoever calls too often would fill it.
                Err(refused @ ApiError::RateLimited { .. }) => {
                    let response = with_cookie(refuse(refused, request), session.as_deref());
                    return tagged(response, GateOutcome { operation, key });
                }
                Err(refused) => {
                    if let Some(token) = caller.as_ref().and_then(|caller| caller.token.as_ref()) {
                        audit::token(&app, &origin, Some(token.organisation_id), &refused).await;
                    }
                    (refuse(refused, request), key)
                }
                Ok(()) => (pass(&app, &mut origin, caller, request, next).await, key),
            }
        }
    };
    response = with_cookie(response, session.as_deref());
    if let Some(key) = &key {
        let refusal = response.extensions().get::<ErrorExtension>().cloned();
        audit::attempt(&app, &origin, key, response.status(), refusal.as_ref().map(|refusal| &*refusal.0)).await;
    }
    tagged(response, GateOutcome { operation, key })
}

fn origin_of(app: &App, operation: &'static Operation, request: &Request) -> Arc<RequestOrigin> {
    let seen = request.extensions().get::<ClientInfo>().cloned().unwrap_or_else(ClientInfo::nothing);
    let mut origin = RequestOrigin::new(seen, operation, request.uri().clone(), request.headers().clone());
    origin.is_lenient = app.aliases.used_in(request.headers()).is_some();
    Arc::new(origin)
}

/// Reads the body and lets the handler work. A panic is a failure like others: recorded, and answered in shape.
async fn pass(
    app: &App,
    origin: &mut Arc<RequestOrigin>,
    caller: Option<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let answered = match enter(request, origin, caller).await {
        Ok(request) => shielded(next.run(request)).await.inspect_err(|_| app.metrics.panics.inc()),
        Err(refused) => Err(refused),
    };
    let mut response = answered.map_or_else(IntoResponse::into_response, in_shape);
    if let Some(tag) = origin.answered_tag().and_then(|tag| HeaderValue::from_str(tag).ok())
        && response.status().is_success()
    {
        response.headers_mut().insert(header::ETAG, tag);
    }
    if origin.is_dry_run {
        mark_dry_run(app, origin, &mut response);
    }
    response.extensions_mut().insert(WarningsExtension(origin.warnings().into()));
    response
}

fn mark_dry_run(app: &App, origin: &RequestOrigin, response: &mut Response) {
    app.metrics.dry_runs.inc();
    if response.status().is_success() {
        origin.warn(VOID.to_owned());
    }
    response.extensions_mut().insert(DryRunExtension);
}

/// axum refuses a path that is no UTF-8 by itself, in a shape of its own.
fn in_shape(response: Response) -> Response {
    if response.status() == StatusCode::BAD_REQUEST && response.extensions().get::<ErrorExtension>().is_none() {
        return ApiError::invalid("The path is not valid UTF-8").into_response();
    }
    response
}

fn operation_of(request: &Request) -> Result<&'static Operation, ApiError> {
    let (method, whole) = (request.method().as_str(), request.uri().path());
    let lost = || ApiError::NoSuchPath { hint: routes::hint(method, whole) };
    let path = relative(whole).ok_or_else(lost)?;
    match routes::find(method, path) {
        Lookup::Operation(operation) => Ok(operation),
        Lookup::Unknown if path.ends_with("/.search") => Err(no_search()),
        Lookup::Unknown | Lookup::NotControlPlane => Err(lost()),
        Lookup::WrongMethod => {
            let allow: Vec<_> = routes::allowed(path).map(routes::Method::as_str).collect();
            Err(ApiError::WrongMethod { allow: allow.join(", "), hint: routes::hint(method, whole) })
        }
    }
}

/// SCIM's search by POST over several kinds of resources: 501 is how a server says that it has none.
fn no_search() -> ApiError {
    ApiError::Scim {
        status: StatusCode::NOT_IMPLEMENTED,
        kind: "",
        detail: "Resources are searched by GET with a filter, one kind at a time".into(),
    }
}

/// The path as the route table spells it. Prices are served at the host's root too, where one client looks for them.
fn relative(path: &str) -> Option<&str> {
    match path.strip_prefix("/v1") {
        Some(rest) if rest.starts_with('/') => Some(rest),
        _ => path.starts_with("/model-configs/").then_some(path),
    }
}

async fn admit(app: &App, operation: &Operation, headers: &HeaderMap) -> Result<Option<Caller>, AuthFailure> {
    match operation.access {
        Access::Public => Ok(None),
        Access::ScimToken => scim_token::authenticate(headers, &*app.db.get().await?).await.map(Some),
        Access::Session => by_session(app, operation, headers).await.map(Some),
        Access::Keys(_) => {
            let caller = match credential::sent(headers, &app.aliases)? {
                Some(Credential::Jwt(token)) => app.tokens.authenticate(&app.db, token, Utc::now()).await,
                Some(Credential::ApiKey(key)) => authenticate(key, &*app.db.get().await?, Utc::now()).await,
                // Whoever sends a key means the key, whatever cookies their browser adds.
                None => by_session(app, operation, headers).await,
            };
            caller.map(Some)
        }
    }
}

async fn by_session(app: &App, operation: &Operation, headers: &HeaderMap) -> Result<Caller, AuthFailure> {
    let Some(token) = app.cookies.sent(headers, Cookie::Session) else {
        return Err(ApiError::Unauthenticated("No valid credential was sent").into());
    };
    let request = CookieRequest {
        method: operation.method,
        headers,
        cookies: app.cookies,
        aliases: &app.aliases,
        public_url: &app.public_url,
        reach: operation.session_reach(),
    };
    session::authenticate(&request, token, &*app.db.get().await?).await
}

/// A replaced token goes to the browser with whatever the answer is, unless the handler sets the cookie itself.
fn with_cookie(mut response: Response, session: Option<&CallerSession>) -> Response {
    let renewed = session.and_then(|session| session.renewed.clone());
    if let Some(cookie) = renewed.filter(|_| !response.headers().contains_key(header::SET_COOKIE)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// How people are recognised decides who is an owner, so it is for those who could not gain anything by changing it.
const NOT_AN_OWNER: ApiError = ApiError::Forbidden(
    "Sign-in settings are for the session of an owner, or for an organisation key that holds every admin scope",
);

/// Feature, then kind of key, then scope, then how fresh the sign-in is: the most general reason first.
fn permit(operation: &Operation, caller: Option<&Caller>, flags: &Features) -> Result<(), ApiError> {
    if let Some(off) = operation.feature.filter(|feature| !feature.is_on(flags)) {
        return Err(ApiError::FeatureOff { setting: off.setting() });
    }
    let Some(caller) = caller else { return Ok(()) };
    if let Access::Keys(kinds) = operation.access {
        permit_key(operation, kinds, caller, flags)?;
    }
    match operation.needs_recent_sign_in() {
        true => caller.require_recent_sign_in(),
        false => Ok(()),
    }
}

fn permit_key(operation: &Operation, kinds: KeySet, caller: &Caller, flags: &Features) -> Result<(), ApiError> {
    // People come by the console; the switch is about programs.
    if !flags.api_access_enabled && caller.session.is_none() {
        return Err(ApiError::FeatureOff { setting: "API_ACCESS_ENABLED" });
    }
    if operation.is_of_sign_in() && caller.session.is_some() && !caller.is_owner() {
        return Err(NOT_AN_OWNER);
    }
    let is_in_workspaces = caller.workspace_id().is_some() || caller.own_workspaces.is_some();
    let is_session_here = operation.workspace_sessions && caller.session.is_some() && is_in_workspaces;
    if !kinds.contains(caller.key.kind) && !is_session_here {
        return Err(ApiError::WrongKeyKind);
    }
    if !operation.scopes.are_met_by(&caller.scopes) {
        return Err(ApiError::MissingScope { needs: operation.scopes });
    }
    match operation.changes_sign_in() && !caller.may_act_as_owner() {
        true => Err(NOT_AN_OWNER),
        false => Ok(()),
    }
}

/// Gives the handlers what they need: the canonical path, the call, and a body that is whole and bounded.
async fn enter(request: Request, origin: &mut Arc<RequestOrigin>, caller: Option<Caller>) -> Result<Request, ApiError> {
    let (mut parts, incoming) = request.into_parts();
    let whole = body::receive(incoming, &parts.headers, origin.operation.body_limit).await?;
    // Before the router: it would take an operation without a handler for a more general one that has one.
    if !is_built(origin.operation) {
        return Err(ApiError::NotBuilt);
    }
    if let Some(origin) = Arc::get_mut(origin) {
        origin.body = whole.clone();
        let query = Query::parse(parts.uri.query())?;
        origin.query = match accepted::by(origin.operation) {
            Some(accepted) => accepted.in_own_words(query),
            None => query,
        };
        origin.is_dry_run = dry_run::asked(origin.operation, &origin.query)?;
    }
    conform(origin)?;
    parts.uri = canonical(&parts.uri);
    if let Some(caller) = caller {
        parts.extensions.insert(Call { caller, origin: origin.clone() });
    }
    parts.extensions.insert(origin.clone());
    Ok(Request::from_parts(parts, whole.into()))
}

/// `/v1/…` without a trailing slash, the query kept.
fn canonical(uri: &Uri) -> Uri {
    let path = relative(uri.path()).unwrap_or_default();
    let path = path.strip_suffix('/').unwrap_or(path);
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // Parts of a valid URI make a valid URI.
    format!("/v1{path}{query}").parse().unwrap_or_else(|_| uri.clone())
}

fn refuse(refused: ApiError, request: Request) -> Response {
    body::discard(request.into_body());
    refused.into_response()
}

fn tagged(mut response: Response, passage: GateOutcome) -> Response {
    response.extensions_mut().insert(passage);
    response
}

#[cfg(test)]
mod tests;
