//! Files and batches. Those that the gateway keeps itself (`gwf-…`, `gwb-…`) are rows in Postgres and parts in the log store: a
//! client that asks for one is answered from its row, and `runner` runs batches, off the way of requests. Those of providers
//! that keep them in forms of their own are answered in OpenAI's objects.
//!
//! - `endpoints`, `file_endpoints`: requests for batches and files of the gateway
//! - `provider_objects`, `native_output`: requests for those of a provider; `provider_jobs` asks for them without a client
//! - `runner`: who runs batches; `day`: by a provider's own batch, within a day; `row_guard` judges its rows
//! - `batch_row`: a row as an ordinary request
//! - `files`: files that the gateway keeps: rows, parts, what lists and ranges ask for
//! - `new_batch`: what a request for a new one says
//! - `options`: what a batch is run with, of which some is secret
//! - `query`: which batches a path and a query ask for
//! - `record`: a batch as its row has it, and the object that is shown of it
//! - `records`: the rows, always of one workspace
//! - `rows`, `leases`: one row for each line of an input; what is due, and who does it

pub mod batch_row;
pub mod day;
pub mod endpoints;
pub mod file_endpoints;
pub mod files;
pub mod leases;
pub mod native_output;
pub mod new_batch;
pub mod options;
pub mod provider_jobs;
pub mod provider_objects;
pub mod query;
pub mod record;
pub mod records;
pub mod row_guard;
pub mod rows;
pub mod runner;

pub use batch_row::{BatchRow, RowAnswer};
pub use endpoints::{BatchEndpoints, BatchesRequest};
pub use file_endpoints::{FileEndpoints, FilesRequest};
pub use provider_jobs::ProviderJobs;
pub use provider_objects::{ObjectStep, ProviderObjectRequest, ProviderObjects};
pub use row_guard::RowGuards;
