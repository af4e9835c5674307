//! The text the mock says, and how a stream divides it. Shared by both dialects.

use std::borrow::Cow;

use super::ask::tokens;
use super::fault::Fault;

const DEFAULT: &str = "This is the mock provider. Your request arrived, and every request that does not ask for \
                       something else gets this very same short answer.";
/// Two-, three- and four-byte characters.
const MULTIBYTE: &str = "Grüße aus Köln, 東京 und 🌍🚀, naïve café.";

pub struct Reply<'a> {
    pub text: Cow<'a, str>,
    /// Number of content events, when asked for.
    chunks: Option<usize>,
}

impl<'a> Reply<'a> {
    pub fn of(fault: &'a Fault) -> Self {
        let text = match (&fault.reply, fault.reply_bytes, fault.chunks) {
            (Some(text), _, _) => Cow::Borrowed(text.as_str()),
            (None, Some(length), _) => Cow::Owned(filler(length)),
            _ if fault.split_utf8 => Cow::Borrowed(MULTIBYTE),
            (None, None, Some(chunks)) => Cow::Owned((0..chunks).map(|index| format!("word{index:05} ")).collect()),
            (None, None, None) => Cow::Borrowed(DEFAULT),
        };
        Self { text, chunks: fault.chunks }
    }

    pub fn tokens(&self) -> u64 {
        tokens(&self.text)
    }

    /// The pieces of a stream: as many as were asked for, else one per word, else (long texts) a thousand.
    pub fn pieces(&self) -> Vec<&str> {
        match self.chunks {
            Some(count) => divide(&self.text, count),
            None if self.text.len() <= 4096 => self.text.split_inclusive(' ').collect(),
            None => divide(&self.text, 1000),
        }
    }
}

fn filler(length: usize) -> String {
    "lorem ipsum ".bytes().cycle().take(length).map(char::from).collect()
}

/// `count` pieces of about equal length that end between characters; the last ones are empty when there are more
/// pieces than characters.
fn divide(text: &str, count: usize) -> Vec<&str> {
    let mut pieces = Vec::with_capacity(count);
    let mut from = 0;
    for index in 1..=count {
        let mut to = text.len() * index / count;
        while !text.is_char_boundary(to) {
            to += 1;
        }
        pieces.push(&text[from..to]);
        from = to;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text() {
        for fault in [
            Fault::default(),
            Fault { split_utf8: true, ..Fault::default() },
            Fault { chunks: Some(7), ..Fault::default() },
            Fault { split_utf8: true, chunks: Some(100), ..Fault::default() },
            Fault { reply_bytes: Some(10_000), ..Fault::default() },
            Fault { reply: Some(String::new()), chunks: Some(3), ..Fault::default() },
        ] {
            let reply = Reply::of(&fault);
            assert_eq!(reply.pieces().concat(), reply.text);
            if let Some(chunks) = fault.chunks {
                assert_eq!(reply.pieces().len(), chunks);
            }
        }
    }

    #[test]
    fn the_length_asked_for_is_the_length_said() {
        assert_eq!(Reply::of(&Fault { reply_bytes: Some(12_345), ..Fault::default() }).text.len(), 12_345);
    }
}
