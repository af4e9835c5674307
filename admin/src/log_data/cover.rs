//! Which slots, and which stretches of logs, together are a period: the widest slots that fit, that are there and that are not
//! stale, and logs for what is left at the edges and in between.

use super::period::Period;
use chrono::{DateTime, Utc};
use shared::db::usage_slots::{Retention, SlotSize};
use std::collections::BTreeSet;

/// A stretch of time, and the slots that it is counted from; none for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub size: Option<SlotSize>,
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

/// What is known of slots at one moment.
#[derive(Debug)]
pub struct SlotState {
    pub retention: Retention,
    /// Beginnings of stale slots, the narrowest first.
    pub stale: [BTreeSet<DateTime<Utc>>; 4],
}

/// The period in order, without gaps. No slot is wider than `widest`, so that each lies in one slot of a graph.
pub fn cover(period: Period, widest: SlotSize, state: &SlotState) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = period.from;
    while at < period.until {
        let fits = |size: &SlotSize| *size <= widest && state.has(*size, at) && at + size.width() <= period.until;
        let size = SlotSize::ALL.into_iter().rev().find(fits);
        let until = match size {
            Some(size) => at + size.width(),
            None => state.next_try(at).min(period.until),
        };
        match pieces.last_mut() {
            Some(last) if last.size == size => last.until = until,
            _ => pieces.push(Piece { size, from: at, until }),
        }
        at = until;
    }
    pieces
}

impl SlotState {
    /// Whether a slot of this width begins here whose figures are exact.
    fn has(&self, size: SlotSize, at: DateTime<Utc>) -> bool {
        let begin = if size == SlotSize::Minute { self.retention.minutes_from } else { self.retention.begins_at };
        at >= begin && size.beginning(at) == at && !self.is_stale(at, size)
    }

    /// A slot is stale with anything in it.
    fn is_stale(&self, at: DateTime<Utc>, size: SlotSize) -> bool {
        let until = at + size.width();
        let sizes = SlotSize::ALL.into_iter().zip(&self.stale).filter(|(narrower, _)| *narrower <= size);
        sizes.into_iter().any(|(_, stale)| stale.range(at..until).next().is_some())
    }

    /// Where the next slot could begin.
    fn next_try(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        if at < self.retention.begins_at {
            return self.retention.begins_at;
        }
        let size = if at < self.retention.minutes_from { SlotSize::HalfHour } else { SlotSize::Minute };
        size.beginning(at) + size.width()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        format!("2026-01-{text}Z").parse().unwrap()
    }

    fn state(stale: [&[&str]; 4]) -> SlotState {
        let retention =
            Retention { begins_at: time("10T00:00:00"), minutes_from: time("14T00:00:00"), sealed_until: None };
        SlotState { retention, stale: stale.map(|slots| slots.iter().map(|slot| time(slot)).collect()) }
    }

    fn covered(from: &str, until: &str, widest: SlotSize, state: &SlotState) -> Vec<String> {
        let pieces = cover(Period { from: time(from), until: time(until) }, widest, state);
        let ends = pieces.windows(2).all(|two| two[0].until == two[1].from && two[0].size != two[1].size);
        assert!(ends && pieces.first().is_none_or(|first| first.from == time(from)));
        assert!(pieces.last().is_none_or(|last| last.until == time(until)), "{pieces:?}");
        let shown =
            |piece: &Piece| format!("{:?} {}", piece.size.map(SlotSize::minutes), piece.until.format("%d %H:%M:%S"));
        pieces.iter().map(shown).collect()
    }

    #[test]
    fn a_period_is_the_widest_slots_that_fit() {
        let clean = state([&[], &[], &[], &[]]);
        for (from, until, widest, expected) in [
            ("14T00:00:00", "16T00:00:00", SlotSize::Day, vec!["Some(1440) 16 00:00:00"]),
            ("14T00:00:00", "16T00:00:00", SlotSize::HalfHour, vec!["Some(30) 16 00:00:00"]),
            (
                "14T23:29:30",
                "16T00:31:10",
                SlotSize::Day,
                vec![
                    "None 14 23:30:00",
                    "Some(30) 15 00:00:00",
                    "Some(1440) 16 00:00:00",
                    "Some(30) 16 00:30:00",
                    "Some(1) 16 00:31:00",
                    "None 16 00:31:10",
                ],
            ),
            // Minutes are not kept so long, and nothing is before the beginning.
            (
                "12T00:10:00",
                "12T01:10:00",
                SlotSize::Day,
                vec!["None 12 00:30:00", "Some(30) 12 01:00:00", "None 12 01:10:00"],
            ),
            ("08T00:00:00", "11T00:00:00", SlotSize::Day, vec!["None 10 00:00:00", "Some(1440) 11 00:00:00"]),
            ("14T00:00:00", "14T00:00:00", SlotSize::Day, vec![]),
        ] {
            assert_eq!(covered(from, until, widest, &clean), expected, "{from} {until}");
        }
    }

    #[test]
    fn what_is_stale_is_counted_from_logs_and_from_narrower_slots_around_it() {
        let minute = state([&["15T00:05:00"], &[], &[], &[]]);
        let expected = vec!["Some(1) 15 00:05:00", "None 15 00:06:00", "Some(1) 15 00:30:00", "Some(30) 16 00:00:00"];
        assert_eq!(covered("15T00:00:00", "16T00:00:00", SlotSize::Day, &minute), expected);
        let half_hour = state([&[], &["12T00:00:00"], &[], &[]]);
        let expected = vec!["None 12 00:30:00", "Some(30) 13 00:00:00", "Some(1440) 14 00:00:00"];
        assert_eq!(covered("12T00:00:00", "14T00:00:00", SlotSize::Day, &half_hour), expected);
        let day = state([&[], &[], &["15T00:00:00"], &[]]);
        assert_eq!(covered("15T00:00:00", "16T00:00:00", SlotSize::Day, &day), ["Some(30) 16 00:00:00"]);
    }

    #[test]
    fn a_week_begins_on_monday_and_is_stale_with_any_of_its_days() {
        let clean = state([&[], &[], &[], &[]]);
        let expected = vec!["Some(1440) 12 00:00:00", "Some(10080) 26 00:00:00", "Some(1440) 27 00:00:00"];
        assert_eq!(covered("10T00:00:00", "27T00:00:00", SlotSize::Week, &clean), expected);
        for stale in [state([&[], &[], &[], &["12T00:00:00"]]), state([&[], &[], &["15T00:00:00"], &[]])] {
            let found = covered("12T00:00:00", "26T00:00:00", SlotSize::Week, &stale);
            assert_eq!(found.last().unwrap(), "Some(10080) 26 00:00:00");
            assert!(found.len() > 1 && found[0].starts_with("Some(1440)"), "{found:?}");
        }
    }
}
