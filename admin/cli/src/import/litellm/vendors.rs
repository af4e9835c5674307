//! Which provider of ours a LiteLLM model is of: by the prefix of its name, or by the beginning of a name without one.

use crate::import::slug;

pub struct Vendor {
    /// LiteLLM's word for it.
    pub prefix: &'static str,
    /// Ours.
    pub id: &'static str,
    pub access: Access,
}

/// How accounts of a provider are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// By a key, which LiteLLM takes from this variable where the configuration names none.
    Key(&'static str),
    /// By an address of the installation's own, with or without a key.
    Address,
    /// By nothing.
    Open,
    Azure,
    Aws,
    Vertex,
}

use Access::{Address, Aws, Azure, Key, Open, Vertex};

const fn vendor(prefix: &'static str, id: &'static str, access: Access) -> Vendor {
    Vendor { prefix, id, access }
}

pub static VENDORS: &[Vendor] = &[
    vendor("openai", "openai", Key("OPENAI_API_KEY")),
    vendor("text-completion-openai", "openai", Key("OPENAI_API_KEY")),
    vendor("custom_openai", "openai", Address),
    vendor("openai_like", "openai", Address),
    vendor("aiohttp_openai", "openai", Address),
    vendor("hosted_vllm", "openai", Address),
    vendor("vllm", "openai", Address),
    vendor("lm_studio", "openai", Address),
    vendor("llamafile", "openai", Address),
    vendor("lemonade", "openai", Address),
    vendor("xinference", "openai", Address),
    vendor("infinity", "openai", Address),
    vendor("docker_model_runner", "openai", Address),
    vendor("litellm_proxy", "openai", Address),
    vendor("azure", "azure-openai", Azure),
    vendor("azure_text", "azure-openai", Azure),
    vendor("anthropic", "anthropic", Key("ANTHROPIC_API_KEY")),
    vendor("anthropic_text", "anthropic", Key("ANTHROPIC_API_KEY")),
    vendor("bedrock", "bedrock", Aws),
    vendor("bedrock_converse", "bedrock", Aws),
    vendor("sagemaker", "sagemaker", Aws),
    vendor("sagemaker_chat", "sagemaker", Aws),
    vendor("vertex_ai", "vertex-ai", Vertex),
    vendor("vertex_ai_beta", "vertex-ai", Vertex),
    vendor("gemini", "google", Key("GEMINI_API_KEY")),
    vendor("mistral", "mistral-ai", Key("MISTRAL_API_KEY")),
    vendor("codestral", "mistral-ai", Key("CODESTRAL_API_KEY")),
    vendor("groq", "groq", Key("GROQ_API_KEY")),
    vendor("cohere", "cohere", Key("COHERE_API_KEY")),
    vendor("cohere_chat", "cohere", Key("COHERE_API_KEY")),
    vendor("together_ai", "together-ai", Key("TOGETHERAI_API_KEY")),
    vendor("fireworks_ai", "fireworks-ai", Key("FIREWORKS_AI_API_KEY")),
    vendor("perplexity", "perplexity-ai", Key("PERPLEXITYAI_API_KEY")),
    vendor("deepseek", "deepseek", Key("DEEPSEEK_API_KEY")),
    vendor("xai", "x-ai", Key("XAI_API_KEY")),
    vendor("openrouter", "openrouter", Key("OPENROUTER_API_KEY")),
    vendor("deepinfra", "deepinfra", Key("DEEPINFRA_API_KEY")),
    vendor("anyscale", "anyscale", Key("ANYSCALE_API_KEY")),
    vendor("ai21", "ai21", Key("AI21_API_KEY")),
    vendor("ai21_chat", "ai21", Key("AI21_API_KEY")),
    vendor("huggingface", "huggingface", Key("HUGGINGFACE_API_KEY")),
    vendor("ollama", "ollama", Open),
    vendor("ollama_chat", "ollama", Open),
    vendor("triton", "triton", Open),
    vendor("replicate", "replicate", Key("REPLICATE_API_KEY")),
    vendor("stability", "stability-ai", Key("STABILITY_API_KEY")),
    vendor("recraft", "recraft-ai", Key("RECRAFT_API_KEY")),
    vendor("jina_ai", "jina", Key("JINA_AI_API_KEY")),
    vendor("voyage", "voyage", Key("VOYAGE_API_KEY")),
    vendor("cerebras", "cerebras", Key("CEREBRAS_API_KEY")),
    vendor("sambanova", "sambanova", Key("SAMBANOVA_API_KEY")),
    vendor("moonshot", "moonshot", Key("MOONSHOT_API_KEY")),
    vendor("zai", "z-ai", Key("ZAI_API_KEY")),
    vendor("bigmodel", "zhipu", Key("BIGMODEL_API_KEY")),
    vendor("dashscope", "dashscope", Key("DASHSCOPE_API_KEY")),
    vendor("novita", "novita-ai", Key("NOVITA_API_KEY")),
    vendor("nebius", "nebius", Key("NEBIUS_API_KEY")),
    vendor("nscale", "nscale", Key("NSCALE_API_KEY")),
    vendor("hyperbolic", "hyperbolic", Key("HYPERBOLIC_API_KEY")),
    vendor("lambda_ai", "lambda", Key("LAMBDA_API_KEY")),
    vendor("featherless_ai", "featherless-ai", Key("FEATHERLESS_AI_API_KEY")),
    vendor("cometapi", "cometapi", Key("COMETAPI_API_KEY")),
    vendor("ovhcloud", "ovhcloud", Key("OVHCLOUD_API_KEY")),
    vendor("bytez", "bytez", Key("BYTEZ_API_KEY")),
    vendor("deepgram", "deepgram", Key("DEEPGRAM_API_KEY")),
    vendor("fal_ai", "fal-ai", Key("FAL_AI_API_KEY")),
    vendor("minimax", "minimax", Key("MINIMAX_API_KEY")),
    vendor("github", "github", Key("GITHUB_API_KEY")),
];

