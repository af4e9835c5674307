//! What it takes to hold and to rewrite what is kept at providers.

use crate::engine::translate::memory_to_translate;
use crate::wire::codecs::jobs::{MAX_LINE_BYTES, MAX_LINES, MAX_OBJECT};

/// A request is read into values, and questions are written of them.
pub fn memory_of_fields(fields: &[u8]) -> usize {
    memory_to_translate(fields).saturating_mul(2)
}

/// An answer is read into values, and becomes others. A longer one is made of rows.
pub fn memory_of_answer(body: &[u8]) -> usize {
    match body.len() > MAX_OBJECT {
        true => memory_of_rows(body),
        false => memory_to_translate(body).saturating_mul(3),
    }
}

/// Rows are rewritten one by one: all of the text, something around each row, and the values of the largest.
pub fn memory_of_rows(file: &[u8]) -> usize {
    const AROUND: usize = 512;
    let lines = file.split(|byte| *byte == b'\n').take(MAX_LINES);
    let (mut count, mut largest) = (0_usize, 0);
    for line in lines.filter(|line| line.len() <= MAX_LINE_BYTES) {
        count += 1;
        largest = largest.max(memory_to_translate(line));
    }
    (file.len() * 2).saturating_add(count * AROUND).saturating_add(largest.saturating_mul(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_values_count_for_what_they_take() {
        let numbers = ["[", &"0,".repeat(100_000), "0]"].concat();
        assert!(memory_of_fields(numbers.as_bytes()) > 25_000_000);
        assert!(memory_of_answer(numbers.as_bytes()) > 40_000_000);
        let rows = [numbers.as_str(), "{}"].join("\n");
        assert!(memory_of_rows(rows.as_bytes()) > 40_000_000, "the largest row counts");
        let short = "{}\n".repeat(1000);
        assert!(memory_of_rows(short.as_bytes()) > 500_000, "an answer is written for each row");
        let long = "x".repeat(MAX_LINE_BYTES + 1);
        assert_eq!(memory_of_rows(long.as_bytes()), long.len() * 2, "it is not read at all");
    }
}
