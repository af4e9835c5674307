//! User-space instructions per request. They do not wobble with the machine: the same program runs twice under
//! callgrind with different numbers of requests, and the difference leaves out everything but the requests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::request::{Request, exchange};
use super::targets::Process;
use crate::process::Signal;

const FEW: u64 = 400;
const MANY: u64 = 2400;
const CONNECTIONS: usize = 8;
/// What only a thread that carries requests comes through. The one that starts the others makes a `HttpProxy` too.
const SERVES: &str = "process_new_http";

/// What to put before a program so that its instructions are counted into `file`, or into one for each thread beside it.
pub fn wrapper(file: &Path, by_thread: bool) -> Vec<String> {
    let out = format!("--callgrind-out-file={}", file.display());
    let threads = format!("--separate-threads={}", if by_thread { "yes" } else { "no" });
    ["valgrind", "--tool=callgrind", &threads, &out].map(str::to_owned).to_vec()
}

/// What one run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub instructions: u64,
    /// By threads that carry no requests, as those that send the journal and its bodies on. Only known when threads are
    /// counted apart.
    pub aside: u64,
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
) -> anyhow::Result<Count> {
    let driven = request.clone();
    tokio::task::spawn_blocking(move || drive(&driven, requests)).await??;
    process.stop(end).await?;
    let outputs: Vec<String> = outputs(file)?.iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
    sum(&outputs).context("callgrind's output has no total")
}

/// The file itself, and those of threads beside it.
fn outputs(file: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = file.file_name().and_then(|name| name.to_str()).context("callgrind's file has no name")?;
    let folder = fs::read_dir(file.parent().context("callgrind's file is in no folder")?)?;
    let of_thread = format!("{name}-");
    let is_output = |entry: &fs::DirEntry| {
        let found = entry.file_name().to_string_lossy().into_owned();
        found == name || found.starts_with(&of_thread)
    };
    Ok(folder.filter_map(Result::ok).filter(is_output).map(|entry| entry.path()).collect())
}

fn sum(outputs: &[String]) -> Option<Count> {
    let mut count = Count::default();
    for output in outputs {
        let total = total(output).unwrap_or(0);
        match outputs.len() > 1 && !output.contains(SERVES) {
            true => count.aside += total,
            false => count.instructions += total,
        }
    }
    (count.instructions > 0).then_some(count)
}

pub fn per_request([few, many]: [u64; 2]) -> f64 {
    many.saturating_sub(few) as f64 / (MANY - FEW) as f64
}

/// One after the other over a few connections: the order is the same in every run.
fn drive(request: &Request, requests: u64) -> anyhow::Result<()> {
    let bytes = request.bytes();
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

    #[test]
    fn a_thread_that_carries_no_requests_is_counted_apart() {
        let [serves, ships] =
            ["fn=(1) HttpProxy::process_new_http\ntotals: 10\n", "fn=(1) HttpProxy::new\ntotals: 7\n"]
                .map(str::to_owned);
        let apart = Count { instructions: 10, aside: 7 };
        assert_eq!(sum(&[serves.clone(), ships.clone()]), Some(apart));
        assert_eq!(sum(&[ships]), Some(Count { instructions: 7, aside: 0 }), "one file is the whole process");
        assert_eq!(sum(&[]), None);
    }
}
