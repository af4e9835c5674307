//! A panic in a handler is a bug and one client's 500; it must not cut the connection of others.

use crate::http::ApiError;
use axum::response::Response;
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;

/// The answer, or an internal error when making it panicked.
pub async fn shielded(answer: impl Future<Output = Response>) -> Result<Response, ApiError> {
    AssertUnwindSafe(answer).catch_unwind().await.map_err(|_| {
        tracing::error!("a handler panicked; the panic's own message stands above");
        ApiError::Internal
    })
}
