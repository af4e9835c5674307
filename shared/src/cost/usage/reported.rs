//! The usage that a provider reported for one call: in one piece or, at the beginning and at the end of a stream, in two.

use super::Usage;
use super::counts::Counts;
use super::skim::skim;
use super::words::Words;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq)]
pub struct ReportedUsage<'t> {
    /// None when it is of no kind that we know.
    pub usage: Option<Usage>,
    /// As JSON.
    pub text: Cow<'t, str>,
}

impl<'t> ReportedUsage<'t> {
    /// Pieces that are no JSON are left out.
    pub fn from_pieces(pieces: impl IntoIterator<Item = &'t str>) -> Option<Self> {
        pieces.into_iter().filter_map(Self::parse).reduce(Self::then)
    }

    fn parse(text: &'t str) -> Option<Self> {
        Some(Self { usage: parse(text)?, text: Cow::Borrowed(text) })
    }

    /// Later words win, key by key. What cannot be put together with others, for an escape or a number out of range, gives
    /// way to them.
    fn then(self, later: Self) -> Self {
        let value = |text: &str| serde_json::from_str(text).ok();
        let both = match (value(&self.text), value(&later.text)) {
            (Some(earlier), Some(later)) => merged(earlier, later),
            (None, Some(_)) => return later,
            (_, None) => return self,
        };
        Self { usage: Usage::parse(&both), text: Cow::Owned(both.to_string()) }
    }
}

/// The outer none is of what is no JSON.
fn parse(text: &str) -> Option<Option<Usage>> {
    let mut counts = Counts::default();
    if !skim(text, &mut counts) {
        counts = serde_json::from_str(text).ok()?;
    }
    Some(Usage::from_counts(&counts, || Words::parse(text)))
}

fn merged(earlier: Value, later: Value) -> Value {
    match (earlier, later) {
        (Value::Object(mut earlier), Value::Object(later)) => {
            earlier.extend(later.into_iter().filter(|(_, value)| !value.is_null()));
            Value::Object(earlier)
        }
        (_, later) => later,
    }
}

impl Usage {
    /// What was said in this text, which was counted before.
    pub fn counted(counts: &Counts, text: &str) -> Option<Self> {
        Self::from_counts(counts, || Words::parse(text))
    }

    /// What was said in one piece or two, for those who need no words of it. None when it was nothing that we know.
    pub fn from_reported(pieces: &[String]) -> Option<Self> {
        match pieces {
            [whole] => parse(whole)?,
            pieces => ReportedUsage::from_pieces(pieces.iter().map(String::as_str))?.usage,
        }
    }

    /// What was said, and what we guess (prompt and completion) where it was not said to the end.
    pub fn known(reported: Option<Self>, guess: Option<(u64, u64)>) -> Self {
        match (reported, guess) {
            (Some(usage), None) => usage,
            // A stream that was cut has said what it read, and nothing final about what it wrote.
            (Some(usage), Some((_, output))) => Self { output: usage.output.max(output), ..usage },
            (None, Some((input, output))) => Self { input, output, ..Self::default() },
            (None, None) => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_words_win_and_a_guess_fills_what_nobody_said() {
        let start = r#"{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}"#;
        for (pieces, guess, expected) in [
            (&[start, r#"{"output_tokens":25,"input_tokens":null}"#][..], None, (14, 25)),
            (&[start, "not JSON", r#"{"output_tokens":2}"#, r#"{"output_tokens":3}"#], None, (14, 3)),
            (&[start, r#"{"output_tokens":25,"x":"\ud800"}"#], None, (14, 1)),
            (&[r#"{"input_tokens":1,"x":"\ud800"}"#, start], None, (14, 1)),
            (&[start], Some((99, 7)), (14, 7)),
            (&[start], Some((99, 0)), (14, 1)),
            (&[], Some((3, 4)), (3, 4)),
            (&[], None, (0, 0)),
            (&["not JSON"], Some((3, 4)), (3, 4)),
            (&[r#"{"prompt_tokens":5,"completion_tokens":6}"#], None, (5, 6)),
            (&[r#"{"prompt_tokens":5,"x":"\ud800","y":1e100000,"z":[[{"a":"\ud800"}]]}"#], None, (5, 0)),
        ] {
            let from_reported = ReportedUsage::from_pieces(pieces.iter().copied());
            let usage = Usage::known(from_reported.and_then(|from_reported| from_reported.usage), guess);
            assert_eq!((usage.prompt_tokens(), usage.completion_tokens()), expected, "{pieces:?} {guess:?}");
        }
    }

    #[test]
    fn one_piece_is_kept_as_it_was_written_and_several_become_one() {
        let text = |pieces: &[&'static str]| {
            ReportedUsage::from_pieces(pieces.iter().copied()).map(|from_reported| from_reported.text)
        };
        assert_eq!(text(&[r#"{ "prompt_tokens" : 1.0 }"#]).as_deref(), Some(r#"{ "prompt_tokens" : 1.0 }"#));
        let both = text(&[r#"{"input_tokens":1,"output_tokens":1}"#, r#"{"output_tokens":9}"#]);
        assert_eq!(both.as_deref(), Some(r#"{"input_tokens":1,"output_tokens":9}"#));
        assert_eq!(text(&["{"]), None);
    }
}
