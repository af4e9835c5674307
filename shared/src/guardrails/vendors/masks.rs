//! Vendors that say where in a text something stands, in characters. It is replaced here.

use super::super::verdict::Verdict;
use super::reading::{Judged, Reading, found, is_set};
use serde_json::Value;

pub fn promptfoo(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    reading.needed("/results/0")?;
    let is_flagged = found(reading.json, "/results/0/flagged").into_iter().any(is_set);
    let spans: Vec<(usize, usize, String)> = found(reading.json, "/results/0/payload/pii/*")
        .into_iter()
        .filter_map(|found| {
            let kind = found["entity_type"].as_str()?.to_uppercase();
            Some((place(&found["start"])?, place(&found["end"])?, format!("[{kind}]")))
        })
        .collect();
    let data = reading.json.pointer("/results/0").cloned().unwrap_or_default();
    Ok(judged(reading, is_flagged, spans, data))
}

pub fn patronus(reading: &Reading<'_>) -> Result<Judged, Box<Verdict>> {
    let passed = reading.needed("/results/0/evaluation_result/pass")?;
    let is_flagged = passed.iter().any(|passed| **passed == Value::Bool(false));
    let spans = found(reading.json, "/results/0/evaluation_result/additional_info/positions/*")
        .into_iter()
        .filter_map(|pair| {
            let (start, end) = (place(pair.get(0)?)?, place(pair.get(1)?)?);
            Some((start, end, "*".repeat(end.checked_sub(start)?.min(64))))
        })
        .collect();
    let data = reading.json.pointer("/results/0/evaluation_result/additional_info").cloned().unwrap_or_default();
    Ok(judged(reading, is_flagged, spans, data))
}

fn judged(reading: &Reading<'_>, is_flagged: bool, spans: Vec<(usize, usize, String)>, data: Value) -> Judged {
    let text = reading.texts.first().map(String::as_str).unwrap_or_default();
    let redacted = if is_flagged { masked(text, spans) } else { None };
    Judged { passes: !is_flagged, data, redacted: vec![redacted], transformed: None }
}

fn place(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|place| usize::try_from(place).ok())
}

/// The text with these places replaced; none if one of them is not in it.
fn masked(text: &str, mut spans: Vec<(usize, usize, String)>) -> Option<String> {
    let letters: Vec<char> = text.chars().collect();
    spans.sort();
    if spans.is_empty() {
        return None;
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (start, end, mask) in spans {
        if start > end || end > letters.len() {
            return None;
        }
        // What stands inside another place is gone with it; what reaches beyond it goes too.
        if start >= at {
            out.extend(&letters[at..start]);
            out.push_str(&mask);
        }
        at = at.max(end);
    }
    out.extend(&letters[at..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_characters_and_never_leave_a_part_of_what_was_found() {
        let mask = |spans: &[(usize, usize)]| {
            masked("Zoë: a@b.ch!", spans.iter().map(|(start, end)| (*start, *end, "[X]".to_owned())).collect())
        };
        for (spans, expected) in [
            (&[(5, 11)][..], Some("Zoë: [X]!")),
            (&[(5, 11), (0, 3)], Some("[X]: [X]!")),
            (&[(5, 8), (6, 11)], Some("Zoë: [X]!")),
            (&[(5, 11), (6, 8)], Some("Zoë: [X]!")),
            (&[(0, 12)], Some("[X]")),
            (&[(12, 12)], Some("Zoë: a@b.ch![X]")),
            (&[(5, 99)], None),
            (&[(8, 5)], None),
            (&[], None),
        ] {
            assert_eq!(mask(spans).as_deref(), expected, "{spans:?}");
        }
    }
}
