//! Acuvity says how sure it is of each kind of find; the check says which count and from where on. The texts come back with
//! what was to be taken out already gone.

use super::super::verdict::Verdict;
use super::reading::{Judged, Reading, found};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

pub const BODY: &str =
    r#"{"anonymization":"FixedSize","messages":"$texts","redactions":"$redactions","type":"$side:Input/Output"}"#;

/// (parameter, group of finds, name in it)
const FINDS: [(&str, &str, &str); 6] = [
    ("prompt_injection", "exploits", "prompt_injection"),
    ("jail_break", "exploits", "jailbreak"),
    ("malicious_url", "exploits", "malicious_url"),
    ("toxic", "malcontents", "toxic"),
    ("biased", "malcontents", "biased"),
    ("harmful", "malcontents", "harmful"),
];
/// (parameter, group of finds)
const LISTS: [(&str, &str); 2] = [("pii", "piIs"), ("secrets", "secrets")];

pub fn judged(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    let extractions = reading.needed("/extractions")?;
    let extractions: Vec<&Value> = extractions.into_iter().filter_map(Value::as_array).flatten().collect();
    let parameter = |name: &str| reading.parameters.get(name);
    let is_on = |name: &str| parameter(name).and_then(Value::as_bool).unwrap_or(false);
    let mut guards: Vec<&str> = Vec::new();
    for extraction in &extractions {
        for (name, group, find) in FINDS.into_iter().filter(|(name, ..)| is_on(name)) {
            let limit = parameter(&format!("{name}_threshold")).and_then(Value::as_f64).unwrap_or(0.5);
            let score = extraction.get(group).and_then(|group| group.get(find)).and_then(Value::as_f64);
            if score.is_some_and(|score| score >= limit) {
                guards.push(name);
            }
        }
        for (name, group) in LISTS.into_iter().filter(|(name, _)| is_on(name)) {
            let listed = parameter(&format!("{name}_categories")).and_then(Value::as_array);
            let finds = extraction.get(group).and_then(Value::as_object);
            let counts = |find: &String| {
                let is_listed = |listed: &Vec<Value>| {
                    listed.iter().any(|one| one.as_str().is_some_and(|one| one.eq_ignore_ascii_case(find)))
                };
                listed.is_none_or(is_listed)
            };
            if finds.is_some_and(|finds| finds.keys().any(counts)) {
                guards.push(name);
            }
        }
    }
    if is_on("language") && !extractions.is_empty() {
        let wanted = parameter("language_values").and_then(Value::as_str).unwrap_or("english");
        let is_spoken =
            |extraction: &&Value| extraction.get("languages").is_some_and(|found| found.get(wanted).is_some());
        if !extractions.iter().all(is_spoken) {
            guards.push("language");
        }
    }
    guards.sort_unstable();
    guards.dedup();
    let is_redacted = |name: &&str| is_on(&format!("{name}_redact"));
    // Texts may replace what was sent only where nothing else was found.
    let redacted = match guards.iter().all(is_redacted) {
        true => found(reading.json, "/extractions/*/data")
            .into_iter()
            .map(|text| text.as_str().map(str::to_owned))
            .collect(),
        false => Vec::new(),
    };
    Ok(Judged { passes: guards.is_empty(), data: json!({ "guards": guards }), redacted, transformed: None })
}

/// Where the vendor is: its tokens say so themselves.
pub fn apex(credentials: &Map<String, Value>) -> Option<String> {
    let token = credentials.get("apiKey")?.as_str()?;
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims.pointer("/opaque/apex-url")?.as_str().map(str::to_owned)
}

/// What is to be taken out of the texts that come back.
pub fn redactions(parameters: &Map<String, Value>) -> Value {
    let on = |name: String| parameters.get(&name).and_then(Value::as_bool).unwrap_or(false);
    let lists = LISTS.iter().filter(|(name, _)| on((*name).to_owned()) && on(format!("{name}_redact")));
    let listed = lists.filter_map(|(name, _)| parameters.get(&format!("{name}_categories"))?.as_array());
    listed.flatten().cloned().collect()
}
