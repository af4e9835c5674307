//! Rows as text: aligned for people, separated by tabs or commas for programs.

/// Two spaces between columns; nothing behind the last.
pub fn aligned(head: Option<Vec<String>>, rows: Vec<Vec<String>>) -> String {
    let lines: Vec<Vec<String>> =
        head.map(|head| head.iter().map(|title| title.to_uppercase()).collect()).into_iter().chain(rows).collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

pub fn tab_separated(rows: &[Vec<String>]) -> String {
    rows.iter().map(|row| row.join("\t") + "\n").collect()
}

/// RFC 4180.
pub fn comma_separated(head: &[String], rows: &[Vec<String>]) -> String {
    let cell = |text: &String| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.clone(),
    };
    let line = |row: &[String]| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\r\n";
    std::iter::once(line(head)).chain(rows.iter().map(|row| line(row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let text = aligned(Some(row("name", "state")), vec![row("größer", "on"), row("b", "")]);
        assert_eq!(text, "NAME    STATE\ngrößer  on\nb\n");
    }

    #[test]
    fn commas_and_quotes_are_quoted() {
        let rows = vec![vec!["a,b".to_owned(), "say \"x\"".to_owned()]];
        assert_eq!(comma_separated(&["n".into(), "m".into()], &rows), "n,m\r\n\"a,b\",\"say \"\"x\"\"\"\r\n");
    }
}
