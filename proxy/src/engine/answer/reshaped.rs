//! The step that gives a provider's embeddings, images, ranking or count of tokens the client's form, and its errors too.

use super::steps::{ResponseStep, Unusable};
use crate::wire::codecs::chat::ChatCodec;
use crate::wire::codecs::objects;
use crate::wire::codecs::objects::{AskedObject, ObjectCodec};
use crate::wire::codecs::{AnswerOptions, Codec};
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderValue, header};
use pingora_http::ResponseHeader;
use serde_json::Value;
use std::sync::Arc;

/// From which form an object is made, and what is told in it besides.
pub struct Reshaping {
    pub codec: &'static dyn ObjectCodec,
    /// Writes errors.
    pub client: &'static dyn Codec,
    pub asked: AskedObject,
}

pub struct Reshaped {
    reshaping: Arc<Reshaping>,
    status: u16,
    /// The answer is the image itself.
    is_image: bool,
}

impl Reshaped {
    pub fn new(reshaping: Arc<Reshaping>) -> Self {
        Self { reshaping, status: 0, is_image: false }
    }
}

impl ResponseStep for Reshaped {
    fn begin(&mut self, head: &ResponseHeader, _: bool) {
        self.status = head.status.as_u16();
        let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        self.is_image = kind.is_some_and(|kind| kind.starts_with(b"image/"));
    }

    fn head(&self, head: &mut Parts) {
        head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }

    fn takes_body(&self, _: &ResponseHeader) -> bool {
        true
    }

    fn body(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        let Reshaping { codec, client, asked } = &*self.reshaping;
        if !(200..300).contains(&self.status) {
            return Ok(error(self.status, &body, *client, asked));
        }
        let reply = match self.is_image {
            true => objects::from_bytes(&body),
            false => serde_json::from_slice(&body).map_err(|error| Unusable(error.to_string().into()))?,
        };
        let answer = codec.read_answer(reply, asked).map_err(|error| Unusable(error.to_string().into()))?;
        Ok(Bytes::from(answer.to_string()))
    }
}

/// A provider's error for clients that expect OpenAI's. What is one already passes as it is.
pub fn error_in_openai_form(status: u16, body: Bytes, provider: &str) -> Bytes {
    let reply: Option<Value> = serde_json::from_slice(&body).ok();
    match reply.is_some_and(|reply| reply.pointer("/error/message").is_some_and(Value::is_string)) {
        true => body,
        false => {
            let asked = AskedObject { provider: provider.to_owned(), ..AskedObject::default() };
            error(status, &body, &ChatCodec, &asked)
        }
    }
}

/// Their errors are near enough to each other: an object with a message, at the top or below `error`.
fn error(status: u16, body: &[u8], client: &dyn Codec, asked: &AskedObject) -> Bytes {
    let options = AnswerOptions {
        is_strict: true,
        id: asked.id.as_str().into(),
        created: 0,
        model: asked.model.as_str().into(),
        provider: asked.provider.as_str().into(),
        include_usage: false,
        request: None,
    };
    let mut out = Vec::new();
    client.write_error(&ChatCodec.read_error(status, None, body), &options, &mut out);
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::codecs::objects;
    use serde_json::Value;

    #[test]
    fn an_answer_and_an_error_take_openais_form_and_rubbish_none() {
        let asked = AskedObject { model: "m".into(), provider: "acme".into(), ..AskedObject::default() };
        let codec = objects::by_name("nomic_embeddings").unwrap();
        let mut step = Reshaped::new(Arc::new(Reshaping { codec, client: &ChatCodec, asked }));
        let mut say = |status: u16, body: &'static str| {
            step.begin(&ResponseHeader::build(status, None).unwrap(), false);
            step.body(Bytes::from_static(body.as_bytes())).map(|body| serde_json::from_slice::<Value>(&body).unwrap())
        };
        assert_eq!(say(200, r#"{"embeddings":[[1]]}"#).unwrap()["data"][0]["embedding"][0], 1);
        assert_eq!(say(422, r#"{"detail":"too long"}"#).unwrap()["error"]["message"], "acme error: too long");
        assert!(say(200, "<html>").is_err() && say(200, "{}").is_err());
        for (body, message) in [
            (r#"{"error":{"message":"no","own":1}}"#, "no"),
            (r#"{"message":"no"}"#, "acme error: no"),
            ("<html>", "acme error: <html>"),
        ] {
            let written = error_in_openai_form(403, Bytes::from_static(body.as_bytes()), "acme");
            assert_eq!(serde_json::from_slice::<Value>(&written).unwrap()["error"]["message"], message);
        }
    }

    #[test]
    fn an_image_that_came_as_bytes_is_told_in_base64() {
        let asked = AskedObject { provider: "acme".into(), ..AskedObject::default() };
        let say = |codec: &str, kind: &'static str| {
            let codec = objects::by_name(codec).unwrap();
            let mut step = Reshaped::new(Arc::new(Reshaping { codec, client: &ChatCodec, asked: asked.clone() }));
            let mut head = ResponseHeader::build(200, None).unwrap();
            head.insert_header(header::CONTENT_TYPE, kind).unwrap();
            step.begin(&head, false);
            step.body(Bytes::from_static(b"\x89PNG")).map(|body| serde_json::from_slice::<Value>(&body).unwrap())
        };
        assert_eq!(say("workers_images", "image/png").unwrap()["data"][0]["b64_json"], "iVBORw==");
        assert!(say("workers_images", "application/json").is_err());
        assert!(say("nomic_embeddings", "image/png").is_err());
    }
}
