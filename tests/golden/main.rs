//! Fixtures in, exact results out: no process, no database.

mod cost;
mod provider_page;
