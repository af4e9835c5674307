//! The text of a freeform tool, out of the arguments of the function that carries it, while these come in pieces. A model
//! that keeps to the schema writes `{"input":"…"}`; what another writes is known when it is whole.

use crate::wire::conversation::carried_tools::{INPUT, freeform_input};

#[derive(Debug, Default)]
pub(super) struct FreeformText {
    state: State,
    /// All of the text that was passed on.
    text: String,
    /// What could not be read yet: a beginning, or half an escape.
    pending: String,
    /// The first half of a letter that JSON writes as two.
    high: Option<u16>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the text: `{"input":"`.
    #[default]
    Beginning,
    Text,
    Escape,
    /// Behind the text, or nothing that is read here.
    Over,
}

impl FreeformText {
    /// More of the arguments: more of the text, which may be nothing.
    pub fn push(&mut self, json: &str) -> String {
        let mut more = String::new();
        for letter in json.chars() {
            match self.state {
                State::Beginning => self.begin(letter),
                State::Text => match letter {
                    '"' => self.state = State::Over,
                    '\\' => self.state = State::Escape,
                    plain => self.put(plain, &mut more),
                },
                State::Escape => self.escaped(letter, &mut more),
                State::Over => break,
            }
        }
        self.text.push_str(&more);
        more
    }

    /// The whole text, and what of it was not passed on yet.
    pub fn finish(&self, arguments: &str) -> (String, String) {
        let whole = match self.text.is_empty() || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok() {
            true => freeform_input(arguments),
            // Arguments that were cut off.
            false => self.text.clone(),
        };
        let rest = whole.strip_prefix(&self.text).unwrap_or_default().to_owned();
        (whole, rest)
    }

    fn begin(&mut self, letter: char) {
        let expected = ["{\"", INPUT, "\":\""].concat();
        // Behind the brace, the key and the colon.
        let is_between = [0, 1, INPUT.len() + 3, INPUT.len() + 4].contains(&self.pending.len());
        if letter.is_ascii_whitespace() && is_between {
            return;
        }
        self.pending.push(letter);
        if self.pending == expected {
            self.state = State::Text;
            self.pending.clear();
        } else if !expected.starts_with(&self.pending) {
            self.state = State::Over;
        }
    }

    fn escaped(&mut self, letter: char, more: &mut String) {
        if self.pending.is_empty() && letter != 'u' {
            self.state = State::Text;
            return self.put(
                match letter {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    other => other,
                },
                more,
            );
        }
        self.pending.push(letter);
        if self.pending.len() < 5 {
            return;
        }
        let unit = u16::from_str_radix(&self.pending[1..], 16).unwrap_or(0xfffd);
        self.pending.clear();
        self.state = State::Text;
        match (self.high.take(), unit) {
            (None, 0xd800..=0xdbff) => self.high = Some(unit),
            (Some(high), _) => more.extend(char::decode_utf16([high, unit]).map(|read| read.unwrap_or('\u{fffd}'))),
            (None, _) => more.push(char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}')),
        }
    }

    fn put(&mut self, letter: char, more: &mut String) {
        if self.high.take().is_some() {
            more.push('\u{fffd}');
        }
        more.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_text_are_the_text_wherever_they_were_cut() {
        let text = "*** Begin Patch\n+\t\"quoted\" \\ é 🌍 \u{1}\r\n";
        for json in [
            serde_json::json!({ "input": text }).to_string(),
            serde_json::to_string_pretty(&serde_json::json!({ "input": text })).unwrap(),
            r#"{"input":"*** Begin Patch\n+\t\"quoted\" \\ \u00e9 \ud83c\udf0d \u0001\r\n"}"#.to_owned(),
        ] {
            let letters: Vec<char> = json.chars().collect();
            for size in 1..12 {
                let mut reader = FreeformText::default();
                let mut read: String =
                    letters.chunks(size).map(|piece| reader.push(&piece.iter().collect::<String>())).collect();
                assert_eq!(read, text, "{size} {json}");
                let (whole, rest) = reader.finish(&json);
                read.push_str(&rest);
                assert_eq!((whole.as_str(), read.as_str()), (text, text));
            }
        }
    }

    #[test]
    fn what_does_not_keep_to_the_schema_comes_at_the_end_and_what_was_cut_off_stays() {
        for (json, expected) in [
            (r#"{"patch":"x"}"#, r#"{"patch":"x"}"#),
            (r#"{"other":1,"input":"x"}"#, "x"),
            (r#"{"input":7}"#, r#"{"input":7}"#),
            (r#"{"input":"ab"#, "ab"),
            ("plain text", "plain text"),
            ("", ""),
        ] {
            let mut reader = FreeformText::default();
            let first = reader.push(json);
            let (whole, rest) = reader.finish(json);
            assert_eq!((whole.as_str(), [first, rest].concat().as_str()), (expected, expected), "{json}");
        }
    }
}
