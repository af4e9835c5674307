//! What stands between quotation marks or in code fences. It is compared to the letter, and the rest of the text is read
//! without it.

/// A quotation that never ends is none.
const PAIRS: [(&str, &str); 6] = [("```", "```"), ("`", "`"), ("\"", "\""), ("“", "”"), ("«", "»"), ("„", "“")];

/// The text without them, and each with its blanks made one.
pub fn take(text: &str) -> (String, Vec<String>) {
    let (mut rest, mut spans, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    // One search for each kind of mark that has no end, not one for each place.
    let mut endless: Vec<&str> = Vec::new();
    while let Some(char) = text[at..].chars().next() {
        let found = PAIRS.iter().find(|(open, _)| text[at..].starts_with(open) && !endless.contains(open));
        if let Some((open, close)) = found {
            let inner = &text[at + open.len()..];
            if let Some(end) = inner.find(close) {
                spans.push(one_blank(&inner[..end]));
                rest.push_str(" , ");
                at += open.len() + end + close.len();
                continue;
            }
            endless.push(open);
        }
        if char == '\''
            && let Some(end) = single_quoted(text, at)
        {
            spans.push(one_blank(&text[at + 1..end]));
            rest.push_str(" , ");
            at = end + 1;
            continue;
        }
        rest.push(char);
        at += char.len_utf8();
    }
    (rest, spans)
}

/// The place of its end. Begins after a blank and ends before one, on the same line; an apostrophe does not.
fn single_quoted(text: &str, at: usize) -> Option<usize> {
    const MAX_QUOTED: usize = 200;
    let begins = text[..at].chars().next_back().is_none_or(|before| before.is_whitespace() || before == '(');
    let inner = &text[at + 1..];
    if !begins || inner.starts_with(char::is_whitespace) {
        return None;
    }
    let mut before = ' ';
    for (place, char) in inner.char_indices().take(MAX_QUOTED) {
        let after = inner[place + char.len_utf8()..].chars().next();
        match char {
            '\n' => return None,
            '\'' if place > 0 && !before.is_whitespace() && after.is_none_or(|after| !after.is_alphanumeric()) => {
                return Some(at + 1 + place);
            }
            _ => before = char,
        }
    }
    None
}

fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_code_are_taken_out() {
        for (text, rest, spans) in [
            ("say \"good  day\" now", "say  ,  now", vec!["good day"]),
            ("`a` and ```b\nc```", " ,  and  , ", vec!["a", "b c"]),
            ("the word 'cat' isn't the dogs' one", "the word  ,  isn't the dogs' one", vec!["cat"]),
            ("“a” «b» „c“", " ,   ,   , ", vec!["a", "b", "c"]),
            ("an open \" mark and ` another", "an open \" mark and ` another", vec![]),
            ("", "", vec![]),
        ] {
            let (left, found) = take(text);
            assert_eq!((left.as_str(), found), (rest, spans.into_iter().map(str::to_owned).collect()), "{text}");
        }
    }
}
