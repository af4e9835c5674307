//! Images as vendors return them: all of them the same few bytes.

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::shape::Payload;
use super::whole;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nmock";
/// The same as text.
pub const BASE64: &str = "iVBORw0KGgptb2Nr";
const ADDRESS: &str = "https://images.test/mock.png";

/// A list of objects, as many as the request says.
pub fn listed(body: &Value, count: &str, list: &str, name: &str) -> Payload {
    let image = if name == "url" { ADDRESS } else { BASE64 };
    let images = vec![json!({ name: image, "seed": 1 }); many(body, count)];
    whole(&json!({ list: images }))
}

pub fn bare_list(body: &Value) -> Payload {
    let image = json!({ "base64": BASE64, "finishReason": "SUCCESS", "seed": 1 });
    whole(&json!(vec![image; many(body, "samples")]))
}

/// The newer models answer with an object, the others with the image itself.
pub fn of_workers(path: &str) -> Payload {
    match path.contains("flux") {
        true => whole(&json!({ "result": { "image": BASE64 }, "success": true, "errors": [], "messages": [] })),
        false => Payload::Typed("image/png", Bytes::from_static(PNG)),
    }
}

pub fn of_fal(body: &Value) -> Payload {
    let url = if body["sync_mode"] == true { format!("data:image/png;base64,{BASE64}") } else { ADDRESS.to_owned() };
    let image = json!({ "url": url, "content_type": "image/png", "width": 8, "height": 8 });
    whole(&json!({ "images": vec![image; many(body, "num_images")], "seed": 1, "prompt": body["prompt"] }))
}

fn many(body: &Value, name: &str) -> usize {
    body[name].as_u64().map_or(1, |count| count.min(8) as usize)
}
