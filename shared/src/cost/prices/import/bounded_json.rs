//! Reading a price list that strangers wrote: as large, as many rows and as deep as such lists may be, and no more. Numbers
//! stay the text they were written as, so that no float ever stands between a list and a price.

use rust_decimal::Decimal;
use serde::Deserialize as _;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The public lists have 2 to 4 MB.
pub const MAX_FILE_BYTES: usize = 64 << 20;
/// Models of a list; the public ones have 3,000 to 6,000.
pub const MAX_ROWS: usize = 100_000;
/// Objects within objects; our own files have 13.
const MAX_DEPTH: usize = 32;
/// The longest name of a model or provider.
const MAX_NAME_BYTES: usize = 256;
/// The longest number.
const MAX_NUMBER_BYTES: usize = 40;
/// Digits behind the point that leave room for a division by a million.
const MAX_SCALE: u32 = 24;
/// Dollars for one of anything; a list has dollars for seconds of a machine at most.
const MAX_DOLLARS: Decimal = Decimal::from_parts(10_000, 0, 0, false, 0);

/// Rows by name, each as it is written.
pub type RawRows = BTreeMap<String, Box<RawValue>>;

#[derive(Debug, thiserror::Error)]
pub enum UnreadableList {
    #[error("the list has more than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLong,
    #[error("the list has more than {MAX_ROWS} rows")]
    TooManyRows,
    #[error("line {line} of the list is nested deeper than {MAX_DEPTH} levels")]
    TooDeep { line: usize },
    #[error("the list is not a JSON object of rows: {0}")]
    NoJson(#[from] serde_json::Error),
    #[error(
        "the list has neither LiteLLM's format (rows with `litellm_provider`) nor that of models.dev (providers with \
         `models`) nor ours (rows with `pricing_config`)"
    )]
    UnknownFormat,
    #[error("the list has no model in the format `{0}`")]
    Empty(&'static str),
}

/// The rows of a list.
pub fn rows(text: &str) -> Result<RawRows, UnreadableList> {
    if text.len() > MAX_FILE_BYTES {
        return Err(UnreadableList::TooLong);
    }
    check_depth(text)?;
    let rows: RawRows = serde_json::from_str(text.trim_start_matches('\u{feff}'))?;
    if rows.len() > MAX_ROWS {
        return Err(UnreadableList::TooManyRows);
    }
    Ok(rows)
}

/// The fields of an object; none of anything else.
pub fn fields(value: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    BTreeMap::deserialize(value).ok()
}

pub fn string(value: Option<&&RawValue>) -> Option<String> {
    String::deserialize(*value?).ok()
}

/// Whether a name can stand in a file, a log line and a diff.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control)
}

/// Dollars, digit for digit. None where there is no rate (`null`); an error says what is wrong with it.
pub fn dollars(value: &RawValue) -> Result<Option<Decimal>, String> {
    let text = value.get();
    if text == "null" {
        return Ok(None);
    }
    if !text.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return Err(format!("{} is not a number", shortened(text)));
    }
    let number = (text.len() <= MAX_NUMBER_BYTES).then(|| {
        Decimal::from_str_exact(text)
            .ok()
            .or_else(|| Decimal::from_scientific(text).ok())
            .map(|number| number.normalize())
    });
    let Some(number) = number.flatten().filter(|number| number.scale() <= MAX_SCALE) else {
        return Err(format!("{} is out of range", shortened(text)));
    };
    if number.is_sign_negative() && !number.is_zero() {
        return Err(format!("{} is negative", shortened(text)));
    }
    if number > MAX_DOLLARS {
        return Err(format!("{} is more than {MAX_DOLLARS} dollars", shortened(text)));
    }
    Ok(Some(number.abs()))
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 30;
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Without a stack, so that depth costs nothing before it is refused.
fn check_depth(text: &str) -> Result<(), UnreadableList> {
    let (mut depth, mut line, mut is_string, mut is_escaped) = (0_usize, 1_usize, false, false);
    for byte in text.bytes() {
        match byte {
            b'\n' => line += 1,
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'{' | b'[' if !is_string => depth += 1,
            b'}' | b']' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(UnreadableList::TooDeep { line });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_keep_every_digit_and_nonsense_is_refused_with_a_reason() {
        for (written, read) in [
            ("1e-07", "0.0000001"),
            ("2.5E-6", "0.0000025"),
            ("0.15", "0.15"),
            ("1.5999999999999999e-07", "0.00000015999999999999999"),
            ("3", "3"),
            ("0.0", "0"),
            ("-0.0", "0"),
        ] {
            let value: &RawValue = serde_json::from_str(written).unwrap();
            assert_eq!(dollars(value).unwrap().unwrap().to_string(), read, "{written}");
        }
        for (written, reason) in [
            ("-1e-7", "negative"),
            ("1e308", "out of range"),
            ("1e-300", "out of range"),
            ("99999999", "more than 10000 dollars"),
            ("\"NaN\"", "not a number"),
            ("\"0.1\"", "not a number"),
            ("true", "not a number"),
            ("{}", "not a number"),
            ("0.11111111111111111111111111111111111111111111111111", "out of range"),
        ] {
            let value: &RawValue = serde_json::from_str(written).unwrap();
            let problem = dollars(value).unwrap_err();
            assert!(problem.contains(reason), "{written}: {problem}");
        }
        assert_eq!(dollars(serde_json::from_str("null").unwrap()), Ok(None));
    }

    #[test]
    fn a_list_is_refused_whole_when_it_is_no_list() {
        let deep = format!("{{\"m\":\n{}{}}}", "[".repeat(40), "]".repeat(40));
        let very_deep = "[".repeat(1 << 20);
        let many = format!("{{{}\"m\":1}}", (0..MAX_ROWS).map(|row| format!("\"{row}\":1,")).collect::<String>());
        let long = " ".repeat(MAX_FILE_BYTES + 1);
        for (text, problem) in [
            (deep.as_str(), "line 2 of the list is nested deeper than 32 levels"),
            (&very_deep, "line 1 of the list is nested deeper"),
            (&many, "more than 100000 rows"),
            (&long, "more than 64 MiB"),
            ("[]", "not a JSON object"),
            ("{\"m\": {\"input_cost_per_token\": NaN}}", "not a JSON object"),
            ("{\"m\": 1", "not a JSON object"),
            ("", "not a JSON object"),
        ] {
            let found = rows(text).unwrap_err().to_string();
            assert!(found.contains(problem), "{found}");
        }
        assert_eq!(rows(r#"{"a": "[[[[\"{{{{", "b": {}}"#).unwrap().len(), 2);
    }
}
