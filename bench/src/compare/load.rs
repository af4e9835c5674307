//! One round of load: wrk drives a target with 32 connections while `/proc` tells what the target spent.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Serialize;
use tokio::process::Command;

use super::request::Request;
use super::usage::Cpu;

/// What one round showed.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Round {
    pub requests_per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    /// CPU of the target per request, in microseconds.
    pub user_us: f64,
    pub system_us: f64,
    /// CPU of the provider behind it.
    pub mock_us: f64,
}

impl Round {
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

pub struct Load<'a> {
    pub folder: &'a Path,
    pub seconds: u64,
    pub connections: u32,
    pub mock: u32,
}

impl Load<'_> {
    pub async fn round(&self, name: &str, target: u32, request: &Request, pause_ms: u64) -> anyhow::Result<Round> {
        let script = self.folder.join(format!("{name}.lua"));
        fs::write(&script, lua(request, pause_ms)).context("cannot write the script for wrk")?;
        let (cpu, mock) = (Cpu::of_tree(target), Cpu::of_tree(self.mock));
        let output = Command::new("wrk")
            .args(["-t1", &format!("-c{}", self.connections), &format!("-d{}s", self.seconds), "-s"])
            .arg(&script)
            .arg(format!("http://{}", request.address))
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot run wrk")?;
        let (cpu, mock) = (Cpu::of_tree(target).since(cpu), Cpu::of_tree(self.mock).since(mock));
        let printed = String::from_utf8_lossy(&output.stdout);
        let result = parse(&printed).with_context(|| format!("{name}: wrk said: {printed}"))?;
        if result.errors > 0 {
            bail!("{name}: {} of {} requests failed", result.errors, result.requests);
        }
        let per_request = |seconds: f64| seconds * 1e6 / result.requests as f64;
        Ok(Round {
            requests_per_second: result.requests as f64 / result.seconds,
            p50_ms: result.p50_ms,
            p99_ms: result.p99_ms,
            p999_ms: result.p999_ms,
            user_us: per_request(cpu.user),
            system_us: per_request(cpu.system),
            mock_us: per_request(mock.total()),
        })
    }
}

/// wrk repeats this request; `done` prints what wrk's own report leaves out.
fn lua(request: &Request, pause_ms: u64) -> String {
    let headers: String = request
        .headers
        .iter()
        .map(|(name, value)| format!("wrk.headers[{}] = {}\n", quoted(name), quoted(value)))
        .collect();
    let pause = match pause_ms {
        0 => String::new(),
        pause => format!("function delay() return {pause} end\n"),
    };
    format!(
        "wrk.method = \"POST\"\nwrk.path = {}\n{headers}wrk.body = {}\n{pause}\
         function done(summary, latency)\n\
         \x20 local e = summary.errors\n\
         \x20 io.write(string.format(\"RESULT %d %d %d %d %d %d\\n\", summary.requests, summary.duration,\n\
         \x20   e.connect + e.read + e.write + e.status + e.timeout,\n\
         \x20   latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))\n\
         end\n",
        quoted(request.path),
        quoted(&request.body),
    )
}

/// JSON's escapes for what occurs here (quotes, backslashes) are Lua's too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[derive(Debug, PartialEq)]
struct Printed {
    requests: u64,
    seconds: f64,
    errors: u64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
}

fn parse(output: &str) -> Option<Printed> {
    let line = output.lines().find_map(|line| line.strip_prefix("RESULT "))?;
    let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[requests @ 1..=u64::MAX, microseconds, errors, p50, p99, p999] = numbers.as_slice() else { return None };
    let ms = |microseconds: u64| microseconds as f64 / 1e3;
    let seconds = microseconds as f64 / 1e6;
    Some(Printed { requests, seconds, errors, p50_ms: ms(p50), p99_ms: ms(p99), p999_ms: ms(p999) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_line_is_read_whole_or_not_at_all() {
        let expected = Printed { requests: 150_000, seconds: 3.0, errors: 2, p50_ms: 0.5, p99_ms: 1.5, p999_ms: 2.5 };
        assert_eq!(parse("Running\nRESULT 150000 3000000 2 500 1500 2500\n"), Some(expected));
        for broken in ["", "RESULT 1 2 3", "RESULT 0 3000000 0 0 0 0", "RESULT a b c d e f"] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }
}
