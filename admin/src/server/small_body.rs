//! The bodies of what stands beside the gate (pages, the authorisation server of MCP clients, probes): forms of a few fields,
//! so they are read whole before a handler runs, and neither large nor slow ones are waited for. Anybody may send one, and
//! each that is under way holds a connection.

use crate::http::body;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::time::Duration;

const MAX_BODY_LENGTH: usize = 16 << 10;
const TIME: Duration = Duration::from_secs(10);

pub async fn small_body(request: Request, next: Next) -> Response {
    let (parts, incoming) = request.into_parts();
    match body::receive_within(incoming, &parts.headers, MAX_BODY_LENGTH, TIME).await {
        Ok(whole) => next.run(Request::from_parts(parts, Body::from(whole))).await,
        Err(refused) => refused.into_response(),
    }
}
