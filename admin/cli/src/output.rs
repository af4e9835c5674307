//! How data is written: the format is chosen once, and every command hands over JSON and the columns that a reader wants first.

mod columns;
mod table;
pub mod yaml;

use crate::outcome::Failure;
pub use columns::{Column, printable, printable_lines};
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns.
    Table,
    /// Aligned columns, also those that are rarely looked for.
    Wide,
    /// The columns of a table as tab-separated values, without a head.
    Tsv,
    /// All columns as comma-separated values, with a head.
    Csv,
    Json,
    /// One JSON object a line.
    Jsonl,
    Yaml,
    /// Only what objects are called.
    Name,
}

#[derive(Debug, Clone)]
pub struct Output {
    pub format: Format,
    is_quiet: bool,
}

impl Output {
    pub fn new(format: Option<Format>, is_quiet: bool) -> Self {
        let usual = if std::io::stdout().is_terminal() { Format::Table } else { Format::Tsv };
        Self { format: format.unwrap_or(usual), is_quiet }
    }

    /// Whether the data is for a program and must be whole.
    pub fn is_structured(&self) -> bool {
        matches!(self.format, Format::Json | Format::Jsonl | Format::Yaml)
    }

    /// Objects of one kind.
    pub fn rows(&self, rows: &[Value], columns: &[Column]) -> Result<(), Failure> {
        let is_narrow = matches!(self.format, Format::Table | Format::Tsv);
        let shown: Vec<&Column> = columns.iter().filter(|column| !is_narrow || !column.is_wide).collect();
        let cells = || rows.iter().map(|row| shown.iter().map(|column| column.cell(row)).collect()).collect::<Vec<_>>();
        let head = || shown.iter().map(|column| column.title.to_owned()).collect::<Vec<_>>();
        match self.format {
            Format::Table | Format::Wide => write(&table::aligned(Some(head()), cells())),
            Format::Tsv => write(&table::tab_separated(&cells())),
            Format::Csv => write(&table::comma_separated(&head(), &cells())),
            Format::Json => write(&(pretty(&Value::from(rows.to_vec())) + "\n")),
            Format::Jsonl => write(&rows.iter().map(|row| row.to_string() + "\n").collect::<String>()),
            Format::Yaml => write(&rows.iter().map(|row| format!("---\n{}", yaml::text(row))).collect::<String>()),
            Format::Name => write(&rows.iter().map(|row| name(row) + "\n").collect::<String>()),
        }
    }

    /// One object: its fields under each other.
    pub fn object(&self, object: &Value) -> Result<(), Failure> {
        let fields = || {
            let fields = object.as_object().into_iter().flatten();
            fields.map(|(name, value)| vec![name.clone(), columns::text(value)]).collect::<Vec<_>>()
        };
        match self.format {
            Format::Table | Format::Wide => write(&table::aligned(None, fields())),
            Format::Tsv => write(&table::tab_separated(&fields())),
            Format::Csv => write(&table::comma_separated(&["field".to_owned(), "value".to_owned()], &fields())),
            Format::Json => write(&(pretty(object) + "\n")),
            Format::Jsonl => write(&(object.to_string() + "\n")),
            Format::Yaml => write(&yaml::text(object)),
            Format::Name => write(&(name(object) + "\n")),
        }
    }

    /// The next useful command.
    pub fn hint(&self, command: &str) {
        if !self.is_quiet {
            eprintln!("next: {command}");
        }
    }
}

fn name(row: &Value) -> String {
    let found = ["slug", "name", "id"].iter().find_map(|field| row[*field].as_str());
    printable(found.unwrap_or_default())
}

pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// One line of data.
pub fn line(text: &str) {
    let _ = write(&format!("{text}\n"));
}

/// Whether the reader of stdout has gone.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// A reader that has seen enough, as `head`, is no failure: the command goes on without it, and ends with its own number.
pub fn write(text: &str) -> Result<(), Failure> {
    if is_closed() {
        return Ok(());
    }
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            IS_CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        written => Ok(written?),
    }
}

/// Commands that write without an end stop then.
pub fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Writes what a model or an upstream said. On a terminal it keeps line breaks and tabs, and no other control.
pub fn write_foreign(text: &str) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        return write(text);
    }
    write(
        &text
            .chars()
            .filter(|letter| matches!(letter, '\n' | '\t') || !columns::is_control(*letter))
            .collect::<String>(),
    )
}

/// Whether differences are coloured.
pub fn has_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
