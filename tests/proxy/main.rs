//! The proxy as clients meet it: real processes, a real Postgres, a mock provider.

mod frames;
mod framing;
mod raw;
mod smoke;
mod upstream;
mod snapshot;
