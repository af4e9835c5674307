//! A provider's own list of models, brought into OpenAI's form. Only for providers whose form is known; the others'
//! lists are passed on as they are.

use crate::catalog::target::Target;
use crate::net::dial::{Dialer, Upstream, UpstreamError, UpstreamRequest};
use crate::refusal::Refusal;
use crate::runtime::timeout::with_timeout;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use std::pin::pin;

const LONGEST: usize = 4 << 20;

/// Whether this provider's list is known to be, or to become, OpenAI's.
pub fn has_known_form(provider: &str) -> bool {
    matches!(provider, "openai" | "anthropic")
}

/// Status and body of the provider's answer.
pub async fn ask(dialer: &Dialer, target: &Target, request: UpstreamRequest) -> Result<(u16, Bytes), Refusal> {
    let provider = &target.provider.name;
    let work = async {
        let upstream = dialer.connect(&target.origin, true).await;
        let mut upstream = upstream.map_err(|error| match error.class() {
            crate::net::dial::Class::Blocked => Refusal::invalid_custom_host(&error),
            _ => Refusal::upstream_unreachable(provider, &error),
        })?;
        let broken = |error: UpstreamError| Refusal::upstream_unreachable(provider, error.class().label());
        upstream.set_timeouts(target.timeout, target.stream_idle);
        upstream.send(request, Bytes::new()).await.map_err(broken)?;
        upstream.read_head().await.map_err(broken)?;
        let status = upstream.head().status.as_u16();
        let body = body(&mut upstream, provider).await?;
        upstream.release();
        Ok((status, body))
    };
    with_timeout(target.timeout, pin!(work)).await.unwrap_or_else(|_| Err(Refusal::timeout(target.timeout.as_millis())))
}

async fn body(upstream: &mut Upstream, provider: &str) -> Result<Bytes, Refusal> {
    let mut body = BytesMut::new();
    loop {
        let piece = upstream.read_body().await;
        match piece.map_err(|error| Refusal::upstream_unreachable(provider, error.class().label()))? {
            Some(piece) if body.len() + piece.len() > LONGEST => {
                return Err(Refusal::invalid_upstream_response(provider, "its list of models is too long"));
            }
            Some(piece) => body.extend_from_slice(&piece),
            None => return Ok(body.freeze()),
        }
    }
}

/// The list as OpenAI would write it, with who has the models; None for what is no list.
pub fn in_openai_form(body: &[u8], provider: &str) -> Option<Value> {
    let mut list: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let models = list.get_mut("data")?.as_array_mut()?;
    for model in models.iter_mut().filter_map(Value::as_object_mut) {
        if model.get("object").is_none() {
            model.remove("type");
            model.insert("object".into(), "model".into());
        }
        if model.get("created").is_none() {
            let at = model.remove("created_at");
            let at = at.as_ref().and_then(Value::as_str).and_then(|text| text.parse::<DateTime<Utc>>().ok());
            model.insert("created".into(), at.map_or(0, |at| at.timestamp()).into());
        }
        if model.get("owned_by").is_none() {
            model.insert("owned_by".into(), provider.into());
        }
    }
    list.insert("object".into(), "list".into());
    list.insert("provider".into(), provider.into());
    Some(Value::Object(list))
}
