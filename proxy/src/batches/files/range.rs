//! Which bytes of a file are asked for. One range is understood; several, or what is none, mean the whole file, as the
//! standard allows.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedRange {
    Whole,
    Some(Range<u64>),
    /// It begins past the end.
    Outside,
}

/// `header` is as `bytes=0-99`, `bytes=100-` or `bytes=-10`.
pub fn asked_range(header: Option<&str>, length: u64) -> AskedRange {
    let Some((first, last)) = header.and_then(|header| header.trim().strip_prefix("bytes=")?.split_once('-')) else {
        return AskedRange::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let range = match (number(first), number(last)) {
        (None, Some(tail)) if first.is_empty() => length.saturating_sub(tail)..length,
        (Some(first), None) if last.is_empty() => first..length,
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        _ => return AskedRange::Whole,
    };
    if range.start >= length { AskedRange::Outside } else { AskedRange::Some(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_understood() {
        for (header, expected) in [
            (None, AskedRange::Whole),
            (Some("bytes=0-0"), AskedRange::Some(0..1)),
            (Some("bytes=5-"), AskedRange::Some(5..10)),
            (Some("bytes=-3"), AskedRange::Some(7..10)),
            (Some("bytes=-30"), AskedRange::Some(0..10)),
            (Some("bytes=4-99"), AskedRange::Some(4..10)),
            (Some("bytes=10-"), AskedRange::Outside),
            (Some("bytes=-0"), AskedRange::Outside),
            (Some("bytes=3-2"), AskedRange::Whole),
            (Some("bytes=-"), AskedRange::Whole),
            (Some("bytes=0-1,3-4"), AskedRange::Whole),
            (Some("lines=0-1"), AskedRange::Whole),
            (Some("bytes=99999999999999999999-"), AskedRange::Whole),
        ] {
            assert_eq!(asked_range(header, 10), expected, "{header:?}");
        }
        assert_eq!(asked_range(Some("bytes=0-"), 0), AskedRange::Outside);
    }
}
