//! Limits that several proxies share, against a real Postgres.

mod leases;
mod rates;
mod replica;
