//! The proxy as clients meet it: real processes, a real Postgres, a mock provider.

mod chat;
mod dashboards;
mod frames;
mod framing;
mod headers;
mod leaving;
mod outbound;
mod raw;
mod smoke;
mod snapshot;
mod upstream;
