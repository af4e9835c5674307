//! What guardrails can read of a relayed answer: JSON, and server-sent events whose data is JSON. Its path says in which form it
//! is; what has another form is read text by text, as one answer that says all of them. Compressed answers are read, and passed on as they came.

use crate::engine::answer::MAX_CHANGED_BODY;
use crate::engine::translate::memory_to_translate;
use crate::guardrails::{SpokenAnswer, parse_unique};
use crate::runtime::memory::{HeldSize, MemoryOwner, NoRoom, OwnedShare};
use crate::wire::framing::compression::{ContentEncoding, Decoder};
use crate::wire::sse;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use pingora_http::ResponseHeader;
use serde_json::Value;
use shared::guardrails::Shape;

/// A longer answer is not held.
pub(super) const MAX_JUDGED_ANSWER: usize = MAX_CHANGED_BODY;
/// How much of a compressed answer is read at a time: little may become much.
const INFLATED_AT_ONCE: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    Json,
    Events,
}

/// What becomes of an answer, by its head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Readable {
    /// It says nothing: an error, or no body.
    Nothing,
    Whole(AnswerForm, Option<ContentEncoding>),
    No(&'static str),
}

impl Readable {
    /// Errors are the provider's own words, which no guardrail judges.
    pub fn from_head(head: &ResponseHeader) -> Self {
        let length = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if !head.status.is_success() || head.status == StatusCode::NO_CONTENT || length == Some(0) {
            return Self::Nothing;
        }
        let Some(form) = form(&head.headers) else { return Self::No("its answer is neither JSON nor events") };
        let Ok(encoding) = ContentEncoding::from_headers(&head.headers) else {
            return Self::No("its answer is compressed in a way that cannot be undone");
        };
        match length.is_some_and(|length: usize| length > MAX_JUDGED_ANSWER) {
            true => Self::No(TOO_LONG),
            false => Self::Whole(form, encoding),
        }
    }
}

pub(super) const TOO_LONG: &str = "its answer is too long to be held";

fn form(headers: &HeaderMap) -> Option<AnswerForm> {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else { return None };
    let kind = kind.as_bytes();
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    match () {
        () if is_json(kind) => Some(AnswerForm::Json),
        () if essence.eq_ignore_ascii_case(b"text/event-stream") && is_utf8(kind) => Some(AnswerForm::Events),
        () => None,
    }
}

/// Whether a type of content says JSON, in letters that all read alike.
pub(crate) fn is_json(kind: &[u8]) -> bool {
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    is_utf8(kind) && (essence == b"application/json" || essence.ends_with(b"+json") || essence == b"text/json")
}

/// Whether a type of content names no other encoding than JSON's own: in UTF-7, for one, plain letters say something else.
fn is_utf8(kind: &[u8]) -> bool {
    let named = kind.split(|byte| *byte == b';').skip(1).filter_map(|parameter| {
        let mut sides = parameter.splitn(2, |byte| *byte == b'=');
        let (name, value) = (sides.next()?, sides.next()?);
        name.trim_ascii().to_ascii_lowercase().starts_with(b"charset").then_some(value)
    });
    let bare = |value: &[u8]| -> Vec<u8> {
        value.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != b'"').map(u8::to_ascii_lowercase).collect()
    };
    named.map(bare).all(|value| matches!(&value[..], b"utf-8" | b"utf8" | b"us-ascii"))
}

/// An answer as guardrails judge it.
#[derive(Debug)]
pub(super) struct ReadAnswer {
    pub json: Value,
    pub shape: Shape,
}

/// Why an answer cannot be judged.
#[derive(Debug)]
pub(super) enum Unread {
    Unreadable(String),
    NoRoom(NoRoom),
}

impl From<NoRoom> for Unread {
    fn from(why: NoRoom) -> Self {
        Self::NoRoom(why)
    }
}

/// The bytes without their compression. What they take counts in `share`.
pub(super) fn inflate(
    body: Bytes,
    encoding: Option<ContentEncoding>,
    owner: MemoryOwner<'_>,
    share: &mut OwnedShare,
) -> Result<Bytes, Unread> {
    let Some(encoding) = encoding else { return Ok(body) };
    let mut decoder = Decoder::new(encoding, HeldSize::new(owner));
    let mut plain = BytesMut::new();
    let mut rest = body;
    loop {
        let piece = rest.split_to(rest.len().min(INFLATED_AT_ONCE));
        let piece = decoder.push(&piece, rest.is_empty()).map_err(not_inflated)?;
        share.grow(piece.len())?;
        if plain.len() + piece.len() > MAX_JUDGED_ANSWER {
            return Err(Unread::Unreadable(TOO_LONG.into()));
        }
        plain.extend_from_slice(&piece);
        if rest.is_empty() {
            return Ok(plain.freeze());
        }
    }
}

