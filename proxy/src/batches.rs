//! Batches that the gateway keeps itself (`gwb-…`): rows in Postgres, input and output as managed files. Whoever asks for
//! one is answered from its row; running it is another's work, off the way of requests.
//!
//! - `new_batch`: what a request for a new one says
//! - `options`: what a batch is run with, of which some is secret
//! - `query`: which batches a path and a query ask for
//! - `record`: a batch as its row has it, and the object that is shown of it
//! - `records`: the rows, always of one workspace
//! - `day`: mode `24h`: a provider's own batch does the work
//! - `rows`, `leases`: one row for each line of an input; what is due, and who does it
//! - `runner`, `meters`: who does all the rest, and what is counted of it

pub mod day;
mod leases;
pub mod meters;
pub mod new_batch;
pub mod options;
pub mod query;
pub mod record;
pub mod records;
mod rows;
pub mod runner;
