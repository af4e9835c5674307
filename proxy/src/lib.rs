//! The gateway's data plane. Pingora's callbacks and the process around them are the binary's (`gateway`, `serve`); the
//! rooms here are listed in the order in which a request meets them. They depend on each other in no circle, which
//! `.ci/directions` checks.
//!
//! - `walk`: the order of a request, on both lanes: what is decided when, and what follows when a target fails
//! - `request`: a request and its formats: head, path, body, forms, server-sent events. No decisions about it
//! - `identity`: who is asking: keys, tokens, deployments, and the metadata a caller gives
//! - `prompts`: stored prompts: which version is meant, and the body that it becomes
//! - `catalog`: what a workspace has: its config, providers, models and credentials, and the target made of them
//! - `routing`: which target comes next: compiled plans, conditions, retries, circuit breakers. Pure
//! - `guardrails`: checks before a request is sent and before its answer is passed on: when they run and what follows. Pure
//! - `cache`: answers that are kept: what makes two requests equal, how long, and in which form they are given again
//! - `admission`: which limits apply to a request, how much it may use, and what the client is told of them
//! - `limits`: counters, reservations and leases of rate limits and budgets; turns at providers that limit concurrency
//! - `signing`: credentials that must be computed: signatures, and tokens that are fetched, kept and renewed ahead
//! - `net`: the sockets: every outbound connection, and the client as the other rooms see it
//! - `answer`: the way back: until when another attempt may take its place, delivery, heartbeats, errors inside streams
//! - `mcp`: messages between MCP clients and servers: what they ask for, what may be seen, sessions, credentials
//! - `files`: files that the gateway keeps itself: rows, parts in the log store, what lists and ranges ask for
//! - `batches`: batches that the gateway keeps itself: what is asked for, and their rows in Postgres
//! - `batch_runner`: who runs them, off the way of requests; `batch_day`: by a provider's own batch, within a day
//! - `conversation`: requests and answers in no vendor's words, whole and in pieces
//! - `codecs`: one wire format each, both ways: bytes to a conversation and back. Pure; `walk::translate` asks in one, and
//!   `answer::translated` answers in the other
//! - `framing`: frames around the events of a stream, taken off
//! - `realtime`: websocket sessions, watched while their bytes pass
//! - `visit`: the state of one request from its first byte to its last, and the record that is made of it
//! - `journal`: the log of calls: on disk, to Postgres, to the log store, as traces; what a call used
//! - `vocabulary`: the tokens of a model, counted and read
//! - `snapshot`: everything of the control plane, in memory; no request waits for Postgres
//! - `refusal`: why the gateway answered a request itself: status, code, sentence
//! - `metrics`: every metric
//! - `fuzzing`: readers of foreign bytes, shown to the fuzz targets alone
//! - `runtime`: settings, the background threads, timeouts, numbers kept per thread

pub mod admission;
pub mod answer;
pub mod batch_day;
pub mod batch_runner;
pub mod batches;
pub mod cache;
pub mod catalog;
pub mod codecs;
pub mod conversation;
pub mod files;
pub mod framing;
#[doc(hidden)]
pub mod fuzzing;
pub mod guardrails;
pub mod identity;
pub mod journal;
pub mod limits;
pub mod mcp;
pub mod metrics;
pub mod net;
pub mod prompts;
pub mod realtime;
pub mod refusal;
pub mod request;
pub mod routing;
pub mod runtime;
pub mod signing;
pub mod snapshot;
pub mod visit;
pub mod vocabulary;
pub mod walk;