fn not_inflated(error: std::io::Error) -> Unread {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<NoRoom>()) {
        Some(why) => Unread::NoRoom(*why),
        None => Unread::Unreadable("the compression of its answer cannot be undone".into()),
    }
}

/// None where it says nothing. What it takes in memory counts in `share`.
pub(super) fn read(
    plain: &Bytes,
    form: AnswerForm,
    dialect: Shape,
    share: &mut OwnedShare,
) -> Result<Option<ReadAnswer>, Unread> {
    if plain.trim_ascii().is_empty() {
        return Ok(None);
    }
    share.grow(memory_to_translate(plain))?;
    match form {
        AnswerForm::Json => match parse(plain)? {
            // As Google's streams are without `alt=sse`.
            Value::Array(events) if dialect == Shape::Gemini => spoken(events.into_iter().map(Ok), dialect).map(Some),
            json => match shape_of(&json, dialect) {
                // Checks that count or replace know no place in it: they see all of its texts as one answer.
                Shape::Other => spoken(std::iter::once(Ok(json)), Shape::Other).map(Some),
                shape => Ok(Some(ReadAnswer { json, shape })),
            },
        },
        AnswerForm::Events => {
            let events = sse::with_blank_line(plain.clone());
            let data = sse::events(&events).map(|event| event.data);
            let content = data.filter(|data| !matches!(data.trim_ascii(), b"" | b"[DONE]"));
            spoken(content.map(|data| parse(&data)), dialect).map(Some)
        }
    }
}

fn parse(json: &[u8]) -> Result<Value, Unread> {
    parse_unique(json).map_err(|error| Unread::Unreadable(format!("its answer is not JSON that can be read: {error}")))
}

fn spoken(events: impl Iterator<Item = Result<Value, Unread>>, dialect: Shape) -> Result<ReadAnswer, Unread> {
    let mut answer = SpokenAnswer::new(dialect);
    for event in events {
        answer.push(&event?).map_err(|why| Unread::Unreadable(format!("of its answer {why}")))?;
    }
    Ok(ReadAnswer { json: answer.into_answer(), shape: SpokenAnswer::SHAPE })
}

