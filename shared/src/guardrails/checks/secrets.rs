//! `secrets`: credentials, by the forms of the known vendors, by what surrounds them, and by their randomness. Ours;
//! deterministic and without a call.

use super::redaction::{Finder, Redaction};
use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use regex::Regex;
use std::sync::LazyLock;

pub static CATEGORIES: &[&str] =
    &["PRIVATE_KEY", "VENDOR_KEY", "JWT", "URL_CREDENTIALS", "ASSIGNED_SECRET", "HIGH_ENTROPY"];

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(Redaction::new(&FINDERS, "secrets", parameters)))
}

fn finder(category: &'static str, pattern: &str, group: usize, is_one: fn(&str) -> bool) -> Finder {
    let pattern = Regex::new(pattern).expect("the patterns of this table are tested");
    Finder {
        category,
        pattern,
        needs: b"",
        group,
        is_one,
        proves_itself: false,
        is_long: category == "PRIVATE_KEY" || category == "JWT",
    }
}

/// How the keys of vendors begin, and what follows.
#[rustfmt::skip]
static VENDORS: &[&str] = &[
    // AWS, Google, Azure.
    "(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", "AIza[0-9A-Za-z_-]{35}", "ya29\\.[0-9A-Za-z_-]{20,200}", "GOCSPX-[0-9A-Za-z_-]{28}",
    "AccountKey=[A-Za-z0-9+/=]{60,100}",
    // Models.
    "sk-ant-[0-9A-Za-z_-]{20,200}", "sk-(?:proj-|svcacct-|or-v1-)?[0-9A-Za-z_-]{20,200}", "gsk_[0-9A-Za-z]{40,60}",
    "hf_[0-9A-Za-z]{30,40}", "r8_[0-9A-Za-z]{37}", "pplx-[0-9a-f]{40,56}", "xai-[0-9A-Za-z]{60,90}", "nvapi-[0-9A-Za-z_-]{60,80}",
    // Code and packages.
    "gh[pousr]_[0-9A-Za-z]{36,100}", "github_pat_[0-9A-Za-z_]{60,100}", "glpat-[0-9A-Za-z_-]{20,30}", "npm_[0-9A-Za-z]{36}",
    "pypi-[0-9A-Za-z_-]{50,250}", "dckr_pat_[0-9A-Za-z_-]{27}", "ATATT3[0-9A-Za-z_=-]{150,220}",
    // Services.
    "xox[abeoprs]-[0-9A-Za-z-]{10,200}", "(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{20,100}", "whsec_[0-9A-Za-z]{30,60}",
    "SG\\.[0-9A-Za-z_-]{22}\\.[0-9A-Za-z_-]{43}", "SK[0-9a-f]{32}", "key-[0-9a-f]{32}", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "dop_v1_[0-9a-f]{64}", "sq0[a-z]{3}-[0-9A-Za-z_-]{22,43}", "hvs\\.[0-9A-Za-z_-]{24,120}", "dapi[0-9a-f]{32}",
    "https://hooks\\.slack\\.com/services/[0-9A-Za-z/]{20,80}",
];

/// What stands first wins where two meet.
static FINDERS: LazyLock<Vec<Finder>> = LazyLock::new(|| {
    let any = |_: &str| true;
    let body = r"[A-Za-z0-9+/=\s\\,:-]";
    let key = format!(
        "-----BEGIN [A-Z ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----(?:{body}*?-----END [A-Z ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----|{body}*)"
    );
    let vendors = format!("(?-u:\\b)(?:{})(?-u:\\b)", VENDORS.join("|"));
    vec![
        finder("PRIVATE_KEY", &key, 0, any),
        finder("VENDOR_KEY", &vendors, 0, any),
        finder("JWT", r"(?-u:\b)eyJ[0-9A-Za-z_-]{10,2000}\.[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,1000}", 0, any),
        finder("URL_CREDENTIALS", r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,64}:([^\s/@]{1,128})@", 1, any),
        finder(
            "ASSIGNED_SECRET",
            r#"(?i)(?-u:\b)(?:api[_-]?key|secret(?:[_-]?key)?|access[_-]?token|auth[_-]?token|client[_-]?secret|private[_-]?key|bearer)\\?["']?\s{0,4}[:= ]\s{0,4}\\?["']?([0-9A-Za-z_./+=-]{16,200})"#,
            1,
            is_random,
        ),
        finder("HIGH_ENTROPY", r"(?-u:\b)[0-9A-Za-z+/_=-]{32,200}", 0, is_very_random),
    ]
});

