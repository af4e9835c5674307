//! Processes by pid, without trusting the pid alone: numbers are reused, in containers within minutes. A process is
//! the same one only if it also started at the same moment.

use anyhow::Context as _;
use rustix::io::Errno;
use rustix::process::{Pid, kill_process, test_kill_process};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub use rustix::process::Signal;

/// Sends a signal; a process that is gone already is no error.
pub fn signal(pid: u32, signal: Signal) -> anyhow::Result<()> {
    match kill_process(parse(pid)?, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot signal process {pid}")),
    }
}

/// Whether a process with this number exists. A zombie counts: its parent has not looked yet.
pub fn exists(pid: u32) -> bool {
    parse(pid).is_ok_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Whether it still does anything: an ended child that nobody collected does not.
pub fn is_running(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => state(&stat) != Some('Z'),
        Err(_) => !Path::new("/proc/self/stat").exists() && exists(pid),
    }
}

/// What tells this process from a later one with the same number: the moment it started.
pub fn started_at(pid: u32) -> Option<String> {
    if Path::new("/proc/self/stat").exists() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        return start_ticks(&stat).map(|ticks| format!("{ticks}@{}", boot.trim()));
    }
    ps("lstart=", pid)
}

/// The processor time of all its threads so far (Linux).
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    cpu_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?).map(|ticks| ticks as f64 / 100.0)
}

/// The command line, as one string.
pub fn command_line(pid: u32) -> Option<String> {
    if Path::new("/proc/self/cmdline").exists() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        return Some(String::from_utf8_lossy(&line).replace('\0', " "));
    }
    ps("command=", pid)
}

/// Polls until `is_done` or the time is over; says which.
pub fn wait_until(limit: Duration, mut is_done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if is_done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn parse(pid: u32) -> anyhow::Result<Pid> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    raw.with_context(|| format!("{pid} is no process number"))
}

fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Field 22 of `/proc/<pid>/stat`. The name in field 2 may hold blanks and parentheses, so counting starts behind it.
fn start_ticks(stat: &str) -> Option<&str> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)
}

/// Fields 14 and 15, which count in hundredths of a second on every Linux.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn ps(column: &str, pid: u32) -> Option<String> {
    let output = Command::new("ps").args(["-o", column, "-p", &pid.to_string()]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_a_name_with_blanks_and_parentheses() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_ticks(stat), Some("4711"));
        assert_eq!(cpu_ticks(stat), Some(11 + 12));
        assert_eq!(start_ticks("nonsense"), None);
    }

    #[test]
    fn a_running_process_has_a_start_and_an_ended_one_has_none() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        assert!(exists(pid) && started_at(pid).is_some());
        assert_eq!(started_at(pid), started_at(pid));
        assert!(wait_until(Duration::from_secs(5), || command_line(pid).is_some_and(|line| line.contains("sleep 60"))));
        signal(pid, Signal::TERM).unwrap();
        child.wait().unwrap();
        assert!(!exists(pid) && started_at(pid).is_none());
        signal(pid, Signal::TERM).unwrap();
    }
}
