//! What a model takes of what its format can say: how it is told to think, whether it takes sampling parameters, how long its
//! answers may be. Claims about models change faster than code, so they are data of the catalogue: `capabilities` of a
//! model's entry, else of `default`, in files that an operator may replace.

use super::sources::Document;
use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ModelCapabilities {
    /// `temperature`, `top_p` and `top_k`.
    pub sampling: Option<bool>,
    pub thinking: Option<ThinkingWay>,
    pub max_output_tokens: Option<u64>,
}

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingWay {
    /// So many tokens.
    Budget,
    /// As it sees fit, with so much effort: Claude after 4.6.
    Adaptive,
    /// At a level: Gemini from 3 on.
    Level,
}

impl Document {
    /// Nothing where nobody says anything, or what nobody understands.
    pub fn capabilities(&self, model: &str) -> ModelCapabilities {
        let Self::Capabilities(all) = self else { return ModelCapabilities::default() };
        let own = |name: &str| {
            let listed = all.get(name)?.get("capabilities")?;
            ModelCapabilities::deserialize(listed).ok()
        };
        own(model).or_else(|| own("default")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::prices::bundled;
    use crate::cost::prices::sources::Kind;
    use serde_json::json;

    #[test]
    fn a_model_says_what_it_takes_and_else_its_provider_does() {
        let document = Document::Capabilities(json!({
            "default": { "capabilities": { "sampling": false } },
            "a": { "capabilities": { "thinking": "adaptive", "max_output_tokens": 9, "new": 1 } },
            "b": { "capabilities": { "thinking": "deeply" } },
        }));
        let nothing = ModelCapabilities::default();
        let adaptive =
            ModelCapabilities { thinking: Some(ThinkingWay::Adaptive), max_output_tokens: Some(9), ..nothing };
        let default = ModelCapabilities { sampling: Some(false), ..nothing };
        for (model, expected) in [("a", adaptive), ("b", default), ("c", default)] {
            assert_eq!(document.capabilities(model), expected, "{model}");
        }
    }

    #[test]
    fn the_bundled_files_know_how_the_newer_models_think() {
        for (provider, model, thinking) in [
            ("anthropic", "claude-opus-4-6", None),
            ("anthropic", "claude-opus-4-7", Some(ThinkingWay::Adaptive)),
            ("bedrock", "us.anthropic.claude-sonnet-5", Some(ThinkingWay::Adaptive)),
            ("vertex-ai", "anthropic.claude-opus-5", Some(ThinkingWay::Adaptive)),
            ("google", "gemini-2.5-pro", None),
            ("google", "gemini-3-pro-preview", Some(ThinkingWay::Level)),
        ] {
            let text = bundled::text(Kind::General, provider).unwrap();
            let document = Document::parse(Kind::General, text).unwrap();
            assert_eq!(document.capabilities(model).thinking, thinking, "{provider} {model}");
        }
    }
}
