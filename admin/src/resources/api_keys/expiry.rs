//! How long a key lives. Each kind of key has a default and a maximum; where there is a maximum, none lives for ever.
//! Pure: the clock is an argument.

use crate::http::ApiError;
use chrono::{DateTime, TimeDelta, Utc};

/// What is set for keys of this kind, in seconds; zero is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifetimes {
    pub default: i64,
    pub most: i64,
}

/// When a key ends, and whether that was decided for its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    pub at: Option<DateTime<Utc>>,
    pub is_enforced: bool,
}

/// For a new key.
pub fn first(asked: Option<DateTime<Utc>>, lifetimes: Lifetimes, now: DateTime<Utc>) -> Result<Expiry, ApiError> {
    if let Some(asked) = asked {
        return Ok(Expiry { at: Some(checked(asked, lifetimes, now)?), is_enforced: false });
    }
    let bounds = [lifetimes.default, lifetimes.most].into_iter().filter(|seconds| *seconds > 0);
    let at = bounds.min().and_then(|seconds| now.checked_add_signed(TimeDelta::seconds(seconds)));
    Ok(Expiry { at, is_enforced: at.is_some() })
}

/// For a key that was promised earlier: what has become too late since is cut, because who gets the key cannot choose.
pub fn promised(asked: Option<DateTime<Utc>>, lifetimes: Lifetimes, now: DateTime<Utc>) -> Expiry {
    let after = |seconds: i64| (seconds > 0).then(|| now.checked_add_signed(TimeDelta::seconds(seconds))).flatten();
    let (wanted, latest) = (asked.or_else(|| after(lifetimes.default)), after(lifetimes.most));
    let at = match (wanted, latest) {
        (Some(wanted), Some(latest)) => Some(wanted.min(latest)),
        (wanted, latest) => wanted.or(latest),
    };
    Expiry { at, is_enforced: at.is_some() && at != asked }
}

/// For a key that exists: null takes the end away, where that is allowed.
pub fn changed(asked: Option<DateTime<Utc>>, lifetimes: Lifetimes, now: DateTime<Utc>) -> Result<Expiry, ApiError> {
    match asked {
        None if lifetimes.most > 0 => {
            Err(ApiError::field("expires_at", "cannot be removed: keys of this kind have a maximum lifetime"))
        }
        asked => {
            let at = asked.map(|asked| checked(asked, lifetimes, now)).transpose()?;
            Ok(Expiry { at, is_enforced: false })
        }
    }
}

fn checked(asked: DateTime<Utc>, lifetimes: Lifetimes, now: DateTime<Utc>) -> Result<DateTime<Utc>, ApiError> {
    if asked <= now {
        return Err(ApiError::field("expires_at", "must be in the future"));
    }
    let latest = now.checked_add_signed(TimeDelta::seconds(lifetimes.most));
    if lifetimes.most > 0 && latest.is_some_and(|latest| asked > latest) {
        let message = format!("must be within {} seconds from now", lifetimes.most);
        return Err(ApiError::field("expires_at", message));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_lives_as_asked_or_by_default_and_never_beyond_the_maximum() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let after = |seconds: i64| now + TimeDelta::seconds(seconds);
        for (asked, default, most, expected) in [
            (None, 0, 0, Some((None, false))),
            (None, 60, 0, Some((Some(60), true))),
            (None, 60, 30, Some((Some(30), true))),
            (None, 0, 30, Some((Some(30), true))),
            (Some(20), 60, 30, Some((Some(20), false))),
            (Some(30), 0, 30, Some((Some(30), false))),
            (Some(31), 0, 30, None),
            (Some(0), 0, 0, None),
            (Some(-1), 60, 30, None),
            (Some(1_000_000_000), 60, 0, Some((Some(1_000_000_000), false))),
        ] {
            let found = first(asked.map(after), Lifetimes { default, most }, now).ok();
            let expected = expected.map(|(at, is_enforced)| Expiry { at: at.map(after), is_enforced });
            assert_eq!(found, expected, "{asked:?} {default} {most}");
        }
    }

    #[test]
    fn a_promised_key_ends_as_promised_or_by_default_and_never_too_late() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let after = |seconds: i64| now + TimeDelta::seconds(seconds);
        for (asked, default, most, expected) in [
            (None, 0, 0, (None, false)),
            (Some(5), 0, 0, (Some(5), false)),
            (None, 10, 0, (Some(10), true)),
            (Some(5), 10, 20, (Some(5), false)),
            (Some(30), 10, 20, (Some(20), true)),
            (None, 0, 20, (Some(20), true)),
            (None, 30, 20, (Some(20), true)),
        ] {
            let (at, is_enforced) = expected;
            let expected = Expiry { at: at.map(after), is_enforced };
            assert_eq!(
                promised(asked.map(after), Lifetimes { default, most }, now),
                expected,
                "{asked:?} {default} {most}"
            );
        }
    }

    #[test]
    fn an_end_can_be_taken_away_only_where_there_is_no_maximum() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        assert_eq!(changed(None, Lifetimes { default: 5, most: 0 }, now).unwrap().at, None);
        assert!(changed(None, Lifetimes { default: 5, most: 5 }, now).is_err());
    }
}
