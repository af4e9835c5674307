//! Every check there is: its id, where it may run, its parameters, and what makes it ready. Data, so that the control plane
//! lists, checks and explains exactly what the proxy runs.

use super::check::Check;
use super::checks;
use super::fault::Fault;
use super::parameters::Parameters;
use super::vendors::{VENDORS, VendorCheck};
use crate::identity::jwt::algorithm;
use serde_json::Value;

pub struct CheckSpec {
    /// `source.function`.
    pub id: &'static str,
    /// Other spellings that are about.
    pub aliases: &'static [&'static str],
    pub name: &'static str,
    pub hooks: Hooks,
    pub parameters: &'static [ParameterSpec],
    /// Whose credentials it needs (`POST /plugins`), by the vendor's id.
    pub plugin: Option<&'static str>,
    pub runs: Runs,
    pub(super) compile: Compile,
}

impl CheckSpec {
    /// The check, made ready. What a vendor is asked stands in a row of its own.
    pub(super) fn made(&'static self, parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
        match self.runs {
            Runs::Vendor => VendorCheck::compile(self, parameters),
            Runs::Here | Runs::Outside | Runs::Model => (self.compile)(parameters),
        }
    }

    /// Whether somebody else answers it: of tokens, whether their keys are elsewhere.
    pub fn is_remote(&self, parameters: &Value) -> bool {
        match self.runs {
            Runs::Here => self.id == "default.jwt" && parameters.get("jwks").is_none_or(Value::is_null),
            Runs::Outside | Runs::Vendor | Runs::Model => true,
        }
    }
}

pub(super) type Compile = fn(&Parameters<'_>) -> Result<Box<dyn Check>, Fault>;

/// What it takes to run a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Nothing: its code is here.
    Here,
    /// A call to an address that the tenant names, or that answers name.
    Outside,
    /// A call to a vendor, described by a row.
    Vendor,
    /// A call to a model of the workspace's own, through the gateway itself.
    Model,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hooks {
    pub input: bool,
    pub output: bool,
}

pub struct ParameterSpec {
    pub name: &'static str,
    pub kind: ParameterKind,
    pub is_required: bool,
    /// What holds without it, as JSON; empty where nothing does.
    pub default: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterKind {
    Text,
    /// An `https` or `http` address.
    Url,
    Flag,
    /// A number in this range; `true` for whole ones.
    Number {
        least: f64,
        most: f64,
        is_whole: bool,
    },
    /// A list of texts, or one text with commas.
    Texts,
    Choice(&'static [&'static str]),
    /// A list of words of a closed set.
    Choices(&'static [&'static str]),
    Object,
    /// An object, or JSON of one in a text.
    ObjectOrText,
}

const ANYWHERE: Hooks = Hooks { input: true, output: true };
const INPUT: Hooks = Hooks { input: true, output: false };
const OUTPUT: Hooks = Hooks { input: false, output: true };

const MAX_NUMBER: f64 = 1e15;
const WHOLE: ParameterKind = ParameterKind::Number { least: 0.0, most: MAX_NUMBER, is_whole: true };
const MILLISECONDS: ParameterKind = ParameterKind::Number { least: 1.0, most: 600_000.0, is_whole: true };

const OPERATORS: ParameterKind = Choice(&["any", "all", "none"]);
const MATCH_TYPES: ParameterKind = Choice(&["exact", "contains", "containsAll", "regex"]);

impl ParameterSpec {
    pub(super) const fn new(name: &'static str, kind: ParameterKind) -> Self {
        Self { name, kind, is_required: false, default: "" }
    }

    pub(super) const fn required(name: &'static str, kind: ParameterKind) -> Self {
        Self { name, kind, is_required: true, default: "" }
    }

    pub(super) const fn or(name: &'static str, kind: ParameterKind, default: &'static str) -> Self {
        Self { name, kind, is_required: false, default }
    }
}

const fn flag(name: &'static str) -> ParameterSpec {
    ParameterSpec::or(name, Flag, "false")
}

