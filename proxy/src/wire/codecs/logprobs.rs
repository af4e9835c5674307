//! Log probabilities of tokens in OpenAI's shape, which chat and responses share.

use super::json_reader::{FieldPath, Fields};
use super::json_writer::JsonWriter;
use crate::wire::conversation::TokenLogprob;
use serde_json::Value;

/// Entries that make no sense are left out: nobody's answer fails for them.
pub(super) fn read(list: Vec<Value>) -> Vec<TokenLogprob> {
    list.into_iter().filter_map(read_token).collect()
}

fn read_token(value: Value) -> Option<TokenLogprob> {
    let mut fields = Fields::new(value, FieldPath::Root).ok()?;
    let token = fields.string("token").ok()??;
    let logprob = fields.number("logprob").ok()??;
    let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    let bytes = fields.list("bytes").ok()?.map(|list| list.iter().filter_map(byte).collect());
    let top = fields.list("top_logprobs").ok()?.unwrap_or_default();
    // The candidates of a place have no candidates of their own.
    let top = top.into_iter().filter_map(|value| match value {
        Value::Object(mut map) => {
            map.shift_remove("top_logprobs");
            read_token(Value::Object(map))
        }
        _ => None,
    });
    Some(TokenLogprob { token, logprob, bytes, top: top.collect() })
}

/// What stands for the bytes of a token where its maker gave none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingBytes {
    Null,
    /// Where a format has no null: those of its text.
    OfText,
}

pub(super) fn write(w: &mut JsonWriter<'_>, tokens: &[TokenLogprob], missing: MissingBytes) {
    w.open_array();
    for token in tokens {
        w.open_object();
        write_token(w, token, missing);
        w.array_field("top_logprobs");
        for candidate in &token.top {
            w.open_object();
            write_token(w, candidate, missing);
            w.close_object();
        }
        w.close_array();
        w.close_object();
    }
    w.close_array();
}

fn write_token(w: &mut JsonWriter<'_>, token: &TokenLogprob, missing: MissingBytes) {
    w.string_field("token", &token.token);
    w.number_field("logprob", token.logprob);
    let bytes = match (&token.bytes, missing) {
        (Some(bytes), _) => bytes.as_slice(),
        (None, MissingBytes::OfText) => token.token.as_bytes(),
        (None, MissingBytes::Null) => return w.null_field("bytes"),
    };
    w.array_field("bytes");
    bytes.iter().for_each(|byte| w.number(f64::from(*byte)));
    w.close_array();
}
