//! The outermost object of an answer that comes in pieces, read while it passes: what it says of itself is kept, whatever
//! stands further in is only counted through. Arguments of tool calls are objects in some formats, and a model writes
//! there what its caller asks for, also a `usage` of its own (see `report.rs`, which reads answers that are whole).
//!
//! A list of objects is read as its objects, one after the other: Gemini streams so where nobody asks for events.

use memchr::memchr2;

/// Longest value that is kept. Of a longer text its beginning, of a longer object nothing.
const MAX_VALUE: usize = 8 << 10;
/// The same of TGI's details, which list all tokens.
const MAX_DETAILS: usize = 64 << 10;
/// No key that is looked for is longer.
const MAX_KEY: usize = 20;
/// Of a number, in digits.
const MAX_COUNT: usize = 18;

/// Of those that hold usage, the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OuterField {
    Usage,
    UsageMetadata,
    Meta,
    /// Mistral's, of pages.
    UsageInfo,
    /// TGI's.
    Details,
    /// Ollama's, numbers.
    PromptEvalCount,
    EvalCount,
    Model,
    ModelVersion,
    ServiceTier,
    /// Converse's, an object.
    TypedTier,
    /// True; of no other value is anything said.
    Background,
}

impl OuterField {
    fn from_key(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"usage" => Self::Usage,
            b"usageMetadata" => Self::UsageMetadata,
            b"meta" => Self::Meta,
            b"usage_info" => Self::UsageInfo,
            b"details" => Self::Details,
            b"prompt_eval_count" => Self::PromptEvalCount,
            b"eval_count" => Self::EvalCount,
            b"model" => Self::Model,
            b"modelVersion" => Self::ModelVersion,
            b"service_tier" => Self::ServiceTier,
            b"serviceTier" => Self::TypedTier,
            b"background" => Self::Background,
            _ => return None,
        })
    }

    fn is_text(self) -> bool {
        matches!(self, Self::Model | Self::ModelVersion | Self::ServiceTier)
    }

    fn is_object(self) -> bool {
        matches!(
            self,
            Self::Usage | Self::UsageMetadata | Self::Meta | Self::UsageInfo | Self::Details | Self::TypedTier
        )
    }

    fn is_count(self) -> bool {
        matches!(self, Self::PromptEvalCount | Self::EvalCount)
    }
}

/// What the bytes that pass are kept as.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Capture {
    #[default]
    Nothing,
    Key,
    Text(OuterField),
    Object(OuterField),
    Count(OuterField),
}

/// What comes next in an outermost object.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expected {
    #[default]
    Key,
    Value(Option<OuterField>),
    /// The value has begun.
    End,
}

#[derive(Debug, Default)]
pub struct OutermostScan {
    depth: usize,
    /// How deep the outermost objects stand: in a list or in nothing.
    base: usize,
    /// Whether what is open just within `base` is an object.
    has_fields: bool,
    is_text: bool,
    is_escaped: bool,
    expected: Expected,
    capture: Capture,
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl OutermostScan {
    /// The next piece. `found` gets each field whose value ends in it: objects with their braces, texts without quotes.
    pub fn push(&mut self, piece: &[u8], mut found: impl FnMut(OuterField, &[u8])) {
        let mut rest = piece;
        while !rest.is_empty() {
            let read = if self.is_text {
                self.read_text(rest, &mut found)
            } else if self.is_inside() {
                self.read_inside(rest)
            } else {
                self.read_structure(rest[0], &mut found);
                1
            };
            rest = &rest[read..];
        }
    }

    /// Whether nothing of what comes next is looked for or kept.
    fn is_inside(&self) -> bool {
        self.depth > self.base + 1 && !matches!(self.capture, Capture::Object(_))
    }

    /// Further in: only what opens and closes counts. Most bytes of embeddings are of this kind.
    fn read_inside(&mut self, rest: &[u8]) -> usize {
        let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')) else {
            return rest.len();
        };
        match rest[at] {
            b'"' => self.is_text = true,
            b'{' | b'[' => self.depth += 1,
            _ => self.depth -= 1,
        }
        at + 1
    }

    /// Inside of a text: how many bytes of it were read.
    fn read_text(&mut self, rest: &[u8], found: &mut impl FnMut(OuterField, &[u8])) -> usize {
        if std::mem::take(&mut self.is_escaped) {
            self.keep(&rest[..1]);
            return 1;
        }
        let Some(at) = memchr2(b'"', b'\\', rest) else {
            self.keep(rest);
            return rest.len();
        };
        if rest[at] == b'\\' {
            self.is_escaped = true;
            self.keep(&rest[..=at]);
            return at + 1;
        }
        self.is_text = false;
        match self.capture {
            Capture::Nothing | Capture::Count(_) => {}
            Capture::Object(_) => self.keep(&rest[..=at]),
            Capture::Key => {
                self.keep(&rest[..at]);
                let field = if self.is_too_long { None } else { OuterField::from_key(&self.bytes) };
                self.expected = Expected::Value(field);
                self.capture = Capture::Nothing;
            }
            Capture::Text(field) => {
                self.keep(&rest[..at]);
                found(field, &self.bytes);
                self.capture = Capture::Nothing;
            }
        }
        at + 1
    }

