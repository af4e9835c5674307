//! The vocabulary of a model. OpenAI's two are public; of the others' none is, or none is small, and the newer of the two
//! comes closest. Whoever counts says that it is an estimate.

mod tokenizer;

pub use tokenizer::Tokenizer;
use tokenizer::{cl100k, o200k};

/// Families that speak the older one. Names of routers and fine-tunes have theirs in the middle.
const OLDER: [&str; 6] = ["gpt-3.5", "gpt-35", "gpt-4-", "gpt-4:", "text-embedding-", "gpt-4 "];

/// Built on first use, which takes a moment: not for threads that carry requests.
pub fn of_model(model: &str) -> &'static Tokenizer {
    match is_older(model) {
        true => cl100k(),
        false => o200k(),
    }
}

/// The vocabulary that a model surely has; none of most. Built on first use, as above.
pub fn known_of_model(model: &str) -> Option<&'static Tokenizer> {
    const NEWER: [&str; 8] = ["gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "o1", "o3", "o4", "chatgpt-4o"];
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let name = name.strip_prefix("ft:").unwrap_or(&name);
    match NEWER.iter().any(|begins| name.starts_with(begins)) {
        true => Some(o200k()),
        false if name.starts_with("gpt-") || name.starts_with("text-embedding-") => is_older(name).then(cl100k),
        false => None,
    }
}

fn is_older(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    // `gpt-4-turbo` and plain `gpt-4`, and not `gpt-4o` or `gpt-4.1`.
    model.ends_with("gpt-4") || OLDER.iter().any(|part| model.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_counted_with_its_own_vocabulary() {
        for (model, expected) in [
            ("gpt-4", true),
            ("gpt-4-turbo-2024-04-09", true),
            ("gpt-3.5-turbo", true),
            ("openai/gpt-4", true),
            ("text-embedding-3-small", true),
            ("gpt-4o-mini", false),
            ("ft:gpt-4o-mini:acme", false),
            ("gpt-4.1", false),
            ("gpt-5", false),
            ("o3-mini", false),
            ("claude-sonnet-4", false),
            ("", false),
        ] {
            assert_eq!(is_older(model), expected, "{model}");
        }
    }
}
