//! Where the bodies of a log lie, as the column `body_key` says it: an object of their own (`v1`), or a range of a pack
//! (`v2`), written as `object#start+length`.
//!
//! A pack holds calls of one workspace in one hour, each a zstd frame of its own. It lies in the folder of its day like
//! single objects do, so a day and a workspace stay prefixes.

use super::day_prefix;
use chrono::{DateTime, Utc};
use std::ops::Range;
use uuid::Uuid;

/// How objects of many calls end.
const PACK: &str = ".pack.zst";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyKey<'k> {
    Object(&'k str),
    Packed { pack: &'k str, range: Range<u64> },
}

impl<'k> BodyKey<'k> {
    /// None when no proxy of ours wrote it.
    pub fn parse(key: &'k str) -> Option<Self> {
        let Some((pack, range)) = key.split_once('#') else { return Some(Self::Object(key)) };
        let (start, length) = range.split_once('+')?;
        let (start, length): (u64, u64) = (start.parse().ok()?, length.parse().ok()?);
        let end = start.checked_add(length)?;
        (is_pack(pack) && length > 0).then_some(Self::Packed { pack, range: start..end })
    }

    /// The name of the layout.
    pub fn format(key: Option<&str>) -> &'static str {
        match key.is_some_and(|key| key.contains('#')) {
            true => "v2",
            false => "v1",
        }
    }
}

/// The key of a call inside a pack.
pub fn packed_key(pack: &str, range: &Range<u64>) -> String {
    format!("{pack}#{}+{}", range.start, range.end - range.start)
}

/// Where a pack lies whose calls were made in this hour.
pub fn pack_path(organisation: Uuid, workspace: Uuid, hour: DateTime<Utc>, pack: Uuid) -> String {
    format!("{}/{}/{pack}{PACK}", day_prefix(organisation, workspace, hour.date_naive()), hour.format("%H"))
}

/// Whether it is the name of a pack, not of a folder.
pub fn is_pack(path: &str) -> bool {
    path.ends_with(PACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_which_bytes_of_which_object() {
        let hour: DateTime<Utc> = "2026-11-15T07:59:59.999Z".parse().unwrap();
        let pack = pack_path(Uuid::from_u128(1), Uuid::from_u128(2), hour, Uuid::from_u128(3));
        assert!(pack.starts_with(&day_prefix(Uuid::from_u128(1), Uuid::from_u128(2), hour.date_naive())));
        assert!(pack.contains("/2026-11-15/07/") && is_pack(&pack), "{pack}");
        let key = packed_key(&pack, &(10..30));
        assert!(key.ends_with("#10+20"), "{key}");
        assert_eq!(BodyKey::parse(&key), Some(BodyKey::Packed { pack: &pack, range: 10..30 }));
        assert_eq!(BodyKey::parse("bodies/a.json.zst"), Some(BodyKey::Object("bodies/a.json.zst")));
        assert_eq!(
            (BodyKey::format(Some(&key)), BodyKey::format(Some("a")), BodyKey::format(None)),
            ("v2", "v1", "v1")
        );
    }

    #[test]
    fn what_is_no_range_of_a_pack_is_none() {
        for range in ["", "1", "1+", "+1", "1+0", "-1+2", "1+2+3", "18446744073709551615+1", "1+18446744073709551616"] {
            assert_eq!(BodyKey::parse(&format!("bodies/a.pack.zst#{range}")), None, "{range}");
        }
        assert_eq!(BodyKey::parse("bodies/a.json.zst#1+2"), None);
    }
}
