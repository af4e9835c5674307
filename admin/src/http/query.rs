//! Query strings: the first of two equal names counts, empty values are no values. Pages may be asked for in snake or
//! camel case, because both are in use. Names that no operation reads are found before a handler runs (`conform`).

use crate::http::{ApiError, FieldFault};
use std::borrow::Cow;
use uuid::Uuid;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

/// How many rows a list shows on a page, and the most that can be asked for.
#[derive(Debug, Clone, Copy)]
pub struct PageSizes {
    pub default: i64,
    pub most: i64,
}

impl PageSizes {
    pub const USUAL: Self = Self { default: 50, most: 100 };
}

/// What a flag of a query can be.
pub const FLAGS: &[&str] = &["true", "false", "True", "False"];

impl Query {
    pub fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let pairs: Vec<_> = pairs.map(|(name, value)| (owned(name), owned(value))).collect();
        match pairs.iter().find(|(name, value)| name.contains('\0') || value.contains('\0')) {
            Some((name, _)) => {
                Err(ApiError::field(name.replace('\0', "\u{fffd}"), "must not contain the character NUL"))
            }
            None => Ok(Self(pairs)),
        }
    }

    /// Of what was not sent as a query.
    pub fn of(pairs: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// With the values of `other` for names that this one does not have.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        let missing: Vec<_> = other.0.into_iter().filter(|(name, _)| self.text(name).is_none()).collect();
        self.0.extend(missing);
        self
    }

    /// With another spelling of a name, unless this one was sent, too.
    #[must_use]
    pub fn spelt(mut self, from: &str, to: &str) -> Self {
        if self.text(to).is_none() {
            self.0.iter_mut().filter(|(name, _)| name == from).for_each(|(name, _)| to.clone_into(name));
        }
        self
    }

    /// Without a parameter that says nothing by this value.
    #[must_use]
    pub fn without(mut self, name: &str, value: &str) -> Self {
        self.0.retain(|(one, sent)| one != name || sent != value);
        self
    }

    /// Every name that was sent with a value.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.as_str())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(one, value)| one == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// A comma-separated list; empty when it was not sent.
    pub fn list(&self, name: &str) -> Vec<String> {
        let items = self.text(name).unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// As `list`, of which each item must be one of `allowed`.
    pub fn choices(&self, name: &str, allowed: &[&str]) -> Result<Vec<String>, ApiError> {
        let chosen = self.list(name);
        let wrong = chosen.iter().find(|one| !allowed.contains(&one.as_str()));
        match wrong {
            None => Ok(chosen),
            Some(wrong) => Err(ApiError::Faults(vec![FieldFault::not_among(name, wrong, allowed)])),
        }
    }

    /// As clients of several languages write it; not sent is false.
    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.text(name) {
            None | Some("false" | "False") => Ok(false),
            Some("true" | "True") => Ok(true),
            Some(other) => Err(ApiError::Faults(vec![FieldFault::not_among(name, other, FLAGS)])),
        }
    }

    pub fn uuid(&self, name: &str) -> Result<Option<Uuid>, ApiError> {
        let found = self.text(name).map(|text| text.parse());
        found.transpose().map_err(|_| ApiError::field(name, "must be a UUID"))
    }

    /// Size and offset of the page asked for; too large a size is clamped, a negative one refused.
    pub fn page(&self, sizes: PageSizes) -> Result<(i64, i64), ApiError> {
        let number = self.count("current_page", "currentPage")?.unwrap_or(0);
        let size = match self.count("page_size", "pageSize")? {
            None | Some(0) => sizes.default,
            Some(size) => size.min(sizes.most),
        };
        Ok((size, number.saturating_mul(size)))
    }

    fn count(&self, name: &str, alias: &str) -> Result<Option<i64>, ApiError> {
        let sent = [name, alias].into_iter().filter_map(|name| self.text(name).map(|text| (name, text)));
        let mut first = None;
        for (name, text) in sent {
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(ApiError::field(name, "must be a whole number of at least 0"));
            }
            first = first.or(Some(text.parse().unwrap_or(i64::MAX)));
        }
        Ok(first)
    }
}

fn owned(text: Cow<'_, str>) -> String {
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<(i64, i64), String> {
        Query::parse(Some(query)).unwrap().page(PageSizes::USUAL).map_err(|error| error.to_string())
    }

    #[test]
    fn pages_come_in_two_spellings_and_within_bounds() {
        for (query, expected) in [
            ("", (50, 0)),
            ("current_page=2&page_size=10", (10, 20)),
            ("currentPage=2&pageSize=10", (10, 20)),
            ("page_size=0", (50, 0)),
            ("page_size=", (50, 0)),
            ("page_size=101", (100, 0)),
            ("page_size=99999999999999999999", (100, 0)),
            ("current_page=1", (50, 50)),
            ("current_page=9223372036854775807", (50, i64::MAX)),
        ] {
            assert_eq!(page(query), Ok(expected), "{query}");
        }
        assert_eq!(page("pageSize=7&page_size=10"), Ok((10, 0)));
        for query in [
            "page_size=1&pageSize=-1",
            "page_size=-1",
            "current_page=-1",
            "page_size=ten",
            "pageSize=1.5",
            "current_page=%2B1",
        ] {
            assert!(page(query).is_err(), "{query}");
        }
    }

    #[test]
    fn values_are_decoded_and_a_nul_is_refused() {
        let query = Query::parse(Some("search=a%20b+c&status=active, archived&name=%F0%9F%A6%80&search=z")).unwrap();
        assert_eq!(query.text("search"), Some("a b c"));
        assert_eq!(query.list("status"), ["active", "archived"]);
        assert_eq!(query.text("name"), Some("🦀"));
        assert!(query.choices("status", &["active"]).is_err());
        assert!(Query::parse(Some("search=a%00")).is_err());
        assert!(Query::parse(Some("search=%FF%FE")).is_ok(), "what is no UTF-8 finds nothing");
    }
}
