//! The looks at what arrived: one after the other, all viewers in each, of one moment and through one connection. Nothing is
//! done while nobody watches, and leases are kept, given back and tidied up in between.

use super::events::{self, Skipped};
use super::position::Position;
use super::viewers::{Delivery, LogTail, TailQuestion, ViewerState};
use super::{MAX_BATCH_BYTES, MAX_LOOKED_AT, PERIOD, RESUMABLE_SECONDS, watchers};
use crate::http::ApiError;
use crate::http::backpressure::db_queue::DbQueue;
use crate::log_data::arrivals::{self, Arrival, Moment};
use crate::log_data::snapshot;
use shared::telemetry::LogLimit;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;
use tokio_postgres::Transaction;
use uuid::Uuid;

/// How often leases are renewed and old arrivals forgotten.
const UPKEEP: Duration = Duration::from_secs(15);
/// The same where nobody watches any more, until nothing is left.
const TIDYING: Duration = Duration::from_secs(60);
/// What is looked up for one organisation in one period may take so long, then its viewers miss something: others wait for it.
const MAX_LOOK: Duration = Duration::from_secs(5);
const STATEMENT_TIMEOUT: &str = "SET LOCAL statement_timeout = '5s'";
/// A transaction that is open for longer holds up nobody: what it brings may be missed.
const MAX_OPEN: Duration = Duration::from_secs(10);

/// Looks as long as the process lives.
pub async fn follow(db: DbQueue, tail: Arc<LogTail>) {
    let mut period = tokio::time::interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = Looks { db, tail, upkeep: None, is_tidy: false, open: OpenTransactions::default() };
    loop {
        match (looks.tail.count(), looks.is_tidy) {
            (0, true) => looks.tail.until_somebody_came().await,
            (0, false) => {
                let _ = tokio::time::timeout(TIDYING, looks.tail.until_somebody_came()).await;
            }
            _ => drop(period.tick().await),
        }
        if let Err(error) = looks.turn().await {
            static FAILED: LogLimit = LogLimit::new();
            if let Some(skipped) = FAILED.pass() {
                tracing::warn!(%error, skipped, "cannot look for logs that arrived; trying again");
            }
            // Where each viewer is stays known, so nothing is missed for as long as arrivals are kept.
            tokio::time::sleep(PERIOD).await;
        }
    }
}

struct Looks {
    db: DbQueue,
    tail: Arc<LogTail>,
    /// When leases were last renewed.
    upkeep: Option<Instant>,
    /// Nothing is left of what was noted.
    is_tidy: bool,
    open: OpenTransactions,
}

/// Which transactions had not begun at which time, of the last seconds, and the highest that is settled.
#[derive(Default)]
struct OpenTransactions {
    seen: VecDeque<(Instant, i64)>,
    settled: i64,
}

impl Looks {
    async fn turn(&mut self) -> Result<(), ApiError> {
        let db = self.db.clone();
        let mut db = db.get().await?;
        let left = self.tail.take_left();
        if !left.is_empty() {
            watchers::release(&*db, &left).await?;
            self.is_tidy = false;
        }
        let watched = self.tail.watchers();
        let is_due = self.upkeep.is_none_or(|last| last.elapsed() >= UPKEEP);
        if is_due || watched.is_empty() {
            if !watched.is_empty() {
                let lost = watchers::renew(&*db, &watched).await?;
                if !lost.is_empty() {
                    // Another database may have taken over, whose ids of transactions are lower.
                    self.open = OpenTransactions::default();
                    self.tail.lose(&lost);
                }
            }
            let are_watchers_left = watchers::forget(&*db).await?;
            let are_arrivals_left = arrivals::forget(&*db, RESUMABLE_SECONDS).await?;
            self.is_tidy = !are_watchers_left && !are_arrivals_left;
            self.upkeep = Some(Instant::now());
        }
        let viewers = self.tail.states();
        if viewers.is_empty() {
            return Ok(());
        }
        let mut by_organisation: HashMap<Uuid, Vec<ViewerState>> = HashMap::new();
        for viewer in viewers {
            by_organisation.entry(viewer.organisation).or_default().push(viewer);
        }
        for (organisation, viewers) in by_organisation {
            let ids: Vec<Uuid> = viewers.iter().map(|viewer| viewer.id).collect();
            let tx = snapshot(&mut db).await?;
            tx.batch_execute(STATEMENT_TIMEOUT).await?;
            // Of the same snapshot as what arrived: an event says how far it reaches.
            let moment = arrivals::moment(&tx).await?;
            let moment = Moment { settled: self.open.settled(moment, Instant::now()), ..moment };
            let looked = self.look_for_all(&tx, organisation, viewers, moment).await;
            tx.rollback().await?;
            // One organisation's slow filter stops nobody else's stream.
            if let Err(error) = looked {
                static FAILED: LogLimit = LogLimit::new();
                if let Some(skipped) = FAILED.pass() {
                    tracing::warn!(%error, %organisation, skipped, "cannot look for the logs that its viewers follow");
                }
                self.tail.lose(&ids);
            }
        }
        Ok(())
    }

