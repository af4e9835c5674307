//! Words without their endings, so that "recovering" meets "recover" and "colours" meets "color". Rough on purpose: two
//! words that are wrongly made one cost little beside the cosine, and two that stay apart cost a call.

use super::vocabulary;

/// Of a word in lower case.
pub fn stem(word: &str) -> String {
    let word = vocabulary::same_word(word).unwrap_or(word);
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    let mut stem = singular(word);
    for ending in ["ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() >= 3
            && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            stem = undoubled(rest);
            break;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    if stem.len() > 4 && stem.ends_with("is") {
        stem.replace_range(stem.len() - 1.., "z");
    }
    if stem.len() > 4
        && let Some(rest) = stem.strip_suffix("our")
    {
        stem = format!("{rest}or");
    }
    match vocabulary::same_word(&stem) {
        Some(other) if other != word => other.trim_end_matches('e').to_owned(),
        _ => stem,
    }
}

fn singular(word: &str) -> String {
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| rest.len() > 2) {
        return format!("{rest}y");
    }
    for ending in ["sses", "xes", "ches", "shes", "zes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(rest) if !rest.ends_with(['s', 'u', 'i']) => rest.to_owned(),
        _ => word.to_owned(),
    }
}

/// "stopping" is "stop"; "calling" stays "call", as "call" does.
fn undoubled(word: &str) -> String {
    let bytes = word.as_bytes();
    match bytes {
        [.., before, last] if before == last && !matches!(last, b's' | b'e' | b'o') && word.len() > 4 => {
            word[..word.len() - 1].to_owned()
        }
        _ => word.to_owned(),
    }
}

/// What a word would be without a prefix that turns it around.
pub fn without_prefix(word: &str) -> Option<&str> {
    const PREFIXES: [&str; 11] = ["non", "dis", "un", "in", "im", "il", "ir", "de", "mis", "anti", "mal"];
    let of = |prefix: &&str| word.strip_prefix(*prefix).filter(|rest| rest.len() >= 3 && rest.is_ascii());
    PREFIXES.iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet() {
        for (one, another) in [
            ("works", "work"),
            ("recovering", "recover"),
            ("travelling", "travel"),
            ("watered", "water"),
            ("baked", "bake"),
            ("makes", "making"),
            ("made", "make"),
            ("summarise", "summarize"),
            ("colours", "color"),
            ("stories", "story"),
            ("boxes", "box"),
            ("purchase", "buy"),
        ] {
            assert_eq!(stem(one), stem(another), "{one} {another}");
        }
        for (one, another) in [("bus", "bush"), ("rice", "pasta"), ("is", "as"), ("né", "nés"), ("thing", "th")] {
            assert_ne!(stem(one), stem(another), "{one} {another}");
        }
    }

    #[test]
    fn prefixes_that_turn_a_word_around_are_found() {
        for (word, rest) in [("uninstall", Some("install")), ("illegal", Some("legal")), ("unit", None), ("big", None)]
        {
            assert_eq!(without_prefix(word), rest, "{word}");
        }
    }
}
