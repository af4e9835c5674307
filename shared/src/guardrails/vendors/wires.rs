//! Every vendor's wire. Facts of their public interfaces; whoever changes a row runs the vectors beside it.

use super::wire::Auth::{Aws, Azure, Bearer, Header};
use super::wire::Judge::{Code, FailsIfSet, FailsOn, PassesIfTrue, PassesOn};
use super::wire::{Auth, When, Wire};
use super::{acuvity, azure, bedrock, categories, configured, crowdstrike, masks, search};

const KEY: &str = "apiKey";

const PATRONUS: &[&str] = &["https://api.patronus.ai/v1/evaluate"];
const PATRONUS_KEY: Auth = Header("x-api-key", KEY);

/// Patronus has an answer judged by a criterion.
const fn patronus(id: &'static str, body: &'static str) -> Wire {
    Wire::new(id, PATRONUS, PATRONUS_KEY, body, PassesIfTrue("/results/0/evaluation_result/pass"))
        .error("/results/0/error_message")
        .data("/results/0/evaluation_result/additional_info")
}

const QUALIFIRE: &[&str] = &["https://proxy.qualifire.ai/api/evaluation/evaluate"];

const fn qualifire(id: &'static str, body: &'static str) -> Wire {
    Wire::new(id, QUALIFIRE, Header("x-qualifire-api-key", KEY), body, FailsOn("/status", &["failed"]))
        .error("/error")
        .data("/evaluationResults")
}

const SAFETY: [&str; 2] = ["contentSafety", "pii"];

const ZSCALER: &[&str] = &["{c.baseUrl|=https://api.us1.zseclipse.net}/v1/detection/execute-policy"];
const ZSCALER_BODY: &str = r#"{"policyId":"$number:policyId","direction":"$side:IN/OUT","content":"$text"}"#;

const CONFIGURED_BODY: &str =
    r#"{"text":"$text","messages":"$messages","event":"$side:input/output","model":"$model"}"#;

