//! Effort in words, budgets in tokens (contract 7.3, 7.4, 6.4 and 7.12).

use super::error::CodecError;
use super::json_reader::Fields;
use crate::wire::conversation::{Effort, Reasoning};

/// Anthropic's least budget.
pub const MIN_BUDGET: u64 = 1024;

/// 7.3: low 1024, medium 8192, high 16384, xhigh 32768; 7.12: `minimal` is low, `max` the highest.
static ANTHROPIC_BUDGETS: &[(Effort, u64)] = &[
    (Effort::Minimal, 1024),
    (Effort::Low, 1024),
    (Effort::Medium, 8192),
    (Effort::High, 16_384),
    (Effort::Xhigh, 32_768),
    (Effort::Max, 32_768),
];

/// 7.4: minimal 1024, low 1024, medium 8192, high 24576.
static GEMINI_BUDGETS: &[(Effort, u64)] = &[
    (Effort::None, 0),
    (Effort::Minimal, 1024),
    (Effort::Low, 1024),
    (Effort::Medium, 8192),
    (Effort::High, 24_576),
    (Effort::Xhigh, 24_576),
    (Effort::Max, 24_576),
];

pub fn anthropic_budget(effort: Effort) -> Option<u64> {
    ANTHROPIC_BUDGETS.iter().find(|(known, _)| *known == effort).map(|(_, budget)| *budget)
}

pub fn gemini_budget(effort: Effort) -> Option<u64> {
    GEMINI_BUDGETS.iter().find(|(known, _)| *known == effort).map(|(_, budget)| *budget)
}

/// The words of Anthropic's `output_config.effort`.
pub fn anthropic_effort(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Xhigh => "xhigh",
        Effort::Max => "max",
    }
}

/// The words of Gemini's `thinkingLevel`.
pub fn gemini_level(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::Xhigh | Effort::Max => "HIGH",
    }
}

/// OpenAI's words; `max` is not one of them.
pub fn openai_effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Max => Effort::Xhigh.name(),
        known => known.name(),
    }
}

/// The smallest effort whose budget is as large, for formats that have no budgets.
pub fn effort_of(reasoning: &Reasoning) -> Option<Effort> {
    if let Some(effort) = reasoning.effort {
        return Some(effort);
    }
    if reasoning.is_disabled {
        return Some(Effort::None);
    }
    let budget = reasoning.budget?;
    let known = [Effort::Low, Effort::Medium, Effort::High];
    let fits = |effort: &Effort| anthropic_budget(*effort).is_some_and(|enough| budget <= enough);
    Some(known.into_iter().find(fits).unwrap_or(Effort::Xhigh))
}

/// `{type: enabled, budget_tokens}`, `{type: adaptive}` or `{type: disabled}`. Anthropic's words, which chat callers and Converse use too.
pub(in crate::wire::codecs) fn read_thinking(
    mut thinking: Fields<'_>,
    reasoning: &mut Reasoning,
) -> Result<(), CodecError> {
    let path = thinking.path;
    match thinking.required_string("type")?.as_str() {
        "enabled" => {
            reasoning.budget = thinking.integer("budget_tokens")?;
            // Claude's thoughts are shown.
            reasoning.is_shown = Some(true);
        }
        "adaptive" => reasoning.is_adaptive = true,
        "disabled" => reasoning.is_disabled = true,
        _ => return Err(path.field("type").problem("is not enabled, adaptive or disabled")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efforts_and_budgets_meet() {
        for (effort, anthropic, gemini) in [
            (Effort::None, None, Some(0)),
            (Effort::Minimal, Some(1024), Some(1024)),
            (Effort::Low, Some(1024), Some(1024)),
            (Effort::Medium, Some(8192), Some(8192)),
            (Effort::High, Some(16_384), Some(24_576)),
            (Effort::Xhigh, Some(32_768), Some(24_576)),
            (Effort::Max, Some(32_768), Some(24_576)),
        ] {
            assert_eq!((anthropic_budget(effort), gemini_budget(effort)), (anthropic, gemini), "{effort:?}");
        }
    }

    #[test]
    fn a_budget_becomes_the_effort_that_covers_it() {
        for (budget, effort) in
            [(1024, Effort::Low), (1025, Effort::Medium), (16_384, Effort::High), (60_000, Effort::Xhigh)]
        {
            let reasoning = Reasoning { budget: Some(budget), ..Reasoning::default() };
            assert_eq!(effort_of(&reasoning), Some(effort), "{budget}");
        }
    }
}
