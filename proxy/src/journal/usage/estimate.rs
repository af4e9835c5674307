//! Tokens counted by us, for calls whose provider did not report them. Rows that rest on this say so.
//!
//! Counted with a model's vocabulary (`UncountedCall`), apart from the threads that carry requests. Those leave a rough figure
//! in the record, a quarter of the characters, in case the process is killed before the count.

use super::scaled;
use super::scan::{self, ScannedValue as Written};
use crate::vocabulary::{self, Tokenizer};
use bytes::Bytes;
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Where texts stand, in the dialects of chat, completions, embeddings, messages and responses.
const TEXTS: &[&str] = &[
    "content",
    "text",
    "input",
    "prompt",
    "system",
    "instructions",
    "arguments",
    "description",
    "reasoning_content",
    "thinking",
    "refusal",
];
/// Counted of one text or body; beyond it the same density is supposed.
const MOST_COUNTED: usize = 1 << 20;
/// What a chat adds for each message, and for the answer it waits for.
const MESSAGE: u64 = 3;

/// The texts of a call whose provider did not say what it used.
#[derive(Debug)]
pub struct UncountedCall {
    pub model: Option<String>,
    /// The client's body.
    pub asked: Bytes,
    pub answered: AnsweredText,
}

#[derive(Debug)]
pub enum AnsweredText {
    /// Texts of a stream one after the other as JSON writes them, and how long they were before they were cut.
    Stream(Vec<u8>, u64),
    /// A whole body.
    Plain(Bytes),
}

impl UncountedCall {
    /// About how much memory it keeps.
    pub fn size(&self) -> usize {
        self.asked.len()
            + match &self.answered {
                AnsweredText::Stream(text, _) => text.capacity(),
                AnsweredText::Plain(body) => body.len(),
            }
    }

    /// Prompt and completion tokens. Takes milliseconds for a long text.
    pub fn tokens(&self) -> (u64, u64) {
        let mut counter = TokenCounter::new(self.model.as_deref().unwrap_or_default());
        let prompt = counter.body(&self.asked);
        let completion = match &self.answered {
            AnsweredText::Stream(text, length) => {
                let said = scan::unescaped(text).unwrap_or_else(|| String::from_utf8_lossy(text).into_owned());
                scaled(counter.text(&said), text.len() as u64, *length)
            }
            AnsweredText::Plain(body) => TokenCounter { roles: None, ..counter }.body(body),
        };
        (prompt, completion)
    }
}

/// The same from the number of characters, at once.
pub fn rough_tokens(body: &[u8]) -> u64 {
    let mut tokens = 0;
    for (key, value) in scan::keys(body) {
        if let Written::Text(text) = value
            && TEXTS.iter().any(|name| name.as_bytes() == key)
        {
            tokens += scan::characters(text).div_ceil(4);
        }
    }
    tokens
}

struct TokenCounter {
    tokenizer: &'static Tokenizer,
    /// Messages met; none where they do not count.
    roles: Option<u64>,
    tokens: u64,
    counted: usize,
    met: usize,
}

impl TokenCounter {
    fn new(model: &str) -> Self {
        Self { tokenizer: vocabulary::of_model(model), roles: Some(0), tokens: 0, counted: 0, met: 0 }
    }

    fn text(&self, text: &str) -> u64 {
        self.tokenizer.count(text) as u64
    }

    fn body(&mut self, body: &[u8]) -> u64 {
        (self.tokens, self.counted, self.met) = (0, 0, 0);
        let mut json = serde_json::Deserializer::from_slice(body);
        // What is no JSON was counted up to where it is none.
        let _ = Walk { counter: self, is_text: false }.deserialize(&mut json);
        let messages = match self.roles {
            Some(roles @ 1..) => (roles + 1) * MESSAGE,
            _ => 0,
        };
        scaled(self.tokens, self.counted as u64, self.met as u64) + messages
    }

    fn met_text(&mut self, text: &str) {
        self.met += text.len();
        if self.counted < MOST_COUNTED {
            self.counted += text.len();
            self.tokens += self.text(text);
        }
    }
}

/// Goes through a body as it is read: a tree of one that is made of little else than brackets would take twenty times its
/// size.
struct Walk<'c> {
    counter: &'c mut TokenCounter,
    /// It stands where texts do.
    is_text: bool,
}

