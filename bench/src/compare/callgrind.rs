//! User-space instructions per request. They do not wobble with the machine: the same program runs twice under
//! callgrind with different numbers of requests, and the difference leaves out everything but the requests.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::request::{Request, body, exchange};
use super::targets::Process;
use crate::process::Signal;

const FEW: u64 = 400;
const MANY: u64 = 2400;
const CONNECTIONS: usize = 8;

/// What to put before a program so that its instructions are counted into `file`.
pub fn wrapper(file: &Path) -> Vec<String> {
    let out = format!("--callgrind-out-file={}", file.display());
    ["valgrind", "--tool=callgrind", &out].map(str::to_owned).to_vec()
}

/// The runs to make: for each, the number of requests.
pub const RUNS: [u64; 2] = [FEW, MANY];

/// Sends the requests, ends the process and reads the count.
pub async fn count(
    process: Process,
    request: &Request,
    requests: u64,
    end: Signal,
    file: &Path,
) -> anyhow::Result<u64> {
    let driven = request.clone();
    tokio::task::spawn_blocking(move || drive(&driven, requests)).await??;
    process.stop(end).await?;
    let output = fs::read_to_string(file).context("callgrind wrote nothing")?;
    total(&output).context("callgrind's output has no total")
}

pub fn per_request([few, many]: [u64; 2]) -> f64 {
    many.saturating_sub(few) as f64 / (MANY - FEW) as f64
}

/// One after the other over a few connections: the order is the same in every run.
fn drive(request: &Request, requests: u64) -> anyhow::Result<()> {
    let bytes = request.bytes(&body());
    let mut connections = (0..CONNECTIONS).map(|_| request.connect()).collect::<Result<Vec<_>, _>>()?;
    for index in 0..requests {
        exchange(&mut connections[index as usize % CONNECTIONS], &bytes)?;
    }
    Ok(())
}

/// Parts of a run (one per thread or dump) each have their own summary.
fn total(output: &str) -> Option<u64> {
    let totals = output.lines().filter_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    totals.filter_map(|number| number.trim().parse().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_up_cancels_out() {
        assert_eq!(per_request([1_000_000 + FEW * 50_000, 1_000_000 + MANY * 50_000]), 50_000.0);
    }

    #[test]
    fn the_total_is_found_in_callgrinds_output() {
        assert_eq!(total("version: 1\nevents: Ir\nfn=(1)\n1 2\nsummary: 4711\ntotals: 4700\n"), Some(4711));
        assert_eq!(total("nothing"), None);
    }
}
