//! Limits under a storm: three proxies, three hundred clients of which most are at one proxy, and several times the demand
//! that there is room for. What passed is counted where it cannot be mistaken, at the provider. Once with leases from
//! Postgres and once with Redis; each in calm, with the busiest proxy killed in the middle, and with the store restarted.
//!
//! A rate is looked at within one of its minutes, so each part waits for one to begin.

mod crowd;
mod limits;

use super::redis::Redis;
use super::report::Report;
use super::stack::{Replica, Stack};
use crowd::{CLIENTS, Crowd, Met, Party};
use limits::{Policy, Sort, Trouble, bounds};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

const REPLICAS: usize = 3;
/// Requests that the provider remembers: more than any run makes.
const REMEMBERED: usize = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);
const MINUTE: Duration = Duration::from_secs(60);
/// Of its minute, a part begins not later than this, and by these it has come so far.
const LATEST: Duration = Duration::from_secs(3);
const USED_UP_AT: Duration = Duration::from_secs(38);
const OVER_AT: Duration = Duration::from_secs(50);
const AWAY: Duration = Duration::from_secs(3);
/// Something happens when so much of the first limit is used.
const MIDDLE: u64 = 400;

pub async fn prove(report: &mut Report) -> anyhow::Result<()> {
    Storm::begin(None, &[Sort::Rate, Sort::Budget, Sort::Strict]).await?.run(report).await?;
    Storm::begin(Some(Redis::start().await?), &[Sort::Rate, Sort::Strict]).await?.run(report).await
}

struct Storm {
    stack: Stack,
    replicas: Vec<Replica>,
    redis: Option<Redis>,
    policies: Vec<Policy>,
}

/// One limit in one kind of trouble.
struct Cell {
    trouble: Trouble,
    met: Arc<Met>,
    /// The most that one process held, in the unit of the limit.
    lease: f64,
    /// Passed while the killed proxy was still away.
    early: u64,
}

