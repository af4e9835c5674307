//! The request of a version as JSON text with gaps, prepared once when the version arrives. Most prompts only name
//! variables: for these a run copies texts, and builds no tree of the call, of the template or of what it becomes. What a
//! skeleton cannot do is left to `render`, which says the same of everything that both can.

use super::PromptParts;
use super::body::pieces::{Piece, fixed};
use std::borrow::Cow;

/// Gaps of one skeleton, and bytes of its texts: others are rendered where it may take longer.
const MAX_GAPS: usize = 200;
const MAX_SIZE: usize = 64 << 10;
/// Bytes of a request that is written from one; as much as is rendered at once.
const MAX_REQUEST: usize = 256 << 10;

#[derive(Debug)]
pub struct RequestSkeleton {
    fields: Vec<SkeletonField>,
    /// Of all its texts.
    bytes: usize,
}

#[derive(Debug)]
struct SkeletonField {
    name: Box<str>,
    /// `"name":`
    key: Box<str>,
    pieces: Vec<Piece>,
}

/// A field of a call, as it was written.
#[derive(Debug, Clone)]
pub struct WrittenField<'t> {
    pub name: Cow<'t, str>,
    /// With its quotes and escapes.
    pub key: &'t str,
    /// JSON without escapes by number (`\u0041`), which may be halves of a character.
    pub value: &'t str,
}

/// What a call brings, each name once in either list.
#[derive(Debug, Default)]
pub struct WrittenCall<'t> {
    pub variables: Vec<WrittenField<'t>>,
    /// Fields of the request that win over the version's; none of them null.
    pub overrides: Vec<WrittenField<'t>>,
}

impl RequestSkeleton {
    /// None for versions that do more than name variables, or check them.
    pub fn new(parts: &PromptParts<'_>) -> Option<Self> {
        let asked = parts.body.asks();
        if !parts.declared.is_empty() || !asked.partials.is_empty() || !asked.sections.is_empty() {
            return None;
        }
        let mut skeleton = Self { fields: Vec::new(), bytes: 0 };
        for (name, value) in parts.parameters.iter().filter(|(name, _)| !asked.variables.contains(*name)) {
            skeleton.set(name, fixed(value));
        }
        if let Some(model) = parts.model {
            skeleton.set("model", fixed(&model.into()));
        }
        for (name, value) in
            [("functions", parts.functions), ("tools", parts.tools), ("tool_choice", parts.tool_choice)]
        {
            if let Some(value) = value {
                skeleton.set(name, fixed(value));
            }
        }
        for (name, pieces) in parts.body.pieces(parts.parameters)? {
            skeleton.set(name, pieces);
        }
        skeleton.bytes = skeleton.fields.iter().map(SkeletonField::bytes).sum();
        let gaps = skeleton.fields.iter().flat_map(|field| &field.pieces);
        let gaps = gaps.filter(|piece| matches!(piece, Piece::Gap { .. })).count();
        (gaps <= MAX_GAPS && skeleton.bytes <= MAX_SIZE).then_some(skeleton)
    }

    /// What is set later wins, in the place of what it replaces.
    fn set(&mut self, name: &str, pieces: Vec<Piece>) {
        match self.fields.iter_mut().find(|field| &*field.name == name) {
            Some(known) => known.pieces = pieces,
            None => {
                let key = format!("{}:", serde_json::Value::from(name));
                self.fields.push(SkeletonField { name: name.into(), key: key.into(), pieces });
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| &*field.name == name)
    }

    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The request that a call makes of it; none if a value must be read to be printed, or it would be too long.
    pub fn write(&self, call: &WrittenCall<'_>) -> Option<Vec<u8>> {
        let sent = call.variables.iter().chain(&call.overrides).map(|field| field.key.len() + field.value.len() + 2);
        let mut out = Vec::with_capacity(self.bytes + sent.sum::<usize>() + 2);
        out.push(b'{');
        for field in &self.fields {
            out.extend_from_slice(field.key.as_bytes());
            match find(&call.overrides, &field.name) {
                Some(written) => out.extend_from_slice(written.as_bytes()),
                None => field.write(call, &mut out)?,
            }
            out.push(b',');
        }
        for field in call.overrides.iter().filter(|field| !self.has(&field.name)) {
            for text in [field.key, ":", field.value, ","] {
                out.extend_from_slice(text.as_bytes());
            }
        }
        // The last comma.
        if out.len() > 1 {
            out.pop();
        }
        out.push(b'}');
        (out.len() <= MAX_REQUEST).then_some(out)
    }
}

impl SkeletonField {
    fn bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Json(text) => text.len(),
            Piece::Gap { default, .. } => default.len(),
        });
        self.key.len() + pieces.sum::<usize>() + 1
    }

    fn write(&self, call: &WrittenCall<'_>, out: &mut Vec<u8>) -> Option<()> {
        for piece in &self.pieces {
            let text: &str = match piece {
                Piece::Json(text) => text,
                Piece::Gap { name, default } => match find(&call.variables, name) {
                    None => default,
                    Some(written) => printed_inside(written)?,
                },
            };
            if out.len() + text.len() > MAX_REQUEST {
                return None;
            }
            out.extend_from_slice(text.as_bytes());
        }
        Some(())
    }
}

fn find<'t>(fields: &[WrittenField<'t>], name: &str) -> Option<&'t str> {
    fields.iter().find(|field| field.name == name).map(|field| field.value)
}

/// A value as templates print it, inside of a JSON text, where it can be told from how it is written.
fn printed_inside(written: &str) -> Option<&str> {
    let is_plain_number = || {
        const EXACT: usize = 15;
        let digits = written.strip_prefix('-').unwrap_or(written);
        digits.len() <= EXACT && written != "-0" && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match written {
        "null" => Some(""),
        "true" | "false" => Some(written),
        text if text.starts_with('"') => text.get(1..text.len() - 1),
        _ if is_plain_number() => Some(written),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
