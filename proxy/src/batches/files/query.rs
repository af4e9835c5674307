//! What a list of files asks for: OpenAI's parameters, bounded.

use super::managed::{asked_after, asked_limit};
use super::object::PREFIX;
use crate::request::refusal::Refusal;
use uuid::Uuid;

const USUAL: i64 = 1_000;
const MAX_PAGE: i64 = 10_000;
/// As the column has it.
const MAX_PURPOSE: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    pub limit: i64,
    /// The last file of the page before. It may be gone since: ids are in the order of time.
    pub after: Option<Uuid>,
    pub purpose: Option<String>,
    pub is_ascending: bool,
}

impl ListQuery {
    pub fn parse(query: &str) -> Result<Self, Refusal> {
        let mut asked = Self { limit: USUAL, after: None, purpose: None, is_ascending: false };
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "limit" => asked.limit = asked_limit(&value, MAX_PAGE)?,
                "after" => asked.after = Some(asked_after(PREFIX, &value)?),
                "order" => {
                    asked.is_ascending = match &*value {
                        "asc" => true,
                        "desc" => false,
                        _ => return Err(Refusal::invalid_query("order", "asc or desc")),
                    }
                }
                "purpose" if value.len() > MAX_PURPOSE || value.contains('\0') => {
                    return Err(Refusal::invalid_query("purpose", "a purpose of files"));
                }
                "purpose" => asked.purpose = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_bounded() {
        let id = Uuid::nil();
        let all = ListQuery { limit: USUAL, after: None, purpose: None, is_ascending: false };
        assert_eq!(ListQuery::parse("").unwrap(), all);
        let asked = format!("limit=2&after=gwf-{id}&order=asc&purpose=batch&other=1");
        let expected = ListQuery { limit: 2, after: Some(id), purpose: Some("batch".into()), is_ascending: true };
        assert_eq!(ListQuery::parse(&asked).unwrap(), expected);
        let long = format!("purpose={}", "p".repeat(MAX_PURPOSE + 1));
        for bad in ["limit=0", "limit=10001", "limit=x", "after=file-1", "order=up", "purpose=%00", &*long] {
            assert_eq!(ListQuery::parse(bad).unwrap_err().status, 400, "{bad}");
        }
    }
}
