//! How wide slots are, and where they begin: all are counted from a Monday at midnight (UTC), so that weeks begin with one.

use chrono::{DateTime, TimeDelta, Utc};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotSize {
    Minute,
    HalfHour,
    Day,
    Week,
}

/// 2001-01-01T00:00:00Z, in seconds since 1970.
const ORIGIN: i64 = 978_307_200;

impl SlotSize {
    pub const ALL: [Self; 4] = [Self::Minute, Self::HalfHour, Self::Day, Self::Week];

    pub fn minutes(self) -> i16 {
        match self {
            Self::Minute => 1,
            Self::HalfHour => 30,
            Self::Day => 1440,
            Self::Week => 10_080,
        }
    }

    pub fn width(self) -> TimeDelta {
        TimeDelta::minutes(self.minutes().into())
    }

    /// The beginning of the slot that a moment is in.
    pub fn beginning(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let width = self.width().num_seconds();
        DateTime::from_timestamp((at.timestamp() - ORIGIN).div_euclid(width) * width + ORIGIN, 0).unwrap_or(at)
    }

    pub(super) fn smaller(self) -> Self {
        match self {
            Self::Minute | Self::HalfHour => Self::Minute,
            Self::Day => Self::HalfHour,
            Self::Week => Self::Day,
        }
    }

    pub(super) fn wider(self) -> Option<Self> {
        match self {
            Self::Minute => Some(Self::HalfHour),
            Self::HalfHour => Some(Self::Day),
            Self::Day => Some(Self::Week),
            Self::Week => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_in_the_slot_that_begins_before_it() {
        let at: DateTime<Utc> = "2026-01-15T10:44:59.999Z".parse().unwrap();
        for (size, beginning) in [
            (SlotSize::Minute, "2026-01-15T10:44:00Z"),
            (SlotSize::HalfHour, "2026-01-15T10:30:00Z"),
            (SlotSize::Day, "2026-01-15T00:00:00Z"),
            (SlotSize::Week, "2026-01-12T00:00:00Z"),
        ] {
            let beginning: DateTime<Utc> = beginning.parse().unwrap();
            assert_eq!(size.beginning(at), beginning);
            assert_eq!(size.beginning(beginning), beginning, "a slot begins with its beginning");
            assert_eq!(size.beginning(beginning + size.width()), beginning + size.width());
        }
    }
}
