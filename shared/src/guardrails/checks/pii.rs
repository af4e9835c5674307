//! `pii`: personal data, found by its form and, where it has some, by its check digits. Ours; deterministic and without a call.
//! Names and addresses have no form: for these a vendor's model is needed.

mod check_digits;

use super::redaction::{Finder, Redaction};
use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use check_digits::{is_card, is_cpf, is_dni, is_iban, is_nir, is_ssn};
use regex::Regex;
use std::net::IpAddr;
use std::sync::LazyLock;

pub static CATEGORIES: &[&str] = &["EMAIL", "CREDIT_CARD", "IBAN", "NATIONAL_ID", "IP_ADDRESS", "PHONE", "FIELD"];

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(Redaction::new(&FINDERS, "personal data", parameters)))
}

const CAPITALS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";

fn finder(
    category: &'static str,
    needs: &'static [u8],
    pattern: &str,
    group: usize,
    is_one: fn(&str) -> bool,
) -> Finder {
    let pattern = Regex::new(pattern).expect("the patterns of this table are tested");
    let proves_itself = matches!(category, "CREDIT_CARD" | "IBAN");
    Finder { category, pattern, needs, group, is_one, proves_itself, is_long: false }
}

/// What stands first wins where two meet.
static FINDERS: LazyLock<Vec<Finder>> = LazyLock::new(|| {
    let any = |_: &str| true;
    vec![
        finder("EMAIL", b"@", r"(?i)\b[a-z0-9._%+-]{1,64}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}\b", 0, any),
        finder("CREDIT_CARD", DIGITS, r"(?-u:\b)[0-9](?:[ -]?[0-9]){12,18}(?-u:\b)", 0, is_card),
        finder(
            "IBAN",
            CAPITALS,
            r"(?-u:\b)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?-u:\b)",
            0,
            is_iban,
        ),
        finder("NATIONAL_ID", b"-", r"(?-u:\b)[0-9]{3}-[0-9]{2}-[0-9]{4}(?-u:\b)", 0, is_ssn),
        finder("NATIONAL_ID", b".", r"(?-u:\b)[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}(?-u:\b)", 0, is_cpf),
        finder("NATIONAL_ID", CAPITALS, r"(?-u:\b)[0-9]{8}-?[A-Z](?-u:\b)", 0, is_dni),
        finder(
            "NATIONAL_ID",
            DIGITS,
            r"(?-u:\b)[12] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}(?-u:\b)",
            0,
            is_nir,
        ),
        finder(
            "NATIONAL_ID",
            CAPITALS,
            r"(?-u:\b)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D](?-u:\b)",
            0,
            any,
        ),
        finder(
            "NATIONAL_ID",
            CAPITALS,
            r"(?-u:\b)[A-Z]{6}[0-9]{2}[A-EHLMPR-T][0-9]{2}[A-Z][0-9]{3}[A-Z](?-u:\b)",
            0,
            any,
        ),
        finder("IP_ADDRESS", b".", r"(?-u:\b)(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?-u:\b)", 0, is_ip),
        finder(
            "IP_ADDRESS",
            b":",
            r"(?i)(?-u:\b)(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){1,7}(?-u:\b)|(?-u:\b)(?:[0-9a-f]{1,4}:){1,7}:",
            0,
            is_ip,
        ),
        finder("PHONE", b"+", r"\+[0-9][0-9 ().-]{6,22}[0-9]", 0, is_phone),
        finder(
            "PHONE",
            DIGITS,
            r"(?:^|[^0-9 .-])[ .-]{0,2}((?:\([0-9]{2,4}\)[ .-]?|(?-u:\b)[0-9]{2,4}[ .-])[0-9]{2,5}(?:[ .-][0-9]{2,5}){1,3})(?-u:\b)",
            1,
            is_phone,
        ),
        finder(
            "FIELD",
            b":=",
            r#"(?i)(?-u:\b)(?:password|passwd|passphrase|ssn|social_security(?:_number)?|passport(?:_number)?|date_of_birth|birth_?date|dob|maiden_name|national_id|tax_id|driver_?s?_license)\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?([^\s"',;{}\\]{1,128})"#,
            1,
            any,
        ),
    ]
});

fn is_ip(text: &str) -> bool {
    // `::` alone, and times as 12:30:15, are none.
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_time = !text.contains('.') && !text.contains("::") && text.split(':').count() < 8;
    digits >= 3 && !is_time && text.parse::<IpAddr>().is_ok()
}

fn is_phone(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let least = if text.starts_with('+') { 8 } else { 10 };
    let is_version = text.parse::<IpAddr>().is_ok();
    (least..=15).contains(&digits) && !is_version && !is_date(text)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split(['-', '.', ' ']);
    let part = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
    let (year, month, day) = (part(parts.next()), part(parts.next()), part(parts.next()));
    matches!((year, month, day), (Some(1900..=2100), Some(1..=12), Some(1..=31)))
}

#[cfg(test)]
mod tests;
