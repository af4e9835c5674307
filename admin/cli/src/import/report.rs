//! What an import tells people: what became of each line, in Markdown that reads well in a terminal, too.

use super::result::{Import, Line, Outcome};
use crate::output::printable;

pub fn markdown(import: &Import) -> String {
    let mut lines: Vec<_> = import.lines.iter().collect();
    lines.sort_by(|one, other| one.location.cmp(&other.location));
    let left = |line: &&_| matches!(line, Line { outcome: Outcome::Unmapped(_), .. });
    let (left, mapped): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| left(line));
    let mut text =
        format!("{} objects, {} fields mapped, {} to look at.\n", import.documents.len(), mapped.len(), left.len());
    for (title, lines) in [("To look at", left), ("Mapped", mapped)] {
        if lines.is_empty() {
            continue;
        }
        text += &format!("\n## {title}\n\n| Line | Field | |\n|---:|---|---|\n");
        for line in lines {
            let (Outcome::Mapped(what) | Outcome::Unmapped(what)) = &line.outcome;
            text += &format!("| {} | {} | {} |\n", line.location.line, cell(&code(&line.location.path)), cell(what));
        }
    }
    text
}

/// A name of the foreign file as code, which it cannot end.
pub fn code(name: &str) -> String {
    format!("`{}`", name.replace('`', "'"))
}

/// Foreign names must end no cell, begin no tag and move no cursor. Tags mean nothing inside of code.
fn cell(text: &str) -> String {
    let text = printable(text).replace('|', "\\|");
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| if at.is_multiple_of(2) { part.replace('<', "&lt;") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_names_break_neither_the_table_nor_the_terminal() {
        assert_eq!(cell(&code("a|b`c\u{1b}[2J\n<i>")), "`a\\|b'c [2J <i>`");
        assert_eq!(cell("set `X` to <b>"), "set `X` to &lt;b>");
    }
}
