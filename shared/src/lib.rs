//! What both services must agree on. Nothing here knows Pingora or axum. The rooms, from the ground up:
//!
//! - `settings`: every setting, one struct per concern
//! - `telemetry`: log lines
//! - `amount`: how much of a budget, in exact decimals
//! - `nearest`: the known name that a mistyped one was meant to be
//! - `headers`: the gateway's own headers, those that may be forwarded, and the client's address
//! - `outbound`: which hosts may be called: origins and the guard against internal addresses
//! - `db`: the connection to Postgres, its schema, and the SQL that both services run
//! - `identity`: API keys, tokens (JWT) and the scopes they hold
//! - `secrets`: encryption of stored secrets (`seal`), credentials that outside secret managers hold, and those of clouds (`cloud`)
//! - `providers`: the bundled table of providers and their endpoints
//! - `guardrails`: checks of requests and answers: the table of them, and those that need nobody else
//! - `config`: the config object: parsed and checked
//! - `prompt`: a prompt's version and a call's values, made into the body of a request; its templates (`template`)
//! - `mcp`: messages of the Model Context Protocol: who a server is and what it offers
//! - `model`: rows that admin writes and the proxy reads, one noun per file, and their ids (`id`, `log_id`)
//! - `key_rotation`: new keys for sealed values, and a report on the old
//! - `cost`: usage × prices, in exact decimals; prices of models and the order of their sources (`prices`)
//! - `log_store`: the object store of bodies and exports
//! - `routes`: the control plane's route table
//! - `batches`: inputs of batches, checked line by line, and the batch object
//! - `bootstrap`: the first tenant

pub mod amount;
pub mod batches;
pub mod bootstrap;
pub mod config;
pub mod cost;
pub mod db;
pub mod guardrails;
pub mod headers;
pub mod identity;
pub mod key_rotation;
pub mod log_store;
pub mod mcp;
pub mod model;
pub mod nearest;
pub mod outbound;
pub mod prompt;
pub mod providers;
pub mod routes;
pub mod secrets;
pub mod settings;
pub mod supervisor;
pub mod telemetry;
