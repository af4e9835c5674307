//! `inlineImageUrls`: images that a request names by address are put into it, for providers that fetch nothing. Somebody with a
//! dialer fetches them; all are put in, or none is.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::remote::{Answers, Image, Question, RemoteAnswer, RemoteCheck, RemoteContext};
use crate::guardrails::subject::{Hook, Shape, Subject};
use crate::guardrails::verdict::Verdict;
use serde_json::{Value, json};
use std::time::Duration;

/// A request with more fails.
const MAX_IMAGES: usize = 20;
const MAX_URL: usize = 8 << 10;
const MAX_IMAGE: u64 = 20 << 20;
const TIMEOUT_MS: u64 = 30_000;

struct InlineImages {
    /// For requests to these alone; for all if there are none.
    providers: Vec<String>,
    longest: usize,
    timeout: Duration,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let longest = parameters.count("maxSizeBytes", MAX_IMAGE).min(MAX_IMAGE);
    Ok(Box::new(InlineImages {
        providers: parameters.texts("providers"),
        longest: usize::try_from(longest).unwrap_or_default(),
        timeout: Duration::from_millis(parameters.count("timeoutMs", TIMEOUT_MS)),
    }))
}

impl Check for InlineImages {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        super::elsewhere::not_asked()
    }

    fn remote(&self) -> Option<&dyn RemoteCheck> {
        Some(self)
    }
}

impl RemoteCheck for InlineImages {
    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn ask(&self, subject: &Subject<'_>, context: &RemoteContext<'_>) -> Result<Question, Box<Verdict>> {
        let provider = context.provider.trim_start_matches('@');
        let is_meant = |named: &String| named.trim_start_matches('@').eq_ignore_ascii_case(provider);
        if !self.providers.is_empty() && !self.providers.iter().any(is_meant) {
            return Err(Verdict::new(true, "Requests to this provider are left as they are.", Value::Null).into());
        }
        let found = found(subject)?;
        if found.is_empty() {
            return Err(Verdict::new(true, "The request names no image by address.", Value::Null).into());
        }
        let urls = found.into_iter().map(|place| place.url.to_owned()).collect();
        Ok(Question::Images { urls, longest: self.longest })
    }

    fn read(&self, subject: &Subject<'_>, answers: &Answers) -> Verdict {
        let found = match found(subject) {
            Ok(found) => found,
            Err(verdict) => return *verdict,
        };
        let Answers::Images(images) = answers else { return RemoteAnswer::senseless("it has no images") };
        if images.fetched.len() != found.len() {
            return RemoteAnswer::senseless("it does not speak of every image");
        }
        let mut json = subject.request.clone();
        for (place, image) in found.iter().zip(&images.fetched) {
            let image = match image {
                Ok(image) => image,
                Err(why) => {
                    let message = format!("the image at {} could not be fetched: {why}", place.pointer);
                    return Verdict::error("ImageNotFetched", message);
                }
            };
            if let Some(value) = json.pointer_mut(&place.pointer) {
                *value = place.kind.written(image);
            }
        }
        let data = json!({ "images": found.len() });
        Verdict::new(true, "The images that the request names are part of it.", data).with_transformed(json)
    }
}

/// An image in a body.
struct ImagePlace<'s> {
    /// Of what is replaced.
    pointer: String,
    kind: PlaceKind,
    url: &'s str,
}

enum PlaceKind {
    /// An address as text.
    Address,
    /// Anthropic's object.
    Source,
}

impl PlaceKind {
    fn written(&self, image: &Image) -> Value {
        match self {
            Self::Address => Value::String(format!("data:{};base64,{}", image.media_type, image.data)),
            Self::Source => json!({ "type": "base64", "media_type": image.media_type, "data": image.data }),
        }
    }
}

fn found<'s>(subject: &Subject<'s>) -> Result<Vec<ImagePlace<'s>>, Box<Verdict>> {
    let list = match (subject.hook, subject.shape) {
        (Hook::BeforeRequest, Shape::Chat | Shape::Messages) => "messages",
        (Hook::BeforeRequest, Shape::Responses) => "input",
        _ => return Ok(Vec::new()),
    };
    let mut found = Vec::new();
    for (index, item) in items(subject.request.get(list)) {
        for field in ["content", "output"] {
            gather(item.get(field), &format!("/{list}/{index}/{field}"), &mut found);
        }
    }
    if found.len() > MAX_IMAGES {
        let why = format!("the request names more than the {MAX_IMAGES} images that are fetched");
        return Err(Verdict::bound("TooMany", why).into());
    }
    Ok(found)
}

fn items(value: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    value.and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// The images among parts; of results of tools too, one level deep. It ends soon after there are too many.
fn gather<'s>(parts: Option<&'s Value>, at: &str, found: &mut Vec<ImagePlace<'s>>) {
    for (index, part) in items(parts) {
        if found.len() > MAX_IMAGES {
            return;
        }
        let pointer = |field: &str| format!("{at}/{index}/{field}");
        let (pointer, kind, url) = match part.get("type").and_then(Value::as_str) {
            Some("image_url") if part["image_url"].is_object() => {
                (pointer("image_url/url"), PlaceKind::Address, &part["image_url"]["url"])
            }
            Some("image_url" | "input_image") => (pointer("image_url"), PlaceKind::Address, &part["image_url"]),
            Some("image") => (pointer("source"), PlaceKind::Source, &part["source"]["url"]),
            Some("tool_result") if at.matches('/').count() <= 3 => {
                gather(part.get("content"), &pointer("content"), found);
                continue;
            }
            _ => continue,
        };
        let url = url.as_str().filter(|url| url.starts_with("https://") || url.starts_with("http://"));
        if let Some(url) = url.filter(|url| url.len() <= MAX_URL) {
            found.push(ImagePlace { pointer, kind, url });
        }
    }
}

#[cfg(test)]
mod tests;
