//! How long a request asks its provider to keep what it reads: the longest lifetime that it names anywhere. A strict budget
//! reserves what writing all of it into such a cache costs.

use super::expected::SentBody;
use memchr::memmem;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use shared::cost::CacheLifetime;
use std::borrow::Cow;
use std::fmt;

/// Where a request says that something is kept.
const MARKS: [&str; 2] = ["cache_control", "cachePoint"];

/// The longest that is named, in whatever field. What cannot be read may say anything.
pub fn longest_asked(sent: &SentBody<'_>) -> CacheLifetime {
    let mut longest = CacheLifetime::None;
    sent.each_field(|key, value| {
        let found = match MARKS.contains(&key) {
            true => serde_json::from_slice(value).map(|Mark(lifetime)| lifetime),
            false if !may_mark(value) => return,
            false => serde_json::from_slice(value).map(|Marked(lifetime)| lifetime),
        };
        longest = longest.max(found.unwrap_or(CacheLifetime::Any));
    });
    longest
}

/// Most requests have no mark, and are not read for one. An escape may spell one.
fn may_mark(value: &[u8]) -> bool {
    MARKS.iter().any(|mark| memmem::find(value, mark.as_bytes()).is_some()) || memmem::find(value, b"\\u").is_some()
}

/// What a mark says: `null` is none, and without a lifetime it is the usual one.
struct Mark(CacheLifetime);

impl<'de> Deserialize<'de> for Mark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct MarkFields<'s> {
            #[serde(borrow, default)]
            ttl: Option<Cow<'s, str>>,
        }
        let fields = Option::<MarkFields<'_>>::deserialize(deserializer)?;
        Ok(Self(match fields.map(|fields| fields.ttl) {
            None => CacheLifetime::None,
            Some(None) => CacheLifetime::FiveMinutes,
            Some(Some(ttl)) if ttl == "5m" => CacheLifetime::FiveMinutes,
            Some(Some(ttl)) if ttl == "1h" => CacheLifetime::OneHour,
            Some(Some(_)) => CacheLifetime::Any,
        }))
    }
}

/// The longest of all marks inside of a value.
struct Marked(CacheLifetime);

impl<'de> Deserialize<'de> for Marked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MarkVisitor)
    }
}

struct MarkVisitor;

impl<'de> Visitor<'de> for MarkVisitor {
    type Value = Marked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, _: &str) -> Result<Marked, E> {
        Ok(Marked(CacheLifetime::None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Marked, E> {
        Ok(Marked(CacheLifetime::None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Marked, E> {
        Ok(Marked(CacheLifetime::None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Marked, E> {
        Ok(Marked(CacheLifetime::None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Marked, E> {
        Ok(Marked(CacheLifetime::None))
    }

    fn visit_unit<E>(self) -> Result<Marked, E> {
        Ok(Marked(CacheLifetime::None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Marked, A::Error> {
        let mut longest = CacheLifetime::None;
        while let Some(Marked(one)) = items.next_element()? {
            longest = longest.max(one);
        }
        Ok(Marked(longest))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Marked, A::Error> {
        let mut longest = CacheLifetime::None;
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            longest = longest.max(match &*name {
                name if MARKS.contains(&name) => fields.next_value::<Mark>()?.0,
                _ => fields.next_value::<Marked>()?.0,
            });
        }
        Ok(Marked(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::body::Fields;

    #[test]
    fn the_longest_lifetime_that_a_request_names_counts() {
        use CacheLifetime::{Any, FiveMinutes, None as Nothing, OneHour};
        for (body, longest) in [
            (r#"{"messages":[{"content":"cache_control"}]}"#, Nothing),
            (r#"{"messages":[{"content":[{"text":"a","cache_control":null}]}]}"#, Nothing),
            (r#"{"messages":[{"content":[{"text":"a","cache_control":{"type":"ephemeral"}}]}]}"#, FiveMinutes),
            (r#"{"system":[{"cache_control":{"type":"ephemeral","ttl":"5m"}}]}"#, FiveMinutes),
            (r#"{"system":[{"cache_control":{"ttl":"5m"}}],"tools":[{"cache_control":{"ttl":"1h"}}]}"#, OneHour),
            (r#"{"cache_control":{"type":"ephemeral","ttl":"1h"}}"#, OneHour),
            (r#"{"messages":[{"content":[{"cachePoint":{"type":"default","ttl":"1h"}}]}]}"#, OneHour),
            (r#"{"messages":[{"content":[{"cache\u005fcontrol":{"ttl":"\u0031h"}}]}]}"#, OneHour),
            (r#"{"messages":[{"content":[{"cache_control":{"ttl":"24h"}}]}]}"#, Any),
            (r#"{"messages":[{"content":[{"cache_control":7}]}]}"#, Any),
            (r#"{"messages":[{"content":"\u00e9"}],"max_tokens":5}"#, Nothing),
        ] {
            let fields = Fields::parse_object(body.as_bytes()).unwrap();
            assert_eq!(longest_asked(&SentBody::new(body.as_bytes(), &fields, None)), longest, "{body}");
        }
    }
}
