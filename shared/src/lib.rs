//! What both services must agree on. Nothing here knows Pingora or axum. The rooms, from the ground up:
//!
//! - `settings`: every setting, one struct per concern
//! - `telemetry`: log lines
//! - `id`: ids that cannot be taken for one another
//! - `log_id`: ids of logs, which sort by time
//! - `amount`: how much of a budget, in exact decimals
//! - `nearest`: the known name that a mistyped one was meant to be
//! - `headers`: the gateway's own headers, those that may be forwarded, and the client's address
//! - `outbound`: which hosts may be called: origins and the guard against internal addresses
//! - `db`: the connection to Postgres, its schema, and the SQL that both services run
//! - `identity`: API keys, tokens (JWT) and the scopes they hold
//! - `seal`: encryption of stored secrets
//! - `cloud`: keys, tokens and signatures of AWS, Azure and Google, and who this process is to them
//! - `secrets`: credentials that outside secret managers hold
//! - `providers`: the bundled table of providers and their endpoints
//! - `guardrails`: checks of requests and answers: the table of them, and those that need nobody else
//! - `config`: the config object: parsed and checked
//! - `template`: prompt templates: parsed once, filled in with a call's values
//! - `prompt`: a prompt's version and a call's values, made into the body of a request
//! - `mcp`: messages of the Model Context Protocol: who a server is and what it offers
//! - `model`: rows that admin writes and the proxy reads, one noun per file
//! - `key_rotation`: new keys for sealed values, and a report on the old
//! - `cost`: usage × prices, in exact decimals
//! - `log_store`: the object store of bodies and exports
//! - `prices`: prices of models and the order of their sources
//! - `routes`: the control plane's route table
//! - `batches`: inputs of batches, checked line by line, and the batch object
//! - `bootstrap`: the first tenant

pub mod amount;
pub mod batches;
pub mod bootstrap;
pub mod cloud;
pub mod config;
pub mod cost;
pub mod db;
pub mod guardrails;
pub mod headers;
pub mod id;
pub mod identity;
pub mod key_rotation;
pub mod log_id;
pub mod log_store;
pub mod mcp;
pub mod model;
pub mod nearest;
pub mod outbound;
pub mod prices;
pub mod prompt;
pub mod providers;
pub mod routes;
pub mod seal;
pub mod secrets;
pub mod settings;
pub mod supervisor;
pub mod telemetry;
pub mod template;
