//! The trace id and the metadata of a request. Metadata values are texts: numbers and booleans are written out, so that
//! policies, conditions, logs and their filters compare the same value.

use crate::identity::agents;
use crate::identity::headers_to_metadata::HeadersToMetadata;
use crate::identity::identify::Principal;
use crate::request::body::Fields;
use crate::request::headers::GatewayHeaders;
use crate::request::refusal::Refusal;
use crate::request::text_bounds::cut;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Read once at compile time.
static BAGGAGE: HeaderName = HeaderName::from_static("baggage");
const MAX_TRACE_ID: usize = 128;
const MAX_METADATA_NAME: usize = 128;
const MAX_METADATA_VALUE: usize = 128;
/// Pairs of a request's own; as many come with its baggage.
const MAX_METADATA_PAIRS: usize = 64;
const MAX_BAGGAGE: usize = 64;

/// Headers besides our own that metadata is taken from.
#[derive(Debug, Clone, Default)]
pub struct MetadataHeaders {
    pub named: HeadersToMetadata,
    /// Those by which agents say who they are; and so do bodies.
    pub agents: bool,
}

/// The given id, else the one in `traceparent`; `None` when a new one is to be made.
pub fn trace_id(headers: &GatewayHeaders<'_>) -> Result<Option<HeaderValue>, Refusal> {
    if let Some(given) = headers.trace_id {
        let fits = !given.is_empty() && given.len() <= MAX_TRACE_ID && given.to_str().is_ok();
        return match fits {
            true => Ok(Some(given.clone())),
            false => Err(Refusal::invalid_header("x-gateway-trace-id", "1 to 128 printable characters")),
        };
    }
    Ok(headers.traceparent.and_then(read_traceparent).and_then(|(trace, _)| HeaderValue::from_str(trace).ok()))
}

/// The span of the caller's that the request is below, where its trace is the request's too.
pub fn parent_span<'h>(headers: &GatewayHeaders<'h>) -> Option<&'h str> {
    let (_, span) = headers.traceparent.filter(|_| headers.trace_id.is_none()).and_then(read_traceparent)?;
    Some(span)
}

/// Trace and span of `00-<32 hex>-<16 hex>-<2 hex>`; anything else is ignored, as the W3C recommendation asks.
fn read_traceparent(value: &HeaderValue) -> Option<(&str, &str)> {
    let mut parts = value.to_str().ok()?.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_id = |text: &str, length| is_hex(text, length) && text.bytes().any(|byte| byte != b'0');
    (is_hex(version, 2) && is_id(trace, 32) && is_id(span, 16) && is_hex(flags, 2)).then_some((trace, span))
}

/// What the request says about itself, under what its key and its workspace say about all their requests. Weaker is
/// baggage, which came along from whoever called the caller, then headers that the operator takes for metadata; the weakest is
/// what agents say by themselves.
pub fn metadata(
    value: Option<&HeaderValue>,
    head: &HeaderMap,
    caller: &Principal,
    from: &MetadataHeaders,
) -> Result<Map<String, Value>, Refusal> {
    let mut metadata = if from.agents { agents::from_headers(head) } else { Map::new() };
    metadata.extend(from.named.collect(head));
    metadata.extend(baggage(head));
    metadata.extend(own_metadata(value)?);
    let defaults = caller.key.defaults.as_ref().map(|defaults| &defaults.metadata);
    for (name, value) in [defaults, caller.workspace.metadata.as_ref()].into_iter().flatten().flatten() {
        match as_text(value.clone()) {
            Value::Null => {}
            value => drop(metadata.insert(name.clone(), value)),
        }
    }
    Ok(metadata)
}

fn as_text(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Bool(is_true) => Value::String(is_true.to_string()),
        other => other,
    }
}

/// `_user` is the body's `user` where nobody has said who it is.
pub fn add_user(metadata: &mut Map<String, Value>, fields: &Fields<'_>) {
    if metadata.contains_key(agents::USER) {
        return;
    }
    if let Some(user) = fields.text("user").filter(|user| !user.is_empty()) {
        let user: String = user.chars().take(MAX_METADATA_VALUE).collect();
        metadata.insert(agents::USER.to_owned(), Value::from(user));
    }
}

/// `key=value;property, key=value`, percent-encoded. Entries that are not that, or too many, are left out, as the W3C
/// recommendation asks.
fn baggage(head: &HeaderMap) -> Map<String, Value> {
    let texts = head.get_all(&BAGGAGE).iter().filter_map(|value| value.to_str().ok());
    let entries = texts.flat_map(|text| text.split(',')).take(MAX_BAGGAGE).filter_map(|entry| {
        let (name, value) = entry.split(';').next()?.split_once('=')?;
        let decode = |text: &str| percent_decode_str(text.trim()).decode_utf8().ok().map(|text| text.into_owned());
        let (name, value) = (decode(name)?, decode(value)?);
        let fits = !name.is_empty() && is_within(&name, MAX_METADATA_NAME) && is_within(&value, MAX_METADATA_VALUE);
        fits.then(|| (name, Value::from(value)))
    });
    entries.collect()
}

fn is_within(text: &str, characters: usize) -> bool {
    cut(text, characters).len() == text.len()
}

