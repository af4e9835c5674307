//! Checks that vendors run: their parameters here, how each is asked and read in `wires`. What the gateway asks models of the workspace
//! itself (`gateway.*`) stands in `table`.

mod acuvity;
mod azure;
mod bedrock;
mod categories;
mod configured;
mod crowdstrike;
mod masks;
mod places;
mod reading;
mod search;
mod signing;
#[cfg(test)]
mod vectors;
mod vendor_check;
mod wire;
mod wires;

pub use vendor_check::VendorCheck;

use super::checks;
use super::table::{CheckSpec, Hooks, ParameterKind, ParameterSpec as P, Runs};

use ParameterKind::{Choice, Choices, Flag, Object, Text, Texts};

const ANYWHERE: Hooks = Hooks { input: true, output: true };
const INPUT: Hooks = Hooks { input: true, output: false };
const OUTPUT: Hooks = Hooks { input: false, output: true };

const MILLISECONDS: ParameterKind = ParameterKind::Number { least: 1.0, most: 600_000.0, is_whole: true };
const SHARE: ParameterKind = ParameterKind::Number { least: 0.0, most: 1.0, is_whole: false };
const TIMEOUT: P = P::or("timeout", MILLISECONDS, "5000");
const TIMEOUT_15: P = P::or("timeout", MILLISECONDS, "15000");
const REDACT: P = P::or("redact", Flag, "false");
const MODE: P = P::or("mode", Choice(&["speed", "balanced", "quality"]), "\"balanced\"");
/// Where the verdict stands in an answer, and what it says. The address is stored with the credentials.
const CONFIGURED: &[P] =
    &[P::required("verdictPath", Text), P::new("passWhen", Texts), P::new("failWhen", Texts), TIMEOUT];

const fn row(
    plugin: &'static str,
    id: &'static str,
    name: &'static str,
    hooks: Hooks,
    parameters: &'static [P],
) -> CheckSpec {
    let plugin = Some(plugin);
    CheckSpec {
        id,
        aliases: &[],
        name,
        hooks,
        parameters,
        plugin,
        runs: Runs::Vendor,
        compile: checks::elsewhere::compile,
    }
}