/// How names without a prefix begin, and whose they are.
static BARE_NAMES: &[(&str, &str)] = &[
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("text-embedding-", "openai"),
    ("text-moderation-", "openai"),
    ("omni-moderation-", "openai"),
    ("dall-e-", "openai"),
    ("whisper-", "openai"),
    ("tts-", "openai"),
    ("claude-", "anthropic"),
    ("command", "cohere"),
    ("mistral-", "mistral"),
];

/// Variables that LiteLLM reads without being told.
pub fn own_variables() -> impl Iterator<Item = String> {
    let keys = VENDORS.iter().map(|vendor| match vendor.access {
        Key(name) => name.to_owned(),
        _ => format!("{}_API_KEY", slug::variable(vendor.prefix)),
    });
    let others = ["AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AWS_REGION_NAME"];
    keys.chain(others.map(str::to_owned))
}

/// The provider of a model, and what it calls the model. A provider that is given beside the name comes first.
pub fn vendor_of<'a>(model: &'a str, given: Option<&str>) -> Option<(&'static Vendor, &'a str)> {
    let find = |prefix: &str| VENDORS.iter().find(|vendor| vendor.prefix == prefix);
    if let Some(vendor) = given.and_then(find) {
        let own = model.strip_prefix(vendor.prefix).and_then(|rest| rest.strip_prefix('/'));
        return Some((vendor, own.unwrap_or(model)));
    }
    if let Some((prefix, name)) = model.split_once('/')
        && let Some(vendor) = find(prefix)
    {
        return Some((vendor, name));
    }
    let (_, prefix) = BARE_NAMES.iter().find(|(beginning, _)| model.starts_with(beginning))?;
    find(prefix).map(|vendor| (vendor, model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_lead_to_a_provider_by_prefix_by_beginning_or_not_at_all() {
        let id = |model: &str, given| vendor_of(model, given).map(|(vendor, name)| (vendor.id, name.to_owned()));
        assert_eq!(id("azure/my-gpt", None), Some(("azure-openai", "my-gpt".into())));
        assert_eq!(id("openrouter/openai/gpt-4o", None), Some(("openrouter", "openai/gpt-4o".into())));
        assert_eq!(id("gpt-4o", None), Some(("openai", "gpt-4o".into())));
        assert_eq!(id("my-model", Some("groq")), Some(("groq", "my-model".into())));
        assert_eq!(id("groq/my-model", Some("groq")), Some(("groq", "my-model".into())));
        assert_eq!(id("my-model", None), None);
        assert_eq!(id("nowhere/my-model", None), None);
    }

    #[test]
    fn every_provider_is_one_that_the_gateway_knows() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/providers.toml");
        let known: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let mut prefixes = BTreeSet::new();
        for vendor in VENDORS {
            assert!(known.contains_key(vendor.id), "{}", vendor.id);
            assert!(prefixes.insert(vendor.prefix), "{} stands twice", vendor.prefix);
        }
        assert!(BARE_NAMES.iter().all(|(_, prefix)| prefixes.contains(prefix)));
    }
}
