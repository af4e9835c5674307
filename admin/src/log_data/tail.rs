//! Logs as they arrive, for those who follow them. One task of each admin looks at what arrived, for all of its viewers with one
//! connection, and only while there are any; viewers with the same view and the same filters get the same bytes. Who may watch
//! at once is bounded by leases in Postgres (`watchers`), so that it holds over several admins.

mod cursor;
mod events;
mod position;
mod turn;
mod viewers;
pub mod watchers;

pub use cursor::Cursor;
pub use events::HEARTBEAT;
pub use turn::follow;
pub use viewers::{Follower, LogTail, TailMeasures, TailQuestion};

use std::time::Duration;

/// How often is looked.
const PERIOD: Duration = Duration::from_millis(500);
/// Rows that one viewer gets in a second; the rest is counted.
const MAX_ROWS_PER_SECOND: usize = 200;
/// Of one admin: each costs a query in every period.
const MAX_VIEWERS: usize = 500;
/// Arrivals that one statement looks at.
const MAX_LOOKED_AT: usize = 2000;
/// Of one period, for one view.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// Periods that wait for a viewer who reads slowly.
const MAX_WAITING: usize = 4;
/// A viewer who reads nothing for so long is let go.
const MAX_STALL: Duration = Duration::from_secs(60);
/// How long arrivals can be resumed from.
const RESUMABLE_SECONDS: i64 = 120;