impl Walk<'_> {
    fn inside(&mut self, is_text: bool) -> Walk<'_> {
        Walk { counter: self.counter, is_text }
    }

    /// A prompt may come as the tokens themselves.
    fn number<E>(self) -> Result<(), E> {
        self.counter.tokens += u64::from(self.is_text);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.is_text {
            self.counter.met_text(text);
        }
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.number()
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.number()
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.number()
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let is_text = self.is_text;
        while items.next_element_seed(self.inside(is_text))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            if name == "role"
                && let Some(roles) = &mut self.counter.roles
            {
                *roles += 1;
            }
            fields.next_value_seed(self.inside(TEXTS.contains(&name.as_ref())))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(model: &str, body: &str) -> (u64, u64) {
        let answered = AnsweredText::Stream(Vec::new(), 0);
        UncountedCall { model: Some(model.into()), asked: body.to_owned().into(), answered }.tokens()
    }

    #[test]
    fn texts_are_counted_roughly_and_names_are_not() {
        for (body, tokens) in [
            (r#"{"model":"a-long-model-name","messages":[{"role":"user","content":"12345678"}]}"#, 2),
            (
                r#"{"messages":[{"content":[{"type":"text","text":"1"},{"type":"image_url","image_url":{"url":"data:…"}}]}]}"#,
                1,
            ),
            (r#"{"input":"12345","instructions":"1"}"#, 3),
            (r#"{"system":"1234","messages":[{"content":"12345"}]}"#, 3),
            ("", 0),
            (r#"{"content":"cut"#, 0),
        ] {
            assert_eq!(rough_tokens(body.as_bytes()), tokens, "{body}");
        }
    }

    #[test]
    fn nested_objects_take_linear_time() {
        // Looking for the end of each of these objects would take hours.
        let deep = [r#"{"content":"#.repeat(400_000), r#""1234""#.into(), "}".repeat(400_000)].concat();
        assert_eq!(rough_tokens(deep.as_bytes()), 1);
    }

    #[test]
    fn prompts_are_counted_in_every_dialect() {
        for (body, tokens) in [
            // Published by OpenAI for this very sentence: "tiktoken is great!" is six tokens.
            (r#"{"prompt":"tiktoken is great!"}"#, 6),
            (r#"{"messages":[{"role":"user","content":"tiktoken is great!"}]}"#, 6 + 6),
            (r#"{"messages":[{"role":"user","content":[{"type":"text","text":"tiktoken is great!"}]}]}"#, 6 + 6),
            (r#"{"input":["tiktoken is great!","tiktoken is great!"]}"#, 12),
            (r#"{"input":[1,2,3]}"#, 3),
            (r#"{"system":"tiktoken is great!","max_tokens":9}"#, 6),
            ("", 0),
            ("no JSON", 0),
        ] {
            assert_eq!(asked("gpt-4", body), (tokens, 0), "{body}");
        }
    }

    #[test]
    fn answers_are_counted_as_they_were_said() {
        let of = |answered| UncountedCall { model: Some("gpt-4".into()), asked: Bytes::new(), answered }.tokens().1;
        assert_eq!(of(AnsweredText::Stream(b"tiktoken is great!".to_vec(), 18)), 6);
        assert_eq!(of(AnsweredText::Stream(br"tik\u0074oken is\u0020great!".to_vec(), 28)), 6);
        assert_eq!(of(AnsweredText::Stream(b"tiktoken is great!".to_vec(), 180)), 60, "most of it was not kept");
        assert!(of(AnsweredText::Stream(vec![b'a', 0xff, b'\\'], 3)) > 0, "what is no text is counted somehow");
        let plain = r#"{"choices":[{"message":{"role":"assistant","content":"tiktoken is great!"}}],"usage":null}"#;
        assert_eq!(of(AnsweredText::Plain(Bytes::from_static(plain.as_bytes()))), 6);
    }

    #[test]
    fn a_very_long_prompt_is_counted_in_part() {
        let text = "word ".repeat(MOST_COUNTED / 5);
        let body = format!(r#"{{"messages":[{{"content":"{text}"}},{{"content":"{text}"}},{{"content":"{text}"}}]}}"#);
        let (tokens, _) = asked("gpt-4o", &body);
        let expected = (3 * MOST_COUNTED / 5) as u64;
        assert!(tokens.abs_diff(expected) < expected / 100, "{tokens} of {expected}");
    }
}