    /// Every viewer of an organisation. Who comes back from long ago has more to read, and keeps that from nobody else's look.
    async fn look_for_all(
        &self,
        tx: &Transaction<'_>,
        organisation: Uuid,
        viewers: Vec<ViewerState>,
        moment: Moment,
    ) -> Result<(), ApiError> {
        let begun = Instant::now();
        let mut looks: HashMap<i64, Vec<ViewerState>> = HashMap::new();
        for viewer in viewers {
            let from = if viewer.is_lost { moment.settled } else { viewer.position.from.min(viewer.position.settled) };
            looks.entry(from).or_default().push(viewer);
        }
        for (from, viewers) in looks {
            self.look(tx, organisation, from, viewers, moment, begun).await?;
        }
        Ok(())
    }

    /// What arrived in an organisation, for those who watch it.
    async fn look(
        &self,
        tx: &Transaction<'_>,
        organisation: Uuid,
        from: i64,
        viewers: Vec<ViewerState>,
        moment: Moment,
        begun: Instant,
    ) -> Result<(), ApiError> {
        let arrived = arrivals::since(tx, organisation, from).await?;
        // Beyond the bound nobody knows what there is: everybody begins anew behind it.
        let is_cut = arrived.len() as i64 >= arrivals::MAX_READ;
        let behind = match is_cut {
            true => Position { from: moment.next, settled: moment.next, number: moment.number, seen: Arc::default() },
            false => Position::behind(&arrived, moment, moment.settled),
        };
        for group in groups(viewers) {
            let Some(first) = group.first() else { continue };
            let found = match is_cut || first.is_lost || begun.elapsed() > MAX_LOOK {
                true => Found { skipped: Skipped::UNKNOWN, ..Found::default() },
                false => find(tx, first, &arrived, moment, allowance(&group)).await?,
            };
            let delivery = Delivery {
                question: first.question.clone(),
                events: found.events.into(),
                logs: found.logs,
                skipped: found.skipped,
                begins: first.position.cursor(first.position.number, first.position.settled, moment.seconds),
                ends: behind.cursor(behind.number, behind.settled, moment.seconds),
                position: behind.clone(),
            };
            let now = Instant::now();
            for viewer in &group {
                self.tail.deliver(viewer.id, &delivery, now);
            }
        }
        Ok(())
    }
}

impl OpenTransactions {
    /// Below which id transactions are over, or have been open for too long.
    fn settled(&mut self, moment: Moment, now: Instant) -> i64 {
        self.seen.push_back((now, moment.next));
        self.settled = self.settled.max(moment.settled);
        while let Some((_, next)) =
            self.seen.front().copied().filter(|(since, _)| now.duration_since(*since) > MAX_OPEN)
        {
            self.settled = self.settled.max(next);
            self.seen.pop_front();
        }
        self.settled
    }
}

/// What matches of what arrived.
#[derive(Default)]
struct Found {
    events: String,
    logs: usize,
    skipped: Skipped,
}

