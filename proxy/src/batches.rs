//! Batches that the gateway keeps itself (`gwb-…`): rows in Postgres, input and output as managed files. Whoever asks for
//! one is answered from its row; running it is another's work, off the way of requests.
//!
//! - `record`: the row of a batch, always of one workspace, and the object that is shown of it

mod record;

pub use record::{BatchRecord, BatchRecords, Mode, NewBatch, PREFIX};
