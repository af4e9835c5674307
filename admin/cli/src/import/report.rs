//! What an import tells people: what became of each line, in Markdown that reads well in a terminal, too.

use super::result::{Import, Line, Outcome};

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
            text += &format!("| {} | `{}` | {} |\n", line.location.line, cell(&line.location.path), cell(what));
        }
    }
    text
}

/// Names come from a foreign file: they must end no cell of the table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r', '`'], " ")
}
