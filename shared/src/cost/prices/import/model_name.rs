//! Which model a name in a public list means. Names there carry the provider, a region, or the quality and size of an image.

/// What rows that are no models are refused with.
pub const NO_MODEL: &str = "no model";

/// Parts of names that are no models, or are priced for a term of months.
const JUNK_PARTS: [&str; 2] = ["fallback_generalizations", "commitment"];
const JUNK_NAMES: [&str; 4] = ["sample_spec", "container", "fireworks-ai-default", "search"];

/// What some providers have before their models beside their own name.
const PREFIXES: [&str; 4] = ["vertex_ai/", "fireworks_ai/", "azure/", "azure_ai/"];

/// A region, or the scope of a deployment, before a name; regions such as `us-gov-east-1` are told by their form.
const SCOPES: [&str; 5] = ["us", "eu", "global", "global-standard", "standard-us"];

/// Whose names may have the quality and size of an image in front: `hd/1024-x-1024/dall-e-3`.
const OF_IMAGES: [&str; 5] = ["openai", "azure-openai", "fal-ai", "azure-ai", "bedrock"];
const QUALITIES: [&str; 7] = ["low", "medium", "high", "xhigh", "hd", "standard", "auto"];

/// A model, and the quality and size of images that the row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelName<'n> {
    pub model: &'n str,
    pub quality: Option<&'n str>,
    pub size: Option<ImageSize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    pub width: u32,
    pub height: u32,
}

/// `ours` is our name of the provider. An error says why the row is about no model of ours.
pub fn parse<'n>(ours: &str, name: &'n str) -> Result<ModelName<'n>, &'static str> {
    let name = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    if is_junk(name) || name.contains('*') {
        return Err(NO_MODEL);
    }
    if name.split_once('/').is_some_and(|(scope, _)| SCOPES.contains(&scope) || is_region(scope)) {
        return Err("a region's own price");
    }
    let mut found = ModelName { model: name, quality: None, size: None };
    if OF_IMAGES.contains(&ours) {
        while let Some((first, rest)) = found.model.split_once('/') {
            match ImageSize::parse(first) {
                Some(size) if found.size.is_none() => found.size = Some(size),
                None if found.quality.is_none() && QUALITIES.contains(&first) => found.quality = Some(first),
                _ => break,
            }
            found.model = rest;
        }
        if found.model.split('/').any(|part| part.ends_with("-steps") || part == "max-x-max") {
            return Err("images by steps");
        }
    }
    if ours == "vertex-ai" {
        found.model = found.model.rsplit('/').next().unwrap_or(found.model);
    }
    if found.model.is_empty() { Err(NO_MODEL) } else { Ok(found) }
}

pub fn is_junk(name: &str) -> bool {
    JUNK_PARTS.iter().any(|part| name.contains(part)) || JUNK_NAMES.contains(&name) || has_bound(name)
}

/// `…gt-128k`, `…lte-32k`: a context tier that is listed as a model.
fn has_bound(name: &str) -> bool {
    let Some((rest, thousands)) = name.strip_suffix('k').and_then(|name| name.rsplit_once('-')) else { return false };
    is_number(thousands) && (rest.ends_with("gt") || rest.ends_with("lte"))
}

/// `us-east-1`, `us-gov-west-1`
fn is_region(scope: &str) -> bool {
    let parts: Vec<&str> = scope.split('-').collect();
    let (land, side, number) = match parts[..] {
        [land, side, number] | [land, "gov", side, number] => (land, side, number),
        _ => return false,
    };
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    land.len() == 2 && is_word(land) && is_word(side) && number.len() == 1 && is_number(number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl ImageSize {
    /// `1024-x-1024`
    fn parse(text: &str) -> Option<Self> {
        let (width, height) = text.split_once("-x-")?;
        Some(Self { width: width.parse().ok()?, height: height.parse().ok()? })
    }

    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}

/// As our price lists have it.
impl std::fmt::Display for ImageSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_into_model_quality_and_size() {
        let square = Some(ImageSize { width: 1024, height: 1024 });
        for (ours, name, model, quality, size) in [
            ("openai", "gpt-4o", "gpt-4o", None, None),
            ("openai", "hd/1024-x-1024/dall-e-3", "dall-e-3", Some("hd"), square),
            ("openai", "1024-x-1024/dall-e-2", "dall-e-2", None, square),
            ("azure-openai", "standard/1024-x-1024/dall-e-3", "dall-e-3", Some("standard"), square),
            ("azure-openai", "azure/gpt-35-turbo", "gpt-35-turbo", None, None),
            ("bedrock", "1024-x-1024/50-more/stability.x", "50-more/stability.x", None, square),
            ("together-ai", "hd/model", "hd/model", None, None),
            ("vertex-ai", "vertex_ai/meta/llama-3.1-405b", "llama-3.1-405b", None, None),
            ("fireworks-ai", "accounts/fireworks/models/x", "accounts/fireworks/models/x", None, None),
            ("openai", "4294967296-x-1/m", "4294967296-x-1/m", None, None),
        ] {
            assert_eq!(parse(ours, name), Ok(ModelName { model, quality, size }), "{name}");
        }
    }

    #[test]
    fn what_is_no_model_of_ours_is_refused_with_the_reason() {
        for (ours, name, reason) in [
            ("bedrock", "fallback_generalizations", NO_MODEL),
            ("bedrock", "1-month-commitment/anthropic.claude-v1", NO_MODEL),
            ("openai", "container", NO_MODEL),
            ("dashscope", "qwen-gt-128k", NO_MODEL),
            ("deepinfra", "llama/*", NO_MODEL),
            ("azure-openai", "eu/gpt-5.4-2026-03-05", "a region's own price"),
            ("bedrock", "us-gov-west-1/anthropic.claude", "a region's own price"),
            ("bedrock", "eu-central-1/minimax.minimax-m2.1", "a region's own price"),
            ("bedrock", "512-x-512/50-steps/stability.x", "images by steps"),
            ("vertex-ai", "meta/", NO_MODEL),
        ] {
            assert_eq!(parse(ours, name), Err(reason), "{name}");
        }
        assert!(parse("openai", "gpt-4-32k").is_ok());
    }
}
