//! The text the mock says, and how a stream divides it. Shared by all wires.

use std::borrow::Cow;

use super::ask::tokens;
use super::fault::Fault;
use super::sample::JsonFormat;

const DEFAULT: &str = "This is the mock provider. Your request arrived, and every request that does not ask for \
                       something else gets this very same short answer.";
/// Two-, three- and four-byte characters.
const MULTIBYTE: &str = "Grüße aus Köln, 東京 und 🌍🚀, naïve café.";

/// Words that are one token each in every vocabulary of OpenAI's, with the space before them. So the mock knows how many
/// tokens it said without counting as the gateway does.
const WORDS: [&str; 32] = [
    " the", " of", " and", " to", " in", " is", " that", " for", " it", " with", " as", " was", " on", " be", " at",
    " by", " this", " have", " from", " or", " one", " had", " not", " but", " what", " all", " were", " when", " we",
    " there", " can", " time",
];
/// In an event, what stands before such a word and nowhere else.
const BEFORE_A_WORD: &[u8] = b"\":\" ";

pub struct Reply<'a> {
    pub text: Cow<'a, str>,
    /// Number of content events, when asked for.
    chunks: Option<usize>,
    /// Number of words, when asked for.
    words: Option<usize>,
}

impl<'a> Reply<'a> {
    pub fn of(fault: &'a Fault) -> Self {
        let text = match (&fault.reply, fault.reply_bytes, fault.chunks) {
            _ if fault.words.is_some() => Cow::Owned(spoken(fault.words.unwrap_or(0))),
            (Some(text), _, _) => Cow::Borrowed(text.as_str()),
            (None, Some(length), _) => Cow::Owned(filler(length)),
            _ if fault.split_utf8 => Cow::Borrowed(MULTIBYTE),
            (None, None, Some(chunks)) => Cow::Owned((0..chunks).map(|index| format!("word{index:05} ")).collect()),
            (None, None, None) => Cow::Borrowed(DEFAULT),
        };
        Self { text, chunks: fault.chunks, words: fault.words }
    }

    /// In the JSON that the request asks for, unless a fault dictates the text.
    pub fn in_format(fault: &'a Fault, format: Option<&JsonFormat>) -> Self {
        let is_dictated =
            fault.words.is_some() || fault.reply.is_some() || fault.reply_bytes.is_some() || fault.split_utf8;
        match format {
            Some(format) if !is_dictated => Self { text: Cow::Owned(format.text()), chunks: fault.chunks, words: None },
            _ => Self::of(fault),
        }
    }

    pub fn tokens(&self) -> u64 {
        self.words.map_or_else(|| tokens(&self.text), |words| words as u64)
    }

    /// The pieces of a stream: as many as were asked for, else one per word, else (long texts) a thousand.
    pub fn pieces(&self) -> Vec<&str> {
        match self.chunks {
            _ if self.words.is_some() => {
                let starts = self.text.match_indices(' ').map(|(at, _)| at);
                let ends = starts.clone().skip(1).chain([self.text.len()]);
                starts.zip(ends).map(|(start, end)| &self.text[start..end]).collect()
            }
            Some(count) => divide(&self.text, count),
            None if self.text.len() <= 4096 => self.text.split_inclusive(' ').collect(),
            None => divide(&self.text, 1000),
        }
    }
}

fn spoken(words: usize) -> String {
    // Further apart than neighbours, so that a text does not look like the list.
    (0..words).map(|number| WORDS[number * 7 % WORDS.len()]).collect()
}

/// How many words an event says.
pub fn words_of(event: &[u8]) -> u64 {
    memchr::memmem::find_iter(event, BEFORE_A_WORD).count() as u64
}

fn filler(length: usize) -> String {
    let mut text = "lorem ipsum ".repeat(length.div_ceil(12));
    text.truncate(length);
    text
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
            Fault { words: Some(100), ..Fault::default() },
        ] {
            let reply = Reply::of(&fault);
            assert_eq!(reply.pieces().concat(), reply.text);
            if let Some(chunks) = fault.chunks {
                assert_eq!(reply.pieces().len(), chunks);
            }
        }
    }

    #[test]
    fn words_are_said_one_by_one_and_found_again() {
        let fault = Fault { words: Some(50), ..Fault::default() };
        let reply = Reply::of(&fault);
        assert_eq!((reply.tokens(), reply.pieces().len(), reply.pieces()[1]), (50, 50, " for"));
        let events: Vec<String> = reply.pieces().iter().map(|word| format!(r#"{{"content":"{word}"}}"#)).collect();
        assert_eq!((words_of(events.concat().as_bytes()), words_of(br#"{"content":"","a":"b c"}"#)), (50, 0));
    }

    #[test]
    fn the_length_asked_for_is_the_length_said() {
        assert_eq!(Reply::of(&Fault { reply_bytes: Some(12_345), ..Fault::default() }).text.len(), 12_345);
    }
}
