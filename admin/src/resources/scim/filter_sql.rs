//! A filter as a condition in SQL. Attributes are looked up in a table of what can be asked for; values become
//! parameters, always as text.

use super::filter::{Filter, Literal, Operator, invalid};
use crate::http::ApiError;
use chrono::SecondsFormat;

/// An attribute that a list can be asked for.
pub struct Attribute {
    /// As the schema spells it; compared without regard to case.
    pub name: &'static str,
    pub column: Column,
}

/// How it is stored. The texts are ours, never a caller's.
#[derive(Clone, Copy)]
pub enum Column {
    /// Compared without regard to case.
    Text(&'static str),
    Exact(&'static str),
    Bool(&'static str),
    Time(&'static str),
    /// Several texts: the rows that hold them, and the text in each.
    Many {
        rows: &'static str,
        text: &'static str,
    },
}

/// Its values are `$first`, `$first + 1` and so on.
#[derive(Debug)]
pub struct Condition {
    pub sql: String,
    pub values: Vec<String>,
}

pub fn condition(filter: &Filter, attributes: &[Attribute], first: usize) -> Result<Condition, ApiError> {
    let mut values = Vec::new();
    let sql = written(filter, attributes, first, &mut values)?;
    Ok(Condition { sql, values })
}

fn written(
    filter: &Filter,
    attributes: &[Attribute],
    first: usize,
    values: &mut Vec<String>,
) -> Result<String, ApiError> {
    Ok(match filter {
        Filter::And(left, right) => {
            let left = written(left, attributes, first, values)?;
            format!("({left} AND {})", written(right, attributes, first, values)?)
        }
        Filter::Or(left, right) => {
            let left = written(left, attributes, first, values)?;
            format!("({left} OR {})", written(right, attributes, first, values)?)
        }
        Filter::Not(inner) => format!("(NOT {})", written(inner, attributes, first, values)?),
        Filter::Present(attribute) => present(column(attribute, attributes)?),
        Filter::Compare { attribute, operator, value: Literal::Null } => {
            let is_there = present(column(attribute, attributes)?);
            match operator {
                Operator::Equal => format!("(NOT {is_there})"),
                Operator::NotEqual => is_there,
                _ => return Err(invalid("null can only be compared by eq and ne")),
            }
        }
        Filter::Compare { attribute, operator, value } => {
            let mut parameter = |value: String| {
                values.push(value);
                format!("${}::text", first + values.len() - 1)
            };
            compared(column(attribute, attributes)?, *operator, value, &mut parameter)?
        }
    })
}

fn column(name: &str, attributes: &[Attribute]) -> Result<Column, ApiError> {
    // A schema's name may stand before the attribute's: `urn:ietf:params:scim:schemas:core:2.0:User:userName`.
    let name = if name.starts_with("urn:") { name.rsplit(':').next().unwrap_or_default() } else { name };
    let found = attributes.iter().find(|one| one.name.eq_ignore_ascii_case(name));
    found.map(|one| one.column).ok_or_else(|| invalid("The filter names an attribute that cannot be asked for"))
}

fn present(column: Column) -> String {
    match column {
        Column::Text(sql) | Column::Exact(sql) | Column::Bool(sql) | Column::Time(sql) => {
            format!("({sql} IS NOT NULL)")
        }
        Column::Many { rows, text } => format!("EXISTS (SELECT {rows} AND {text} IS NOT NULL)"),
    }
}

fn compared(
    column: Column,
    operator: Operator,
    value: &Literal,
    parameter: &mut impl FnMut(String) -> String,
) -> Result<String, ApiError> {
    match column {
        Column::Text(sql) => {
            let parameter = format!("lower({})", parameter(text(value)?));
            Ok(texts(&format!("lower({sql})"), operator, &parameter))
        }
        Column::Exact(sql) => Ok(texts(sql, operator, &parameter(text(value)?))),
        Column::Many { rows, text: sql } => {
            let parameter = format!("lower({})", parameter(text(value)?));
            let (operator, is_negated) = match operator {
                Operator::NotEqual => (Operator::Equal, "NOT "),
                operator => (operator, ""),
            };
            let matches = texts(&format!("lower({sql})"), operator, &parameter);
            Ok(format!("({is_negated}EXISTS (SELECT {rows} AND {matches}))"))
        }
        Column::Bool(sql) => {
            let value = value.as_bool().ok_or_else(|| invalid("This attribute is true or false"))?;
            match operator {
                Operator::Equal => Ok(format!("({sql} = {value})")),
                Operator::NotEqual => Ok(format!("({sql} <> {value})")),
                _ => Err(invalid("true and false can only be compared by eq and ne")),
            }
        }
        Column::Time(sql) => {
            let time = value.as_time().ok_or_else(|| invalid("This attribute is a time, as 2026-01-15T10:30:00Z"))?;
            let time = parameter(time.to_rfc3339_opts(SecondsFormat::Micros, true));
            match sign(operator) {
                Some(sign) => Ok(format!("({sql} {sign} {time}::timestamptz)")),
                None => Err(invalid("Times can only be compared by eq, ne, gt, ge, lt and le")),
            }
        }
    }
}

fn text(value: &Literal) -> Result<String, ApiError> {
    match value {
        Literal::Text(text) => Ok(text.clone()),
        _ => Err(invalid("This attribute is a text")),
    }
}

fn texts(sql: &str, operator: Operator, parameter: &str) -> String {
    match operator {
        Operator::NotEqual => format!("({sql} IS DISTINCT FROM {parameter})"),
        Operator::Contains => format!("(coalesce(strpos({sql}, {parameter}), 0) > 0)"),
        Operator::StartsWith => format!("coalesce(starts_with({sql}, {parameter}), false)"),
        Operator::EndsWith => format!("coalesce(right({sql}, length({parameter})) = {parameter}, false)"),
        other => format!("coalesce({sql} {} {parameter}, false)", sign(other).unwrap_or("=")),
    }
}

fn sign(operator: Operator) -> Option<&'static str> {
    match operator {
        Operator::Equal => Some("="),
        Operator::NotEqual => Some("<>"),
        Operator::Greater => Some(">"),
        Operator::GreaterOrEqual => Some(">="),
        Operator::Less => Some("<"),
        Operator::LessOrEqual => Some("<="),
        Operator::Contains | Operator::StartsWith | Operator::EndsWith => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::parse;
    use super::*;

    const KNOWN: &[Attribute] = &[
        Attribute { name: "userName", column: Column::Text("u.name") },
        Attribute { name: "active", column: Column::Bool("u.active") },
    ];

    #[test]
    fn values_are_parameters_whatever_they_contain() {
        let filter = parse(r#"username eq "'; DROP TABLE users; --" and active eq "False""#).unwrap();
        let condition = condition(&filter, KNOWN, 3).unwrap();
        assert_eq!(condition.sql, "(coalesce(lower(u.name) = lower($3::text), false) AND (u.active = false))");
        assert_eq!(condition.values, ["'; DROP TABLE users; --"]);
    }

    #[test]
    fn only_known_attributes_and_fitting_operators_are_taken() {
        for text in ["password pr", "active gt true", "active eq \"x\"", "userName eq 7", "userName gt null"] {
            assert!(condition(&parse(text).unwrap(), KNOWN, 1).is_err(), "{text}");
        }
    }
}
