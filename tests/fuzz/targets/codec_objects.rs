//! Embeddings, rankings and counts: any JSON of a client or a provider is refused or written.
#![no_main]

use fuzz::chosen;
use libfuzzer_sys::fuzz_target;
use proxy::wire::codecs::objects::{AskedObject, OBJECT_CODECS};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((codec, body)) = chosen(OBJECT_CODECS, data) else { return };
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
    for is_base64 in [false, true] {
        let asked = AskedObject { id: "i".into(), model: "m".into(), provider: "p".into(), is_base64, created: 1 };
        let _ = codec.read_answer(value.clone(), &asked);
    }
    if let Value::Object(request) = value {
        let _ = codec.write_request(request, "m");
    }
});
