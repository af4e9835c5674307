//! What a process and its children used, from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// `utime` and `stime` count in these on every Linux, whatever the kernel's own tick is.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    pub user: f64,
    pub system: f64,
}

impl Cpu {
    /// Of the process and everything below it.
    pub fn of_tree(root: u32) -> Self {
        tree(root).iter().filter_map(|pid| parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).fold(
            Self::default(),
            |sum, stat| Self { user: sum.user + stat.cpu.user, system: sum.system + stat.cpu.system },
        )
    }

    pub fn since(self, earlier: Self) -> Self {
        Self { user: self.user - earlier.user, system: self.system - earlier.system }
    }

    pub fn total(self) -> f64 {
        self.user + self.system
    }
}

/// Waits until a process and those below it have little left to do, as what follows would otherwise be measured with it.
pub async fn rest(root: u32) {
    const LOOK: Duration = Duration::from_millis(500);
    const LITTLE: f64 = 0.03;
    const MAX_LOOKS: u32 = 240;
    for _ in 0..MAX_LOOKS {
        let before = Cpu::of_tree(root);
        tokio::time::sleep(LOOK).await;
        if Cpu::of_tree(root).since(before).total() < LITTLE * LOOK.as_secs_f64() {
            return;
        }
    }
}

/// Most memory each process of the tree ever held, added up, in megabytes.
pub fn peak_memory(root: u32) -> f64 {
    let peak = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse::<f64>().ok()
    };
    tree(root).iter().filter_map(peak).sum::<f64>() / 1024.0
}

/// A process and everything below it.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).ok();
        if let Some(stat) = stat.as_deref().and_then(parse) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let below = children.get(pid).cloned().unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found
}

struct Stat {
    parent: u32,
    cpu: Cpu,
}

/// The name in the second field may hold blanks and parentheses, so counting starts behind it.
fn parse(stat: &str) -> Option<Stat> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let user: f64 = fields.nth(9)?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(Stat { parent, cpu: Cpu { user: user / TICKS_PER_SECOND, system: system / TICKS_PER_SECOND } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let stat = parse("7 (a b) c) S 3 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 99 0 0").unwrap();
        assert_eq!(stat.parent, 3);
        assert_eq!(stat.cpu, Cpu { user: 2.5, system: 0.5 });
    }

    #[test]
    fn a_child_counts_with_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(tree(std::process::id()).contains(&child.id()));
        assert!(peak_memory(std::process::id()) > peak_memory(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
