//! The control plane over HTTP: the real service, a real Postgres.

mod smoke;