/// Letters and digits mixed, few of them repeated.
fn is_random(text: &str) -> bool {
    entropy(text) >= 3.0 && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Small and large letters and digits mixed evenly. Hexadecimal digests and ids are not taken: everything has some.
fn is_very_random(text: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| text.bytes().any(|byte| kind(&byte));
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    !is_hex
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
        && entropy(text) >= 4.3
}

/// Shannon's, in bits for each character.
fn entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let length = text.len().max(1) as f64;
    let share = |count: &u32| f64::from(*count) / length;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run_text, said};
    use serde_json::json;

    fn categories(text: &str) -> Vec<String> {
        let verdict = run_text("secrets", &json!({}), text);
        let data = verdict.data.value();
        let found = data["detections"].as_array().unwrap().iter();
        found.map(|one| one["category"].as_str().unwrap().to_owned()).collect()
    }

    /// Put together here, so that nobody's scanner takes this file for a leak.
    fn made(parts: &[&str]) -> String {
        parts.concat()
    }

    #[test]
    fn secrets_are_told_by_their_form_and_their_randomness() {
        let letters = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5";
        let pem = made(&["-----BEGIN RSA ", "PRIVATE KEY-----\nMIIB\nAAAA\n-----END RSA ", "PRIVATE KEY-----"]);
        for (text, expected) in [
            (made(&["aws AK", "IAIOSFODNN7EXAMPLE here"]), &["VENDOR_KEY"][..]),
            (made(&["sk-", "ant-api03-", letters]), &["VENDOR_KEY"]),
            (made(&["sk-", "proj-", letters]), &["VENDOR_KEY"]),
            (made(&["gh", "p_", letters]), &["VENDOR_KEY"]),
            (made(&["xox", "b-123456789012-abcdef"]), &["VENDOR_KEY"]),
            (made(&["AI", "za", &letters[..35]]), &["VENDOR_KEY"]),
            (made(&["sk_", "live_", &letters[..24]]), &["VENDOR_KEY"]),
            (pem, &["PRIVATE_KEY"]),
            (made(&["ey", "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2lnbmF0dXJlX29mX2l0"]), &["JWT"]),
            (made(&["postgres://user:", "hunter2@db.example.com/x"]), &["URL_CREDENTIALS"]),
            (made(&["api_key = \"", "a1b2c3d4e5f6a7b8c9\""]), &["ASSIGNED_SECRET"]),
            (made(&["token ", letters, letters]), &["HIGH_ENTROPY"]),
            ("sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".into(), &[]),
            ("id 123e4567-e89b-12d3-a456-426614174000".into(), &[]),
            ("an ordinary sentence, with a secret: none, and https://example.com/a/b".into(), &[]),
            ("ThisIsALongIdentifierInSomebodysProgramCode".into(), &[]),
            (String::new(), &[]),
            ("日本語 é".repeat(1000), &[]),
        ] {
            assert_eq!(categories(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_secret_fails_the_check_or_is_replaced_and_is_never_repeated() {
        let key = made(&["gh", "p_", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"]);
        for (parameters, expected) in [
            (json!({}), "fail"),
            (json!({ "not": true }), "pass"),
            (json!({ "categories": ["JWT"] }), "pass"),
            (json!({ "redact": true }), "pass"),
            (json!({ "reversible": true }), "pass"),
        ] {
            let verdict = run_text("secrets", &parameters, &format!("my key is {key}."));
            assert_eq!(said(&verdict), expected, "{parameters}");
            assert!(!verdict.to_json().to_string().contains(&key));
            assert!(!format!("{verdict:?}").contains(&key), "{parameters}");
        }
        let text = made(&["a\n-----BEGIN ", "PRIVATE KEY-----\nMIIB\n-----END ", "PRIVATE KEY-----\nb ", &key]);
        let changed = run_text("secrets", &json!({ "redact": true }), &text).transformed.unwrap();
        assert_eq!(changed["messages"][0]["content"], "a\n[PRIVATE_KEY]\nb [VENDOR_KEY]");
    }

    #[test]
    fn a_text_is_replaced_while_it_grows_only_if_no_secret_can_outgrow_the_window() {
        for (parameters, is_windowed) in [
            (json!({}), true),
            (json!({ "redact": true }), false),
            (json!({ "redact": true, "categories": ["VENDOR_KEY"] }), true),
            (json!({ "not": true }), false),
        ] {
            let check = crate::guardrails::compile("secrets", &parameters).unwrap();
            assert_eq!(check.window().is_some(), is_windowed, "{parameters}");
        }
    }
}
