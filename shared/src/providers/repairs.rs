//! What a provider that speaks OpenAI's chat does not take as it is: parameters that it refuses, knows by another name or
//! within narrower bounds. Data of its row; most rows have none, and then bodies pass as they came.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Repairs {
    /// Not sent.
    pub excluded: Vec<String>,
    /// Sent under another name.
    pub renamed: BTreeMap<String, String>,
    /// Numbers that are cut to these bounds.
    pub clamped: BTreeMap<String, (f64, f64)>,
    /// Words of a parameter that have another name: `tool_choice = { required = "any" }`.
    pub words: BTreeMap<String, BTreeMap<String, String>>,
}

impl Repairs {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