#[rustfmt::skip]
pub static VENDORS: &[CheckSpec] = &[
    row("aiguard", "aiguard.scan", "AI guard", ANYWHERE, &[P::required("policyId", Text), P::or("timeout", MILLISECONDS, "10000")]),
    row("zscaler", "zscaler.scan", "Zscaler AI guard", ANYWHERE,
        &[P::required("policyId", Text), P::or("timeout", MILLISECONDS, "10000")]),
    row("sydelabs", "sydelabs.sydeguard", "SydeGuard", INPUT,
        &[P::or("prompt_injection_threshold", SHARE, "0.5"), P::or("toxicity_threshold", SHARE, "0.5"),
          P::or("evasion_threshold", SHARE, "0.5"), TIMEOUT]),
    row("aporia", "aporia.validateProject", "Aporia", ANYWHERE, &[P::required("projectID", Text), TIMEOUT]),
    row("pillar", "pillar.scanPrompt", "Pillar, prompts", INPUT, &[P::required("scanners", Choices(SCANNERS)), TIMEOUT]),
    row("pillar", "pillar.scanResponse", "Pillar, answers", OUTPUT, &[P::required("scanners", Choices(SCANNERS)), TIMEOUT]),
    row("patronus", "patronus.phi", "Patronus PHI", OUTPUT, &[TIMEOUT]),
    row("patronus", "patronus.pii", "Patronus PII", OUTPUT, &[REDACT, TIMEOUT]),
    row("patronus", "patronus.isConcise", "Patronus: concise", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.isHelpful", "Patronus: helpful", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.isPolite", "Patronus: polite", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.noApologies", "Patronus: no apologies", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.noGenderBias", "Patronus: no gender bias", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.noRacialBias", "Patronus: no racial bias", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.retrievalAnswerRelevance", "Patronus: relevance", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.retrievalHallucination", "Patronus: hallucination", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.toxicity", "Patronus: toxicity", OUTPUT, &[TIMEOUT_15]),
    row("patronus", "patronus.custom", "Patronus: own profile", OUTPUT, &[P::required("profile", Text), TIMEOUT_15]),
    row("mistral", "mistral.moderateContent", "Mistral moderation", ANYWHERE,
        &[P::required("categories", Choices(&["sexual", "hate_and_discrimination", "violence_and_threats",
            "dangerous_and_criminal_content", "selfharm", "health", "financial", "law", "pii"])), TIMEOUT]),
    row("bedrock", "bedrock.guard", "Bedrock guardrail", ANYWHERE,
        &[P::required("guardrailId", Text), P::required("guardrailVersion", Text), REDACT, TIMEOUT]),
    row("promptfoo", "promptfoo.guard", "Promptfoo guard", ANYWHERE, &[TIMEOUT]),
    row("promptfoo", "promptfoo.pii", "Promptfoo PII", ANYWHERE, &[REDACT, TIMEOUT]),
    row("promptfoo", "promptfoo.harm", "Promptfoo harm", ANYWHERE, &[TIMEOUT]),
    row("lasso", "lasso.classify", "Lasso", INPUT, &[P::new("conversationId", Text), P::new("userId", Text), TIMEOUT]),
    row("azure", "azure.contentSafety", "Azure content safety", ANYWHERE,
        &[P::or("blocklistNames", Texts, "[]"), P::or("apiVersion", Text, "\"2024-09-01\""),
          P::or("severity", ParameterKind::Number { least: 0.0, most: 7.0, is_whole: true }, "2"),
          P::new("categories", Choices(&["Hate", "SelfHarm", "Sexual", "Violence"])), TIMEOUT]),
    row("azure", "azure.pii", "Azure PII", ANYWHERE,
        &[P::or("domain", Choice(&["none", "phi"]), "\"none\""), P::or("apiVersion", Text, "\"2024-11-01\""),
          P::or("modelVersion", Text, "\"latest\""), P::or("language", Text, "\"en\""), P::new("piiCategories", Texts), REDACT, TIMEOUT]),
    row("azure", "azure.shieldPrompt", "Azure prompt shield", INPUT, &[P::or("apiVersion", Text, "\"2024-09-01\""), TIMEOUT]),
    row("azure", "azure.protectedMaterial", "Azure protected material", OUTPUT, &[P::or("apiVersion", Text, "\"2024-09-01\""), TIMEOUT]),
    row("panw-prisma-airs", "panw-prisma-airs.intercept", "Prisma AIRS", ANYWHERE,
        &[P::required("profile_name", Text), P::new("profile_id", Text), P::new("ai_model", Text), P::new("app_user", Text),
          P::new("app_name", Text), TIMEOUT]),
    row("pangea", "pangea.textGuard", "Pangea text guard", ANYWHERE,
        &[P::new("recipe", Text), P::or("debug", Flag, "false"), P::new("overrides", Object), TIMEOUT]),
    row("pangea", "pangea.pii", "Pangea PII", ANYWHERE, &[REDACT, TIMEOUT]),
    row("promptsecurity", "promptsecurity.protectPrompt", "Prompt Security, prompts", INPUT, &[TIMEOUT]),
    row("promptsecurity", "promptsecurity.protectResponse", "Prompt Security, answers", OUTPUT, &[TIMEOUT]),
    row("crowdstrike-aidr", "crowdstrike-aidr.guardChatCompletions", "CrowdStrike AIDR", ANYWHERE, &[TIMEOUT]),
    row("javelin", "javelin.guardrails", "Javelin", ANYWHERE, &[TIMEOUT]),
    row("f5-guardrails", "f5-guardrails.scan", "F5 guardrails", ANYWHERE, &[REDACT, P::new("projectId", Text), TIMEOUT]),
    row("walledai", "walledai.walledprotect", "Walled AI", ANYWHERE,
        &[P::or("generic_safety_check", Flag, "true"), P::or("greetings_list", Texts, "[\"Casual & Friendly\"]"),
          P::or("pii_list", Texts, "[\"Person's Name\",\"Address\",\"Email Id\",\"Contact No\",\"Date Of Birth\",\"Unique Id\",\"Financial Data\"]"),
          P::or("compliance_list", Texts, "[]"), TIMEOUT]),
    row("acuvity", "acuvity.scan", "Acuvity", ANYWHERE,
        &[P::or("prompt_injection", Flag, "true"), P::or("prompt_injection_threshold", SHARE, "0.5"),
          P::or("toxic", Flag, "true"), P::or("toxic_threshold", SHARE, "0.5"),
          P::or("jail_break", Flag, "true"), P::or("jail_break_threshold", SHARE, "0.5"),
          P::or("malicious_url", Flag, "true"), P::or("malicious_url_threshold", SHARE, "0.5"),
          P::or("biased", Flag, "true"), P::or("biased_threshold", SHARE, "0.5"),
          P::or("harmful", Flag, "true"), P::or("harmful_threshold", SHARE, "0.5"),
          P::or("language", Flag, "false"), P::or("language_values", Text, "\"english\""),
          P::or("pii", Flag, "true"), P::or("pii_redact", Flag, "false"), P::new("pii_categories", Texts),
          P::or("secrets", Flag, "true"), P::or("secrets_redact", Flag, "false"), P::new("secrets_categories", Texts), TIMEOUT]),
    row("qualifire", "qualifire.contentModeration", "Qualifire: moderation", ANYWHERE, &[TIMEOUT]),
    row("qualifire", "qualifire.hallucinations", "Qualifire: hallucinations", OUTPUT, &[MODE, TIMEOUT]),
    row("qualifire", "qualifire.pii", "Qualifire: PII", ANYWHERE, &[TIMEOUT]),
    row("qualifire", "qualifire.promptInjections", "Qualifire: injections", INPUT, &[TIMEOUT]),
    row("qualifire", "qualifire.grounding", "Qualifire: grounding", OUTPUT, &[MODE, TIMEOUT]),
    row("qualifire", "qualifire.toolUseQuality", "Qualifire: tool use", OUTPUT, &[MODE, TIMEOUT]),
    row("qualifire", "qualifire.policy", "Qualifire: policies", ANYWHERE, &[P::required("policies", Texts), MODE, TIMEOUT]),
    row("lakera", "lakera.guard", "Lakera guard", ANYWHERE, &[P::new("projectId", Text), TIMEOUT]),
    row("cato", "cato.scan", "Cato", ANYWHERE, CONFIGURED),
    row("akto", "akto.scan", "Akto", ANYWHERE, CONFIGURED),
    row("tavily", "tavily.search", "Tavily web context", INPUT,
        &[P::new("prefix", Text), P::new("suffix", Text),
          P::or("numResults", ParameterKind::Number { least: 1.0, most: 20.0, is_whole: true }, "5"),
          P::new("includeDomains", Texts), P::new("excludeDomains", Texts), P::or("timeout", MILLISECONDS, "10000")]),
    row("exa", "exa.online", "Exa web context", INPUT,
        &[P::new("prefix", Text), P::new("suffix", Text),
          P::or("numResults", ParameterKind::Number { least: 1.0, most: 100.0, is_whole: true }, "5"),
          P::new("includeDomains", Texts), P::new("excludeDomains", Texts), P::or("timeout", MILLISECONDS, "10000")]),
];

const SCANNERS: &[&str] = &["prompt_injection", "pii", "secrets", "toxic_language", "invisible_characters"];
