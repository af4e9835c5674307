//! Numbers, however they are written: `50,000`, `$1.5k`, `16th`, `sixteenth`, `twenty five`, `3.11`, `0x80`, `IPv4`. Whatever
//! has a digit is one; what it means does not matter, only whether two are the same.

use super::tokens::Token;
use super::vocabulary;

/// The number that these tokens begin with, the unit that is written into it, and how many tokens it takes.
pub fn number(tokens: &[Token<'_>], after_number: bool) -> Option<(String, Option<String>, usize)> {
    let token = tokens.first().filter(|token| !token.is_code)?;
    if token.lower.contains(|char: char| char.is_ascii_digit()) {
        let (number, unit) = in_digits(&token.lower);
        return Some((number, unit, 1));
    }
    if is_second_of_time(tokens, after_number) {
        return None;
    }
    in_words(tokens).map(|(value, taken)| (value.to_string(), None, taken))
}

/// "a second" is a time, "the second" a number, and "seconds" no number word at all.
fn is_second_of_time(tokens: &[Token<'_>], after_number: bool) -> bool {
    tokens[0].lower == "second" && after_number
}

fn in_digits(text: &str) -> (String, Option<String>) {
    let currency = text.chars().find(|char| matches!(char, '$' | '€' | '£' | '¥'));
    let bare: String = text.chars().filter(|char| !matches!(char, '$' | '€' | '£' | '¥')).collect();
    let digits_end = bare.find(|char: char| !char.is_ascii_digit() && !matches!(char, '.' | ',')).unwrap_or(bare.len());
    let (digits, suffix) = bare.split_at(digits_end);
    let currency = currency.and_then(|sign| vocabulary::unit(sign.encode_utf8(&mut [0; 4])));
    let suffix = suffix.trim_start_matches('-');
    match suffix {
        _ if digits.is_empty() => (bare.clone(), None),
        "" | "st" | "nd" | "rd" | "th" => (plain_digits(digits), currency.map(str::to_owned)),
        _ => match vocabulary::unit(suffix) {
            Some(unit) => (plain_digits(digits), Some(unit.to_owned())),
            None => (bare.clone(), currency.map(str::to_owned)),
        },
    }
}

/// Without the marks between thousands, and with a point before the decimals.
fn plain_digits(digits: &str) -> String {
    let digits = digits.trim_end_matches(['.', ',']);
    let groups: Vec<&str> = digits.split(',').collect();
    let are_thousands = groups.len() > 1
        && groups[1..].iter().all(|group| group.split('.').next().is_some_and(|whole| whole.len() == 3));
    let joined = if are_thousands { groups.concat() } else { groups.join(".") };
    // Decimals as they are: a version 3.10 is not 3.1.
    match joined.trim_start_matches('0') {
        "" => "0".to_owned(),
        _ if joined.contains('.') => joined,
        rest => rest.to_owned(),
    }
}

/// "one" alone is no number: "which one" says none.
fn in_words(tokens: &[Token<'_>]) -> Option<(u64, usize)> {
    let value = |at: usize| {
        tokens.get(at).filter(|token| !token.is_code).and_then(|token| vocabulary::number_word(&token.lower))
    };
    let (mut total, mut group, mut taken) = (0_u64, value(0)?, 1);
    loop {
        // "one hundred and five"
        let is_joined = tokens.get(taken).is_some_and(|token| token.lower == "and") && group >= 100;
        let at = if is_joined { taken + 1 } else { taken };
        let Some(next) = value(at) else { break };
        match next {
            100 if group < 100 && !is_joined => group *= 100,
            1000.. if group < 1000 && !is_joined => {
                total = total.saturating_add(group.saturating_mul(next));
                group = 0;
            }
            1..=9 if group % 10 == 0 && group > 0 && group != 10 => group += next,
            10..=99 if group % 100 == 0 && group > 0 => group += next,
            1..=99 if group == 0 && total > 0 => group = next,
            _ => break,
        }
        taken = at + 1;
    }
    let total = total.saturating_add(group);
    (total > 1 || taken > 1).then_some((total, taken))
}

#[cfg(test)]
mod tests {
    use super::super::tokens::read;
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let tokens = read(text);
        let (mut found, mut at) = (Vec::new(), 0);
        while at < tokens.len() {
            match number(&tokens[at..], false) {
                Some((number, unit, taken)) => {
                    found.push(unit.map_or(number.clone(), |unit| format!("{number} {unit}")));
                    at += taken;
                }
                None => at += 1,
            }
        }
        found
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        for (text, numbers) in [
            ("in 2023, or 2024.", vec!["2023", "2024"]),
            ("50,000 and 50000", vec!["50000", "50000"]),
            ("37,5 and 37.5", vec!["37.5", "37.5"]),
            ("the 16th and sixteenth", vec!["16", "16"]),
            ("twenty five, twenty-five or 25", vec!["25", "25", "25"]),
            ("one hundred and five", vec!["105"]),
            ("two hundred thousand three", vec!["200003"]),
            ("which one of three", vec!["3"]),
            ("5kg costs $500", vec!["5 kilogram", "500 dollar"]),
            ("IPv4, HTTP/2, 0x80, 3.11 and 8:30", vec!["ipv4", "http/2", "0x80", "3.11", "8:30"]),
            ("007", vec!["7"]),
            ("none at all", vec![]),
        ] {
            assert_eq!(all(text), numbers, "{text}");
        }
    }
}