/// Viewers to whom the same is new.
fn groups(viewers: Vec<ViewerState>) -> Vec<Vec<ViewerState>> {
    let mut groups: Vec<Vec<ViewerState>> = Vec::new();
    for viewer in viewers {
        let is_same = |group: &&mut Vec<ViewerState>| group.first().is_some_and(|one| are_alike(one, &viewer));
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(viewer),
            None => groups.push(vec![viewer]),
        }
    }
    groups
}

fn are_alike(one: &ViewerState, other: &ViewerState) -> bool {
    let is_same = |one: &Arc<TailQuestion>, other: &Arc<TailQuestion>| Arc::ptr_eq(one, other) || one == other;
    one.is_lost == other.is_lost && one.position.is_as(&other.position) && is_same(&one.question, &other.question)
}

fn allowance(group: &[ViewerState]) -> usize {
    group.iter().map(|one| one.allowance).min().unwrap_or(0)
}

async fn find(
    tx: &Transaction<'_>,
    viewer: &ViewerState,
    arrived: &[Arrival],
    moment: Moment,
    allowance: usize,
) -> Result<Found, ApiError> {
    let new: Vec<Arrival> = arrived.iter().filter(|one| viewer.position.is_new(one)).copied().collect();
    if new.is_empty() {
        return Ok(Found::default());
    }
    let search = viewer.question.search();
    let mut left_out = 0;
    // Only what is shown is read whole, and only what matches is counted.
    let logs = if new.len() <= allowance {
        arrivals::logs(tx, &search, &new).await?
    } else {
        let mut matching = Vec::new();
        for piece in new.chunks(MAX_LOOKED_AT) {
            matching.extend(arrivals::matching(tx, &search, piece).await?);
        }
        let shown = &matching[..matching.len().min(allowance)];
        left_out += matching.len() - shown.len();
        arrivals::logs(tx, &search, shown).await?
    };
    let mut found = Found::default();
    for (arrival, log) in logs {
        let cursor = viewer.position.cursor(arrival.number, moment.settled, moment.seconds);
        let event = events::log(cursor, &log.metrics);
        if found.events.len() + event.len() > MAX_BATCH_BYTES {
            left_out += 1;
            continue;
        }
        found.events.push_str(&event);
        found.logs += 1;
    }
    found.skipped.logs = left_out as u64;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Query;
    use crate::log_data::LogView;
    use crate::log_data::view::VisibleWorkspaces;

    fn viewer(query: &str, user_id: Option<Uuid>, number: i64) -> ViewerState {
        let view =
            LogView { organisation_id: Uuid::nil(), workspaces: VisibleWorkspaces::All, user_id, shows_metadata: true };
        ViewerState {
            id: Uuid::new_v4(),
            organisation: Uuid::nil(),
            question: Arc::new(TailQuestion { view, query: Query::parse(Some(query)).unwrap() }),
            position: Position { from: 1, settled: 1, number, seen: Arc::default() },
            is_lost: false,
            allowance: 7,
        }
    }

    #[test]
    fn only_who_sees_and_asks_for_the_same_shares_bytes() {
        let lost = ViewerState { is_lost: true, ..viewer("a=1", None, 1) };
        let viewers = vec![
            viewer("a=1", None, 1),
            viewer("a=1", None, 1),
            viewer("a=2", None, 1),
            viewer("a=1", Some(Uuid::nil()), 1),
            viewer("a=1", None, 2),
            lost,
        ];
        let sizes: Vec<usize> = groups(viewers).iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1, 1, 1]);
    }

    #[test]
    fn a_transaction_that_is_open_for_long_holds_nothing_up() {
        let (begin, mut open) = (Instant::now(), OpenTransactions::default());
        let mut settled = |seconds: u64, settled: i64, next: i64| {
            open.settled(Moment { settled, next, number: 0, seconds: 0 }, begin + Duration::from_secs(seconds))
        };
        assert_eq!(settled(0, 5, 20), 5);
        assert_eq!(settled(5, 5, 30), 5);
        assert_eq!(settled(11, 5, 40), 20, "what began in the first seconds");
        assert_eq!(settled(12, 5, 45), 20, "never back");
        assert_eq!(settled(13, 45, 46), 45);
    }
}
