//! The files that come with the program: `conf/models/pricing` and `conf/models/general`, one per provider.

use super::Kind;

/// Provider, prices, capabilities.
#[rustfmt::skip]
pub static FILES: &[(&str, &str, &str)] = &[
    ("ai21", include_str!("../../../../conf/models/pricing/ai21.json"), include_str!("../../../../conf/models/general/ai21.json")),
    ("anthropic", include_str!("../../../../conf/models/pricing/anthropic.json"), include_str!("../../../../conf/models/general/anthropic.json")),
    ("anyscale", include_str!("../../../../conf/models/pricing/anyscale.json"), include_str!("../../../../conf/models/general/anyscale.json")),
    ("azure-ai", include_str!("../../../../conf/models/pricing/azure-ai.json"), include_str!("../../../../conf/models/general/azure-ai.json")),
    ("azure-openai", include_str!("../../../../conf/models/pricing/azure-openai.json"), include_str!("../../../../conf/models/general/azure-openai.json")),
    ("bedrock", include_str!("../../../../conf/models/pricing/bedrock.json"), include_str!("../../../../conf/models/general/bedrock.json")),
    ("bedrock-mantle", include_str!("../../../../conf/models/pricing/bedrock-mantle.json"), include_str!("../../../../conf/models/general/bedrock-mantle.json")),
    ("byteplus", include_str!("../../../../conf/models/pricing/byteplus.json"), include_str!("../../../../conf/models/general/byteplus.json")),
    ("cerebras", include_str!("../../../../conf/models/pricing/cerebras.json"), include_str!("../../../../conf/models/general/cerebras.json")),
    ("claude-platform-aws", include_str!("../../../../conf/models/pricing/claude-platform-aws.json"), include_str!("../../../../conf/models/general/claude-platform-aws.json")),
    ("cohere", include_str!("../../../../conf/models/pricing/cohere.json"), include_str!("../../../../conf/models/general/cohere.json")),
    ("cortex", include_str!("../../../../conf/models/pricing/cortex.json"), include_str!("../../../../conf/models/general/cortex.json")),
    ("dashscope", include_str!("../../../../conf/models/pricing/dashscope.json"), include_str!("../../../../conf/models/general/dashscope.json")),
    ("databricks", include_str!("../../../../conf/models/pricing/databricks.json"), include_str!("../../../../conf/models/general/databricks.json")),
    ("deepbricks", include_str!("../../../../conf/models/pricing/deepbricks.json"), include_str!("../../../../conf/models/general/deepbricks.json")),
    ("deepgram", include_str!("../../../../conf/models/pricing/deepgram.json"), include_str!("../../../../conf/models/general/deepgram.json")),
    ("deepinfra", include_str!("../../../../conf/models/pricing/deepinfra.json"), include_str!("../../../../conf/models/general/deepinfra.json")),
    ("deepseek", include_str!("../../../../conf/models/pricing/deepseek.json"), include_str!("../../../../conf/models/general/deepseek.json")),
    ("ember-cloud", include_str!("../../../../conf/models/pricing/ember-cloud.json"), include_str!("../../../../conf/models/general/ember-cloud.json")),
    ("fal-ai", include_str!("../../../../conf/models/pricing/fal-ai.json"), include_str!("../../../../conf/models/general/fal-ai.json")),
    ("fireworks-ai", include_str!("../../../../conf/models/pricing/fireworks-ai.json"), include_str!("../../../../conf/models/general/fireworks-ai.json")),
    ("google", include_str!("../../../../conf/models/pricing/google.json"), include_str!("../../../../conf/models/general/google.json")),
    ("groq", include_str!("../../../../conf/models/pricing/groq.json"), include_str!("../../../../conf/models/general/groq.json")),
    ("hyperbolic", include_str!("../../../../conf/models/pricing/hyperbolic.json"), include_str!("../../../../conf/models/general/hyperbolic.json")),
    ("jina", include_str!("../../../../conf/models/pricing/jina.json"), include_str!("../../../../conf/models/general/jina.json")),
    ("lambda", include_str!("../../../../conf/models/pricing/lambda.json"), include_str!("../../../../conf/models/general/lambda.json")),
    ("lightning-ai", include_str!("../../../../conf/models/pricing/lightning-ai.json"), include_str!("../../../../conf/models/general/lightning-ai.json")),
    ("minimax", include_str!("../../../../conf/models/pricing/minimax.json"), include_str!("../../../../conf/models/general/minimax.json")),
    ("mistral-ai", include_str!("../../../../conf/models/pricing/mistral-ai.json"), include_str!("../../../../conf/models/general/mistral-ai.json")),
    ("monsterapi", include_str!("../../../../conf/models/pricing/monsterapi.json"), include_str!("../../../../conf/models/general/monsterapi.json")),
    ("moonshot", include_str!("../../../../conf/models/pricing/moonshot.json"), include_str!("../../../../conf/models/general/moonshot.json")),
    ("nebius", include_str!("../../../../conf/models/pricing/nebius.json"), include_str!("../../../../conf/models/general/nebius.json")),
    ("nomic", include_str!("../../../../conf/models/pricing/nomic.json"), include_str!("../../../../conf/models/general/nomic.json")),
    ("novita-ai", include_str!("../../../../conf/models/pricing/novita-ai.json"), include_str!("../../../../conf/models/general/novita-ai.json")),
    ("nscale", include_str!("../../../../conf/models/pricing/nscale.json"), include_str!("../../../../conf/models/general/nscale.json")),
    ("openai", include_str!("../../../../conf/models/pricing/openai.json"), include_str!("../../../../conf/models/general/openai.json")),
    ("openrouter", include_str!("../../../../conf/models/pricing/openrouter.json"), include_str!("../../../../conf/models/general/openrouter.json")),
    ("oracle", include_str!("../../../../conf/models/pricing/oracle.json"), include_str!("../../../../conf/models/general/oracle.json")),
    ("ovhcloud", include_str!("../../../../conf/models/pricing/ovhcloud.json"), include_str!("../../../../conf/models/general/ovhcloud.json")),
    ("palm", include_str!("../../../../conf/models/pricing/palm.json"), include_str!("../../../../conf/models/general/palm.json")),
    ("perplexity-ai", include_str!("../../../../conf/models/pricing/perplexity-ai.json"), include_str!("../../../../conf/models/general/perplexity-ai.json")),
    ("predibase", include_str!("../../../../conf/models/pricing/predibase.json"), include_str!("../../../../conf/models/general/predibase.json")),
    ("recraft-ai", include_str!("../../../../conf/models/pricing/recraft-ai.json"), include_str!("../../../../conf/models/general/recraft-ai.json")),
    ("reka-ai", include_str!("../../../../conf/models/pricing/reka-ai.json"), include_str!("../../../../conf/models/general/reka-ai.json")),
    ("replicate", include_str!("../../../../conf/models/pricing/replicate.json"), include_str!("../../../../conf/models/general/replicate.json")),
    ("sambanova", include_str!("../../../../conf/models/pricing/sambanova.json"), include_str!("../../../../conf/models/general/sambanova.json")),
    ("stability-ai", include_str!("../../../../conf/models/pricing/stability-ai.json"), include_str!("../../../../conf/models/general/stability-ai.json")),
    ("together-ai", include_str!("../../../../conf/models/pricing/together-ai.json"), include_str!("../../../../conf/models/general/together-ai.json")),
    ("vertex-ai", include_str!("../../../../conf/models/pricing/vertex-ai.json"), include_str!("../../../../conf/models/general/vertex-ai.json")),
    ("voyage", include_str!("../../../../conf/models/pricing/voyage.json"), include_str!("../../../../conf/models/general/voyage.json")),
    ("workers-ai", include_str!("../../../../conf/models/pricing/workers-ai.json"), include_str!("../../../../conf/models/general/workers-ai.json")),
    ("x-ai", include_str!("../../../../conf/models/pricing/x-ai.json"), include_str!("../../../../conf/models/general/x-ai.json")),
    ("z-ai", include_str!("../../../../conf/models/pricing/z-ai.json"), include_str!("../../../../conf/models/general/z-ai.json")),
    ("zhipu", include_str!("../../../../conf/models/pricing/zhipu.json"), include_str!("../../../../conf/models/general/zhipu.json")),
];

