//! Vendors that answer for each kind of harm, of which a check names those that count, or from where on they do.

use super::super::remote::RemoteAnswer;
use super::super::verdict::Verdict;
use super::reading::{Judged, Reading, found};
use serde_json::{Value, json};

/// Flags by name, of which the parameter `categories` counts.
pub fn flags(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    let wanted: Vec<&str> = reading
        .parameters
        .get("categories")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let results = reading.needed("/results/*/categories")?;
    let flagged: Vec<&str> = results
        .iter()
        .filter_map(|result| result.as_object())
        .flatten()
        .filter(|(name, value)| **value == Value::Bool(true) && wanted.contains(&name.as_str()))
        .map(|(name, _)| name.as_str())
        .collect();
    Ok(Judged { passes: flagged.is_empty(), data: json!({ "flagged_categories": flagged }), ..Judged::default() })
}

/// Scores by name, each with a threshold of its own.
pub fn scores(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    const LIMITS: [(&str, &str); 3] = [
        ("PROMPT_INJECT", "prompt_injection_threshold"),
        ("TOXIC", "toxicity_threshold"),
        ("EVASION", "evasion_threshold"),
    ];
    let scored = found(reading.json, "/category_scores/*");
    if scored.is_empty() {
        return Err(RemoteAnswer::senseless("it has no scores").into());
    }
    let is_over = |scored: &&Value| {
        let limit = LIMITS.iter().find(|(name, _)| scored["category"].as_str() == Some(*name));
        let limit = limit.and_then(|(_, parameter)| reading.parameters.get(*parameter)?.as_f64());
        limit.zip(scored["score"].as_f64()).is_some_and(|(limit, score)| score > limit)
    };
    Ok(Judged { passes: !scored.iter().any(is_over), data: reading.summary(), ..Judged::default() })
}