/// Metadata must be a JSON object of scalars. Ignoring a bad one would evade the policies that look at it.
fn own_metadata(value: Option<&HeaderValue>) -> Result<Map<String, Value>, Refusal> {
    let Some(value) = value else { return Ok(Map::new()) };
    let parsed: Value =
        serde_json::from_slice(value.as_bytes()).map_err(|_| Refusal::invalid_metadata("it is not valid JSON"))?;
    let Value::Object(fields) = parsed else {
        return Err(Refusal::invalid_metadata("it must be a JSON object"));
    };
    if fields.len() > MAX_METADATA_PAIRS {
        return Err(Refusal::invalid_metadata(&format!("it has more than {MAX_METADATA_PAIRS} pairs")));
    }
    let mut texts = Map::with_capacity(fields.len());
    for (name, value) in fields {
        if !is_within(&name, MAX_METADATA_NAME) {
            let begins = cut(&name, 32);
            return Err(Refusal::invalid_metadata(&format!("the name `{begins}…` is longer than 128 characters")));
        }
        match &value {
            Value::Array(_) | Value::Object(_) => {
                return Err(Refusal::invalid_metadata(&format!("`{name}` must be a string, number or boolean")));
            }
            Value::String(text) if !is_within(text, MAX_METADATA_VALUE) => {
                return Err(Refusal::invalid_metadata(&format!("`{name}` is longer than 128 characters")));
            }
            // `null` is the same as no value.
            Value::Null => continue,
            _ => {}
        }
        texts.insert(name, as_text(value));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_traceparent_names_a_trace() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (text, trace) in [
            (valid, Some("4bf92f3577b34da6a3ce929d0e0e4736")),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None),
            ("00-4bf92f-00f067aa0ba902b7-01", None),
            ("nonsense", None),
        ] {
            let value = HeaderValue::from_static(text);
            let found = read_traceparent(&value);
            assert_eq!(found, trace.map(|trace| (trace, "00f067aa0ba902b7")), "{text}");
            let headers = GatewayHeaders { traceparent: Some(&value), ..GatewayHeaders::default() };
            assert_eq!(parent_span(&headers), found.map(|(_, span)| span), "{text}");
            let own = HeaderValue::from_static("mine");
            let headers = GatewayHeaders { trace_id: Some(&own), ..headers };
            assert_eq!(parent_span(&headers), None, "it is a span of another trace");
        }
    }

    #[test]
    fn whatever_it_was_sent_as_a_value_of_metadata_is_text() {
        let sent = HeaderValue::from_static(r#"{"a":"b","n":1,"f":0.5,"t":true,"z":null}"#);
        let read = Value::Object(own_metadata(Some(&sent)).unwrap());
        assert_eq!(read, serde_json::json!({ "a": "b", "n": "1", "f": "0.5", "t": "true" }));
    }

    #[test]
    fn baggage_is_decoded_and_what_is_none_is_left_out() {
        let mut head = HeaderMap::new();
        head.append("baggage", HeaderValue::from_static("user%20id=a%2Cb;ttl=1, tier = pro ,broken,=x,bad=%ff"));
        head.append("baggage", HeaderValue::from_static("more=1"));
        let found = Value::Object(baggage(&head));
        assert_eq!(found, serde_json::json!({ "user id": "a,b", "tier": "pro", "more": "1" }));
        let many: Vec<String> = (0..1000).map(|number| format!("k{number}=v")).collect();
        head.insert("baggage", HeaderValue::from_str(&many.join(",")).unwrap());
        assert_eq!(baggage(&head).len(), MAX_BAGGAGE);
    }

    #[test]
    fn the_body_names_the_user_only_where_the_metadata_does_not() {
        let long = format!(r#"{{"user":"{}"}}"#, "é".repeat(200));
        for (said, body, user) in [
            ("{}", r#"{"user":"u-1"}"#, Some("u-1".to_owned())),
            (r#"{"_user":"m"}"#, r#"{"user":"u-1"}"#, Some("m".to_owned())),
            ("{}", r#"{"user":""}"#, None),
            ("{}", r#"{"user":7}"#, None),
            ("{}", "{}", None),
            ("{}", &long, Some("é".repeat(128))),
        ] {
            let mut metadata: Map<String, Value> = serde_json::from_str(said).unwrap();
            add_user(&mut metadata, &Fields::parse_object(body.as_bytes()).unwrap());
            assert_eq!(metadata.get("_user").and_then(Value::as_str), user.as_deref(), "{body}");
        }
    }

    #[test]
    fn metadata_is_an_object_of_scalars_or_refused() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(129));
        let [named, too_long] = [128, 129].map(|length| format!(r#"{{"{}":1}}"#, "x".repeat(length)));
        let [many, too_many] = [64, 65].map(|pairs| {
            let pairs: Vec<String> = (0..pairs).map(|number| format!(r#""k{number}":1"#)).collect();
            format!("{{{}}}", pairs.join(","))
        });
        for (text, accepted) in [
            (r#"{"a":"b","n":1,"t":true,"z":null}"#, true),
            ("{}", true),
            ("[]", false),
            ("text", false),
            (r#"{"a":{}}"#, false),
            (r#"{"a":[1]}"#, false),
            (long.as_str(), false),
            (&named, true),
            (&too_long, false),
            (&many, true),
            (&too_many, false),
        ] {
            let value = HeaderValue::from_str(text).unwrap();
            assert_eq!(own_metadata(Some(&value)).is_ok(), accepted, "{text}");
        }
    }
}
