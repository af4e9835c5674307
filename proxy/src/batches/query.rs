//! What a path and a query below `/batches` ask for.

use super::record::PREFIX;
use crate::refusal::Refusal;
use uuid::Uuid;

const USUAL: i64 = 20;
const MOST: i64 = 100;

/// What stands after `/batches`. An id is a batch's, or nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchPath {
    All,
    One(Result<Uuid, String>),
    Cancel(Result<Uuid, String>),
    Output(Result<Uuid, String>),
    Other,
}

impl BatchPath {
    pub fn parse(rest: &str) -> Self {
        let Some(rest) = rest.strip_prefix('/') else {
            return if rest.is_empty() { Self::All } else { Self::Other };
        };
        match rest.split_once('/') {
            None => Self::One(id(rest)),
            Some((batch, "cancel")) => Self::Cancel(id(batch)),
            Some((batch, "output")) => Self::Output(id(batch)),
            Some(_) => Self::Other,
        }
    }

    /// Whether it names a batch of ours, whatever else the request says.
    pub fn is_ours(rest: &str) -> bool {
        rest.strip_prefix('/').is_some_and(|rest| rest.starts_with(PREFIX))
    }
}

/// What is no id is told of as it was sent, up to a length.
fn id(text: &str) -> Result<Uuid, String> {
    let found = text.strip_prefix(PREFIX).filter(|id| id.len() == 36).and_then(|id| Uuid::try_parse(id).ok());
    found.ok_or_else(|| text.chars().take(64).collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchQuery {
    pub limit: i64,
    /// The last batch of the page before. It may be gone since: ids are in the order of time.
    pub after: Option<Uuid>,
    pub with_provider_details: bool,
}

impl BatchQuery {
    pub fn parse(query: &str) -> Result<Self, Refusal> {
        let mut asked = Self { limit: USUAL, after: None, with_provider_details: false };
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MOST).contains(limit));
                    asked.limit = limit.ok_or_else(|| Refusal::invalid_query("limit", "a number from 1 to 100"))?;
                }
                "after" => {
                    let after = id(&value).map_err(|_| Refusal::invalid_query("after", "the id of a batch"))?;
                    asked.after = Some(after);
                }
                "include_provider_details" => {
                    asked.with_provider_details = match &*value {
                        "true" => true,
                        "false" => false,
                        _ => return Err(Refusal::invalid_query("include_provider_details", "true or false")),
                    }
                }
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
    fn a_path_names_all_batches_or_what_of_one_is_meant() {
        let batch = Uuid::nil();
        for (rest, expected) in [
            (String::new(), BatchPath::All),
            (format!("/gwb-{batch}"), BatchPath::One(Ok(batch))),
            (format!("/gwb-{batch}/cancel"), BatchPath::Cancel(Ok(batch))),
            (format!("/gwb-{batch}/output"), BatchPath::Output(Ok(batch))),
            ("/batch_1".into(), BatchPath::One(Err("batch_1".into()))),
            (format!("/gwb-{batch}/rows"), BatchPath::Other),
            (format!("/gwb-{batch}/output/x"), BatchPath::Other),
            ("x".into(), BatchPath::Other),
        ] {
            assert_eq!(BatchPath::parse(&rest), expected, "{rest}");
        }
        assert!(BatchPath::is_ours("/gwb-x/output") && !BatchPath::is_ours("/batch_1") && !BatchPath::is_ours(""));
    }

    #[test]
    fn parameters_are_read_and_bounded() {
        let id = Uuid::nil();
        let all = BatchQuery { limit: USUAL, after: None, with_provider_details: false };
        assert_eq!(BatchQuery::parse("other=1").unwrap(), all);
        let asked = format!("limit=2&after=gwb-{id}&include_provider_details=true");
        let expected = BatchQuery { limit: 2, after: Some(id), with_provider_details: true };
        assert_eq!(BatchQuery::parse(&asked).unwrap(), expected);
        for bad in ["limit=0", "limit=101", "limit=x", "after=batch_1", "include_provider_details=1"] {
            assert_eq!(BatchQuery::parse(bad).unwrap_err().status, 400, "{bad}");
        }
    }
}
