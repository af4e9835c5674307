//! The proxy as clients meet it: real processes, a real Postgres, a mock provider.

mod smoke;
mod snapshot;
