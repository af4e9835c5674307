//! Ids, paths and pages of what the gateway keeps itself, files and batches alike. An id is a prefix of ours and a UUID by time,
//! so a page may begin after an id that is gone since.

use crate::request::refusal::Refusal;
use serde_json::{Value, json};
use uuid::Uuid;

/// An id as it was sent: one of ours, or else its text, up to a length.
pub type SentId = Result<Uuid, String>;

pub fn managed_id(prefix: &str, text: &str) -> SentId {
    let found = text.strip_prefix(prefix).filter(|id| id.len() == 36).and_then(|id| Uuid::try_parse(id).ok());
    found.ok_or_else(|| text.chars().take(64).collect())
}

/// What a path below a collection names.
#[derive(Debug, PartialEq, Eq)]
pub enum ManagedPath<'p> {
    All,
    One(SentId),
    /// Something of one.
    Below(SentId, &'p str),
    Other,
}

impl<'p> ManagedPath<'p> {
    pub fn parse(prefix: &str, rest: &'p str) -> Self {
        let Some(rest) = rest.strip_prefix('/') else {
            return if rest.is_empty() { Self::All } else { Self::Other };
        };
        match rest.split_once('/') {
            None => Self::One(managed_id(prefix, rest)),
            Some((one, below)) => Self::Below(managed_id(prefix, one), below),
        }
    }
}

/// Whether a path names one of ours, whatever else the request says.
pub fn names_managed(prefix: &str, rest: &str) -> bool {
    rest.strip_prefix('/').is_some_and(|rest| rest.starts_with(prefix))
}

/// The parameter `limit`.
pub fn asked_limit(value: &str, most: i64) -> Result<i64, Refusal> {
    let limit = value.parse().ok().filter(|limit| (1..=most).contains(limit));
    limit.ok_or_else(|| Refusal::invalid_query("limit", &format!("a number from 1 to {most}")))
}

/// The parameter `after`: the last one of the page before.
pub fn asked_after(prefix: &str, value: &str) -> Result<Uuid, Refusal> {
    let wrong = |_| Refusal::invalid_query("after", &format!("the id of the last one before, {prefix}…"));
    managed_id(prefix, value).map_err(wrong)
}

/// One more than the limit was asked for, to know whether there is more.
pub fn cut_page<T>(mut found: Vec<T>, limit: i64) -> (Vec<T>, bool) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = found.len() > limit;
    found.truncate(limit);
    (found, has_more)
}

/// OpenAI's list of these objects.
pub fn page(data: Vec<Value>, has_more: bool) -> Value {
    let id = |one: Option<&Value>| one.map(|one| one["id"].clone());
    json!({ "object": "list", "first_id": id(data.first()), "last_id": id(data.last()), "data": data,
        "has_more": has_more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_all_of_them_or_one_or_something_of_it() {
        let id = Uuid::nil();
        for (rest, expected) in [
            (String::new(), ManagedPath::All),
            (format!("/gwf-{id}"), ManagedPath::One(Ok(id))),
            (format!("/gwf-{id}/content"), ManagedPath::Below(Ok(id), "content")),
            (format!("/gwf-{id}/content/x"), ManagedPath::Below(Ok(id), "content/x")),
            (format!("/gwf-{}", id.simple()), ManagedPath::One(Err(format!("gwf-{}", id.simple())))),
            ("/file-1".into(), ManagedPath::One(Err("file-1".into()))),
            (format!("/{}", "é".repeat(100)), ManagedPath::One(Err("é".repeat(64)))),
            ("x".into(), ManagedPath::Other),
        ] {
            assert_eq!(ManagedPath::parse("gwf-", &rest), expected, "{rest}");
        }
        for (rest, is_ours) in [("/gwf-x/content", true), ("/gwf-", true), ("/file-1", false), ("", false)] {
            assert_eq!(names_managed("gwf-", rest), is_ours, "{rest}");
        }
    }

    #[test]
    fn pages_are_bounded_and_say_where_the_next_begins() {
        for (limit, expected) in [("1", Some(1)), ("100", Some(100)), ("0", None), ("101", None), ("x", None)] {
            assert_eq!(asked_limit(limit, 100).ok(), expected, "{limit}");
        }
        assert_eq!(asked_after("gwb-", &format!("gwb-{}", Uuid::nil())).ok(), Some(Uuid::nil()));
        assert_eq!(asked_after("gwb-", "batch_1").unwrap_err().status, 400);
        assert_eq!(cut_page(vec![1, 2, 3], 2), (vec![1, 2], true));
        assert_eq!(cut_page(vec![1, 2], 2), (vec![1, 2], false));
        let listed = page(vec![json!({ "id": "a" }), json!({ "id": "b" })], true);
        assert_eq!(
            (&listed["first_id"], &listed["last_id"], &listed["has_more"]),
            (&json!("a"), &json!("b"), &json!(true))
        );
        assert_eq!(page(Vec::new(), false)["first_id"], Value::Null);
    }
}
