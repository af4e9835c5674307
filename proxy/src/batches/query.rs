//! What a path and a query below `/batches` ask for.

use super::files::managed::{ManagedPath, SentId, asked_after, asked_limit};
use super::record::PREFIX;
use crate::request::refusal::Refusal;
use uuid::Uuid;

const USUAL: i64 = 20;
const MAX_PAGE: i64 = 100;

/// What stands after `/batches`. An id is a batch's, or nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchPath {
    All,
    One(SentId),
    Cancel(SentId),
    Output(SentId),
    Other,
}

impl BatchPath {
    pub fn parse(rest: &str) -> Self {
        match ManagedPath::parse(PREFIX, rest) {
            ManagedPath::All => Self::All,
            ManagedPath::One(id) => Self::One(id),
            ManagedPath::Below(id, "cancel") => Self::Cancel(id),
            ManagedPath::Below(id, "output") => Self::Output(id),
            ManagedPath::Below(..) | ManagedPath::Other => Self::Other,
        }
    }
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
                "limit" => asked.limit = asked_limit(&value, MAX_PAGE)?,
                "after" => asked.after = Some(asked_after(PREFIX, &value)?),
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
