//! Images of Bedrock's models: Amazon's own, and Stability's in both of its versions. Which it is stands in the name,
//! wherever a region or an account stands before it.

use super::asked::ImageRequest;
use super::made;
use super::vendor::weighted;
use super::vendor_table::STABILITY_RATIOS;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::objects::{AskedObject, ObjectCodec, without_nulls};
use crate::wire::codecs::options::Dropped;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(crate) struct BedrockImages;

impl ObjectCodec for BedrockImages {
    fn name(&self) -> &'static str {
        "bedrock_images"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let mut asked = ImageRequest::read(request)?;
        let prompt = std::mem::take(&mut asked.prompt);
        let body = match model {
            _ if model.contains("stability.stable-diffusion") => stability_first(prompt, &mut asked),
            _ if model.contains("stability.") => stability_second(prompt, &mut asked),
            _ => amazon(prompt, &mut asked),
        };
        Ok((body, asked.dropped()))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let place = if reply.get("artifacts").is_some() { "/artifacts" } else { "/images" };
        made::answer(reply, place, asked)
    }
}

/// Titan and Nova Canvas.
fn amazon(prompt: String, asked: &mut ImageRequest) -> Value {
    let quality = asked.text("quality").map(|quality| match quality.as_str() {
        "hd" | "high" | "premium" => "premium",
        _ => "standard",
    });
    let size = asked.take_size();
    let config = json!({
        "numberOfImages": asked.take_count().unwrap_or(1),
        "width": size.map(|size| size.width), "height": size.map(|size| size.height),
        "quality": quality, "cfgScale": asked.take("cfg_scale"), "seed": asked.take("seed"),
    });
    let text = without_nulls(json!({ "text": prompt, "negativeText": asked.take("negative_prompt") }));
    json!({ "taskType": "TEXT_IMAGE", "textToImageParams": text, "imageGenerationConfig": without_nulls(config) })
}

fn stability_first(prompt: String, asked: &mut ImageRequest) -> Value {
    let size = asked.take_size();
    without_nulls(json!({
        "text_prompts": weighted(prompt, asked),
        "width": size.map(|size| size.width), "height": size.map(|size| size.height),
        "cfg_scale": asked.take("cfg_scale"), "steps": asked.take("steps"), "seed": asked.take("seed"),
        "sampler": asked.take("sampler"), "style_preset": asked.take("style_preset").or_else(|| asked.take("style")),
    }))
}

fn stability_second(prompt: String, asked: &mut ImageRequest) -> Value {
    without_nulls(json!({
        "prompt": prompt, "negative_prompt": asked.take("negative_prompt"), "mode": "text-to-image",
        "aspect_ratio": asked.ratio(STABILITY_RATIOS), "seed": asked.take("seed"),
        "output_format": asked.take("output_format"),
    }))
}