const NOT: ParameterSpec = flag("not");

/// Of every check that a model of the workspace's own answers.
const MODEL_CONFIG: ParameterSpec = P::new("config", Text);
const MODEL_PROVIDER: ParameterSpec = P::new("provider", Text);
const MODEL: ParameterSpec = P::new("model", Text);
const MODEL_TIMEOUT: ParameterSpec = P::or("timeout", MILLISECONDS, "10000");

const fn row(
    id: &'static str,
    name: &'static str,
    hooks: Hooks,
    parameters: &'static [ParameterSpec],
    compile: Compile,
) -> CheckSpec {
    CheckSpec { id, aliases: &[], name, hooks, parameters, plugin: None, runs: Runs::Here, compile }
}

const fn known_as(spec: CheckSpec, aliases: &'static [&'static str]) -> CheckSpec {
    CheckSpec { aliases, ..spec }
}

const fn outside(spec: CheckSpec, runs: Runs) -> CheckSpec {
    CheckSpec { runs, ..spec }
}

use ParameterKind::{Choice, Choices, Flag, Object, ObjectOrText, Text, Texts, Url};
use ParameterSpec as P;

/// The gateway's own checks, in the order in which they are listed.
#[rustfmt::skip]
pub static TABLE: &[CheckSpec] = &[
    row("default.regexMatch", "Pattern", ANYWHERE, &[P::required("rule", Text), NOT], checks::regex_match::compile),
    row("default.regexReplace", "Replace by a pattern", ANYWHERE,
        &[P::required("rule", Text), P::or("redactText", Text, "\"[REDACTED]\""), flag("failOnDetection")],
        checks::regex_replace::compile),
    row("default.sentenceCount", "Number of sentences", ANYWHERE,
        &[P::or("minSentences", WHOLE, "0"), P::or("maxSentences", WHOLE, "99999"), NOT], checks::sentence_count::compile),
    row("default.wordCount", "Number of words", ANYWHERE,
        &[P::or("minWords", WHOLE, "0"), P::or("maxWords", WHOLE, "99999"), NOT], checks::word_count::compile),
    row("default.characterCount", "Number of characters", ANYWHERE,
        &[P::or("minCharacters", WHOLE, "0"), P::or("maxCharacters", WHOLE, "9999999"), NOT],
        checks::character_count::compile),
    row("default.contains", "Contains words", ANYWHERE,
        &[P::required("words", Texts), P::or("operator", OPERATORS, "\"any\"")], checks::contains::compile),
    row("default.jsonSchema", "JSON by a schema", OUTPUT, &[P::required("schema", ObjectOrText), NOT],
        checks::json_schema::compile),
    row("default.jsonKeys", "JSON with keys", OUTPUT,
        &[P::required("keys", Texts), P::or("operator", OPERATORS, "\"any\"")], checks::json_keys::compile),
    outside(row("default.validUrls", "Addresses that exist", OUTPUT, &[flag("onlyDNS"), NOT], checks::valid_urls::compile),
        Runs::Outside),
    row("default.containsCode", "Contains code", OUTPUT,
        &[P::required("format", Choice(checks::contains_code::FORMATS)), NOT], checks::contains_code::compile),
    row("default.alluppercase", "All upper case", ANYWHERE, &[NOT], checks::letter_case::compile_upper),
    known_as(row("default.alllowercase", "All lower case", ANYWHERE, &[NOT], checks::letter_case::compile_lower),
        &["default.isAllLowerCase"]),
    row("default.endsWith", "Ends with", ANYWHERE, &[P::required("suffix", Text), NOT], checks::ends_with::compile),
    row("default.notNull", "Not empty", OUTPUT, &[NOT], checks::not_null::compile),
    known_as(row("default.modelwhitelist", "Allowed models", INPUT, &[P::required("models", Texts), NOT],
        checks::model_whitelist::compile), &["default.modelWhitelist"]),
    row("default.modelRules", "Models by metadata", INPUT, &[P::required("rules", Object), NOT],
        checks::model_rules::compile),
    row("default.allowedRequestTypes", "Allowed request types", INPUT,
        &[P::new("allowedTypes", Texts), P::new("blockedTypes", Texts)], checks::allowed_request_types::compile),
    row("default.requiredMetadataKeys", "Required metadata keys", INPUT,
        &[P::required("metadataKeys", Texts), P::or("operator", OPERATORS, "\"all\"")],
        checks::required_metadata_keys::compile),
    known_as(row("default.requiredMetadataKeyPairs", "Required metadata", INPUT,
        &[P::required("metadataPairs", Object), P::or("operator", OPERATORS, "\"all\""),
          P::or("matchType", MATCH_TYPES, "\"exact\"")], checks::required_metadata_pairs::compile),
        &["default.requiredMetadataKeyValuePairs"]),
    row("default.requestParametersCheck", "Allowed parameters", INPUT,
        &[P::new("tools", Object), P::new("params", Object)], checks::request_parameters::compile),
    row("default.addPrefix", "Add a prefix", INPUT,
        &[P::required("prefix", Text), P::or("applyToRole", Choice(&["user", "system", "assistant"]), "\"user\""),
          P::or("addToExisting", Flag, "true"), flag("onlyIfEmpty")], checks::add_prefix::compile),
    row("default.jwt", "Token of the caller", INPUT,
        &[P::new("jwks", ObjectOrText), P::new("jwksUri", Url), P::or("headerKey", Text, "\"Authorization\""),
          P::or("algorithms", Choices(algorithm::NAMES), "[\"RS256\"]"), P::or("cacheMaxAge", WHOLE, "86400"),
          P::or("clockTolerance", WHOLE, "5"), P::or("maxTokenAge", Text, "\"1d\""), P::new("requiredClaims", Texts),
          P::new("claimValues", Object), P::new("introspectEndpoint", Url),
          P::or("introspectContentType", Choice(checks::jwt::INTROSPECTION_TYPES), "\"application/x-www-form-urlencoded\""),
          P::or("introspectCacheMaxAge", WHOLE, "0"), P::new("headerPayloadMatch", Texts), P::new("extractClaims", Texts),
          P::or("claimPrefix", Text, "\"x-jwt-\"")], checks::jwt::compile),
    outside(row("default.webhook", "Webhook", ANYWHERE,
        &[P::required("webhookURL", Url), P::new("headers", ObjectOrText), P::or("timeout", MILLISECONDS, "3000"),
          P::new("forwardHeaders", Texts)], checks::webhook::compile), Runs::Outside),
    outside(row("default.log", "Log elsewhere", OUTPUT,
        &[P::required("logURL", Url), P::new("headers", ObjectOrText), P::or("timeout", MILLISECONDS, "3000")],
        checks::log::compile), Runs::Outside),
    outside(row("default.inlineImageUrls", "Fetch images", INPUT,
        &[P::new("providers", Texts), P::or("maxSizeBytes", WHOLE, "20971520"), P::or("timeoutMs", MILLISECONDS, "30000")],
        checks::inline_images::compile), Runs::Outside),
    row("default.pii", "Personal data", ANYWHERE,
        &[P::new("categories", Choices(checks::pii::CATEGORIES)), flag("redact"), flag("reversible"), NOT],
        checks::pii::compile),
    row("default.secrets", "Secrets", ANYWHERE,
        &[P::new("categories", Choices(checks::secrets::CATEGORIES)), flag("redact"), flag("reversible"), NOT],
        checks::secrets::compile),
    outside(row("gateway.judge", "Judged by a model", ANYWHERE,
        &[P::required("instructions", Text), MODEL_CONFIG, MODEL_PROVIDER, MODEL, MODEL_TIMEOUT, NOT],
        checks::model_graded::compile_judge), Runs::Model),
    outside(row("gateway.moderateContent", "Moderated by a model", ANYWHERE,
        &[P::new("categories", Texts), MODEL_CONFIG, MODEL_PROVIDER, MODEL, MODEL_TIMEOUT, NOT],
        checks::model_graded::compile_moderation), Runs::Model),
    outside(row("gateway.language", "Language, by a model", ANYWHERE,
        &[P::required("language", Texts), MODEL_CONFIG, MODEL_PROVIDER, MODEL, MODEL_TIMEOUT, NOT],
        checks::model_graded::compile_language), Runs::Model),
    outside(row("gateway.pii", "Personal data, by a model", ANYWHERE,
        &[P::new("categories", Texts), MODEL_CONFIG, MODEL_PROVIDER, MODEL, MODEL_TIMEOUT, NOT],
        checks::model_graded::compile_pii), Runs::Model),
    outside(row("gateway.gibberish", "Gibberish, by a model", ANYWHERE,
        &[MODEL_CONFIG, MODEL_PROVIDER, MODEL, MODEL_TIMEOUT, NOT], checks::model_graded::compile_gibberish), Runs::Model),
];