pub static WIRES: &[Wire] = &[
    Wire::new("aiguard.scan", ZSCALER, Bearer(KEY), ZSCALER_BODY, FailsOn("/action", &["BLOCK"])),
    Wire::new("zscaler.scan", ZSCALER, Bearer(KEY), ZSCALER_BODY, FailsOn("/action", &["BLOCK"])),
    Wire::new(
        "sydelabs.sydeguard",
        &["https://guard.sydelabs.ai/api/v1/guard/generate-score"],
        Header("x-api-key", KEY),
        r#"{"prompt":"$text"}"#,
        Code(categories::scores),
    ),
    Wire::new(
        "aporia.validateProject",
        &["{c.apiEndpoint|=https://gr-prd.aporia.com}/{p.projectID}/validate"],
        Header("x-aporia-api-key", KEY),
        r#"{"messages":"$messages","explain":true,"response":"$said","validation_target":"$side:prompt/response"}"#,
        PassesOn("/action", &["passthrough"]),
    ),
    Wire::new(
        "pillar.scanPrompt",
        &["https://api.pillarseclabs.com/api/v1/scan/prompt"],
        Bearer(KEY),
        r#"{"message":"$text","scanners":"$set:scanners"}"#,
        FailsIfSet("/*", PILLAR),
    ),
    Wire::new(
        "pillar.scanResponse",
        &["https://api.pillarseclabs.com/api/v1/scan/response"],
        Bearer(KEY),
        r#"{"message":"$text","scanners":"$set:scanners"}"#,
        FailsIfSet("/*", PILLAR),
    ),
    patronus("patronus.phi", r#"{"evaluators":[{"evaluator":"phi","explain_strategy":"always"}],"evaluated_model_output":"$text"}"#),
    Wire::new(
        "patronus.pii",
        PATRONUS,
        PATRONUS_KEY,
        r#"{"evaluators":[{"evaluator":"pii","explain_strategy":"always"}],"evaluated_model_output":"$each"}"#,
        Code(masks::patronus),
    )
    .error("/results/0/error_message"),
    patronus("patronus.isConcise", JUDGE_CONCISE),
    patronus("patronus.isHelpful", JUDGE_HELPFUL),
    patronus("patronus.isPolite", JUDGE_POLITE),
    patronus("patronus.noApologies", JUDGE_APOLOGIES),
    patronus("patronus.noGenderBias", JUDGE_GENDER),
    patronus("patronus.noRacialBias", JUDGE_RACIAL),
    patronus("patronus.retrievalAnswerRelevance", RELEVANCE),
    patronus("patronus.retrievalHallucination", HALLUCINATION),
    patronus("patronus.toxicity", TOXICITY),
    patronus(
        "patronus.custom",
        r#"{"evaluators":[{"evaluator":"$before:profile|=judge","criteria":"$after:profile","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#,
    ),
    Wire::new(
        "mistral.moderateContent",
        &["https://api.mistral.ai/v1/chat/moderations"],
        Bearer(KEY),
        r#"{"model":"mistral-moderation-latest","input":["$messages"]}"#,
        Code(categories::flags),
    )
    .when(When::Chat),
    Wire::new(
        "mistral.moderateContent",
        &["https://api.mistral.ai/v1/moderations"],
        Bearer(KEY),
        r#"{"model":"mistral-moderation-latest","input":["$text"]}"#,
        Code(categories::flags),
    ),
    Wire::new(
        "bedrock.guard",
        &["https://bedrock-runtime.{c.awsRegion|c.region}.amazonaws.com/guardrail/{p.guardrailId}/version/{p.guardrailVersion}/apply"],
        Aws,
        r#"{"source":"$side:INPUT/OUTPUT","content":[{"text":{"text":"$each"}}]}"#,
        Code(bedrock::judged),
    ),
    Wire::new(
        "promptfoo.guard",
        &["https://api.promptfoo.dev/v1/guard"],
        Auth::None,
        r#"{"input":"$text"}"#,
        FailsIfSet("/results/0", &["/results/0/categories/jailbreak"]),
    )
    .data("/results/0"),
    Wire::new("promptfoo.pii", &["https://api.promptfoo.dev/v1/pii"], Auth::None, r#"{"input":"$each"}"#, Code(masks::promptfoo)),
    Wire::new(
        "promptfoo.harm",
        &["https://api.promptfoo.dev/v1/harm"],
        Auth::None,
        r#"{"input":"$text"}"#,
        FailsIfSet("/results/0", &["/results/0/flagged"]),
    )
    .data("/results/0"),
    Wire::new(
        "lasso.classify",
        &["https://server.lasso.security/gateway/v2/classify"],
        Header("lasso-api-key", KEY),
        r#"{"messages":"$messages"}"#,
        FailsIfSet("/violations_detected", &["/violations_detected"]),
    )
    .headers(&[("lasso-conversation-id", "p.conversationId"), ("lasso-user-id", "p.userId")]),
    Wire::new(
        "azure.contentSafety",
        &[
            "{c.contentSafety.customHost|c.customHost}/contentsafety/text:analyze?api-version={p.apiVersion}",
            "https://{c.contentSafety.resourceName|c.resourceName}.cognitiveservices.azure.com/contentsafety/text:analyze?api-version={p.apiVersion}",
        ],
        Azure(SAFETY[0]),
        r#"{"text":"$text","categories":"$p.categories","blocklistNames":"$p.blocklistNames"}"#,
        Code(azure::severities),
    ),
    Wire::new(
        "azure.pii",
        &[
            "{c.pii.customHost|c.customHost}/language/:analyze-text?api-version={p.apiVersion}",
            "https://{c.pii.resourceName|c.resourceName}.cognitiveservices.azure.com/language/:analyze-text?api-version={p.apiVersion}",
        ],
        Azure(SAFETY[1]),
        r#"{"kind":"PiiEntityRecognition","parameters":{"domain":"$p.domain","modelVersion":"$p.modelVersion","piiCategories":"$p.piiCategories"},"analysisInput":{"documents":[{"id":"0","text":"$each","language":"$p.language"}]}}"#,
        FailsIfSet("/results/documents/0", &["/results/documents/*/entities"]),
    )
    .redacted("/results/documents/0/redactedText")
    .data("/results/documents/0/entities"),
    Wire::new(
        "azure.shieldPrompt",
        &["https://{c.contentSafety.resourceName|c.resourceName}.cognitiveservices.azure.com/contentsafety/text:shieldPrompt?api-version={p.apiVersion}"],
        Azure(SAFETY[0]),
        r#"{"userPrompt":"$text"}"#,
        FailsIfSet("/userPromptAnalysis", &["/userPromptAnalysis/attackDetected", "/documentsAnalysis/*/attackDetected"]),
    ),
    Wire::new(
        "azure.protectedMaterial",
        &["https://{c.contentSafety.resourceName|c.resourceName}.cognitiveservices.azure.com/contentsafety/text:detectProtectedMaterial?api-version={p.apiVersion}"],
        Azure(SAFETY[0]),
        r#"{"text":"$text"}"#,
        FailsIfSet("/protectedMaterialAnalysis", &["/protectedMaterialAnalysis/detected"]),
    ),
    Wire::new(
        "panw-prisma-airs.intercept",
        &["{c.baseUrl|=https://service.api.aisecurity.paloaltonetworks.com}/v1/scan/sync/request"],
        Header("x-pan-token", "AIRS_API_KEY"),
        r#"{"tr_id":"$trace","ai_profile":{"profile_name":"$p.profile_name","profile_id":"$p.profile_id"},"metadata":{"ai_model":"$p.ai_model|model|=unknown","app_user":"$p.app_user|=gateway","app_name":"$p.app_name|=gateway"},"contents":[{"$side:prompt/response":"$text"}]}"#,
        FailsOn("/action", &["block"]),
    ),
    Wire::new(
        "pangea.textGuard",
        &["https://ai-guard.{c.domain}/v1/text/guard"],
        Bearer(KEY),
        r#"{"text":"$text","recipe":"$p.recipe","debug":"$p.debug","overrides":"$p.overrides"}"#,
        FailsIfSet("/result/detectors", &["/result/detectors/*/detected", "/result/blocked"]),
    )
    .data("/result"),
    Wire::new(
        "pangea.pii",
        &["https://redact.{c.domain}/v1/redact_structured"],
        Bearer(KEY),
        r#"{"data":"$texts"}"#,
        FailsIfSet("/result", &["/result/count"]),
    )
    .redacted("/result/redacted_data/*")
    .data("/summary"),
    Wire::new(
        "promptsecurity.protectPrompt",
        &["https://{c.apiDomain}/api/protect"],
        Header("app-id", KEY),
        r#"{"prompt":"$text"}"#,
        PassesIfTrue("/result/prompt/passed"),
    )
    .data("/result/prompt"),
    Wire::new(
        "promptsecurity.protectResponse",
        &["https://{c.apiDomain}/api/protect"],
        Header("app-id", KEY),
        r#"{"response":"$text"}"#,
        PassesIfTrue("/result/response/passed"),
    )
    .data("/result/response"),
    Wire::new(
        "crowdstrike-aidr.guardChatCompletions",
        &["{c.baseUrl}/v1/guard_chat_completions"],
        Bearer(KEY),
        r#"{"guard_input":"$json","event_type":"$side:input/output","app_id":"gateway","user_id":"$user","llm_provider":"$provider","model":"$model","extra_info":{}}"#,
        Code(crowdstrike::judged),
    ),
    Wire::new(
        "javelin.guardrails",
        &["https://{c.domain|=api-dev.javelin.live}/v1/guardrails/apply"],
        Header("x-javelin-apikey", KEY),
        r#"{"input":{"text":"$text"},"config":{},"metadata":{}}"#,
        FailsIfSet("/assessments/0", &["/assessments/*/*/request_reject"]),
    )
    .headers(&[("x-javelin-application", "c.application")]),
    Wire::new(
        "f5-guardrails.scan",
        &["{c.calypsoUrl|=https://us1.calypsoai.app}/backend/v1/scans"],
        Bearer(KEY),
        r#"{"input":"$each","project":"$p.projectId|c.projectId"}"#,
        PassesOn("/result/outcome", &["cleared"]),
    )
    .redacted("/redactedInput")
    .data("/result"),
    Wire::new(
        "walledai.walledprotect",
        &["https://services.walled.ai/v1/walled-protect"],
        Header("x-api-key", KEY),
        r#"{"text":"$text","generic_safety_check":"$p.generic_safety_check","greetings_list":"$p.greetings_list","pii_list":"$p.pii_list","compliance_list":"$p.compliance_list"}"#,
        PassesIfTrue("/data/safety/*/isSafe"),
    )
    .data("/data"),
    Wire::new("acuvity.scan", &["{c.apexUrl|apex}/_acuvity/scan"], Bearer(KEY), acuvity::BODY, Code(acuvity::judged)),
    qualifire("qualifire.contentModeration", r#"{"input":"$asked","output":"$said","content_moderation_check":true}"#),
    qualifire(
        "qualifire.hallucinations",
        r#"{"input":"$asked","output":"$said","hallucinations_check":true,"hallucinations_mode":"$p.mode"}"#,
    ),
    qualifire("qualifire.pii", r#"{"input":"$asked","output":"$said","pii_check":true}"#),
    qualifire("qualifire.promptInjections", r#"{"input":"$asked","prompt_injections":true}"#),
    qualifire(
        "qualifire.grounding",
        r#"{"input":"$asked","output":"$said","grounding_check":true,"grounding_mode":"$p.mode"}"#,
    ),
    qualifire(
        "qualifire.toolUseQuality",
        r#"{"messages":"$conversation","available_tools":"$tools","tool_selection_quality_check":true,"tsq_mode":"$p.mode"}"#,
    ),
    qualifire(
        "qualifire.policy",
        r#"{"input":"$asked","output":"$said","assertions":"$p.policies","assertions_mode":"$p.mode"}"#,
    ),
    Wire::new(
        "exa.online",
        &["https://api.exa.ai/search"],
        Header("x-api-key", KEY),
        r#"{"query":"$text","numResults":"$p.numResults","useAutoprompt":true,"contents":{"text":true},"includeDomains":"$p.includeDomains","excludeDomains":"$p.excludeDomains"}"#,
        Code(search::exa),
    ),
    Wire::new(
        "tavily.search",
        &["https://api.tavily.com/search"],
        Bearer(KEY),
        r#"{"query":"$text","max_results":"$p.numResults","include_domains":"$p.includeDomains","exclude_domains":"$p.excludeDomains"}"#,
        Code(search::tavily),
    ),
    Wire::new(
        "lakera.guard",
        &["{c.baseUrl|=https://api.lakera.ai}/v2/guard"],
        Bearer(KEY),
        r#"{"messages":[{"role":"$side:user/assistant","content":"$text"}],"project_id":"$p.projectId","breakdown":true}"#,
        FailsIfSet("/flagged", &["/flagged"]),
    ),
    Wire::new("cato.scan", &["{c.url}"], Bearer(KEY), CONFIGURED_BODY, Code(configured::judged)),
    Wire::new("akto.scan", &["{c.url}"], Bearer(KEY), CONFIGURED_BODY, Code(configured::judged)),
];

const PILLAR: &[&str] = &["/pii", "/prompt_injection", "/secrets", "/toxic_language", "/invisible_characters"];

const JUDGE_CONCISE: &str = r#"{"evaluators":[{"evaluator":"judge","criteria":"patronus:is-concise","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const JUDGE_HELPFUL: &str = r#"{"evaluators":[{"evaluator":"judge","criteria":"patronus:is-helpful","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const JUDGE_POLITE: &str = r#"{"evaluators":[{"evaluator":"judge","criteria":"patronus:is-polite","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const JUDGE_APOLOGIES: &str = r#"{"evaluators":[{"evaluator":"judge","criteria":"patronus:no-apologies","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const JUDGE_GENDER: &str = r#"{"evaluators":[{"evaluator":"judge","criteria":"patronus:no-gender-bias","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const JUDGE_RACIAL: &str = r#"{"evaluators":[{"evaluator":"judge","criteria":"patronus:no-racial-bias","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const RELEVANCE: &str = r#"{"evaluators":[{"evaluator":"answer-relevance","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const HALLUCINATION: &str = r#"{"evaluators":[{"evaluator":"hallucination","criteria":"patronus:hallucination","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
const TOXICITY: &str = r#"{"evaluators":[{"evaluator":"toxicity","explain_strategy":"always"}],"evaluated_model_input":"$asked","evaluated_model_output":"$text"}"#;