pub fn text(kind: Kind, provider: &str) -> Option<&'static str> {
    let (_, prices, capabilities) = FILES.iter().find(|(name, _, _)| *name == provider)?;
    Some(match kind {
        Kind::Pricing => prices,
        Kind::General => capabilities,
    })
}

#[cfg(test)]
mod tests {
    use super::super::PriceList;
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_bundled_and_wholly_understood() {
        let listed: BTreeSet<String> = FILES.iter().map(|(name, _, _)| format!("{name}.json")).collect();
        for folder in ["pricing", "general"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conf/models").join(folder);
            let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert_eq!(names.collect::<BTreeSet<_>>(), listed, "{folder}");
        }
        let mut models = 0;
        for (provider, prices, capabilities) in FILES {
            let written: serde_json::Map<String, serde_json::Value> = serde_json::from_str(prices).unwrap();
            let list = PriceList::parse(prices).unwrap();
            assert_eq!(list.len(), written.len(), "{provider}");
            models += list.len();
            let general: serde_json::Map<String, serde_json::Value> = serde_json::from_str(capabilities).unwrap();
            assert_eq!(general["name"], *provider);
            assert!(written.keys().all(|model| general.contains_key(model)), "{provider}");
        }
        assert!(models > 4000, "{models}");
    }
}
