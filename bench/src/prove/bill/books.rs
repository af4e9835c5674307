//! What logs and counters say against the provider's bill, tag by tag.

use super::kinds::{DAY, EMBEDDER, JUDGE, Kind, STRICT};
use super::shop::Shop;
use super::tariff::Tariff;
use crate::mock::Billed;
use crate::prove::report::Report;
use anyhow::ensure;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Estimates may be off by so much, in percent of the bill.
const TOLERANCE: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(240);
/// Of one line, in cents: what rounding may do.
const ROUNDING: f64 = 1e-6;
/// Of all lines, in cents.
const A_CENT: f64 = 1.0;
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
    /// In cents.
    cost: f64,
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
    billed: Money,
    logged: Money,
    /// What is billed beyond the logs of calls that a kill touched.
    lost: Money,
    /// Lines whose reported tokens or cost differ.
    wrong: u64,
    /// Of the above, what had to be estimated: of the bill, and of the logs.
    estimated: (Money, Money),
}

#[derive(Debug, Default, Clone, Copy)]
struct Money {
    tokens: u64,
    cents: f64,
}

impl Money {
    fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.cents += other.cents;
    }

    /// What is more than the other.
    fn beyond(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cents: (self.cents - other.cents).max(0.0) }
    }

    fn is_within(self, percent: u64, of: Self) -> bool {
        let is_near = (self.cents - of.cents).abs() * 100.0 <= of.cents * percent as f64;
        is_near && self.tokens.abs_diff(of.tokens) * 100 <= of.tokens * percent
    }
}

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens (${:.6})", self.tokens, self.cents / 100.0)
    }
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
            // As logs have it: of batches of 24h the batch alone.
            let tag = match key.tag.split('-').collect::<Vec<_>>()[..] {
                [DAY, batch, _row] => format!("{DAY}-{batch}"),
                _ => key.tag,
            };
            let sum = billed.entry(Line { tag, role }).or_default();
            sum.calls += more.calls;
            sum.prompt += more.prompt;
            sum.completion += more.completion;
        }
        // Rows of immediate batches are told apart; those of 24h have no number in their logs.
        const LOGGED: &str = "SELECT concat_ws('-', metadata ->> 'bill', metadata ->> '_batch_row') AS tag, coalesce(metadata ->> '_internal', '') AS role,
                sum(req_units)::bigint AS prompt, sum(res_units)::bigint AS completion, bool_or(usage_estimated) AS is_estimated,
                count(*) FILTER (WHERE cost > 0) AS priced, coalesce(sum(cost), 0)::float8 AS cost
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
                cost: row.try_get("cost")?,
            };
            logged.insert(Line { tag: row.get("tag"), role }, one);
        }
        Ok(Self { billed, logged, touched })
    }

    pub async fn tell(&self, shop: &Shop, report: &mut Report) -> anyhow::Result<()> {
        let tariff = Tariff::read()?;
        let mut kinds: BTreeMap<String, Sums> = BTreeMap::new();
        let mut examples = Vec::new();
        let lines: BTreeSet<&Line> = self.billed.keys().chain(self.logged.keys()).collect();
        for line in lines {
            let billed = self.billed.get(line).copied().unwrap_or_default();
            let logged = self.logged.get(line).copied().unwrap_or_default();
            let kind = line.tag.split_once('-').map_or(line.tag.as_str(), |(kind, _)| kind);
            let name = if line.role.is_empty() { kind.to_owned() } else { format!("{kind}, {}", line.role) };
            let sums = kinds.entry(name).or_default();
            let cents = tariff.cents(kind, line.role, &billed);
            let of_bill = Money { tokens: billed.prompt + billed.completion, cents };
            let of_logs = Money { tokens: logged.prompt + logged.completion, cents: logged.cost };
            sums.calls += billed.calls;
            if self.touched.contains(&line.tag) {
                sums.lost.add(of_bill.beyond(of_logs));
                continue;
            }
            sums.billed.add(of_bill);
            sums.logged.add(of_logs);
            if logged.is_estimated {
                sums.estimated.0.add(of_bill);
                sums.estimated.1.add(of_logs);
                continue;
            }
            let is_tool = kind == Kind::Tool.name();
            let is_counted = match is_tool {
                true => logged.priced == billed.calls,
                false => (billed.prompt, billed.completion) == (logged.prompt, logged.completion),
            };
            if !is_counted || (of_bill.cents - of_logs.cents).abs() > ROUNDING {
                sums.wrong += 1;
                examples.push(format!("{line:?}: billed {billed:?}, {cents} cents, logged {logged:?}"));
            }
        }
        let mut all = Sums::default();
        for (kind, sums) in &kinds {
            report.figure(kind, sums);
            all.add(sums);
        }
        examples.iter().take(5).for_each(|example| report.figure("differs, for example", example));
        report.figure("calls under way at a kill", format!("{}; not in the logs: {}", self.touched.len(), all.lost));
        let (bill, guess) = all.estimated;
        let reported = |sum: Money, estimated: Money| Money {
            tokens: sum.tokens - estimated.tokens,
            cents: sum.cents - estimated.cents,
        };
        let (billed, logged) = (reported(all.billed, bill), reported(all.logged, guess));
        report.figure("reported usage, billed and logged", format!("{billed} and {logged}"));
        report.figure("estimates, billed and logged", format!("{bill} and {guess}"));
        report
            .promise("what the provider bills is what the logs say, call by call", all.wrong == 0 && billed.tokens > 0);
        report.promise("no reported token is unaccounted for", billed.tokens == logged.tokens);
        report.promise("the logs cost what the bill does, to the cent", (billed.cents - logged.cents).abs() < A_CENT);
        report.promise(
            &format!("estimates are marked, and within {TOLERANCE} % of the bill"),
            bill.tokens > 0 && guess.is_within(TOLERANCE, bill),
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
        let holds = billed > 0 && billed <= counted && counted <= u64::from(shop.cap);
        report.promise("a strict budget has all that is billed, and is never overspent", holds);
        Ok(())
    }
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.billed.add(other.billed);
        self.logged.add(other.logged);
        self.lost.add(other.lost);
        self.wrong += other.wrong;
        self.estimated.0.add(other.estimated.0);
        self.estimated.1.add(other.estimated.1);
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, billed, logged, lost, wrong, estimated } = self;
        write!(f, "{calls} calls, {billed} billed, {logged} logged")?;
        if estimated.0.tokens > 0 {
            write!(f, "; {} of them estimated as {}", estimated.0, estimated.1)?;
        }
        if lost.tokens > 0 || lost.cents > 0.0 {
            write!(f, "; lost at kills: {lost}")?;
        }
        if *wrong > 0 {
            write!(f, "; {wrong} calls differ")?;
        }
        Ok(())
    }
}
