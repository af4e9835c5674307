//! The control plane. A request meets, in this order: `observe` (id, client address, log line, metrics, panics),
//! `gate` (is it an operation, who asks, may they), and then its handler, which can rely on all of that. Handlers that
//! change something do so through an `Action`, whose commit writes the audit record; plain resources get theirs from
//! `crud`. Operations of the route table that have no handler yet answer 501, so nothing pretends.

pub mod access;
pub mod action;
pub mod app;
pub mod audit;
pub mod body;
pub mod call;
pub mod caller;
pub mod cli;
pub mod connections;
pub mod credential;
pub mod crud;
pub mod docs_page;
pub mod error;
pub mod exports;
pub mod free_slug;
pub mod gate;
pub mod health;
pub mod http;
pub mod jobs;
pub mod leases;
pub mod limits;
pub mod line;
pub mod log_queries;
pub mod logs;
pub mod mail;
pub mod metadata_schema;
pub mod metrics;
mod model_configs;
pub mod observe;
pub mod openapi;
pub mod outbound;
pub mod panics;
pub mod request_limit;
pub mod resources;
pub mod router;
pub mod routes;
pub mod serve;
pub mod settings;
pub mod tags;
pub mod tenancy;
pub mod tenant_settings;
pub mod tokens;
pub mod unconfirmed;
pub mod versions;

pub use app::App;
pub use error::ApiError;
pub use settings::Settings;
