//! What both services must agree on: settings, the database and its schema, API keys, the control plane's
//! route table, and the row types that admin writes and the proxy reads. Nothing here knows Pingora or axum.

pub mod api_key;
pub mod bootstrap;
pub mod catalogue;
pub mod client_ip;
pub mod conf;
pub mod config;
pub mod cost;
pub mod db;
pub mod forwarded_headers;
pub mod header_prefix;
pub mod jwt;
pub mod limit_intents;
pub mod log_store;
pub mod migrate;
pub mod model;
pub mod outbound;
pub mod providers;
pub mod request_logs;
pub mod routes;
pub mod scopes;
pub mod seal;
pub mod secrets;
pub mod table;
pub mod telemetry;
