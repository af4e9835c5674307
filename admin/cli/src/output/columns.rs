//! Which part of an object stands in which column, and how a value is written in a cell.

use serde_json::Value;

#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub title: &'static str,
    /// Fields on the way to the value, parted by dots; the first of several ways, parted by `|`, that leads to one.
    pub path: &'static str,
    pub is_wide: bool,
}

impl Column {
    pub const fn new(title: &'static str, path: &'static str) -> Self {
        Self { title, path, is_wide: false }
    }

    pub const fn wide(title: &'static str, path: &'static str) -> Self {
        Self { title, path, is_wide: true }
    }

    pub fn cell(&self, row: &Value) -> String {
        let ways = self.path.split('|').map(|path| path.split('.').fold(row, |value, field| &value[field]));
        ways.map(text).find(|text| !text.is_empty()).unwrap_or_default()
    }
}

pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => printable(text),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            printable(&items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
        }
        other => printable(&other.to_string()),
    }
}

/// A name that somebody else chose must neither move the cursor nor break a row.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if is_control(letter) { ' ' } else { letter }).collect()
}

/// The same for texts of several lines.
pub fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

/// Controls of the terminal, and those that turn the direction of a text, by which a name can look like another.
pub fn is_control(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cell_holds_the_first_value_that_is_there_on_one_line() {
        let row = json!({ "a": { "b": "x\ty\u{1b}[2J" }, "list": ["p", "q"], "n": 7, "empty": null });
        for (path, cell) in [("a.b", "x y [2J"), ("empty|n", "7"), ("list", "p,q"), ("none.at.all", "")] {
            assert_eq!(Column::new("", path).cell(&row), cell, "{path}");
        }
    }

    #[test]
    fn no_name_moves_the_cursor_or_turns_the_direction() {
        assert_eq!(printable("a\u{1b}]8;;x\u{7}b\u{202e}c\u{2066}d\u{9b}1m"), "a ]8;;x b c d 1m");
        assert_eq!(printable_lines("one\r\ntwo\u{1b}[2J\n  three"), "one\ntwo [2J\n  three");
    }
}
