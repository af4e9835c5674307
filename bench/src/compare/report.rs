//! A comparison as a table for people and as JSON for machines.

use std::fmt::Write;

use serde::Serialize;

use super::events::Delays;
use super::load::Round;
use super::stats::Spread;
use super::verdict::{Verdict, judge};

#[derive(Debug, Default, Serialize)]
pub struct Comparison {
    pub rounds: usize,
    pub seconds: u64,
    pub connections: u32,
    pub rows: Vec<Row>,
}

/// One target over all rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub requests_per_second: Spread,
    pub p50_ms: Spread,
    pub p99_ms: Spread,
    pub p999_ms: Spread,
    pub cpu_us: Spread,
    pub user_us: Spread,
    pub system_us: Spread,
    pub mock_us: Spread,
    pub peak_memory_mb: f64,
    /// Medians over the rounds.
    pub delays: Option<Delays>,
    pub instructions: Option<f64>,
    /// Instructions per request of threads that carry none: they send the journal and its bodies on.
    pub aside: Option<f64>,
    pub measured: Vec<Round>,
}

impl Row {
    /// None without a round.
    pub fn of(name: &'static str, rounds: &[Round], delays: &[Delays], peak_memory_mb: f64) -> Option<Self> {
        let spread = |figure: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(figure));
        Some(Self {
            name,
            requests_per_second: spread(&|round| round.requests_per_second)?,
            p50_ms: spread(&|round| round.p50_ms)?,
            p99_ms: spread(&|round| round.p99_ms)?,
            p999_ms: spread(&|round| round.p999_ms)?,
            cpu_us: spread(&Round::cpu_us)?,
            user_us: spread(&|round| round.user_us)?,
            system_us: spread(&|round| round.system_us)?,
            mock_us: spread(&|round| round.mock_us)?,
            peak_memory_mb,
            delays: median_delays(delays),
            instructions: None,
            aside: None,
            measured: rounds.to_vec(),
        })
    }
}

fn median_delays(delays: &[Delays]) -> Option<Delays> {
    let median = |figure: fn(&Delays) -> f64| Spread::of(delays.iter().map(figure)).map(|spread| spread.median);
    Some(Delays {
        first_p50_us: median(|delays| delays.first_p50_us)?,
        first_p99_us: median(|delays| delays.first_p99_us)?,
        first_alone_us: median(|delays| delays.first_alone_us)?,
        event_p50_us: median(|delays| delays.event_p50_us)?,
        event_p99_us: median(|delays| delays.event_p99_us)?,
    })
}

impl Comparison {
    pub fn table(&self) -> String {
        let mut lines = vec![
            [
                "target",
                "req/s",
                "p50 ms",
                "p99 ms (min–max)",
                "p99.9 ms",
                "CPU µs/req (min–max)",
                "user/sys",
                "mock µs",
                "instr/req",
                "× bare",
                "RSS MB",
                "CPU × bare",
                "× nginx",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        let cpu_of = |name: &str| self.rows.iter().find(|row| row.name == name).map(|row| row.cpu_us.median);
        let bare_instructions = self.rows.iter().find(|row| row.name == "bare").and_then(|row| row.instructions);
        for row in &self.rows {
            let against = |name: &str| match cpu_of(name) {
                Some(theirs) if row.name != "direct" => format!("{:.2}", row.cpu_us.median / theirs),
                _ => String::new(),
            };
            lines.push(vec![
                row.name.to_owned(),
                format!("{:.0}", row.requests_per_second.median),
                format!("{:.2}", row.p50_ms.median),
                format!("{:.2} ({:.1}–{:.1})", row.p99_ms.median, row.p99_ms.min, row.p99_ms.max),
                format!("{:.2}", row.p999_ms.median),
                format!("{:.1} ({:.1}–{:.1})", row.cpu_us.median, row.cpu_us.min, row.cpu_us.max),
                format!("{:.0}/{:.0}", row.user_us.median, row.system_us.median),
                format!("{:.1}", row.mock_us.median),
                row.instructions.map_or_else(String::new, |count| format!("{count:.0}")),
                row.instructions
                    .zip(bare_instructions)
                    .map_or_else(String::new, |(ours, bare)| format!("{:.2}", ours / bare)),
                format!("{:.1}", row.peak_memory_mb),
                against("bare"),
                against("nginx"),
            ]);
        }
        aligned(&lines)
    }

    pub fn stream_table(&self) -> String {
        let names = ["stream", "first event p50 µs", "p99", "alone", "event delay p50 µs", "p99"];
        let mut lines = vec![names.map(str::to_owned).to_vec()];
        for (row, delays) in self.rows.iter().filter_map(|row| Some((row, row.delays?))) {
            let Delays { first_p50_us, first_p99_us, first_alone_us, event_p50_us, event_p99_us } = delays;
            let figures = [first_p50_us, first_p99_us, first_alone_us, event_p50_us, event_p99_us];
            lines.push(std::iter::once(row.name.to_owned()).chain(figures.map(|us| format!("{us:.0}"))).collect());
        }
        aligned(&lines)
    }

    pub fn verdict_table(&self) -> String {
        let mut text = String::new();
        for Verdict { claim, measured, limit, holds } in judge(self) {
            let word = if holds { "PASS" } else { "FAIL" };
            let _ = writeln!(text, "{word}  {claim}: {measured:.2} × (limit {limit:.2} ×)");
        }
        for (row, aside) in self.rows.iter().filter_map(|row| Some((row, row.aside?))) {
            let _ = writeln!(
                text,
                "      {}: {aside:.0} instructions per request more on threads that carry none",
                row.name
            );
        }
        text
    }

    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "comparison": self, "verdicts": judge(self) })
    }
}

/// Columns as wide as their widest entry; the first to the left, numbers to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|index| lines.iter().map(|line| line[index].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        for (index, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let blanks = " ".repeat(width - cell.chars().count());
            text += &if index == 0 { format!("{cell}{blanks}") } else { format!("  {blanks}{cell}") };
        }
        text.push('\n');
    }
    text
}

/// A target that was measured once, by its CPU alone.
#[cfg(test)]
pub fn row_of(name: &'static str, cpu_us: f64) -> Row {
    let round = Round {
        requests_per_second: 1.0,
        p50_ms: 1.0,
        p99_ms: 1.0,
        p999_ms: 1.0,
        user_us: cpu_us,
        system_us: 0.0,
        mock_us: 1.0,
    };
    Row::of(name, &[round], &[], 1.0).expect("one round is enough")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_they_hold() {
        let rows = vec![row_of("bare", 10.0), row_of("engine", 1234.5)];
        let table = Comparison { rows, ..Comparison::default() }.table();
        let widths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
        assert!(table.contains("123.45"), "ratio against bare: {table}");
    }
}
