//! What logs and counters say against the provider's bill, tag by tag.

use super::kinds::{EMBEDDER, JUDGE, Kind, STRICT};
use super::shop::Shop;
use crate::mock::Billed;
use crate::prove::report::Report;
use anyhow::ensure;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Estimates may be off by so much, in percent of the bill.
const TOLERANCE: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(120);
/// Logs that did not grow for so long are all there.
const QUIET: Duration = Duration::from_secs(4);

/// Who was asked for a tag: the model itself, the judge, or the embedder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    tag: String,
    role: &'static str,
}

#[derive(Debug, Default, Clone, Copy)]
struct Logged {
    prompt: u64,
    completion: u64,
    is_estimated: bool,
    priced: u64,
}

pub struct Books {
    billed: BTreeMap<Line, Billed>,
    logged: BTreeMap<Line, Logged>,
    /// Tags of calls that were under way at a kill.
    touched: BTreeSet<String>,
}

/// Sums of one kind.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    calls: u64,
    billed: u64,
    logged: u64,
    /// Billed tokens of calls that a kill touched and that have no log, or a shorter one.
    lost: u64,
    /// Lines whose reported tokens differ.
    wrong: u64,
    estimated: (u64, u64),
}

const ROLES: [(&str, &str); 2] = [(JUDGE, "guardrail"), (EMBEDDER, "semantic_cache")];