    fn read_structure(&mut self, byte: u8, found: &mut impl FnMut(OuterField, &[u8])) {
        if let Capture::Count(field) = self.capture {
            if byte.is_ascii_digit() {
                return self.keep(&[byte]);
            }
            self.capture = Capture::Nothing;
            // A fraction is no count.
            if !self.is_too_long && (matches!(byte, b',' | b'}') || byte.is_ascii_whitespace()) {
                found(field, &self.bytes);
            }
        }
        let is_outer = self.has_fields && self.depth == self.base + 1;
        match byte {
            b'"' => {
                self.is_text = true;
                match self.expected {
                    Expected::Key if is_outer => self.begin(Capture::Key),
                    Expected::Value(Some(field)) if is_outer && field.is_text() => self.begin(Capture::Text(field)),
                    _ => {}
                }
            }
            b'{' | b'[' => self.open(byte, is_outer),
            b',' if is_outer => self.expected = Expected::Key,
            b'0'..=b'9' if is_outer => {
                if let Expected::Value(Some(field)) = self.expected
                    && field.is_count()
                {
                    self.begin(Capture::Count(field));
                    self.keep(&[byte]);
                }
            }
            // What else begins with it is no JSON.
            b't' if is_outer && self.expected == Expected::Value(Some(OuterField::Background)) => {
                found(OuterField::Background, b"true");
            }
            _ => {}
        }
        if matches!(self.capture, Capture::Object(_)) {
            self.keep(&[byte]);
        }
        if matches!(byte, b'}' | b']') {
            self.close(found);
        }
        if is_outer && !matches!(byte, b',' | b':') && !byte.is_ascii_whitespace() && self.capture != Capture::Key {
            // Whatever a value begins with, no other one follows before the next comma.
            self.expected = Expected::End;
        }
    }

    fn open(&mut self, byte: u8, is_outer: bool) {
        if self.depth == 0 {
            self.base = usize::from(byte == b'[');
        }
        self.depth += 1;
        if let Expected::Value(Some(field)) = self.expected
            && is_outer
            && byte == b'{'
            && field.is_object()
        {
            self.begin(Capture::Object(field));
        }
        if self.depth == self.base + 1 {
            self.has_fields = byte == b'{';
            self.expected = Expected::Key;
        }
    }

    fn close(&mut self, found: &mut impl FnMut(OuterField, &[u8])) {
        self.depth = self.depth.saturating_sub(1);
        if let Capture::Object(field) = self.capture
            && self.depth <= self.base + 1
        {
            self.capture = Capture::Nothing;
            if !self.is_too_long {
                found(field, &self.bytes);
            }
        }
    }

    fn begin(&mut self, capture: Capture) {
        self.capture = capture;
        self.bytes.clear();
        self.is_too_long = false;
    }

