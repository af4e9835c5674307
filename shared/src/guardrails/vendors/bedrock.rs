//! Bedrock's guardrails: what intervened decides. What they mask counts as redacted only where nothing but personal data was
//! found: of a blocked text the output is a message of its own.

use super::super::verdict::Verdict;
use super::reading::{Judged, Reading, found, is_set};

const OTHERS: [&str; 4] = ["topicPolicy", "contentPolicy", "wordPolicy", "contextualGroundingPolicy"];

pub fn judged(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    let action = reading.needed("/action")?;
    let passes = action.iter().all(|action| action.as_str() != Some("GUARDRAIL_INTERVENED"));
    let has_other =
        OTHERS.iter().any(|policy| found(reading.json, &format!("/assessments/*/{policy}/*")).into_iter().any(is_set));
    let is_blocked = found(reading.json, "/assessments/*/sensitiveInformationPolicy/*/*/action")
        .into_iter()
        .any(|action| action.as_str() == Some("BLOCKED"));
    let masked = found(reading.json, "/outputs/0/text").first().and_then(|text| text.as_str());
    let masked = masked.filter(|_| !passes && !has_other && !is_blocked).map(str::to_owned);
    let data = reading.json.get("assessments").cloned().unwrap_or_default();
    Ok(Judged { passes, data, redacted: vec![masked], transformed: None })
}
