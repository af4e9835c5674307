//! Forms (`multipart/form-data`): uploads whose `model` decides where they go. A form is read once, into the places of
//! its parts; its short text fields stand as one JSON object for everything that reads bodies (routing, edits), and
//! what is changed there is spliced into the form. All other bytes stay as they came.

mod parse;
pub mod upload;

use super::refusal::Refusal;
use crate::request::headers::GatewayHeaders;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use parse::FormPart;
use serde_json::{Map, Value};
use std::ops::Range;

/// A longer form is streamed to the provider that its headers name.
pub const MAX_HELD: usize = 25 << 20;

/// A text field beyond this is content, not a setting.
const MAX_FIELD: usize = 64 << 10;

#[derive(Debug)]
pub struct Form {
    whole: Bytes,
    boundary: Vec<u8>,
    parts: Vec<FormPart>,
    /// Where the closing delimiter begins.
    end: usize,
    json: Bytes,
}

/// Whether a form is held and looked into. One of unknown length is, if its `model` decides something: where it may pass,
/// or nothing else can name the provider.
pub fn is_held(headers: &HeaderMap, ours: &GatewayHeaders<'_>, has_plan: bool, needs_model: bool) -> bool {
    let is_known = boundary(ours.content_type).is_some() || is_json(ours.content_type);
    match headers.get(header::CONTENT_LENGTH) {
        _ if !is_known => false,
        Some(length) => length.to_str().ok().and_then(|text| text.trim().parse().ok()).is_some_and(fits),
        None => needs_model || (!has_plan && ours.provider.is_none() && ours.virtual_key.is_none()),
    }
}

/// Whether a body claims to be a form.
pub fn is_form(content_type: Option<&HeaderValue>) -> bool {
    content_type.is_some_and(|value| essence(value.as_bytes()).eq_ignore_ascii_case(b"multipart/form-data"))
}

fn fits(length: usize) -> bool {
    length <= MAX_HELD
}

fn is_json(content_type: Option<&HeaderValue>) -> bool {
    content_type.is_some_and(|value| essence(value.as_bytes()).eq_ignore_ascii_case(b"application/json"))
}

fn essence(content_type: &[u8]) -> &[u8] {
    content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

/// What separates the parts, if the body is a form.
fn boundary(content_type: Option<&HeaderValue>) -> Option<Vec<u8>> {
    let text = content_type?.as_bytes();
    if !essence(text).eq_ignore_ascii_case(b"multipart/form-data") {
        return None;
    }
    parse::parameter(text, b"boundary").filter(|boundary| !boundary.is_empty())
}

impl Form {
    /// None when the body is no form.
    pub fn from_request(headers: &HeaderMap, body: &Bytes) -> Result<Option<Self>, Refusal> {
        match boundary(headers.get(header::CONTENT_TYPE)) {
            Some(boundary) => Self::parse(body, boundary).map(Some),
            None => Ok(None),
        }
    }

    fn parse(body: &Bytes, boundary: Vec<u8>) -> Result<Self, Refusal> {
        let (parts, end) = parse::parts(body, &boundary).ok_or_else(Refusal::invalid_form)?;
        let json = Bytes::from(json_of(body, &parts));
        Ok(Self { whole: body.clone(), boundary, parts, end, json })
    }

    /// The text fields, in their order.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The first file, and its name if it has one.
    pub fn file(&self) -> Option<(String, Bytes)> {
        let part = self.parts.iter().find(|part| part.is_file)?;
        let head = &self.whole[part.whole.start..part.value.start];
        let line = head
            .split(|byte| *byte == b'\n')
            .find(|line| line.get(..19).is_some_and(|start| start.eq_ignore_ascii_case(b"content-disposition")));
        let name = line.and_then(|line| parse::parameter(line.trim_ascii(), b"filename"));
        let name = name.map(|name| String::from_utf8_lossy(&name).into_owned()).unwrap_or_default();
        Some((name, self.whole.slice(part.value.clone())))
    }

    /// The form with the changes that were made to its fields.
    pub fn edited(&self, json: &Bytes) -> Bytes {
        let (before, after) = match (object(&self.json), object(json)) {
            (Some(before), Some(after)) if before != after => (before, after),
            _ => return self.whole.clone(),
        };
        let mut out = Vec::with_capacity(self.whole.len() + json.len() + 256);
        let mut from = 0;
        for part in self.parts.iter().filter(|part| part.is_field()) {
            let replacement = match after.get(&part.name) {
                None if !before.contains_key(&part.name) => continue,
                Some(value) if before.get(&part.name) == Some(value) => continue,
                None => (part.whole.clone(), Vec::new()),
                Some(value) => (part.value.clone(), written(value)),
            };
            let (Range { start, end }, bytes) = replacement;
            out.extend_from_slice(&self.whole[from..start]);
            out.extend_from_slice(&bytes);
            from = end;
        }
        out.extend_from_slice(&self.whole[from..self.end]);
        for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
            self.add(&mut out, name, &written(value));
        }
        out.extend_from_slice(&self.whole[self.end..]);
        Bytes::from(out)
    }

    fn add(&self, out: &mut Vec<u8>, name: &str, value: &[u8]) {
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        for piece in [
            &b"--"[..],
            &self.boundary,
            b"\r\nContent-Disposition: form-data; name=\"",
            name.as_bytes(),
            b"\"\r\n\r\n",
            value,
            b"\r\n",
        ] {
            out.extend_from_slice(piece);
        }
    }
}

impl FormPart {
    fn is_field(&self) -> bool {
        !self.is_file && self.value.len() <= MAX_FIELD
    }
}

fn json_of(body: &[u8], parts: &[FormPart]) -> Vec<u8> {
    let mut out = vec![b'{'];
    for part in parts.iter().filter(|part| part.is_field()) {
        let Ok(text) = std::str::from_utf8(&body[part.value.clone()]) else { continue };
        let value = match (&*part.name, text) {
            ("stream", "true" | "false") => text.to_owned(),
            // Anything else is for the provider to judge.
            ("stream", _) => continue,
            _ => Value::from(text).to_string(),
        };
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(Value::from(&*part.name).to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    out.push(b'}');
    out
}

fn object(json: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(json).ok()
}

fn written(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests;
