//! The whole service as one router. The gate wraps a router of its own, so that it runs before routing and may
//! correct the path.

use crate::app::App;
use crate::console;
use crate::openapi::docs_page;
use crate::resources;
use crate::server::gate::gate;
use crate::server::health;
use crate::server::invite_page;
use crate::server::link_page;
use crate::server::mcp_login_pages;
use crate::server::mcp_oauth_pages;
use crate::server::observe::observe;
use crate::server::small_body::small_body;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

pub fn router(app: App) -> Router {
    let operations = resources::routes()
        .into_router()
        // `body::receive` has bounded the body already, by another figure than axum's.
        .layer(DefaultBodyLimit::disable())
        .with_state(app.clone());
    let gated = Router::new().fallback_service(operations).layer(from_fn_with_state(app.clone(), gate));
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/docs", docs_page::route(&app.public_url))
        .merge(console::router())
        .route("/invites/accept", get(invite_page::show))
        .route("/auth/link", get(link_page::show))
        .route("/mcp-oauth/start", get(mcp_oauth_pages::start).post(mcp_oauth_pages::agree))
        .route("/mcp-oauth/callback", get(mcp_oauth_pages::callback))
        .route("/.well-known/oauth-authorization-server", get(mcp_login_pages::metadata))
        .route("/oauth/register", post(mcp_login_pages::register))
        .route("/oauth/authorize", get(mcp_login_pages::authorize).post(mcp_login_pages::decide))
        .route("/oauth/token", post(mcp_login_pages::token))
        .route("/openapi.json", get(resources::openapi_json))
        // Of all that stands above: what is gated reads its bodies by itself.
        .layer(from_fn(small_body))
        .fallback_service(gated)
        .layer(from_fn_with_state(app.clone(), observe))
        .with_state(app)
}
