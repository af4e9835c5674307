//! Any body is a form or is refused; a form that nobody changed stays as it came, and a changed field is read back.
#![no_main]

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use proxy::request::multipart::Form;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let mut headers = HeaderMap::new();
    // A boundary of the fuzzer's choice, or one that its bodies can learn.
    let (content_type, body) = match data.split_first() {
        Some((b'!', rest)) => {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let mut value = b"multipart/form-data; ".to_vec();
            value.extend_from_slice(&rest[..end]);
            (HeaderValue::from_bytes(&value).ok(), rest.get(end + 1..).unwrap_or_default())
        }
        _ => (Some(HeaderValue::from_static("multipart/form-data; boundary=xx")), data),
    };
    let Some(content_type) = content_type else { return };
    headers.insert(header::CONTENT_TYPE, content_type);
    let body = Bytes::copy_from_slice(body);
    let Ok(Some(form)) = Form::from_request(&headers, &body) else { return };
    let fields: Value = serde_json::from_slice(form.json()).expect("the fields are JSON");
    assert_eq!(form.edited(form.json()), body);
    let Value::Object(mut fields) = fields else { panic!("the fields are no object") };
    fields.insert("model".into(), "another".into());
    let edited = form.edited(&Bytes::from(Value::Object(fields).to_string()));
    let again = Form::from_request(&headers, &edited).ok().flatten().expect("an edited form is a form");
    let again: Value = serde_json::from_slice(again.json()).expect("the fields are JSON");
    assert_eq!(again["model"], "another");
});
