//! What public lists call the providers that we have. A provider that is not here has no prices to import.

use super::ListFormat;

/// Our name, and theirs. Of several the later ones win.
type ProviderNames = [(&'static str, &'static [&'static str])];

pub fn table(format: ListFormat) -> &'static ProviderNames {
    match format {
        ListFormat::LiteLlm => LITELLM,
        ListFormat::ModelsDev => MODELS_DEV,
        ListFormat::Ours => &[],
    }
}

static LITELLM: &ProviderNames = &[
    ("ai21", &["ai21"]),
    ("anthropic", &["anthropic"]),
    ("anyscale", &["anyscale"]),
    ("azure-ai", &["azure_ai"]),
    ("azure-openai", &["azure_text", "azure"]),
    ("bedrock", &["bedrock", "bedrock_converse"]),
    ("bedrock-mantle", &["bedrock_mantle"]),
    ("cerebras", &["cerebras"]),
    ("claude-platform-aws", &["anthropic"]),
    ("cohere", &["cohere", "cohere_chat"]),
    ("cortex", &["snowflake"]),
    ("dashscope", &["dashscope"]),
    ("databricks", &["databricks"]),
    ("deepgram", &["deepgram"]),
    ("deepinfra", &["deepinfra"]),
    ("deepseek", &["deepseek"]),
    ("fal-ai", &["fal_ai"]),
    ("fireworks-ai", &["fireworks_ai", "fireworks_ai-embedding-models"]),
    ("google", &["gemini"]),
    ("groq", &["groq"]),
    ("hyperbolic", &["hyperbolic"]),
    ("jina", &["jina_ai"]),
    ("lambda", &["lambda_ai"]),
    ("minimax", &["minimax"]),
    ("mistral-ai", &["text-completion-codestral", "codestral", "mistral"]),
    ("moonshot", &["moonshot"]),
    ("nebius", &["nebius"]),
    ("novita-ai", &["novita"]),
    ("nscale", &["nscale"]),
    ("openai", &["text-completion-openai", "openai"]),
    ("oracle", &["oci"]),
    ("ovhcloud", &["ovhcloud"]),
    ("perplexity-ai", &["perplexity"]),
    ("recraft-ai", &["recraft"]),
    ("replicate", &["replicate"]),
    ("sambanova", &["sambanova"]),
    ("stability-ai", &["stability"]),
    ("together-ai", &["together_ai"]),
    (
        "vertex-ai",
        &[
            "vertex_ai-ai21_models",
            "vertex_ai-anthropic_models",
            "vertex_ai-deepseek_models",
            "vertex_ai-embedding-models",
            "vertex_ai-language-models",
            "vertex_ai-llama_models",
            "vertex_ai-minimax_models",
            "vertex_ai-mistral_models",
            "vertex_ai-moonshot_models",
            "vertex_ai-openai_models",
            "vertex_ai-qwen_models",
            "vertex_ai-text-models",
            "vertex_ai-video-models",
            "vertex_ai-zai_models",
            "vertex_ai",
        ],
    ),
    ("voyage", &["voyage"]),
    ("workers-ai", &["cloudflare"]),
    ("x-ai", &["xai"]),
    ("z-ai", &["zai"]),
    ("zhipu", &["bigmodel"]),
];

static MODELS_DEV: &ProviderNames = &[
    ("anthropic", &["anthropic"]),
    ("azure-ai", &["azure-cognitive-services"]),
    ("azure-openai", &["azure"]),
    ("bedrock", &["amazon-bedrock"]),
    ("cerebras", &["cerebras"]),
    ("claude-platform-aws", &["anthropic"]),
    ("cohere", &["cohere"]),
    ("cortex", &["snowflake-cortex"]),
    ("dashscope", &["alibaba"]),
    ("databricks", &["databricks"]),
    ("deepinfra", &["deepinfra"]),
    ("deepseek", &["deepseek"]),
    ("fireworks-ai", &["fireworks-ai"]),
    ("google", &["google"]),
    ("groq", &["groq"]),
    ("minimax", &["minimax"]),
    ("mistral-ai", &["mistral"]),
    ("moonshot", &["moonshotai"]),
    ("nebius", &["nebius"]),
    ("novita-ai", &["novita-ai"]),
    ("openai", &["openai"]),
    ("openrouter", &["openrouter"]),
    ("ovhcloud", &["ovhcloud"]),
    ("perplexity-ai", &["perplexity"]),
    ("together-ai", &["togetherai"]),
    ("vertex-ai", &["google-vertex-anthropic", "google-vertex"]),
    ("workers-ai", &["cloudflare-workers-ai"]),
    ("x-ai", &["xai"]),
    ("z-ai", &["zai"]),
    ("zhipu", &["zhipuai"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::prices::bundled_providers;
    use std::collections::BTreeSet;

    #[test]
    fn every_provider_of_a_table_is_one_of_ours_and_stands_there_once() {
        let ours: BTreeSet<&str> = bundled_providers().collect();
        for table in [LITELLM, MODELS_DEV] {
            let names: BTreeSet<&str> = table.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), table.len());
            assert!(names.is_subset(&ours), "{:?}", names.difference(&ours));
            assert!(table.iter().all(|(_, theirs)| !theirs.is_empty()));
        }
    }
}
