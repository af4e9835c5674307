//! The proxy as clients meet it: real processes, a real Postgres, a mock provider.

mod bad_input;
mod bodies;
mod chat;
mod dashboards;
mod deployments;
mod explain;
mod frames;
mod framing;
mod headers;
mod http2;
mod identity;
mod journal;
mod leaving;
mod models;
mod outbound;
mod providers;
mod raw;
mod relay;
mod routing;
mod secrets;
mod smoke;
mod snapshot;
mod streams;
mod tokens;
mod upstream;