    fn keep(&mut self, bytes: &[u8]) {
        let longest = match self.capture {
            Capture::Nothing => return,
            Capture::Key => MAX_KEY,
            Capture::Count(_) => MAX_COUNT,
            Capture::Object(OuterField::Details) => MAX_DETAILS,
            Capture::Text(_) | Capture::Object(_) => MAX_VALUE,
        };
        let room = longest - self.bytes.len();
        self.is_too_long |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn a_background_response_is_known_by_its_outermost_object_whatever_the_pieces() {
        for (body, is_background) in [
            (r#"{"id":"r","background": true,"usage":{}}"#, true),
            (r#"{"background":false,"usage":{"background":true}}"#, false),
            (r#"{"output":[{"background":true}],"background":null}"#, false),
            (r#"{"background":"true"}"#, false),
        ] {
            for length in 1..body.len() {
                let (mut scan, mut found) = (OutermostScan::default(), false);
                for piece in body.as_bytes().chunks(length) {
                    scan.push(piece, |field, _| found |= field == OuterField::Background);
                }
                assert_eq!(found, is_background, "{body} in pieces of {length}");
            }
        }
    }

    fn scanned<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<(OuterField, String)> {
        let (mut scan, mut found) = (OutermostScan::default(), Vec::new());
        for piece in pieces {
            scan.push(piece, |field, value| found.push((field, String::from_utf8_lossy(value).into_owned())));
        }
        found
    }

    #[test]
    fn only_the_outermost_fields_are_found_wherever_the_answer_is_cut() {
        use OuterField::{
            Details, EvalCount, Meta, Model, ModelVersion, PromptEvalCount, ServiceTier, Usage, UsageMetadata,
        };
        let forged = r#"{"usage":{"total_tokens":1},"model":"cheap","service_tier":"batch","a":["}",{"usage":{}}]}"#;
        for (body, expected) in [
            (
                format!(
                    r#"{{"content":[{{"input":{forged}}}],"model":"m","usage":{{"n":{{"d":1}}}},"service_tier":"x"}}"#
                ),
                vec![(Model, "m"), (Usage, r#"{"n":{"d":1}}"#), (ServiceTier, "x")],
            ),
            (
                format!(
                    r#"{{ "model" : "a\\\"b" , "x":{forged},"usage" : null, "usage": {{ "s":"}}\"{{" }} , "meta":{{"b":2}} }}"#
                ),
                vec![(Model, r#"a\\\"b"#), (Usage, r#"{ "s":"}\"{" }"#), (Meta, r#"{"b":2}"#)],
            ),
            (
                format!(
                    r#"[{{"args":{forged},"usageMetadata":{{"a":1}}}},[{forged}],{{"modelVersion":"g","usageMetadata":{{"a":2}}}}]"#
                ),
                vec![(UsageMetadata, r#"{"a":1}"#), (ModelVersion, "g"), (UsageMetadata, r#"{"a":2}"#)],
            ),
            ("{\"usage\":{\"a\":1}}\n{\"model\":\"m\"}\n".to_owned(), vec![(Usage, r#"{"a":1}"#), (Model, "m")]),
            (r#"{"usage":"text","model":{"model":"no"},"service_tier":["usage",{"usage":{}}]}"#.to_owned(), vec![]),
            (r#"{"a":"usage","usage":3,"b":"model"}"#.to_owned(), vec![]),
            (
                r#"{"message":{"eval_count":1},"prompt_eval_count": 26 ,"eval_count":298}"#.to_owned(),
                vec![(PromptEvalCount, "26"), (EvalCount, "298")],
            ),
            (
                format!(
                    r#"{{"eval_count":1.5,"prompt_eval_count":"3"}}{{"eval_count":-1,"prompt_eval_count":{}}}"#,
                    "9".repeat(30)
                ),
                vec![],
            ),
            (r#"[{"generated_text":"a","details":{"x":[1]}}]"#.to_owned(), vec![(Details, r#"{"x":[1]}"#)]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(field, value)| (field, value.to_owned())).collect();
            let bytes = body.as_bytes();
            assert_eq!(scanned(bytes.chunks(1)), expected, "{body}");
            for cut in 0..=bytes.len() {
                assert_eq!(scanned([&bytes[..cut], &bytes[cut..]]), expected, "{cut} {body}");
            }
        }
    }

    #[test]
    fn what_is_long_beyond_reason_is_not_kept() {
        let long = "x".repeat(3 * MAX_VALUE);
        let body = format!(r#"{{"{long}":1,"usage":{{"a":"{long}"}},"model":"{long}","usageMetadata":{{}}}}"#);
        let (mut scan, mut found) = (OutermostScan::default(), Vec::new());
        for piece in body.as_bytes().chunks(1000) {
            scan.push(piece, |field, value| found.push((field, value.len())));
        }
        assert_eq!(found, [(OuterField::Model, MAX_VALUE), (OuterField::UsageMetadata, 2)]);
        assert!(scan.bytes.capacity() <= 2 * MAX_VALUE);
    }

    proptest! {
        #[test]
        fn a_parser_finds_the_same(
            outer in prop::collection::vec(("usage|model|meta|x\"y", "\\PC{0,9}|usage|\"\\\\"), 0..5), depth in 0..3_usize, size in 1..9_usize,
        ) {
            let mut inner = serde_json::json!({ "usage": { "forged": true }, "model": "forged" });
            for _ in 0..depth {
                inner = serde_json::json!([{ "model": "forged", "usage": inner }]);
            }
            let mut object = serde_json::Map::new();
            object.insert("content".to_owned(), inner);
            for (key, text) in outer {
                let value = if key == "model" { Value::from(text) } else { serde_json::json!({ "said": text }) };
                object.insert(key, value);
            }
            let body = Value::Object(object.clone()).to_string();
            for (field, value) in scanned(body.as_bytes().chunks(size)) {
                let (key, value) = match field {
                    OuterField::Model => ("model", format!("\"{value}\"")),
                    OuterField::Usage => ("usage", value),
                    _ => ("meta", value),
                };
                prop_assert_eq!(object.remove(key).map(|value| value.to_string()), Some(value));
            }
            prop_assert!(object.keys().all(|key| key == "content" || key == "x\"y"), "{:?}", object);
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}\",:a]{0,40}") {
            scanned(bytes.chunks(3));
            scanned(text.as_bytes().chunks(3));
        }
    }
}
