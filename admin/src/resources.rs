//! The operations that are built. Each resource is one file; everything else of the route table answers 501.

mod own_key;

use crate::app::App;
use crate::error::ApiError;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use shared::routes::{Method, Operation};

/// Methods and paths with a handler. The OpenAPI document and the conformance test read it.
static BUILT: &[(Method, &str)] =
    &[(Method::Get, "/api-keys/self"), (Method::Post, "/api-keys/{type}/{subType}"), (Method::Get, "/openapi.json")];

pub fn is_built(operation: &Operation) -> bool {
    BUILT.contains(&(operation.method, operation.path))
}

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/api-keys/self", get(own_key::describe))
        .route("/v1/api-keys/{type}/{sub_type}", post(no_such_kind_of_key))
        .route("/v1/openapi.json", get(openapi))
        .method_not_allowed_fallback(not_built)
        .fallback(not_built)
}

async fn not_built() -> ApiError {
    ApiError::NotBuilt
}

/// Catches what is neither of the three kinds, so that a mistyped path is not taken for a provider's.
async fn no_such_kind_of_key(operation: axum::Extension<&'static Operation>) -> ApiError {
    if is_built(&operation) { ApiError::invalid("There is no such kind of API key") } else { ApiError::NotBuilt }
}

async fn openapi(State(app): State<App>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], app.openapi)
}
