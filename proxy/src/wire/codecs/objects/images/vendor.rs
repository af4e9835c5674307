//! Vendors whose requests for images differ from OpenAI's in their names: which field holds what, and where an answer has
//! its images.

use super::asked::{ImageRequest, ImageSize};
use super::made;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::objects::{AskedObject, ObjectCodec};
use crate::wire::codecs::options::Dropped;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(crate) struct ImageVendor {
    pub name: &'static str,
    /// The field that names the model, where that is not in the path.
    pub model: Option<&'static str>,
    pub prompt: PromptField,
    /// How many.
    pub count: Option<&'static str>,
    pub size: SizeField,
    /// Whatever else a client may say, and the vendor's name for it.
    pub fields: &'static [(&'static str, &'static str)],
    pub bytes: BytesField,
    pub is_form: bool,
    /// Where answers have their images.
    pub images: &'static str,
}

#[derive(Debug)]
pub(crate) enum PromptField {
    Plain,
    /// Several texts with weights, of which a negative one is what is not wanted.
    Weighted,
}

#[derive(Debug)]
pub(crate) enum SizeField {
    Sides(&'static str, &'static str),
    /// As the client writes it.
    Whole(&'static str),
    /// An object with both sides.
    Object(&'static str),
    /// The nearest of these.
    Ratio(&'static [(u32, u32)]),
}

/// The field that asks for bytes in place of an address.
#[derive(Debug)]
pub(crate) enum BytesField {
    None,
    Always(&'static str),
    OnWish(&'static str),
}

impl ObjectCodec for ImageVendor {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_form(&self) -> bool {
        self.is_form
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let mut asked = ImageRequest::read(request)?;
        let mut body = Map::new();
        if let Some(name) = self.model {
            body.insert(name.into(), model.into());
        }
        self.prompt.write(&mut asked, &mut body);
        if let Some(name) = self.count
            && let Some(count) = asked.take_count()
        {
            body.insert(name.into(), count.into());
        }
        self.size.write(&mut asked, &mut body);
        for (name, theirs) in self.fields {
            if let Some(value) = asked.take(name) {
                body.insert((*theirs).into(), value);
            }
        }
        match self.bytes {
            BytesField::Always(name) => drop(body.insert(name.into(), true.into())),
            BytesField::OnWish(name) if asked.wants_bytes => drop(body.insert(name.into(), true.into())),
            BytesField::OnWish(_) | BytesField::None => {}
        }
        Ok((Value::Object(body), asked.dropped()))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        made::answer(reply, self.images, asked)
    }
}

impl PromptField {
    fn write(&self, asked: &mut ImageRequest, body: &mut Map<String, Value>) {
        let prompt = std::mem::take(&mut asked.prompt);
        match self {
            Self::Plain => drop(body.insert("prompt".into(), prompt.into())),
            Self::Weighted => drop(body.insert("text_prompts".into(), weighted(prompt, asked))),
        }
    }
}

pub(super) fn weighted(prompt: String, asked: &mut ImageRequest) -> Value {
    let unwanted = asked.text("negative_prompt").map(|text| json!({ "text": text, "weight": -1 }));
    let wanted = json!({ "text": prompt, "weight": 1 });
    Value::Array([wanted].into_iter().chain(unwanted).collect())
}

impl SizeField {
    fn write(&self, asked: &mut ImageRequest, body: &mut Map<String, Value>) {
        if let Self::Ratio(known) = self {
            if let Some(ratio) = asked.ratio(known) {
                body.insert("aspect_ratio".into(), ratio.into());
            }
            return;
        }
        let Some(ImageSize { width, height }) = asked.take_size() else { return };
        match self {
            Self::Sides(first, second) => {
                body.insert((*first).into(), width.into());
                body.insert((*second).into(), height.into());
            }
            Self::Whole(name) => drop(body.insert((*name).into(), format!("{width}x{height}").into())),
            Self::Object(name) => {
                body.insert((*name).into(), json!({ "width": width, "height": height }));
            }
            Self::Ratio(_) => {}
        }
    }
}
