//! What is personal data and what only looks like it, and redaction that is the same wherever a text is cut.

use crate::guardrails::subject::testing::{run, run_answer, run_text, said};
use serde_json::json;

fn categories(text: &str) -> Vec<String> {
    let verdict = run_text("pii", &json!({}), text);
    let data = verdict.data.value();
    let found = data["detections"].as_array().unwrap().iter();
    found.map(|one| one["category"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn personal_data_is_told_by_its_form_and_its_check_digits() {
    for (text, expected) in [
        ("write to ann.o+x@mail.example.com!", &["EMAIL"][..]),
        ("an @ alone, a@b, @handle", &[]),
        ("card 4111 1111 1111 1111", &["CREDIT_CARD"]),
        ("card 5500-0000-0000-0004.", &["CREDIT_CARD"]),
        ("card 4111 1111 1111 1111 7 and 99", &["CREDIT_CARD"]),
        ("card 4111 1111 1111 1112", &[]),
        ("IBAN AT61 1904 3002 3457 3201 CODE", &["IBAN"]),
        ("order 1234567890123456", &[]),
        ("IBAN DE89 3704 0044 0532 0130 00", &["IBAN"]),
        ("IBAN GB82WEST12345698765432", &["IBAN"]),
        ("IBAN DE88 3704 0044 0532 0130 00", &[]),
        ("ssn is 123-45-6789", &["NATIONAL_ID"]),
        ("not 000-45-6789 nor 666-45-6789", &[]),
        ("cpf 529.982.247-25", &["NATIONAL_ID"]),
        ("cpf 529.982.247-26", &["PHONE"]),
        ("dni 12345678Z", &["NATIONAL_ID"]),
        ("dni 12345678A", &[]),
        ("nir 2 55 08 14 168 025 38", &["NATIONAL_ID"]),
        ("nino AB 12 34 56 C", &["NATIONAL_ID"]),
        ("codice RSSMRA85T10A562S", &["NATIONAL_ID"]),
        ("from 192.168.10.100 on", &["IP_ADDRESS"]),
        ("from 999.1.1.1 on", &[]),
        ("at 2001:db8::8a2e:370:7334", &["IP_ADDRESS"]),
        ("at 12:30:15", &[]),
        ("call +49 30 901820", &["PHONE"]),
        ("call +14155552671", &["PHONE"]),
        ("call (415) 555-2671", &["PHONE"]),
        ("on 2024-01-15", &[]),
        ("version 1.2.3", &[]),
        (r#"{"password": "hunter2"}"#, &["FIELD"]),
        ("date_of_birth=1990-05-17", &["FIELD"]),
        ("the password is secret", &[]),
        ("", &[]),
        ("日本語 é 🙂", &[]),
    ] {
        assert_eq!(categories(text), expected, "{text}");
    }
}

#[test]
fn a_verdict_fails_where_something_is_found_unless_not_turns_it_round() {
    for (parameters, text, expected) in [
        (json!({}), "a@b.com", "fail"),
        (json!({}), "nothing", "pass"),
        (json!({ "not": true }), "a@b.com", "pass"),
        (json!({ "not": true }), "nothing", "fail"),
        (json!({ "categories": ["PHONE"] }), "a@b.com", "pass"),
        (json!({ "categories": ["EMAIL", "PHONE"] }), "a@b.com", "fail"),
        (json!({ "redact": true }), "a@b.com", "pass"),
        (json!({}), "", "pass"),
        (json!({}), &"é ".repeat(200_000), "pass"),
        (json!({}), &format!("{} a@b.com", "x ".repeat(200_000)), "fail"),
    ] {
        let verdict = run_text("pii", &parameters, text);
        assert_eq!(said(&verdict), expected, "{parameters} {}", text.len());
        assert!(!verdict.to_json().to_string().contains("a@b.com"), "what was found is not repeated");
    }
}

#[test]
fn redaction_takes_every_turn_and_the_same_value_has_the_same_name() {
    let request = json!({ "system": "s", "messages": [
        { "role": "user", "content": "I am a@b.com" },
        { "role": "user", "content": [{ "type": "text", "text": "a@b.com or c@d.org, not [EMAIL_3]; e@f.net" }] },
    ] });
    let plain = run("pii", &json!({ "redact": true }), &request).transformed.unwrap();
    assert_eq!(plain["messages"][0]["content"], "I am [EMAIL]");
    let verdict = run("pii", &json!({ "reversible": true }), &request);
    let changed = verdict.transformed.unwrap();
    assert_eq!(changed["messages"][0]["content"], "I am [EMAIL_1]");
    assert_eq!(changed["messages"][1]["content"][0]["text"], "[EMAIL_1] or [EMAIL_2], not [EMAIL_3]; [EMAIL_4]");
    let restored = verdict.placeholders.restore("[EMAIL_2], [EMAIL_3], [EMAIL_4]", true).text;
    assert_eq!(restored, "c@d.org, [EMAIL_3], e@f.net");
    let answer = run_answer("pii", &json!({ "redact": true }), &json!("it is a@b.com"));
    assert_eq!(answer.transformed.unwrap()["choices"][0]["message"]["content"], "it is [EMAIL]");
}

#[test]
fn a_growing_text_is_redacted_alike_wherever_it_is_cut() {
    let check = crate::guardrails::compile("pii", &json!({ "redact": true })).unwrap();
    let text = format!(
        "{} mail ann@example.com and 4111 1111 1111 1111, {} bye é ann@example.com",
        "words ".repeat(120),
        "more ".repeat(120)
    );
    let whole = check.replace(&text, true).unwrap().text;
    assert!(!whole.contains("ann@") && !whole.contains("4111"));
    for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        let mut pending = text[..cut].to_owned();
        let first = check.replace(&pending, false).unwrap();
        pending.drain(..first.consumed);
        pending.push_str(&text[cut..]);
        let second = check.replace(&pending, true).unwrap();
        assert_eq!(format!("{}{}", first.text, second.text), whole, "cut at {cut}");
    }
}
