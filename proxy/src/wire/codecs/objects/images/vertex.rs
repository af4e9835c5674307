//! Imagen, which Google's two hosts are asked for by a prediction (contract 7.5).

use super::asked::ImageRequest;
use super::made;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::objects::{AskedObject, ObjectCodec, without_nulls};
use crate::wire::codecs::options::Dropped;
use serde_json::{Map, Value, json};

const RATIOS: &[(u32, u32)] = &[(1, 1), (3, 4), (4, 3), (9, 16), (16, 9)];

#[derive(Debug)]
pub(crate) struct VertexImages;

impl ObjectCodec for VertexImages {
    fn name(&self) -> &'static str {
        "vertex_images"
    }

    fn write_request(&self, request: Map<String, Value>, _: &str) -> Result<(Value, Dropped), CodecError> {
        let mut asked = ImageRequest::read(request)?;
        let prompt = std::mem::take(&mut asked.prompt);
        let kind = asked.text("output_format").map(|format| json!({ "mimeType": format!("image/{format}") }));
        let parameters = without_nulls(json!({
            // Google makes four where nobody says how many.
            "sampleCount": asked.take_count().unwrap_or(1),
            "aspectRatio": asked.ratio(RATIOS),
            "negativePrompt": asked.take("negative_prompt"),
            "seed": asked.take("seed"),
            "personGeneration": asked.take("person_generation"),
            "safetySetting": asked.take("safety_setting"),
            "addWatermark": asked.take("add_watermark"),
            "enhancePrompt": asked.take("enhance_prompt"),
            "language": asked.take("language"),
            "outputOptions": kind,
        }));
        Ok((json!({ "instances": [{ "prompt": prompt }], "parameters": parameters }), asked.dropped()))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        made::answer(reply, "/predictions", asked)
    }
}
