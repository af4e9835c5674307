//! The gateway's data plane. A request walks through the stages in `stages`; `dial` opens every outbound socket;
//! `snapshot` holds all control-plane data in memory, so that no request waits for Postgres.

pub mod dial;
pub mod snapshot;
