//! How logs are written into files: a line of JSON each, or a line of CSV.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Jsonl,
    Csv,
}

impl ExportFormat {
    pub const NAMES: [&str; 2] = ["jsonl", "csv"];

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }

    /// What a file begins with.
    pub fn head(self, fields: &[String]) -> String {
        match self {
            Self::Jsonl => String::new(),
            Self::Csv => line(fields.iter().map(|name| quoted(name))),
        }
    }

    /// One log; `values` are in the order of the fields.
    pub fn line(self, fields: &[String], values: Vec<Value>) -> String {
        match self {
            Self::Jsonl => {
                let row: Map<String, Value> = fields.iter().cloned().zip(values).collect();
                format!("{}\n", Value::Object(row))
            }
            Self::Csv => line(values.iter().map(cell)),
        }
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let mut line = cells.collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(&harmless(text)),
        Value::Array(_) | Value::Object(_) => quoted(&value.to_string()),
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Spreadsheets run what looks like a formula, and these texts come from anybody.
fn harmless(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_line_of_json_has_the_fields_in_the_order_they_were_asked_for() {
        let line = ExportFormat::Jsonl.line(&fields(&["id", "cost"]), vec![json!("a\nb"), Value::Null]);
        assert_eq!(line, "{\"id\":\"a\\nb\",\"cost\":null}\n");
        assert_eq!(ExportFormat::Jsonl.head(&fields(&["id"])), "");
    }

    #[test]
    fn a_cell_of_csv_is_quoted_when_it_must_be_and_never_a_formula() {
        for (value, expected) in [
            (json!(null), ""),
            (json!(-1.5), "-1.5"),
            (json!(true), "true"),
            (json!("plain text"), "plain text"),
            (json!("a,\"b\"\n"), "\"a,\"\"b\"\"\n\""),
            (json!({ "a": "b" }), "\"{\"\"a\"\":\"\"b\"\"}\""),
            (json!("=cmd()"), "'=cmd()"),
            (json!("-1"), "'-1"),
            (json!("@x,y"), "\"'@x,y\""),
        ] {
            assert_eq!(cell(&value), expected, "{value}");
        }
        assert_eq!(ExportFormat::Csv.head(&fields(&["id", "cost"])), "id,cost\r\n");
        assert_eq!(ExportFormat::Csv.line(&fields(&["id", "cost"]), vec![json!("x"), json!(2)]), "x,2\r\n");
    }
}
