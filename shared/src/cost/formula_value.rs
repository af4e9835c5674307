//! What a price list's own formula comes to for the usage of a call, and whether it says everything that it should.

use super::TooLarge;
use super::formula::{COUNTS, Expr, Operator};
use super::rates::Effective;
use super::token_kinds::{TokenKind, cache_write, own_cache_write, response_text, text};
use super::usage::Usage;
use rust_decimal::Decimal;

/// What a part of a formula comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormulaValue {
    pub amount: Decimal,
    /// A rate that it needs is lacking, or a name in it means nothing.
    pub is_unknown: bool,
}

impl FormulaValue {
    const fn known(amount: Decimal) -> Self {
        Self { amount, is_unknown: false }
    }

    const fn unknown(amount: Decimal) -> Self {
        Self { amount, is_unknown: true }
    }
}

/// Whether a formula says what tokens of this kind cost: it counts them, or costs the same whatever is used.
pub fn prices(formula: &Expr, kind: &TokenKind) -> bool {
    formula.has_count(&|name| kind.in_formulas.contains(&name)) || !formula.has_count(&|name| COUNTS.contains(&name))
}

/// Depth is bounded by the JSON reader, which gives up at 128.
pub fn value(formula: &Expr, usage: &Usage, rates: &Effective<'_>) -> Result<FormulaValue, TooLarge> {
    let (operation, operands) = match formula {
        Expr::Value { value } => return Ok(named(value, usage, rates)),
        Expr::Operation { operation, operands } => (operation, operands),
    };
    let is_sum = *operation == Operator::Sum;
    let start = FormulaValue::known(if is_sum { Decimal::ZERO } else { Decimal::ONE });
    // Nothing times what is not known is nothing.
    let mut has_nothing = false;
    let found = operands.iter().try_fold(start, |result, operand| {
        let operand = value(operand, usage, rates)?;
        has_nothing |= operand == FormulaValue::known(Decimal::ZERO);
        let amount = match operation {
            Operator::Sum => result.amount.checked_add(operand.amount),
            Operator::Multiply => result.amount.checked_mul(operand.amount),
        };
        let is_unknown = result.is_unknown || operand.is_unknown;
        Ok(FormulaValue { amount: amount.ok_or(TooLarge)?, is_unknown })
    })?;
    Ok(if has_nothing && !is_sum { FormulaValue::known(Decimal::ZERO) } else { found })
}

fn named(name: &str, usage: &Usage, rates: &Effective<'_>) -> FormulaValue {
    if let Some(key) = name.strip_prefix("rates.") {
        return rate(key, rates);
    }
    let tokens = match name {
        "input_tokens" => usage.input,
        "output_tokens" => usage.output,
        "cache_read_tokens" => usage.cache_read,
        "cache_write_tokens" => usage.cache_write,
        "cache_write_1h_tokens" => usage.cache_write_1h,
        "cache_write_12h_tokens" => usage.cache_write_12h,
        "audio_input_tokens" | "request_audio_tokens" => usage.audio_input,
        "audio_output_tokens" | "response_audio_tokens" => usage.audio_output,
        "cache_read_audio_tokens" => usage.cache_read_audio,
        "image_input_tokens" => usage.image_input,
        "cache_read_image_tokens" => usage.cache_read_image,
        "image_output_tokens" => usage.image_output,
        "video_input_tokens" => usage.video_input,
        "video_output_tokens" => usage.video_output,
        "reasoning_tokens" => usage.reasoning,
        literal => {
            let read = literal.parse().ok();
            return read.map_or(FormulaValue::unknown(Decimal::ZERO), FormulaValue::known);
        }
    };
    FormulaValue::known(tokens.into())
}

/// What has no rate is not known; the nearest rate is counted as it is without a formula.
fn rate(key: &str, rates: &Effective<'_>) -> FormulaValue {
    let own = match key {
        "cache_read_input_token" => rates.first(&[key, "request_token"]),
        "cache_write_input_token" => own_cache_write(rates),
        key => rates.first(&[key]).or_else(|| rates.unit(key.strip_prefix("additional_units.").unwrap_or(key))),
    };
    let stand_in = || match key.split_once('_')?.0 {
        "request" => text(rates),
        "response" | "reasoning" => response_text(rates),
        "cache" => cache_write(rates),
        _ => None,
    };
    match own {
        Some(rate) => FormulaValue::known(rate),
        None => FormulaValue::unknown(stand_in().unwrap_or_default()),
    }
}
