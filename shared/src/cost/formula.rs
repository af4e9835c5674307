//! Formulas that a price list may bring: sums and products of token counts, rates and literal numbers.

use super::TooLarge;
use super::rates::Effective;
use super::usage::Usage;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calculate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Expr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Expr>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Expr {
    Operation { operation: Operator, operands: Vec<Self> },
    Value { value: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    Sum,
    Multiply,
}

/// Names of counts.
const COUNTS: [&str; 10] = [
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "audio_input_tokens",
    "request_audio_tokens",
    "audio_output_tokens",
    "response_audio_tokens",
    "cache_read_audio_tokens",
    "reasoning_tokens",
];

impl Calculate {
    pub(super) fn request(&self, usage: &Usage, rates: &Effective<'_>) -> Result<Decimal, TooLarge> {
        self.request.as_ref().map_or(Ok(Decimal::ZERO), |expr| expr.value(usage, rates))
    }

    pub(super) fn response(&self, usage: &Usage, rates: &Effective<'_>) -> Result<Decimal, TooLarge> {
        self.response.as_ref().map_or(Ok(Decimal::ZERO), |expr| expr.value(usage, rates))
    }

    /// Whether every token adds the same amount, of at least nothing, whatever the others are.
    pub(super) fn is_linear(&self) -> bool {
        [&self.request, &self.response]
            .into_iter()
            .flatten()
            .all(|expr| expr.degree().is_some_and(|degree| degree <= 1))
    }
}

impl Expr {
    /// How many counts of tokens are multiplied with each other at most. None where something is below zero.
    fn degree(&self) -> Option<usize> {
        match self {
            Self::Value { value } if COUNTS.contains(&value.as_str()) => Some(1),
            Self::Value { value } => {
                value.parse().map_or(true, |literal: Decimal| literal >= Decimal::ZERO).then_some(0)
            }
            Self::Operation { operation: Operator::Sum, operands } => {
                operands.iter().try_fold(0, |most: usize, operand| Some(most.max(operand.degree()?)))
            }
            Self::Operation { operation: Operator::Multiply, operands } => {
                operands.iter().try_fold(0, |sum: usize, operand| Some(sum.saturating_add(operand.degree()?)))
            }
        }
    }

    /// Depth is bounded by the JSON reader, which gives up at 128.
    fn value(&self, usage: &Usage, rates: &Effective<'_>) -> Result<Decimal, TooLarge> {
        match self {
            Self::Value { value } => Ok(named(value, usage, rates)),
            Self::Operation { operation, operands } => {
                let start = if *operation == Operator::Sum { Decimal::ZERO } else { Decimal::ONE };
                operands.iter().try_fold(start, |result, operand| {
                    let operand = operand.value(usage, rates)?;
                    let next = match operation {
                        Operator::Sum => result.checked_add(operand),
                        Operator::Multiply => result.checked_mul(operand),
                    };
                    next.ok_or(TooLarge)
                })
            }
        }
    }
}

/// What has no rate costs nothing, except cached tokens: those are prompt tokens first of all.
fn named(name: &str, usage: &Usage, rates: &Effective<'_>) -> Decimal {
    if let Some(key) = name.strip_prefix("rates.") {
        let rate = match key {
            "cache_read_input_token" | "cache_write_input_token" => rates.first(&[key, "request_token"]),
            key => rates.first(&[key]).or_else(|| rates.unit(key.strip_prefix("additional_units.")?)),
        };
        return rate.unwrap_or_default();
    }
    let tokens = match name {
        "input_tokens" => usage.input,
        "output_tokens" => usage.output,
        "cache_read_tokens" => usage.cache_read,
        "cache_write_tokens" => usage.cache_write,
        "audio_input_tokens" | "request_audio_tokens" => usage.audio_input,
        "audio_output_tokens" | "response_audio_tokens" => usage.audio_output,
        "cache_read_audio_tokens" => usage.cache_read_audio,
        "reasoning_tokens" => usage.reasoning,
        literal => return literal.parse().unwrap_or_default(),
    };
    tokens.into()
}
