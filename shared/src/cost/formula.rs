//! Formulas that a price list may bring: sums and products of token counts, rates and literal numbers. What they come to is worked out
//! in `formula_value`.

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
pub const COUNTS: [&str; 17] = [
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_1h_tokens",
    "cache_write_12h_tokens",
    "audio_input_tokens",
    "request_audio_tokens",
    "audio_output_tokens",
    "response_audio_tokens",
    "cache_read_audio_tokens",
    "image_input_tokens",
    "cache_read_image_tokens",
    "image_output_tokens",
    "video_input_tokens",
    "video_output_tokens",
    "reasoning_tokens",
];

impl Calculate {
    pub(super) const fn request(&self) -> Option<&Expr> {
        self.request.as_ref()
    }

    pub(super) const fn response(&self) -> Option<&Expr> {
        self.response.as_ref()
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

    /// Whether it counts anything of these names.
    pub(super) fn has_count(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Value { value } => is_wanted(value),
            Self::Operation { operands, .. } => operands.iter().any(|operand| operand.has_count(is_wanted)),
        }
    }
}
