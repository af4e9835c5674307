//! SCIM's filters (RFC 7644, 3.4.2.2) as a tree: what a list or a path asks for. Bounded in length, depth and number of
//! comparisons, because the identity provider writes them; nothing of the text ever becomes SQL.

use crate::http::ApiError;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};

const MAX_FILTER: usize = 4096;
const MAX_COMPARISONS: usize = 64;
const MAX_DEPTH: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
    Not(Box<Filter>),
    Present(String),
    Compare { attribute: String, operator: Operator, value: Literal },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Text(String),
    Bool(bool),
    Null,
    Number(f64),
}

impl Literal {
    /// Identity providers write booleans as texts, too.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }

    pub fn as_time(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Text(text) => DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc()),
            _ => None,
        }
    }
}

/// The refusal of a filter.
pub fn invalid(detail: impl Into<String>) -> ApiError {
    ApiError::Scim { status: StatusCode::BAD_REQUEST, kind: "invalidFilter", detail: detail.into() }
}

pub fn parse(text: &str) -> Result<Filter, ApiError> {
    if text.len() > MAX_FILTER {
        return Err(invalid("The filter is too long"));
    }
    let mut parser = Parser { rest: text, comparisons: 0 };
    let filter = parser.any_of("", 0)?;
    match parser.rest.trim_start() {
        "" => Ok(filter),
        _ => Err(invalid("The filter goes on where it should end")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    comparisons: usize,
}

impl<'a> Parser<'a> {
    /// `prefix` is the attribute whose brackets the parser is in, with a dot.
    fn any_of(&mut self, prefix: &str, depth: usize) -> Result<Filter, ApiError> {
        if depth > MAX_DEPTH {
            return Err(invalid("The filter is nested too deeply"));
        }
        let mut left = self.all_of(prefix, depth)?;
        while self.takes_word("or") {
            left = Filter::Or(Box::new(left), Box::new(self.all_of(prefix, depth)?));
        }
        Ok(left)
    }

    fn all_of(&mut self, prefix: &str, depth: usize) -> Result<Filter, ApiError> {
        let mut left = self.one(prefix, depth)?;
        while self.takes_word("and") {
            left = Filter::And(Box::new(left), Box::new(self.one(prefix, depth)?));
        }
        Ok(left)
    }

    fn one(&mut self, prefix: &str, depth: usize) -> Result<Filter, ApiError> {
        if self.takes_word("not") {
            self.expects('(')?;
            let inner = self.any_of(prefix, depth + 1)?;
            self.expects(')')?;
            return Ok(Filter::Not(Box::new(inner)));
        }
        if self.takes('(') {
            let inner = self.any_of(prefix, depth + 1)?;
            self.expects(')')?;
            return Ok(inner);
        }
        let attribute = self.name()?;
        if prefix.is_empty() && self.takes('[') {
            let inner = self.any_of(&format!("{attribute}."), depth + 1)?;
            self.expects(']')?;
            return Ok(inner);
        }
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            return Err(invalid("The filter has too many comparisons"));
        }
        self.comparison(format!("{prefix}{attribute}"))
    }

    fn comparison(&mut self, attribute: String) -> Result<Filter, ApiError> {
        let operator = match self.name()?.to_ascii_lowercase().as_str() {
            "pr" => return Ok(Filter::Present(attribute)),
            "eq" => Operator::Equal,
            "ne" => Operator::NotEqual,
            "co" => Operator::Contains,
            "sw" => Operator::StartsWith,
            "ew" => Operator::EndsWith,
            "gt" => Operator::Greater,
            "ge" => Operator::GreaterOrEqual,
            "lt" => Operator::Less,
            "le" => Operator::LessOrEqual,
            _ => return Err(invalid("The filter has an operator that does not exist")),
        };
        Ok(Filter::Compare { attribute, operator, value: self.literal()? })
    }

    fn literal(&mut self) -> Result<Literal, ApiError> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('"') {
            return self.text();
        }
        match self.name()?.to_ascii_lowercase().as_str() {
            "true" => Ok(Literal::Bool(true)),
            "false" => Ok(Literal::Bool(false)),
            "null" => Ok(Literal::Null),
            number => match number.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Literal::Number(number)),
                _ => Err(invalid("A value in the filter must be a text in quotes, a number, true, false or null")),
            },
        }
    }

    /// A text as JSON writes it.
    fn text(&mut self) -> Result<Literal, ApiError> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let (end, _) = end.ok_or_else(|| invalid("A text in the filter does not end"))?;
        let (quoted, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        match serde_json::from_str::<String>(quoted) {
            Ok(text) if !text.contains('\0') => Ok(Literal::Text(text)),
            _ => Err(invalid("A text in the filter is not valid")),
        }
    }

    fn name(&mut self) -> Result<&'a str, ApiError> {
        self.rest = self.rest.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '$' | '+');
        let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(invalid("The filter has nothing where a name should be"));
        }
        self.rest = rest;
        Ok(name)
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some((found, after)) = rest.split_at_checked(word.len()) else { return false };
        let is_whole = after.starts_with(|c: char| c.is_whitespace() || c == '(');
        if found.eq_ignore_ascii_case(word) && is_whole {
            self.rest = after;
            return true;
        }
        false
    }

    fn takes(&mut self, mark: char) -> bool {
        match self.rest.trim_start().strip_prefix(mark) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    fn expects(&mut self, mark: char) -> Result<(), ApiError> {
        if self.takes(mark) { Ok(()) } else { Err(invalid(format!("The filter lacks a `{mark}`"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(attribute: &str, value: &str) -> Filter {
        Filter::Compare { attribute: attribute.into(), operator: Operator::Equal, value: Literal::Text(value.into()) }
    }

    #[test]
    fn and_binds_closer_than_or_and_brackets_name_the_attribute() {
        let (a, b, c) = (equal("a", "1"), equal("b", "2"), equal("c", "3"));
        let both = Filter::And(Box::new(b), Box::new(c));
        assert_eq!(parse(r#"a eq "1" or b EQ "2" and c eq "3""#).unwrap(), Filter::Or(Box::new(a), Box::new(both)));
        assert_eq!(parse(r#"emails[value eq "x"]"#).unwrap(), equal("emails.value", "x"));
        assert_eq!(parse(r#"not (a pr)"#).unwrap(), Filter::Not(Box::new(Filter::Present("a".into()))));
        assert_eq!(parse(r#"userName eq "a\"b' OR 1=1 --""#).unwrap(), equal("userName", "a\"b' OR 1=1 --"));
    }

    #[test]
    fn what_is_no_filter_or_too_large_is_refused() {
        let many = vec!["a pr"; 65].join(" or ");
        let deep = format!("{}a pr{}", "(".repeat(40), ")".repeat(40));
        let long = format!("a eq \"{}\"", "x".repeat(5000));
        for text in ["", "a", "a eq", "a xx 1", "a eq \"", "a eq x", "(a pr", "a pr)", "a[b pr", &many, &deep, &long] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
