//! Which state of an object somebody saw: `ETag` with what they read, `If-Match` with the change that they make of it, so
//! that a change which somebody else made meanwhile is not overwritten unseen.

use crate::http::{ApiError, Time};
use axum::http::{HeaderMap, header};
use uuid::Uuid;

/// Nobody saw more states of one object than that.
const MAX_TAGS: usize = 50;
const IF_MATCH: &str = "If-Match";

/// An object is told from its other states by when it was changed.
pub fn tag(id: Uuid, changed_at: Time) -> String {
    format!("\"{}-{:x}\"", id.simple(), changed_at.0.timestamp_micros())
}

/// The states of which one must be the current one.
#[derive(Debug, PartialEq, Eq)]
pub enum IfMatch<'a> {
    /// `*`: any, as long as the object is there.
    Any,
    Tags(Vec<&'a str>),
}

impl<'a> IfMatch<'a> {
    /// None where the request does not care. Weak tags are taken and match nothing, as HTTP has it.
    pub fn sent(headers: &'a HeaderMap) -> Result<Option<Self>, ApiError> {
        let mut tags = Vec::new();
        for value in headers.get_all(header::IF_MATCH) {
            let text = value.to_str().map_err(|_| malformed())?.trim();
            if text == "*" {
                return Ok(Some(Self::Any));
            }
            for tag in text.split(',').map(str::trim) {
                let opaque = tag.strip_prefix("W/").unwrap_or(tag);
                let is_quoted = opaque.len() >= 2 && opaque.starts_with('"') && opaque.ends_with('"');
                if !is_quoted || tags.len() == MAX_TAGS {
                    return Err(malformed());
                }
                tags.push(tag);
            }
        }
        Ok((!tags.is_empty()).then_some(Self::Tags(tags)))
    }

    pub fn holds(&self, current: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => tags.contains(&current),
        }
    }
}

fn malformed() -> ApiError {
    ApiError::field(IF_MATCH, format!("must be `*` or at most {MAX_TAGS} tags in quotes, as `ETag` has them"))
}

/// It was sent for an operation that holds no object to compare it with.
pub fn not_here() -> ApiError {
    ApiError::field(IF_MATCH, "this operation changes nothing that has an ETag")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use chrono::DateTime;

    fn sent(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_tag_holds_for_one_state_of_one_object() {
        let at = |micros| Time(DateTime::from_timestamp_micros(micros).unwrap());
        let now = tag(Uuid::nil(), at(1));
        let headers = sent(&[&now]);
        let wanted = IfMatch::sent(&headers).unwrap().unwrap();
        assert!(wanted.holds(&now));
        assert!(!wanted.holds(&tag(Uuid::nil(), at(2))));
        assert!(!wanted.holds(&tag(Uuid::max(), at(1))));
    }

    #[test]
    fn lists_stars_and_weak_tags_are_read_as_http_has_them() {
        assert_eq!(IfMatch::sent(&sent(&[])).unwrap(), None);
        assert_eq!(IfMatch::sent(&sent(&[" * "])).unwrap(), Some(IfMatch::Any));
        let headers = sent(&["\"a\", \"b\"", "\"c\""]);
        assert_eq!(IfMatch::sent(&headers).unwrap(), Some(IfMatch::Tags(vec!["\"a\"", "\"b\"", "\"c\""])));
        let headers = sent(&["W/\"a\""]);
        assert!(!IfMatch::sent(&headers).unwrap().unwrap().holds("\"a\""));
        let many = vec!["\"a\""; MAX_TAGS + 1].join(",");
        for wrong in ["a", "\"a", "\"", "", "\"a\",", many.as_str()] {
            assert!(IfMatch::sent(&sent(&[wrong])).is_err(), "{wrong}");
        }
    }
}