impl Books {
    /// Once all logs have come.
    pub async fn close(shop: &Shop, touched: BTreeSet<String>) -> anyhow::Result<Self> {
        let left = shop.stack.mock.until(|counts| counts.in_flight == 0);
        let _ = tokio::time::timeout(PATIENCE, left).await;
        let (mut last, mut since, begun) = (None, Instant::now(), Instant::now());
        let database = shop.stack.database().await?;
        while since.elapsed() < QUIET {
            ensure!(begun.elapsed() < PATIENCE, "logs do not stop coming");
            let count: i64 = database.query_one("SELECT count(*) FROM request_logs", &[]).await?.get(0);
            if last != Some(count) {
                (last, since) = (Some(count), Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let mut billed: BTreeMap<Line, Billed> = BTreeMap::new();
        for (key, more) in shop.stack.mock.bill().into_iter().chain(shop.embedder.bill()) {
            let role = ROLES.iter().find(|(account, _)| *account == key.account).map_or("", |(_, role)| role);
            let sum = billed.entry(Line { tag: key.tag, role }).or_default();
            sum.calls += more.calls;
            sum.prompt += more.prompt;
            sum.completion += more.completion;
        }
        const LOGGED: &str = "SELECT metadata ->> 'bill' AS tag, coalesce(metadata ->> '_internal', '') AS role,
                sum(req_units)::bigint AS prompt, sum(res_units)::bigint AS completion, bool_or(usage_estimated) AS is_estimated,
                count(*) FILTER (WHERE cost > 0) AS priced
            FROM request_logs WHERE metadata ? 'bill' AND cache_status NOT IN ('HIT', 'SEMANTIC HIT') GROUP BY 1, 2";
        let mut logged = BTreeMap::new();
        for row in database.query(LOGGED, &[]).await? {
            let number = |name: &str| u64::try_from(row.get::<_, i64>(name)).unwrap_or(0);
            let role: &str = row.get("role");
            let role = ROLES.iter().find(|(_, known)| *known == role).map_or("", |(_, role)| role);
            let one = Logged {
                prompt: number("prompt"),
                completion: number("completion"),
                is_estimated: row.get("is_estimated"),
                priced: number("priced"),
            };
            logged.insert(Line { tag: row.get("tag"), role }, one);
        }
        Ok(Self { billed, logged, touched })
    }

    pub async fn tell(&self, shop: &Shop, report: &mut Report) -> anyhow::Result<()> {
        let mut kinds: BTreeMap<String, Sums> = BTreeMap::new();
        let mut examples = Vec::new();
        let lines: BTreeSet<&Line> = self.billed.keys().chain(self.logged.keys()).collect();
        for line in lines {
            let billed = self.billed.get(line).copied().unwrap_or_default();
            let logged = self.logged.get(line).copied().unwrap_or_default();
            let kind = line.tag.rsplit_once('-').map_or(line.tag.as_str(), |(kind, _)| kind);
            let name = if line.role.is_empty() { kind.to_owned() } else { format!("{kind}, {}", line.role) };
            let sums = kinds.entry(name).or_default();
            let of_bill = billed.prompt + billed.completion;
            let of_logs = logged.prompt + logged.completion;
            sums.calls += billed.calls;
            if self.touched.contains(&line.tag) {
                sums.lost += of_bill.saturating_sub(of_logs);
                continue;
            }
            sums.billed += of_bill;
            sums.logged += of_logs;
            if logged.is_estimated {
                sums.estimated.0 += of_bill;
                sums.estimated.1 += of_logs;
                continue;
            }
            let is_tool = kind == Kind::Tool.name();
            let is_right = match is_tool {
                true => logged.priced == billed.calls,
                false => (billed.prompt, billed.completion) == (logged.prompt, logged.completion),
            };
            if !is_right {
                sums.wrong += 1;
                examples.push(format!("{line:?}: billed {billed:?}, logged {logged:?}"));
            }
        }
        let mut all = Sums::default();
        for (kind, sums) in &kinds {
            report.figure(kind, sums);
            all.add(sums);
        }
        examples.iter().take(5).for_each(|example| report.figure("differs, for example", example));
        report.figure(
            "calls under way at a kill",
            format!("{}, {} tokens of them not in the logs", self.touched.len(), all.lost),
        );
        let unaccounted = (all.billed - all.estimated.0).abs_diff(all.logged - all.estimated.1);
        report.figure("tokens that were reported and are not accounted for", unaccounted);
        report.promise("what the provider bills is what the logs say, call by call", all.wrong == 0 && all.billed > 0);
        report.promise("nothing that was reported is unaccounted for", unaccounted == 0);
        let (bill, guess) = all.estimated;
        report.promise(
            &format!("estimates are marked, and within {TOLERANCE} % of the bill"),
            bill > 0 && bill.abs_diff(guess) * 100 <= bill * TOLERANCE,
        );
        self.tell_strict(shop, report).await?;
        let verified = shop.stack.admin_command(&["limits", "verify"], &[]).await?;
        report.promise("counters are the sums of their logs", verified.is_success());
        Ok(())
    }

    /// A strict budget has at least what was billed, and never more than its cap.
    async fn tell_strict(&self, shop: &Shop, report: &mut Report) -> anyhow::Result<()> {
        const COUNTED: &str = "SELECT coalesce(sum(value), 0)::bigint FROM usage_counters
            WHERE scope = 'policy' AND left(scope_id, 36) = $1 AND unit = 'tokens' AND period = 'total'";
        let is_strict = |line: &Line| line.tag.starts_with(STRICT);
        let billed: u64 =
            self.billed.iter().filter(|(line, _)| is_strict(line)).map(|(_, one)| one.prompt + one.completion).sum();
        let counted: i64 = shop.stack.database().await?.query_one(COUNTED, &[&shop.policy]).await?.get(0);
        let counted = u64::try_from(counted).unwrap_or(0);
        report.figure("strict budget", format!("{billed} tokens billed, {counted} counted, {} allowed", shop.cap));
        let is_kept = billed > 0 && billed <= counted && counted <= u64::from(shop.cap);
        report.promise("a strict budget has all that is billed, and is never overspent", is_kept);
        Ok(())
    }
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.billed += other.billed;
        self.logged += other.logged;
        self.lost += other.lost;
        self.wrong += other.wrong;
        self.estimated.0 += other.estimated.0;
        self.estimated.1 += other.estimated.1;
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, billed, logged, lost, wrong, estimated } = self;
        write!(f, "{calls} calls, {billed} tokens billed, {logged} logged")?;
        if estimated.0 > 0 {
            write!(f, " ({} of them estimated as {})", estimated.0, estimated.1)?;
        }
        if *lost > 0 {
            write!(f, ", {lost} more lost at kills")?;
        }
        if *wrong > 0 {
            write!(f, ", {wrong} calls differ")?;
        }
        Ok(())
    }
}
