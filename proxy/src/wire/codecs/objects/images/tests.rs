//! Every vendor of images, by the same wish; what each of them is sent in full is in the golden files.

use crate::wire::codecs::objects::by_name;
use serde_json::{Value, json};

fn sent(codec: &str, model: &str, request: Value) -> (Value, Vec<String>) {
    let (body, dropped) = by_name(codec).unwrap().write_request(request.as_object().cloned().unwrap(), model).unwrap();
    (body, dropped.names().map(str::to_owned).collect())
}

#[test]
fn what_a_vendor_cannot_say_is_dropped_by_name() {
    let wish = json!({ "model": "x", "prompt": "a cat", "n": 2, "size": "1792x1024", "quality": "hd",
        "response_format": "b64_json", "user": "u", "negative_prompt": "dogs", "seed": null });
    for (codec, dropped) in [
        ("stability_v1_images", &["quality", "user"][..]),
        ("stability_v2_images", &["n", "quality", "user"]),
        ("segmind_images", &["quality", "user"]),
        ("fireworks_workflow_images", &["n", "quality", "user", "negative_prompt"]),
        ("hyperbolic_images", &["n", "quality", "user"]),
        ("vertex_images", &["quality", "user"]),
        ("bedrock_images", &["user"]),
    ] {
        assert_eq!(sent(codec, "m", wish.clone()).1, dropped, "{codec}");
    }
}

#[test]
fn bedrock_is_asked_as_the_models_vendor_is() {
    let wish = json!({ "prompt": "a cat", "n": 1, "size": "1024x576", "negative_prompt": "dogs" });
    for (model, expected) in [
        (
            "amazon.nova-canvas-v1:0",
            json!({ "taskType": "TEXT_IMAGE", "textToImageParams": { "text": "a cat", "negativeText": "dogs" },
                "imageGenerationConfig": { "numberOfImages": 1, "width": 1024, "height": 576 } }),
        ),
        (
            "stability.stable-diffusion-xl-v1",
            json!({ "text_prompts": [{ "text": "a cat", "weight": 1 }, { "text": "dogs", "weight": -1 }],
                "width": 1024, "height": 576 }),
        ),
        (
            "us.stability.sd3-5-large-v1:0",
            json!({ "prompt": "a cat", "negative_prompt": "dogs", "mode": "text-to-image", "aspect_ratio": "16:9" }),
        ),
    ] {
        assert_eq!(sent("bedrock_images", model, wish.clone()).0, expected, "{model}");
    }
}

#[test]
fn bytes_are_asked_for_where_addresses_are_usual() {
    let wish = |format: &str| json!({ "prompt": "a cat", "response_format": format });
    assert_eq!(sent("fal_images", "m", wish("b64_json")).0["sync_mode"], true);
    assert_eq!(sent("fal_images", "m", wish("url")).0.get("sync_mode"), None);
    assert_eq!(sent("segmind_images", "m", wish("url")).0["base64"], true);
}
