//! Batches that the gateway keeps itself (`gwb-…`): rows in Postgres, input and output as managed files. Whoever asks for
//! one is answered from its row; running it is the work of `batch_runner`, off the way of requests.
//!
//! - `new_batch`: what a request for a new one says
//! - `options`: what a batch is run with, of which some is secret
//! - `query`: which batches a path and a query ask for
//! - `record`: a batch as its row has it, and the object that is shown of it
//! - `records`: the rows, always of one workspace
//! - `rows`, `leases`: one row for each line of an input; what is due, and who does it
//! - `meters`: what is counted of them

pub mod leases;
pub mod meters;
pub mod new_batch;
pub mod options;
pub mod query;
pub mod record;
pub mod records;
pub mod rows;
