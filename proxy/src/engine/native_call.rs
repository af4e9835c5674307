//! A call at a vendor's own route. Its path says which model is meant and whether a stream is wanted; everything behind
//! (configs, limits, conditions, logs, codecs) looks for both in the body. So they are put there, under the names that
//! other endpoints have for them, and taken out again where the vendor itself is asked.

use super::answer::StreamFrames;
use crate::request::body::Fields;
use crate::request::body::edit::Edits;
use crate::request::native_route::{NativeRoute, plain_model};
use crate::request::path_spelling::canonical;
use crate::request::refusal::Refusal;
use bytes::Bytes;
use http::Uri;
use serde_json::{Map, Value};
use shared::config::ParamPath;

const MODEL: &str = "model";
const STREAM: &str = "stream";

#[derive(Debug)]
pub(crate) struct NativeCall {
    route: NativeRoute,
    model: String,
    /// How the client takes a stream.
    pub frames: StreamFrames,
}

impl NativeCall {
    /// None where the path is no such route's.
    pub fn from_uri(uri: &Uri) -> Option<Self> {
        let path = canonical(uri.path());
        let (route, written) = NativeRoute::find(&path)?;
        let frames = match route {
            NativeRoute::ConverseStream | NativeRoute::Converse => StreamFrames::EventStream,
            NativeRoute::GeminiStream | NativeRoute::Gemini if asks_for_events(uri.query()) => StreamFrames::Events,
            NativeRoute::GeminiStream | NativeRoute::Gemini | NativeRoute::GeminiCount => StreamFrames::JsonArray,
        };
        Some(Self { route, model: plain_model(written), frames })
    }

    /// The body with what the path says. What a client repeats of it is not heard.
    pub fn complete(&self, body: &Bytes) -> Result<Bytes, Refusal> {
        let route_fields = [(MODEL, Value::from(&*self.model)), (STREAM, Value::from(self.route.is_stream()))];
        let route_fields: Map<String, Value> =
            route_fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Edits::new(Some(&route_fields), None, Vec::new()).apply(body, &Fields::parse_object(body)?, None))
    }
}

/// The body as the vendor takes it.
pub(super) fn without_path_fields(body: &Bytes) -> Result<Bytes, Refusal> {
    let names = [MODEL, STREAM].into_iter().filter_map(ParamPath::parse).collect();
    Ok(Edits::new(None, None, names).apply(body, &Fields::parse_object(body)?, None))
}

/// Google's streams are a JSON list unless server-sent events are asked for.
fn asks_for_events(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse" || pair == "$alt=sse"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_says_goes_into_the_body_and_comes_out_again_without_a_trace() {
        let body = Bytes::from_static(b" { \"contents\" : [ 1 ] ,\n \"x\":2 } ");
        for (uri, model, stream, frames) in [
            ("/v1beta/models/@s/m:generateContent", "@s/m", "false", StreamFrames::JsonArray),
            ("/v1/models/%40s%2Fm:streamGenerateContent?key=x&alt=sse", "@s/m", "true", StreamFrames::Events),
            ("/v1beta/models/m:streamGenerateContent", "m", "true", StreamFrames::JsonArray),
            ("/model/a.b%3A0/converse-stream", "a.b:0", "true", StreamFrames::EventStream),
        ] {
            let call = NativeCall::from_uri(&uri.parse().unwrap()).unwrap();
            assert_eq!(call.frames, frames, "{uri}");
            let whole = call.complete(&body).unwrap();
            let fields = Fields::parse_object(&whole).unwrap();
            assert_eq!((fields.text("model").as_deref(), fields.get("stream")), (Some(model), Some(stream)), "{uri}");
            assert_eq!(without_path_fields(&whole).unwrap(), body, "{uri}");
        }
        let call = NativeCall::from_uri(&"/model/m/converse".parse().unwrap()).unwrap();
        let whole = call.complete(&Bytes::from_static(br#"{"model":"other","messages":[]}"#)).unwrap();
        assert_eq!(Fields::parse_object(&whole).unwrap().text("model").unwrap(), "m");
    }
}
