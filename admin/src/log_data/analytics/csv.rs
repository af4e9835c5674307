//! Rows of an answer as comma-separated values, for whoever asks for `text/csv`: spreadsheets.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

pub const KIND: &str = "text/csv";

/// Whether the caller would rather have this than JSON.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = accepted.split(',').next().unwrap_or_default();
    first.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(KIND))
}

/// The rows under the names of the first of them.
pub fn response(rows: &[Value]) -> Response {
    const WITH_NAMES: HeaderValue = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    ([(header::CONTENT_TYPE, WITH_NAMES)], written(rows)).into_response()
}

/// The points of a graph as rows: those of each group where it is divided, and of both times where two are compared.
pub fn sheet(graph: &Value) -> Vec<Value> {
    let rows = match graph["groups"].as_array() {
        Some(groups) => groups.iter().flat_map(|group| points(group, &["value", "name", "is_rest"])).collect(),
        None => points(graph, &[]),
    };
    let rows = of_both_times(rows, graph.get("previous").map(|before| points(before, &[])));
    with_unit(rows, graph["cost_unit"].as_str())
}

/// Rows that have costs with what these are counted in.
pub fn with_unit(mut rows: Vec<Value>, unit: Option<&str>) -> Vec<Value> {
    if let Some(unit) = unit {
        rows.iter_mut().for_each(|row| row["cost_unit"] = unit.into());
    }
    rows
}

/// The rows of a list, and those of the time before.
pub fn list_sheet(answer: &Value) -> Vec<Value> {
    let rows = |list: &Value| list["data"].as_array().cloned().unwrap_or_default();
    with_unit(of_both_times(rows(answer), answer.get("previous").map(rows)), answer["cost_unit"].as_str())
}

/// A summary as a row, and that of the time before.
pub fn summary_sheet(answer: &Value) -> Vec<Value> {
    let before = answer.get("previous").map(|before| vec![before["summary"].clone()]);
    with_unit(of_both_times(vec![answer["summary"].clone()], before), answer["cost_unit"].as_str())
}

fn of_both_times(mut rows: Vec<Value>, before: Option<Vec<Value>>) -> Vec<Value> {
    let Some(mut before) = before else { return rows };
    rows.iter_mut().for_each(|row| row["period"] = "asked".into());
    before.iter_mut().for_each(|row| row["period"] = "previous".into());
    rows.append(&mut before);
    rows
}

/// The points of a graph, each with some fields of the whole.
fn points(graph: &Value, with: &[&str]) -> Vec<Value> {
    let points = graph["data_points"].as_array().into_iter().flatten();
    let row = |point: &Value| {
        let mut row = point.clone();
        for name in with.iter().filter(|name| graph.get(**name).is_some()) {
            row[*name] = graph[*name].clone();
        }
        row
    };
    points.map(row).collect()
}

fn written(rows: &[Value]) -> String {
    let empty = Map::new();
    // What kind of object a row is says the sheet as a whole.
    let first = rows.first().and_then(Value::as_object).unwrap_or(&empty);
    let names: Vec<&String> = first.keys().filter(|name| *name != "object").collect();
    let mut text = line(names.iter().map(|name| name.as_str().to_owned()));
    for row in rows {
        text.push_str(&line(names.iter().map(|name| cell(&row[name.as_str()]))));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let mut line = cells.map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => harmless(text),
        other => other.to_string(),
    }
}

/// A spreadsheet runs what begins like a formula, and names come from clients.
fn harmless(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_lines_under_their_names() {
        let rows = [
            json!({ "timestamp": "2026-01-15", "total": 3, "name": "a, \"b\"" }),
            json!({ "timestamp": "2026-01-16", "total": 0.5, "name": null }),
        ];
        let text = "timestamp,total,name\r\n2026-01-15,3,\"a, \"\"b\"\"\"\r\n2026-01-16,0.5,\r\n";
        assert_eq!(written(&rows), text);
        assert_eq!(written(&[]), "\r\n");
    }

    #[test]
    fn a_sheet_has_the_points_of_every_group_and_of_both_times() {
        let plain = json!({ "data_points": [{ "total": 3 }] });
        assert_eq!(sheet(&plain), [json!({ "total": 3 })]);
        let both = json!({
            "data_points": [{ "total": 3 }],
            "groups": [
                { "value": "gpt-4o", "is_rest": false, "data_points": [{ "total": 2 }] },
                { "value": null, "is_rest": true, "data_points": [{ "total": 1 }] },
            ],
            "previous": { "data_points": [{ "total": 5 }] },
        });
        let rows = [
            json!({ "total": 2, "value": "gpt-4o", "is_rest": false, "period": "asked" }),
            json!({ "total": 1, "value": null, "is_rest": true, "period": "asked" }),
            json!({ "total": 5, "period": "previous" }),
        ];
        assert_eq!(sheet(&both), rows);
    }

    #[test]
    fn a_sheet_of_a_summary_has_a_row_for_each_time() {
        assert_eq!(summary_sheet(&json!({ "summary": { "hits": 3 } })), [json!({ "hits": 3 })]);
        let both = json!({ "summary": { "hits": 3 }, "previous": { "summary": { "hits": 1 } } });
        let rows = [json!({ "hits": 3, "period": "asked" }), json!({ "hits": 1, "period": "previous" })];
        assert_eq!(summary_sheet(&both), rows);
    }

    #[test]
    fn no_text_is_run_by_a_spreadsheet() {
        for (text, expected) in [("=1+1", "'=1+1"), ("@x", "'@x"), ("-2", "'-2"), ("a=b", "a=b"), ("", "")] {
            assert_eq!(cell(&json!(text)), expected);
        }
        assert_eq!(cell(&json!(-2)), "-2", "a number is none");
    }

    #[test]
    fn only_who_asks_for_it_first_gets_it() {
        for (accept, expected) in [
            ("text/csv", true),
            ("text/csv; header=present, */*", true),
            ("TEXT/CSV", true),
            ("*/*", false),
            ("application/json, text/csv", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(is_wanted(&headers), expected, "{accept}");
        }
    }
}
