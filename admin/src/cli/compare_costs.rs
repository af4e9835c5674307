//! `gateway-admin costs compare`: what a provider's bill says against what the logs say, by day (UTC) and model.
//!
//! - `csv`: a reader of bounded files, with quotes
//! - `invoice`: the formats of the exports, as data, and their rows
//! - `model_key`: the names that a bill and the logs have for one model
//! - `comparison`: both sides beside each other; what the logs add up to comes from `log_data`
//!
//! Everything is exact: amounts are decimals from the file and from Postgres to the last line.

mod comparison;
mod csv;
mod invoice;
mod model_key;

pub use comparison::Comparison;
pub use invoice::Invoice;

use crate::log_data::daily_costs::{self, MAX_DAYS};
use anyhow::{Context as _, bail};
use std::io::Read as _;
use std::path::Path;
use tokio_postgres::Client;
use uuid::Uuid;

/// The longest bill that is read.
const MAX_FILE_BYTES: usize = 64 << 20;

pub fn read(file: &Path) -> anyhow::Result<Invoice> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE_BYTES {
        bail!("the bill has more than {} MiB", MAX_FILE_BYTES >> 20);
    }
    Ok(Invoice::parse(&String::from_utf8(bytes).context("the bill is not UTF-8")?)?)
}

/// Adds up the logs of the days that the bill is about; of one workspace or of the whole installation.
pub async fn compare(db: &Client, invoice: &Invoice, workspace: Option<Uuid>) -> anyhow::Result<Comparison> {
    let Some((first, last)) = invoice.days() else { bail!("the bill has no row with an amount") };
    if (last - first).num_days() >= MAX_DAYS as i64 {
        bail!("the bill is about more than {MAX_DAYS} days, {first} to {last}");
    }
    let logged = daily_costs::by_day_and_model(db, invoice.provider, first, last, workspace).await?;
    Ok(Comparison::new(invoice, &logged))
}
