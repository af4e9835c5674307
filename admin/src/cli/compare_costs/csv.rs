//! Rows of comma-separated values (RFC 4180): fields in quotes may hold commas, quotes and ends of lines.

use std::iter::Peekable;
use std::str::Chars;

/// The most rows that are read.
pub const MAX_ROWS: usize = 1_000_000;
const MAX_COLUMNS: usize = 256;

/// One row, with the line that it begins on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRow {
    pub line: usize,
    pub fields: Vec<String>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UnreadableCsv {
    #[error("line {0}: a quote is opened and not closed")]
    OpenQuote(usize),
    #[error("line {0}: more than {MAX_COLUMNS} columns")]
    TooManyColumns(usize),
    #[error("more than {MAX_ROWS} rows")]
    TooManyRows,
}

/// The rows of a text, one at a time. Empty lines are passed over.
pub struct CsvRows<'t> {
    chars: Peekable<Chars<'t>>,
    line: usize,
    count: usize,
}

impl<'t> CsvRows<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { chars: text.trim_start_matches('\u{feff}').chars().peekable(), line: 1, count: 0 }
    }

    /// The row that begins here.
    fn read(&mut self) -> Result<CsvRow, UnreadableCsv> {
        let mut row = CsvRow { line: self.line, fields: Vec::new() };
        let (mut field, mut is_quoted) = (String::new(), false);
        while let Some(char) = self.chars.next() {
            self.line += usize::from(char == '\n');
            match char {
                '"' if is_quoted && self.chars.peek() == Some(&'"') => {
                    self.chars.next();
                    field.push('"');
                }
                '"' if is_quoted => is_quoted = false,
                char if is_quoted => field.push(char),
                '"' if field.is_empty() => is_quoted = true,
                ',' => row.fields.push(std::mem::take(&mut field)),
                '\n' => break,
                // Lines end with it, or it is nothing.
                '\r' => {}
                char => field.push(char),
            }
            if row.fields.len() >= MAX_COLUMNS {
                return Err(UnreadableCsv::TooManyColumns(row.line));
            }
        }
        if is_quoted {
            return Err(UnreadableCsv::OpenQuote(row.line));
        }
        row.fields.push(field);
        Ok(row)
    }
}

impl Iterator for CsvRows<'_> {
    type Item = Result<CsvRow, UnreadableCsv>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.chars.peek()?;
            let row = match self.read() {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            if row.fields.iter().all(String::is_empty) && row.fields.len() == 1 {
                continue;
            }
            self.count += 1;
            // The head line is none of them.
            return Some(if self.count > MAX_ROWS + 1 { Err(UnreadableCsv::TooManyRows) } else { Ok(row) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<CsvRow>, UnreadableCsv> {
        CsvRows::new(text).collect()
    }

    #[test]
    fn quotes_hold_commas_quotes_and_ends_of_lines() {
        let text = "\u{feff}a,b\r\n\"x, y\",\"say \"\"hi\"\"\"\n\n\"two\nlines\",3\n,\nlast";
        let expected: &[(usize, &[&str])] = &[
            (1, &["a", "b"]),
            (2, &["x, y", "say \"hi\""]),
            (4, &["two\nlines", "3"]),
            (6, &["", ""]),
            (7, &["last"]),
        ];
        let found = rows(text).unwrap();
        let found: Vec<(usize, Vec<&str>)> =
            found.iter().map(|row| (row.line, row.fields.iter().map(String::as_str).collect())).collect();
        let expected: Vec<(usize, Vec<&str>)> =
            expected.iter().map(|(line, fields)| (*line, fields.to_vec())).collect();
        assert_eq!(found, expected);
        assert!(rows("").unwrap().is_empty());
    }

    #[test]
    fn what_goes_beyond_a_bound_is_refused_with_its_line() {
        assert_eq!(rows("a\n\"b\nc"), Err(UnreadableCsv::OpenQuote(2)));
        assert_eq!(rows(&format!("a\n{}", ",".repeat(300))), Err(UnreadableCsv::TooManyColumns(2)));
        assert_eq!(rows(&"1\n".repeat(MAX_ROWS + 2)), Err(UnreadableCsv::TooManyRows));
    }
}
