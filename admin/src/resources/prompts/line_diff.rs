//! The lines that went and came between two texts: the shortest such list (Myers' greedy algorithm), as long as the texts
//! have something in common. Where they differ in more places than anybody reads, all lines between their common
//! beginning and end are shown as gone and come, which takes no time.

use serde::Serialize;
use std::collections::HashMap;

/// Changes beyond which texts are not compared line by line. Time grows with this and the length, memory with its square.
const MAX_EDITS: usize = 1000;
/// Lines on one side beyond which neither.
const MAX_LINES: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineChange {
    pub op: LineOperation,
    /// Its number from 1: in the old text for what went, in the new one for what came.
    pub line: usize,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineOperation {
    Add,
    Remove,
}

pub fn line_changes(from: &str, to: &str) -> Vec<LineChange> {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('\n').collect(), to.split('\n').collect());
    let begin = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let (old, new) = (&from[begin..], &to[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let edits = shortest(old, new).unwrap_or_else(|| replaced(old.len(), new.len()));
    let shown = edits.into_iter().map(|(op, place)| {
        let text = if op == LineOperation::Add { new[place] } else { old[place] };
        LineChange { op, line: begin + place + 1, text: text.to_owned() }
    });
    shown.collect()
}

/// What happens to which line of the old or the new text.
type Edit = (LineOperation, usize);

fn replaced(old: usize, new: usize) -> Vec<Edit> {
    let gone = (0..old).map(|place| (LineOperation::Remove, place));
    gone.chain((0..new).map(|place| (LineOperation::Add, place))).collect()
}

fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Edit>> {
    if old.is_empty() || new.is_empty() || old.len().max(new.len()) > MAX_LINES {
        return None;
    }
    // Lines as numbers, which are compared faster.
    let mut numbers = HashMap::new();
    let mut numbered = |lines: &[&str]| -> Vec<usize> {
        let known = lines.iter().map(|line| {
            let next = numbers.len();
            *numbers.entry((*line).to_owned()).or_insert(next)
        });
        known.collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    let mut search = Search::new(old.len() + new.len());
    for edits in 0..=search.most {
        if search.step(edits, &old, &new) {
            return Some(search.path(edits, old.len(), new.len()));
        }
    }
    None
}

/// The furthest place in the old text that can be reached on each diagonal (place in the old text less place in the new)
/// with so many edits, and what it was before each edit, to find the way back.
struct Search {
    most: usize,
    furthest: Vec<usize>,
    before: Vec<Vec<usize>>,
}

impl Search {
    fn new(lines: usize) -> Self {
        let most = lines.min(MAX_EDITS);
        Self { most, furthest: vec![0; 2 * most + 3], before: Vec::new() }
    }

    /// One edit more; whether both texts are at their end. Diagonals are counted from `-edits`: the n-th is `n - edits`.
    fn step(&mut self, edits: usize, old: &[usize], new: &[usize]) -> bool {
        let middle = self.most + 1;
        self.before.push(self.furthest[middle - edits..=middle + edits].to_vec());
        for n in (0..=2 * edits).step_by(2) {
            let at = middle - edits + n;
            let mut x = if is_addition(n, edits, |n| self.furthest[middle - edits + n]) {
                self.furthest[at + 1]
            } else {
                self.furthest[at - 1] + 1
            };
            let mut y = x + edits - n;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            self.furthest[at] = x;
            if x >= old.len() && y >= new.len() {
                return true;
            }
        }
        false
    }

    /// The edits, in the order of the texts.
    fn path(&self, edits: usize, mut x: usize, mut y: usize) -> Vec<Edit> {
        let mut found = Vec::with_capacity(edits);
        for edits in (1..=edits).rev() {
            let before = &self.before[edits];
            let n = x + edits - y;
            let is_addition = is_addition(n, edits, |n| before[n]);
            let from = if is_addition { n + 1 } else { n - 1 };
            x = before[from];
            y = x + edits - from;
            found.push(if is_addition { (LineOperation::Add, y) } else { (LineOperation::Remove, x) });
        }
        found.reverse();
        found
    }
}

/// Whether the diagonal is reached from the one above it, by a line of the new text, and not from the one below.
fn is_addition(n: usize, edits: usize, furthest: impl Fn(usize) -> usize) -> bool {
    n == 0 || (n != 2 * edits && furthest(n - 1) < furthest(n + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(from: &str, to: &str) -> Vec<String> {
        let sign = |op| if op == LineOperation::Add { '+' } else { '-' };
        line_changes(from, to).iter().map(|one| format!("{}{} {}", sign(one.op), one.line, one.text)).collect()
    }

    #[test]
    fn lines_that_stay_are_not_shown() {
        for (from, to, expected) in [
            ("a\nb", "a\nb", vec![]),
            ("a\nb\nc", "a\nx\nc", vec!["-2 b", "+2 x"]),
            ("a\nc", "a\nb\nc", vec!["+2 b"]),
            ("a\nb\nc", "c", vec!["-1 a", "-2 b"]),
            ("a", "a\n", vec!["+2 "]),
            ("a\nb\nc\nd", "b\nc\nx\nd\ne", vec!["-1 a", "+3 x", "+5 e"]),
            ("", "a", vec!["-1 ", "+1 a"]),
        ] {
            assert_eq!(written(from, to), expected, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn texts_that_have_little_in_common_are_replaced_without_a_search() {
        let long = |word: &str| (0..30_000).map(|n| format!("{word}{n}\n")).collect::<String>();
        let found = line_changes(&format!("same\n{}end", long("a")), &format!("same\n{}end", long("b")));
        assert_eq!(found.len(), 60_000);
        assert_eq!((found[0].line, found[0].text.as_str()), (2, "a0"));
        let newlines = "\n".repeat(1 << 20);
        assert_eq!(line_changes(&newlines, &format!("{newlines}\n")).len(), 1);
        let apart = |word: &str| (0..1500).map(|n| format!("{word}{n}\n")).collect::<String>();
        assert_eq!(line_changes(&apart("a"), &apart("b")).len(), 3000, "more edits than are looked for");
    }

    /// Takes out what went and puts in what came.
    fn patched(from: &str, changes: &[LineChange]) -> String {
        let gone: Vec<usize> =
            changes.iter().filter(|one| one.op == LineOperation::Remove).map(|one| one.line).collect();
        let stayed = from.split('\n').enumerate().filter(|(place, _)| !gone.contains(&(place + 1)));
        let mut lines: Vec<&str> = stayed.map(|(_, line)| line).collect();
        for change in changes.iter().filter(|one| one.op == LineOperation::Add) {
            lines.insert(change.line - 1, &change.text);
        }
        lines.join("\n")
    }

    /// All texts of up to four lines of two kinds, and some longer ones.
    #[test]
    fn the_changes_make_the_new_text_of_the_old() {
        let mut texts: Vec<Vec<&str>> = vec![vec![""]];
        for length in 0..4 {
            let longer: Vec<_> = texts.iter().filter(|text| text.len() == length + 1).cloned().collect();
            texts.extend(longer.iter().flat_map(|text| ["a", "b"].map(|line| [text.as_slice(), &[line]].concat())));
        }
        texts.extend([3, 5, 7].map(|step| (0..60).map(|n| if n % step == 0 { "b" } else { "a" }).collect::<Vec<_>>()));
        for from in texts.iter().map(|text| text.join("\n")) {
            for to in texts.iter().map(|text| text.join("\n")) {
                assert_eq!(patched(&from, &line_changes(&from, &to)), to, "{from:?} to {to:?}");
            }
        }
    }
}