/// A check by its id, or by one of its aliases; without a dot it is one of ours.
pub fn check(id: &str) -> Option<&'static CheckSpec> {
    let is_named = |spec: &&CheckSpec| spec.id == id || spec.aliases.contains(&id);
    let is_ours = |spec: &&CheckSpec| {
        let own = |name: &&str| name.strip_prefix("default.") == Some(id);
        own(&spec.id) || spec.aliases.iter().any(own)
    };
    match id.contains('.') {
        true => TABLE.iter().chain(VENDORS).find(is_named),
        false => TABLE.iter().find(is_ours),
    }
}

/// Every id, aliases left out.
pub fn ids() -> impl Iterator<Item = &'static str> {
    all().map(|spec| spec.id)
}

/// Every check, our own first.
pub fn all() -> impl Iterator<Item = &'static CheckSpec> {
    TABLE.iter().chain(VENDORS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_one_id_and_its_defaults_are_values_of_its_kinds() {
        let mut seen = std::collections::HashSet::new();
        for spec in all() {
            for id in std::iter::once(&spec.id).chain(spec.aliases) {
                assert!(seen.insert(*id), "{id} is there twice");
                assert!(check(id).is_some_and(|found| found.id == spec.id), "{id}");
            }
            assert!(spec.hooks.input || spec.hooks.output, "{} runs nowhere", spec.id);
            for parameter in spec.parameters.iter().filter(|parameter| !parameter.default.is_empty()) {
                let value: Value = serde_json::from_str(parameter.default).unwrap();
                let faults = super::super::validate::value(parameter, &value, "x");
                assert_eq!(faults, [], "{} {}", spec.id, parameter.name);
            }
        }
    }

    #[test]
    fn what_others_answer_is_known_before_it_is_made_ready() {
        use serde_json::json;
        for (id, parameters) in [
            ("contains", json!({ "words": ["a"] })),
            ("jwt", json!({ "jwks": { "keys": [] } })),
            ("jwt", json!({ "jwksUri": "https://a.test/keys" })),
            ("jwt", json!({ "introspectEndpoint": "https://a.test/x", "jwks": null })),
            ("webhook", json!({ "webhookURL": "https://a.test/x" })),
            ("inlineImageUrls", json!({})),
            ("aiguard.scan", json!({ "policyId": "7" })),
        ] {
            let made = super::super::compile(id, &parameters).unwrap();
            assert_eq!(check(id).unwrap().is_remote(&parameters), made.remote().is_some(), "{id} {parameters}");
        }
    }

    #[test]
    fn an_id_without_a_source_is_one_of_ours() {
        for (id, found) in [
            ("contains", Some("default.contains")),
            ("modelWhitelist", Some("default.modelwhitelist")),
            ("default.isAllLowerCase", Some("default.alllowercase")),
            ("scan", None),
            ("aiguard.scan", Some("aiguard.scan")),
            ("default.Contains", None),
            ("", None),
        ] {
            assert_eq!(check(id).map(|spec| spec.id), found, "{id}");
        }
    }
}
