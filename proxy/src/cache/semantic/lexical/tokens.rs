//! A text as words: without the punctuation around them, and with what their shape tells (a name, code, a negation).

use super::vocabulary;

#[derive(Debug)]
pub struct Token<'t> {
    /// As written, without the punctuation around it.
    pub raw: &'t str,
    /// In lower case, without an ending such as `'s`.
    pub lower: String,
    /// Identifiers, paths, options: no words of a language.
    pub is_code: bool,
    /// Ends with `n't`.
    pub is_negated: bool,
    is_capital: bool,
    starts_sentence: bool,
}

impl Token<'_> {
    /// Written with a capital for another reason than where it stands, as far as one can tell.
    pub fn is_name(&self) -> bool {
        if vocabulary::is_day_or_month(&self.lower) {
            return true;
        }
        let is_usual = vocabulary::is_frame(&self.lower) || vocabulary::is_negation(&self.lower);
        match (self.is_capital, self.starts_sentence) {
            (false, _) => false,
            // "IT", "US" and "A" are names inside a sentence, "It" and "Us" are words.
            (true, false) => !is_usual || (self.raw != "I" && self.is_upper()),
            (true, true) => !is_usual && !vocabulary::begins_requests(&self.lower),
        }
    }

    fn is_upper(&self) -> bool {
        self.raw.chars().all(|char| !char.is_lowercase())
    }
}

pub fn read(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let mut starts_sentence = true;
        for piece in line.split_whitespace() {
            let ends_sentence = piece.trim_end_matches(['"', ')', '\'']).ends_with(['.', '!', '?', ':']);
            let before = tokens.len();
            read_piece(piece, starts_sentence, &mut tokens);
            starts_sentence = ends_sentence || (starts_sentence && tokens.len() == before);
        }
    }
    tokens
}

fn read_piece<'t>(piece: &'t str, starts_sentence: bool, tokens: &mut Vec<Token<'t>>) {
    let raw = trimmed(piece);
    if raw.is_empty() {
        // Signs alone: operators are code, dashes are not.
        let is_sign = piece.contains(['=', '+', '<', '>', '*', '%', '|', '^', '~']);
        if is_sign {
            tokens.push(Token { is_code: piece != "%", ..plain(piece, starts_sentence) });
        }
        return;
    }
    let has_digit = raw.contains(|char: char| char.is_ascii_digit());
    if is_code(piece, raw) && !has_digit && vocabulary::unit(&raw.to_lowercase()).is_none() {
        let code = piece.trim_end_matches([',', '.', '?', '!', ';', ':']);
        tokens.push(Token { is_code: true, ..plain(code, starts_sentence) });
        return;
    }
    if has_digit || vocabulary::unit(&raw.to_lowercase()).is_some() {
        tokens.push(plain(raw, starts_sentence));
        return;
    }
    for (index, part) in raw.split(['-', '/', '–', '—']).filter(|part| !part.is_empty()).enumerate() {
        tokens.push(plain(part, starts_sentence && index == 0));
    }
}

fn plain(raw: &str, starts_sentence: bool) -> Token<'_> {
    let mut lower = raw.to_lowercase().replace('’', "'");
    let is_negated = lower.ends_with("n't");
    if is_negated {
        lower.truncate(lower.len() - 3);
    }
    for ending in ["'s", "'re", "'ll", "'ve", "'d", "'m", "'"] {
        if let Some(rest) = lower.strip_suffix(ending) {
            lower.truncate(rest.len());
            break;
        }
    }
    let is_capital = raw.chars().any(char::is_uppercase);
    Token { raw, lower, is_code: false, is_negated, is_capital, starts_sentence }
}

/// Currency signs, percent signs and the hash of a hashtag stay.
fn trimmed(piece: &str) -> &str {
    let keeps =
        |char: char| char.is_alphanumeric() || matches!(char, '$' | '€' | '£' | '¥' | '%' | '+' | '#' | '°' | '_');
    let start = piece.trim_start_matches(|char: char| !keeps(char));
    let end = start.trim_end_matches(|char: char| !keeps(char));
    if end.chars().any(char::is_alphanumeric) { end } else { "" }
}

fn is_code(piece: &str, raw: &str) -> bool {
    let is_option = piece
        .strip_prefix('-')
        .is_some_and(|rest| rest.trim_start_matches('-').starts_with(|char: char| char.is_ascii_alphabetic()));
    let has_sign =
        raw.contains(['_', '\\', '=', '<', '>', '{', '}', '[', ']', '(', '|', '~', '@', '*', '^', '#', '+', '$']);
    let has_inner_dot = raw.split(['.', ':']).filter(|part| !part.is_empty()).count() > 1;
    is_option || has_sign || has_inner_dot || piece.contains("()") || piece.starts_with(['/', '~', '@', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_capitals() {
        for (text, names) in [
            ("What is in Paris?", vec!["paris"]),
            ("Paris is big. Rome too", vec!["paris", "rome"]),
            ("Write to Anna", vec!["anna"]),
            ("Why do I ask?", vec![]),
            ("Is A greater than B?", vec!["a", "b"]),
            ("does the US use IT or it", vec!["us", "it"]),
            ("an iPhone on monday", vec!["iphone", "monday"]),
            ("tell me:\nWhat now", vec![]),
        ] {
            let found: Vec<String> = read(text).into_iter().filter(Token::is_name).map(|token| token.lower).collect();
            assert_eq!(found, names, "{text}");
        }
    }

    #[test]
    fn code_is_known_by_its_shape() {
        for (text, code) in [
            ("what is user.name for", vec!["user.name"]),
            ("does rm -r work", vec!["-r"]),
            ("call len() and my_var", vec!["len()", "my_var"]),
            ("x += y", vec!["+="]),
            ("in /etc/hosts or C++ or std::fs", vec!["/etc/hosts", "C++", "std::fs"]),
            ("a two-factor and/or (simple) thing. It's fine!", vec![]),
        ] {
            let tokens = read(text);
            let found: Vec<&str> = tokens.iter().filter(|token| token.is_code).map(|token| token.raw).collect();
            assert_eq!(found, code, "{text}");
        }
    }

    #[test]
    fn endings_are_taken_off() {
        for (text, lower, is_negated) in [
            ("What's", "what", false),
            ("shouldn’t", "should", true),
            ("car's", "car", false),
            ("(Hello),", "hello", false),
        ] {
            let tokens = read(text);
            assert_eq!((tokens[0].lower.as_str(), tokens[0].is_negated), (lower, is_negated), "{text}");
        }
    }
}
