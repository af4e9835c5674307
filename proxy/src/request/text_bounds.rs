//! The longest texts of a record. Clients and providers choose most of them; some are part of keys in Postgres, whose
//! index takes 2,704 bytes at most (`usage_slots` cuts what it takes), and all of them together must fit into a frame. They are cut where a record is
//! made, and again where it becomes a row: files of older processes hold what those did not cut.

/// Characters of a model's name, as many as the control plane takes.
pub const MODEL: usize = 255;
/// Characters of a service tier, and of other words of that kind.
pub const WORD: usize = 64;
/// Bytes of a slug or the name of a provider. Ours are ASCII.
pub const SLUG: usize = 255;
/// Characters of a path.
pub const URL: usize = 2048;
/// Characters of a method.
pub const METHOD: usize = 32;
/// Characters of the name of a trace or span, and of what an SDK says of itself.
pub const NAME: usize = 128;
/// Bytes of all metadata, as JSON.
pub const METADATA: usize = 64 << 10;

/// The text, or as many characters of its beginning.
pub fn cut(text: &str, characters: usize) -> &str {
    // Hardly any text is longer, and a character has at least a byte.
    if text.len() <= characters {
        return text;
    }
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// The text, or as many bytes of its beginning, less those of a character that would be cut.
pub fn cut_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_divides_a_character() {
        for (text, characters, kept) in [
            ("", 0, ""),
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("éé", 2, "éé"),
            ("é\u{1F600}é", 2, "é\u{1F600}"),
            ("é", 0, ""),
        ] {
            assert_eq!(cut(text, characters), kept, "{text} {characters}");
        }
        for (text, bytes, kept) in [("abc", 9, "abc"), ("aé", 2, "a"), ("aé", 3, "aé"), ("\u{1F600}", 3, "")] {
            assert_eq!(cut_bytes(text, bytes), kept, "{text} {bytes}");
        }
    }
}
