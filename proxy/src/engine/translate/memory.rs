//! What a body takes as a tree: it is counted before one is made of it.

use memchr::memchr_iter;

/// How much memory it takes to read a body and to write it anew: its texts twice, and something for every value.
pub(crate) fn memory_to_translate(body: &[u8]) -> usize {
    const VALUE: usize = 144;
    const OBJECT: usize = 512;
    const LIST: usize = 288;
    let count = |letter: u8| memchr_iter(letter, body).count();
    body.len() * 2 + count(b',') * VALUE + count(b'[') * LIST + count(b'{') * OBJECT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_many_small_values_counts_for_what_it_takes() {
        assert_eq!(memory_to_translate(br#"{"a":1}"#), 14 + 512);
        let many = ["[", &"0,".repeat(1000), "0]"].concat();
        assert!(memory_to_translate(many.as_bytes()) > 64_000);
        assert_eq!(memory_to_translate(b"[[],[]]"), 14 + 3 * 288 + 144);
    }
}