impl Storm {
    async fn begin(redis: Option<Redis>, sorts: &[Sort]) -> anyhow::Result<Self> {
        let url = redis.as_ref().map(Redis::url);
        let settings: Vec<(&'static str, &str)> = url.iter().map(|url| ("REDIS_URL", url.as_str())).collect();
        let mut stack = Stack::remembering(&settings, REMEMBERED).await?;
        let (administrator, workspace) = (stack.administrator().await?, stack.workspace().await?);
        let mut policies = Vec::new();
        for sort in sorts {
            policies.push(Policy::make(*sort, &administrator, workspace).await?);
        }
        // They start with the policies that they are to heed.
        let replicas = stack.replicas(REPLICAS).await?;
        Ok(Self { stack, replicas, redis, policies })
    }

    async fn run(mut self, report: &mut Report) -> anyhow::Result<()> {
        let store = if self.redis.is_some() { "Redis" } else { "Postgres" };
        report.figure("limits shared by", format!("{REPLICAS} proxies, through {store}; {CLIENTS} clients"));
        let mut cells = Vec::new();
        for trouble in [Trouble::Calm, Trouble::Killed, Trouble::Restarted] {
            cells.push(self.part(trouble).await?);
        }
        let reached = self.reached();
        for (index, policy) in self.policies.iter().enumerate() {
            for cell in cells.iter().map(|cells| &cells[index]) {
                self.judge(policy, cell, &reached, report).await?;
            }
        }
        if report.is_broken() {
            for replica in &self.replicas {
                replica.program.last_words().lines().for_each(|line| report.figure("proxy", line));
            }
        }
        drop(self.replicas);
        self.stack.stop(report)
    }

    /// One minute of it.
    async fn part(&mut self, trouble: Trouble) -> anyhow::Result<Vec<Cell>> {
        let mut cells: Vec<Cell> =
            self.policies.iter().map(|_| Cell { trouble, met: Arc::default(), lease: 0.0, early: 0 }).collect();
        let mut parties = Vec::new();
        for (policy, cell) in self.policies.iter().zip(&cells) {
            parties.push(self.party(policy, cell)?);
        }
        let window = a_minute_begins().await;
        let crowd = Crowd::start(parties);
        let (mut client, mut is_done) = (Some(self.stack.database().await?), trouble == Trouble::Calm);
        while window.elapsed() < USED_UP_AT {
            if !is_done && cells[0].met.passed.load(Relaxed) >= MIDDLE {
                self.cause(trouble).await?;
                is_done = true;
            }
            self.watch(&mut cells, &mut client).await;
            sleep(Duration::from_millis(200)).await;
        }
        for cell in &mut cells {
            cell.early = cell.met.passed.load(Relaxed);
        }
        if trouble == Trouble::Killed {
            self.replicas[0].restart().await?;
        }
        tokio::time::sleep_until(window + OVER_AT).await;
        crowd.stop().await?;
        anyhow::ensure!(is_done, "the limit was not used enough for anything to happen");
        Ok(cells)
    }

    fn party(&self, policy: &Policy, cell: &Cell) -> anyhow::Result<Party> {
        let (sort, group) = (policy.sort.name(), cell.trouble.name());
        let callers = self.replicas.iter().map(|replica| {
            let caller = self.stack.caller_at(replica)?;
            caller
                .with("x-gateway-metadata", &serde_json::json!({ sort: group }).to_string())?
                .with("authorization", &format!("Bearer {sort}-{group}"))
        });
        Ok(Party { callers: callers.collect::<Result<_, _>>()?, met: cell.met.clone() })
    }

    async fn cause(&mut self, trouble: Trouble) -> anyhow::Result<()> {
        match (trouble, &mut self.redis) {
            (Trouble::Calm, _) => {}
            (Trouble::Killed, _) => self.replicas[0].kill().await?,
            (Trouble::Restarted, Some(redis)) => {
                redis.stop().await?;
                sleep(AWAY).await;
                redis.resume()?;
            }
            (Trouble::Restarted, None) => {
                self.stack.crash_postgres()?;
                sleep(AWAY).await;
                self.stack.resume_postgres()?;
            }
        }
        Ok(())
    }

    /// Notes how much a process holds. While Postgres is away nobody can look.
    async fn watch(&self, cells: &mut [Cell], client: &mut Option<Client>) {
        let looked = async {
            if client.as_ref().is_none_or(Client::is_closed) {
                *client = Some(self.stack.database().await?);
            }
            if let Some(client) = client {
                for (policy, cell) in self.policies.iter().zip(cells) {
                    cell.lease = cell.lease.max(policy.largest_lease(client, cell.trouble).await?);
                }
            }
            anyhow::Ok(())
        };
        let _ = looked.await;
    }

    /// Calls that reached the provider, by the credential they bore.
    fn reached(&self) -> BTreeMap<String, u64> {
        let mut reached = BTreeMap::new();
        for request in self.stack.mock.requests() {
            *reached.entry(request.header("authorization").to_owned()).or_default() += 1;
        }
        reached
    }

    async fn judge(
        &self,
        policy: &Policy,
        cell: &Cell,
        reached: &BTreeMap<String, u64>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let (sort, trouble) = (policy.sort, cell.trouble);
        let what = format!("{}, {}", sort.name(), trouble.name());
        let client = self.stack.database().await?;
        let met = |count: &std::sync::atomic::AtomicU64| count.load(Relaxed);
        let (passed, cut, odd) = (met(&cell.met.passed), met(&cell.met.cut), met(&cell.met.odd));
        let end = Instant::now() + PATIENCE;
        let mut books = policy.books(&client, trouble).await?;
        while (books.calls < passed || books.logged != books.counted) && Instant::now() < end {
            sleep(Duration::from_millis(200)).await;
            books = policy.books(&client, trouble).await?;
        }
        let reached = reached.get(&format!("Bearer {}-{}", sort.name(), trouble.name())).copied().unwrap_or(0);
        let bounds = bounds(sort, trouble, self.redis.is_some(), cell.lease, cut as f64 * books.call);
        let (used, early) = (reached as f64 * books.call, cell.early as f64 * books.call);
        report.figure(
            &what,
            format!(
                "{used:.4} of {} {} used by {reached} calls at the provider ({} logged, {passed} answered, {cut} cut, \
                 {:.4} unconfirmed); {} refused, {} told that nobody knows, {odd} other; largest lease {:.4}",
                sort.cap(),
                sort.unit(),
                books.calls,
                books.unconfirmed,
                met(&cell.met.refused),
                met(&cell.met.unknown),
                cell.lease
            ),
        );
        // Sums of prices are exact in the logs; this one is of floats.
        let slack = books.call / 1000.0;
        report.promise(
            &format!("{what}: passed by at most {:.4}", bounds.over),
            used <= sort.cap() + bounds.over + slack,
        );
        report.promise(
            &format!("{what}: at most {:.4} left while everybody wanted some", bounds.under),
            early + bounds.under + slack >= sort.cap(),
        );
        if trouble == Trouble::Killed {
            let left = sort.cap() - used;
            report.promise(
                &format!("{what}: what the dead one held came back with it"),
                left <= bounds.under - cell.lease + books.unconfirmed + slack,
            );
        }
        report.promise(&format!("{what}: usage is what the logs add up to"), books.logged == books.counted);
        report.promise(
            &format!("{what}: every answer is in the logs, and nothing else but what was cut"),
            books.calls >= passed && books.calls <= passed + odd + cut && reached <= books.calls + cut,
        );
        if let Some(shown) = policy.shown(&self.stack.administrator().await?, trouble).await? {
            let counted: f64 = books.counted.parse()?;
            report.promise(&format!("{what}: and the interface says so"), (shown * 100.0 - counted).abs() < 1e-9);
        }
        Ok(())
    }
}

/// Waits for the beginning of a minute, unless one has just begun; answers when that was.
async fn a_minute_begins() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let gone = Duration::from_micros((since.as_micros() % MINUTE.as_micros()) as u64);
    if gone > LATEST {
        // A little later, so that nobody's clock is still in the last one.
        sleep(MINUTE - gone + Duration::from_millis(200)).await;
        return Instant::now();
    }
    Instant::now() - gone
}
