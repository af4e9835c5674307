//! Paths into a request body, as `drop_params` has them: `a`, `a.b`, `messages[0].x`, `tools[*].strict`.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamPath(Vec<ParamStep>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamStep {
    Key(String),
    Index(usize),
    /// Every item.
    Each,
}

impl ParamPath {
    /// None when the text is not such a path.
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (key, brackets) = part.split_at(part.find('[').unwrap_or(part.len()));
            if key.is_empty() {
                return None;
            }
            steps.push(ParamStep::Key(key.to_owned()));
            let mut rest = brackets;
            while !rest.is_empty() {
                let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
                steps.push(if inside == "*" { ParamStep::Each } else { ParamStep::Index(inside.parse().ok()?) });
                rest = after;
            }
        }
        Some(Self(steps))
    }

    /// Never empty, and the first is a key.
    pub fn steps(&self) -> &[ParamStep] {
        &self.0
    }
}

impl fmt::Display for ParamPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                ParamStep::Key(key) if index == 0 => f.write_str(key)?,
                ParamStep::Key(key) => write!(f, ".{key}")?,
                ParamStep::Index(number) => write!(f, "[{number}]")?,
                ParamStep::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_it_was_read_and_nothing_else_is_a_path() {
        for path in ["a", "a.b", "arr[0].x", "arr[*].x", "a[*][1].b[*].c"] {
            assert_eq!(ParamPath::parse(path).unwrap().to_string(), path);
        }
        for text in ["", ".", "a.", ".a", "[0]", "a[", "a[]", "a[x]", "a[0", "a[0]b", "a[-1]", "a..b"] {
            assert_eq!(ParamPath::parse(text), None, "{text}");
        }
    }
}
