//! The other names of a model at its provider, so that one that is switched off is off under each of them.

use shared::providers::foundation_model;

/// Those that stand before a model's name on Vertex; Google is meant where none does.
const PUBLISHERS: [&str; 4] = ["google", "anthropic", "meta", "mistralai"];

/// Empty at providers that know a model under one name alone.
pub fn other_spellings(provider: &str, model: &str) -> Vec<String> {
    let mut names = match provider {
        "vertex-ai" => of_vertex(model),
        "bedrock" => of_bedrock(model),
        _ => Vec::new(),
    };
    names.retain(|name| name != model);
    names
}

/// `gemini-x`, `google.gemini-x` and `projects/p/locations/r/publishers/google/models/gemini-x` are one.
fn of_vertex(model: &str) -> Vec<String> {
    let (publisher, name) = match model.trim_end_matches('/').rsplit_once('/') {
        Some((folder, name)) => {
            let folder = folder.trim_end_matches('/');
            let publisher = folder.strip_suffix("models").map(|folder| folder.trim_end_matches('/'));
            (publisher.and_then(|folder| folder.rsplit('/').next()).unwrap_or("google"), name)
        }
        None => {
            let split = model.split_once('.').filter(|(publisher, _)| PUBLISHERS.contains(publisher));
            split.unwrap_or(("google", model))
        }
    };
    let publisher = if publisher.is_empty() { "google" } else { publisher };
    let mut names = vec![format!("{publisher}.{name}"), format!("publishers/{publisher}/models/{name}")];
    if publisher == "google" {
        names.push(name.to_owned());
    }
    names
}

/// An ARN, the name in it, and the model without its region.
fn of_bedrock(model: &str) -> Vec<String> {
    let named = model.strip_prefix("arn:").and_then(|arn| arn.split_once('/')).map(|(_, name)| name);
    named.into_iter().chain(foundation_model(model)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_all_its_names() {
        for (provider, model, other) in [
            ("vertex-ai", "publishers/google/models/gemini-x", "gemini-x"),
            ("vertex-ai", "publishers/google/models/gemini-x", "google.gemini-x"),
            ("vertex-ai", "projects/p/locations/r/publishers/google/models/gemini-x", "gemini-x"),
            ("vertex-ai", "models/gemini-x", "gemini-x"),
            ("vertex-ai", "publishers//google//models//gemini-x/", "gemini-x"),
            ("vertex-ai", "google.gemini-x", "gemini-x"),
            ("vertex-ai", "gemini-x", "google.gemini-x"),
            ("vertex-ai", "gemini-x", "publishers/google/models/gemini-x"),
            ("vertex-ai", "publishers/anthropic/models/claude", "anthropic.claude"),
            ("vertex-ai", "anthropic.claude", "publishers/anthropic/models/claude"),
            ("bedrock", "us.anthropic.claude-v2:1", "anthropic.claude-v2:1"),
            ("bedrock", "arn:aws:bedrock:r:1:inference-profile/us.anthropic.claude", "us.anthropic.claude"),
            ("bedrock", "arn:aws:bedrock:r:1:inference-profile/us.anthropic.claude", "anthropic.claude"),
        ] {
            let names = other_spellings(provider, model);
            assert!(names.iter().any(|name| name == other), "{model}: {names:?}");
        }
        let claude = other_spellings("vertex-ai", "publishers/anthropic/models/claude");
        assert!(!claude.iter().any(|name| name == "claude"), "that would be Google's");
        assert!(other_spellings("openai", "google.gpt").is_empty());
        assert!(other_spellings("bedrock", "anthropic.claude").is_empty());
    }
}
