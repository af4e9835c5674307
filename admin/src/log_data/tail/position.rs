//! How far a viewer has come: which arrivals are new to it.

use super::cursor::Cursor;
use crate::log_data::arrivals::{Arrival, Moment};
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Position {
    /// Arrivals of transactions before this one are all behind it.
    pub from: i64,
    /// Of those before this one only numbers above `number` are new.
    pub settled: i64,
    pub number: i64,
    /// Of transactions from `settled` on these were there already.
    pub seen: Arc<HashSet<i64>>,
}

impl Position {
    /// Behind all that was visible at a moment.
    pub fn behind(arrivals: &[Arrival], moment: Moment, settled: i64) -> Self {
        let seen = arrivals.iter().filter(|one| one.xid >= settled).map(|one| one.number).collect();
        let number = arrivals.iter().map(|one| one.number).max().unwrap_or(0).max(moment.number);
        Self { from: settled, settled, number, seen: Arc::new(seen) }
    }

    /// Behind an event.
    pub fn after(cursor: Cursor) -> Self {
        Self { from: cursor.from, settled: cursor.settled, number: cursor.number, seen: Arc::default() }
    }

    pub fn is_new(&self, one: &Arrival) -> bool {
        match one.xid >= self.settled {
            true => !self.seen.contains(&one.number),
            false => one.xid >= self.from && one.number > self.number,
        }
    }

    /// Where to go on after an arrival that was found at this position, in a look that knew of `settled` transactions.
    pub fn cursor(&self, number: i64, settled: i64, seconds: i64) -> Cursor {
        Cursor { from: self.from, settled, number, seconds }
    }

    /// Whether the same arrivals are new.
    pub fn is_as(&self, other: &Self) -> bool {
        let place = |one: &Self| (one.from, one.settled, one.number);
        place(self) == place(other) && (Arc::ptr_eq(&self.seen, &other.seen) || self.seen == other.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use uuid::Uuid;

    fn arrival(xid: i64, number: i64) -> Arrival {
        Arrival { number, xid, created_at: DateTime::UNIX_EPOCH, id: Uuid::nil() }
    }

    fn moment(settled: i64, number: i64) -> Moment {
        Moment { settled, next: settled + 5, number, seconds: 1 }
    }

    #[test]
    fn an_arrival_is_new_once_however_late_its_transaction_is_committed() {
        // Transaction 10 has taken number 1 and is not over; 11 is visible.
        let first = [arrival(11, 2)];
        let position = Position::behind(&first, moment(10, 2), 10);
        assert!(!position.is_new(&arrival(11, 2)));
        assert!(position.is_new(&arrival(10, 1)), "committed behind a higher number");
        assert!(position.is_new(&arrival(12, 3)));
        let all = [arrival(10, 1), arrival(11, 2), arrival(12, 3)];
        let next = Position::behind(&all, moment(13, 3), 13);
        assert!(all.iter().all(|one| !next.is_new(one)));
    }

    #[test]
    fn who_comes_back_goes_on_behind_the_last_event() {
        let position = Position::behind(&[], moment(10, 5), 10);
        // One look found all of these, and knew that everything before 13 was over.
        let found = [arrival(10, 6), arrival(11, 7), arrival(12, 8)];
        assert!(found.iter().all(|one| position.is_new(one)));
        let back = Position::after(position.cursor(7, 13, 1));
        assert_eq!(found.map(|one| back.is_new(&one)), [false, false, true]);
        assert!(back.is_new(&arrival(13, 4)), "of a transaction that was still open");
        assert!(!back.is_new(&arrival(9, 3)), "of one that was over before");
    }
}