/// The form that the path says, if the answer has it: in another one, nothing would be found where it is looked for.
fn shape_of(json: &Value, dialect: Shape) -> Shape {
    let is_it = match dialect {
        Shape::Chat => json.pointer("/choices/0/message").is_some(),
        Shape::Completions => json.pointer("/choices/0/text").is_some(),
        Shape::Messages => json.get("content").is_some(),
        Shape::Responses => json.get("output").is_some_and(Value::is_array),
        Shape::Gemini => json.get("candidates").is_some(),
        Shape::Converse => json.pointer("/output/message").is_some(),
        Shape::Embeddings => json.get("data").is_some_and(Value::is_array),
        Shape::Other | Shape::Unread => false,
    };
    if is_it { dialect } else { Shape::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::memory::body_memory;
    use crate::runtime::tenant_share::Tenant;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;
    use std::io::Write as _;

    #[test]
    fn the_head_of_an_answer_says_whether_it_can_be_read() {
        let long = (MAX_JUDGED_ANSWER + 1).to_string();
        let json = ("content-type", "application/json");
        for (status, headers, expected) in [
            (200, vec![json], Readable::Whole(AnswerForm::Json, None)),
            (201, vec![("content-type", "application/x+json; a=b")], Readable::Whole(AnswerForm::Json, None)),
            (200, vec![("content-type", "Text/Event-Stream;charset=utf-8")], Readable::Whole(AnswerForm::Events, None)),
            (200, vec![("content-type", "text/event-stream; charset=utf-16le")], Readable::No("")),
            (200, vec![("content-type", "application/json; charset*=utf-7")], Readable::No("")),
            (
                200,
                vec![json, ("content-encoding", "gzip")],
                Readable::Whole(AnswerForm::Json, Some(ContentEncoding::Gzip)),
            ),
            (200, vec![json, ("content-encoding", "x-own")], Readable::No("")),
            (200, vec![json, ("content-length", long.as_str())], Readable::No("")),
            (200, vec![json, ("content-type", "audio/mpeg")], Readable::No("")),
            (200, vec![("content-type", "application/x-ndjson")], Readable::No("")),
            (200, vec![("content-type", "audio/mpeg")], Readable::No("")),
            (200, vec![], Readable::No("")),
            (200, vec![("content-length", "0")], Readable::Nothing),
            (204, vec![], Readable::Nothing),
            (400, vec![json], Readable::Nothing),
            (503, vec![("content-type", "text/html")], Readable::Nothing),
        ] {
            let mut head = ResponseHeader::build(status, None).unwrap();
            for (name, value) in &headers {
                head.append_header((*name).to_owned(), *value).unwrap();
            }
            let found = match Readable::from_head(&head) {
                Readable::No(_) => Readable::No(""),
                other => other,
            };
            assert_eq!(found, expected, "{status} {headers:?}");
        }
    }

    fn reading(form: AnswerForm, dialect: Shape, text: &str) -> Result<Option<ReadAnswer>, Unread> {
        let memory = body_memory(8 << 20);
        let mut share = OwnedShare::none(memory, Tenant::test(1, 1));
        read(&Bytes::from(text.to_owned()), form, dialect, &mut share)
    }

    #[test]
    fn an_answer_is_read_strictly_and_in_the_form_that_it_has() {
        for (form, dialect, text, expected) in [
            (AnswerForm::Json, Shape::Chat, r#"{"choices":[{"message":{}}]}"#, Some(Some(Shape::Chat))),
            (AnswerForm::Json, Shape::Messages, r#"{"content":[]}"#, Some(Some(Shape::Messages))),
            (AnswerForm::Json, Shape::Messages, r#"{"text":"x"}"#, Some(Some(Shape::Chat))),
            (AnswerForm::Json, Shape::Gemini, r#"[{"candidates":[]}]"#, Some(Some(Shape::Chat))),
            (AnswerForm::Json, Shape::Other, r#"["x"]"#, Some(Some(Shape::Chat))),
            (AnswerForm::Json, Shape::Other, " \n", Some(None)),
            (AnswerForm::Json, Shape::Other, r#"{"a":1,"a":2}"#, None),
            (AnswerForm::Json, Shape::Other, r#"{"a":1}{"a":2}"#, None),
            (AnswerForm::Events, Shape::Chat, "data: {}\n\ndata: [DONE]\n\n", Some(Some(Shape::Chat))),
            (AnswerForm::Events, Shape::Other, ": nothing\n\n", Some(Some(Shape::Chat))),
            (AnswerForm::Events, Shape::Other, "data: words\n\n", None),
            (AnswerForm::Events, Shape::Other, "data: {\"a\":1", None),
        ] {
            let found = reading(form, dialect, text).ok().map(|read| read.map(|read| read.shape));
            assert_eq!(found, expected, "{dialect:?} {text}");
        }
        let text = reading(AnswerForm::Json, Shape::Messages, r#"{"text":"x"}"#);
        assert_eq!(text.unwrap().unwrap().json["choices"][0]["message"]["content"], json!("x"));
        let last = reading(AnswerForm::Events, Shape::Other, "data: {\"a\":\"x\"}\r\n\r\ndata: {\"a\":\"y\"}");
        assert_eq!(last.unwrap().unwrap().json["choices"][0]["message"]["content"], json!("xy"), "an unended event");
    }

    #[test]
    fn what_is_compressed_is_read_as_far_as_it_may_be_held() {
        let memory = body_memory(64 << 20);
        let tenant = Tenant::test(1, 1);
        let owner = MemoryOwner { memory: &memory, tenant };
        let packed = |length: usize| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&vec![b'x'; length]).unwrap();
            Bytes::from(encoder.finish().unwrap())
        };
        for (body, expected) in [
            (packed(100_000), Some(100_000)),
            (packed(MAX_JUDGED_ANSWER + 1), None),
            (packed(100_000).slice(..60), None),
            (Bytes::from_static(b"words"), None),
        ] {
            let mut share = owner.share();
            let found = inflate(body, Some(ContentEncoding::Gzip), owner, &mut share);
            assert_eq!(found.ok().map(|plain| plain.len()), expected);
        }
        assert_eq!(memory.used(), 0);
        let small = body_memory(1 << 20);
        let owner = MemoryOwner { memory: &small, tenant };
        let found = inflate(packed(4 << 20), Some(ContentEncoding::Gzip), owner, &mut owner.share());
        assert!(matches!(found, Err(Unread::NoRoom(_))));
    }
}
