//! Fixtures in, exact results out: no process, no database.

mod cost;
mod prices;
mod providers_page;
mod semantic;
