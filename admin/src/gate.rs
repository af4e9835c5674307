//! The one door to the handlers: is this an operation, who asks, may they. A handler behind it cannot be reached by
//! a caller the route table does not admit, and cannot forget to ask.

use crate::app::App;
use crate::body;
use crate::caller::{Caller, authenticate};
use crate::credential::credential;
use crate::error::ApiError;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use shared::conf::Features;
use shared::model::ApiKey;
use shared::routes::{self, Access, Lookup, Operation};

/// What the gate learned, for the log line and the metrics.
#[derive(Clone)]
pub struct Passage {
    pub operation: &'static Operation,
    pub caller: Option<Caller>,
}

pub async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    let operation = match operation_of(&request) {
        Ok(operation) => operation,
        Err(refused) => return refuse(refused, request),
    };
    let caller = match admit(&app, operation, request.headers()).await {
        Ok(caller) => caller,
        Err(refused) => return tagged(refuse(refused, request), Passage { operation, caller: None }),
    };
    let passage = Passage { operation, caller };
    let response = match enter(request, &passage).await {
        Ok(request) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    tagged(response, passage)
}

fn operation_of(request: &Request) -> Result<&'static Operation, ApiError> {
    let path = relative(request.uri().path()).ok_or(ApiError::NoSuchPath)?;
    match routes::find(request.method().as_str(), path) {
        Lookup::Operation(operation) => Ok(operation),
        Lookup::NotControlPlane => Err(ApiError::NoSuchPath),
        Lookup::WrongMethod => {
            let allow: Vec<_> = routes::allowed(path).map(routes::Method::as_str).collect();
            Err(ApiError::WrongMethod { allow: allow.join(", ") })
        }
    }
}

/// The path as the route table spells it. Prices are served at the host's root too, where one client looks for them.
fn relative(path: &str) -> Option<&str> {
    match path.strip_prefix("/v1") {
        Some(rest) if rest.starts_with('/') => Some(rest),
        _ => path.starts_with("/model-configs/pricing/").then_some(path),
    }
}

async fn admit(app: &App, operation: &Operation, headers: &HeaderMap) -> Result<Option<Caller>, ApiError> {
    let caller = match operation.access {
        Access::Public => None,
        // No organisation can have a SCIM token until its settings can be written.
        Access::ScimToken => return Err(ApiError::Unauthenticated("The SCIM token is not known")),
        Access::Keys(_) => {
            let credential = credential(headers, &app.prefixes)?;
            let db = app.db.get().await?;
            Some(authenticate(credential, &*db, Utc::now()).await?)
        }
    };
    permit(operation, caller.as_ref().map(|caller| &*caller.key), &app.features)?;
    Ok(caller)
}

/// Feature, then kind of key, then scope: the most general reason first.
fn permit(operation: &Operation, key: Option<&ApiKey>, flags: &Features) -> Result<(), ApiError> {
    if let Some(off) = operation.feature.filter(|feature| !feature.is_on(flags)) {
        return Err(ApiError::FeatureOff { setting: off.setting() });
    }
    let (Access::Keys(kinds), Some(key)) = (operation.access, key) else { return Ok(()) };
    if !flags.api_access_enabled {
        return Err(ApiError::FeatureOff { setting: "API_ACCESS_ENABLED" });
    }
    if !kinds.contains(key.kind) {
        return Err(ApiError::WrongKeyKind);
    }
    if !operation.scopes.are_met_by(&key.scopes) {
        return Err(ApiError::MissingScope { needs: operation.scopes });
    }
    Ok(())
}

/// Gives the handlers what they need: the canonical path, the caller, and a body that is whole and bounded.
async fn enter(request: Request, passage: &Passage) -> Result<Request, ApiError> {
    let (mut parts, incoming) = request.into_parts();
    let whole = body::receive(incoming, &parts.headers).await?;
    parts.uri = canonical(&parts.uri);
    parts.extensions.insert(passage.operation);
    if let Some(caller) = &passage.caller {
        parts.extensions.insert(caller.clone());
    }
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

fn tagged(mut response: Response, passage: Passage) -> Response {
    response.extensions_mut().insert(passage);
    response
}

#[cfg(test)]
mod tests;
