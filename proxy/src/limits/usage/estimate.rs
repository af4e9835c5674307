//! Tokens counted by us, for calls whose provider did not report them. Rows that rest on this say so.
//!
//! Counted with a model's vocabulary (`UncountedCall`), apart from the threads that carry requests. Those leave a rough figure
//! in the record, a quarter of the characters, in case the process is killed before the count.

use super::scaled;
use super::scan::{self, ScannedValue as Written};
use crate::wire::vocabulary;
use crate::wire::vocabulary::Tokenizer;
use bytes::Bytes;
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Where texts stand, in the dialects of chat, completions, embeddings, messages and responses, and in vendors' own.
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
    "completion",
    "documents",
    "generated_text",
    "generation",
    "inputText",
    "inputs",
    "message",
    "output",
    "outputText",
    "query",
    "response",
    "text_input",
    "text_output",
    "texts",
];
/// Counted of one text or body; beyond it the same density is supposed.
const MAX_COUNTED: usize = 1 << 20;
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
        let prompt = counter.whole(&self.asked);
        let completion = match &self.answered {
            AnsweredText::Stream(text, length) => {
                let plain = scan::unescaped(text).unwrap_or_else(|| String::from_utf8_lossy(text).into_owned());
                scaled(counter.text(&plain), text.len() as u64, *length)
            }
            AnsweredText::Plain(body) => TokenCounter { roles: None, ..counter }.whole(body),
        };
        (prompt, completion)
    }
}

/// The tokens of a request to a model, with the vocabulary that comes closest to its own. Takes milliseconds for a long text.
pub fn prompt_tokens(model: &str, body: &[u8]) -> u64 {
    TokenCounter::new(model).whole(body)
}

/// The same of one body from the number of characters, at once: of the texts that are known by their names, else of whatever
/// is made of words, else of what is no JSON and text all the same.
pub fn rough_tokens_of_any(body: &[u8]) -> u64 {
    let named = rough_tokens(body);
    if named > 0 {
        return named;
    }
    match body.trim_ascii_start().first() {
        None => 0,
        Some(b'{' | b'[') => scan::texts(body).filter(|text| has_words(text)).map(tokens_of).sum(),
        Some(_) => str::from_utf8(body).map_or(0, |text| (text.chars().count() as u64).div_ceil(CHARACTERS_PER_TOKEN)),
    }
}

/// Of a body of which only the beginning is here: a text that does not end counts as far as it goes, and the rest is supposed
/// to be alike.
pub fn rough_tokens_of_beginning(beginning: &[u8], whole: u64) -> u64 {
    // Of these one ends a text that was cut, also in the middle of an escape; elsewhere they are an empty text.
    let closed = [beginning, b"\"\""].concat();
    scaled(rough_tokens_of_any(&closed), beginning.len() as u64, whole)
}

/// Ids, addresses and bytes in base64 have none.
fn has_words(text: &[u8]) -> bool {
    text.iter().any(|byte| *byte == b' ' || !byte.is_ascii())
}

const CHARACTERS_PER_TOKEN: u64 = 4;

fn tokens_of(text: &[u8]) -> u64 {
    scan::characters(text).div_ceil(CHARACTERS_PER_TOKEN)
}

/// Of the texts that are known by their names.
pub fn rough_tokens(body: &[u8]) -> u64 {
    let mut tokens = 0;
    for (key, value) in scan::keys(body) {
        if let Written::Text(text) = value
            && TEXTS.iter().any(|name| name.as_bytes() == key)
        {
            tokens += tokens_of(text);
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

    /// Of a form that is not known, about.
    fn whole(&mut self, body: &[u8]) -> u64 {
        match self.body(body) {
            0 => rough_tokens_of_any(body),
            counted => counted,
        }
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
        if self.counted < MAX_COUNTED {
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
    fn a_beginning_counts_for_the_whole_though_its_text_is_cut() {
        let text = "word ".repeat(1000);
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let whole = rough_tokens(body.as_bytes());
        for cut in [200, 1000, 3000] {
            let found = rough_tokens_of_beginning(&body.as_bytes()[..cut], body.len() as u64);
            assert!(found.abs_diff(whole) < whole / 3, "{found} of {whole}");
        }
        assert_eq!(rough_tokens_of_beginning(br#"{"content":"12345678\"#, 21), 3, "in the middle of an escape");
        assert_eq!(rough_tokens_of_beginning(br#"{"model":"m","#, 13), 0);
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
            ("no JSON", 2),
            (r#"{"arguments":null,"data":["nobody knows this form","c2hvcnQgYnl0ZXM="]}"#, 6),
            (r#"{"vector":[0.1,0.2],"id":"embedding-1"}"#, 0),
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
        let text = "word ".repeat(MAX_COUNTED / 5);
        let body = format!(r#"{{"messages":[{{"content":"{text}"}},{{"content":"{text}"}},{{"content":"{text}"}}]}}"#);
        let (tokens, _) = asked("gpt-4o", &body);
        let expected = (3 * MAX_COUNTED / 5) as u64;
        assert!(tokens.abs_diff(expected) < expected / 100, "{tokens} of {expected}");
    }
}
