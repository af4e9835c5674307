//! Whether what follows the name of a listed model says no more than which release of it is meant. A date, `-001` or `-latest`
//! does; `-mini`, `-preview` or `-32k` make another model, which has another price.

use chrono::NaiveDate;

/// Where a name can end and a release begin.
pub const JOINTS: [char; 4] = ['-', ':', '@', '_'];

/// How names of fine-tuned models begin. What follows their base behind a colon is whose they are.
const FINE_TUNED: &str = "ft:";

/// Digits of a SHA-256 by which some providers name a version.
const DIGEST: usize = 64;

/// The years of which models have dates.
const YEARS: std::ops::RangeInclusive<i32> = 2019..=2059;

/// The longest listed name of which this one is a release.
pub fn listed_release(name: &str, is_listed: impl Fn(&str) -> bool) -> Option<&str> {
    let bases =
        name.rmatch_indices(JOINTS).filter(|(at, _)| continues_as_release(name, *at)).map(|(at, _)| &name[..at]);
    bases.into_iter().find(|base| is_listed(base))
}

/// `name` is the whole name and `at` the joint behind the listed one.
pub fn continues_as_release(name: &str, at: usize) -> bool {
    let is_fine_tuned = name.starts_with(FINE_TUNED) && at > FINE_TUNED.len();
    let (mut rest, mut is_dated) = (&name[at..], false);
    while !rest.is_empty() {
        let Some(joint) = rest.chars().next().filter(|joint| JOINTS.contains(joint)) else { return false };
        if is_fine_tuned && joint == ':' {
            return true;
        }
        let name_part = &rest[joint.len_utf8()..];
        if let Some(after) = after_date(name_part) {
            (rest, is_dated) = (after, true);
            continue;
        }
        let (word, after) = name_part.split_at(name_part.find(JOINTS).unwrap_or(name_part.len()));
        // Bedrock's `-v1:0`; a second version has a price of its own unless a date tells that it is the same model.
        let is_first_version = word == "v1" && after.starts_with(':');
        let is_release = match joint {
            ':' => is_revision(word) || word == "latest" || is_digest(word),
            '@' => is_numbered(word) || matches!(word, "latest" | "default") || is_digest(word),
            _ => is_numbered(word) || word == "latest" || is_first_version || is_dated && is_version(word),
        };
        if !is_release {
            return false;
        }
        rest = after;
    }
    true
}

/// `001`
fn is_numbered(word: &str) -> bool {
    word.len() == 3 && word.starts_with('0') && is_number(word)
}

/// The `0` of `v1:0`
fn is_revision(word: &str) -> bool {
    word.len() == 1 && is_number(word)
}

/// `v2`
fn is_version(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(is_revision)
}

fn is_digest(word: &str) -> bool {
    word.len() == DIGEST && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What follows a date, if the text begins with one: `2024-08-06`, `08-06-2024`, `2024-08`, `08-2024`, `05-20`, `20240806`, `240806`,
/// `0613`, `2407`.
fn after_date(text: &str) -> Option<&str> {
    let mut lengths = Vec::with_capacity(3);
    let mut numbers: Vec<&str> = Vec::with_capacity(3);
    let mut end = 0;
    for word in text.split('-').take(3) {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            break;
        }
        end += digits + usize::from(!numbers.is_empty());
        numbers.push(&word[..digits]);
        lengths.push(end);
        if digits < word.len() {
            break;
        }
    }
    // The longest form that holds, and that nothing but a joint follows.
    (1..=numbers.len()).rev().find_map(|count| {
        let after = &text[lengths[count - 1]..];
        (is_date(&numbers[..count]) && (after.is_empty() || after.starts_with(JOINTS))).then_some(after)
    })
}

fn is_date(numbers: &[&str]) -> bool {
    let number = |text: &str| text.parse::<i32>().unwrap_or_default();
    let short_year = |text: &str| 2000 + number(text);
    let is_day = |year: i32, month: &str, day: &str| {
        let (month, day) = (number(month).unsigned_abs(), number(day).unsigned_abs());
        YEARS.contains(&year) && NaiveDate::from_ymd_opt(year, month, day).is_some()
    };
    let lengths: Vec<usize> = numbers.iter().map(|number| number.len()).collect();
    // Some year that has a 29th of February.
    const LEAP: i32 = 2024;
    match (&lengths[..], numbers) {
        ([4, 2, 2], [year, month, day]) | ([2, 2, 4], [month, day, year]) => is_day(number(year), month, day),
        ([4, 2], [year, month]) | ([2, 4], [month, year]) => is_day(number(year), month, "1"),
        ([2, 2], [month, day]) => is_day(LEAP, month, day),
        ([8], [date]) => is_day(number(&date[..4]), &date[4..6], &date[6..]),
        ([6], [date]) => is_day(short_year(&date[..2]), &date[2..4], &date[4..]),
        ([4], [date]) => is_day(LEAP, &date[..2], &date[2..]) || is_day(short_year(&date[..2]), &date[2..], "1"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_of_a_model_differs_from_another_model() {
        let digest = format!(":{}", "0a".repeat(32));
        for rest in [
            "-2024-08-06",
            "-20240806",
            "@20240806",
            "_20240806",
            "-2024-08",
            "-08-2024",
            "-04-17-2026",
            "-05-20",
            "-0613",
            "-0125",
            "-2407",
            "-250115",
            "-001",
            "@001",
            "-latest",
            ":latest",
            "@latest",
            "@default",
            ":0",
            "-v1:0",
            "-20241022-v2:0",
            "-20241022-v2",
            "-2402-v1:0",
            "-v1:0@default",
            "-0229",
            &digest,
        ] {
            assert!(continues_as_release(&format!("model{rest}"), 5), "{rest}");
        }
        for rest in [
            "-mini",
            "-mini-2024-07-18",
            "-2024-07-18-mini",
            "-audio-preview",
            "-preview",
            "-1106-preview",
            "-pro",
            "-1",
            "-5",
            "-4-5",
            "-11",
            "-32k",
            "-16k",
            "-7b",
            "-120",
            "-512",
            "-2048",
            "-32768",
            "-2024",
            "-1304",
            "-2024-13",
            "-2024-02-30",
            "-0230",
            "-99991231",
            "-2024-08-06b",
            "-20240806b",
            "-v2",
            "-v2:0",
            "-v1",
            "-v1:0:24k",
            ":free",
            ":online",
            ":8b",
            ":10",
            "@cf",
            "-default",
            "-fast",
            "-instruct",
            "-latest-mini",
            "/2024-08-06",
            "-",
            "--001",
            "-٠٠١",
            "-東京",
            ":0a0a",
            ":org::1",
        ] {
            assert!(!continues_as_release(&format!("model{rest}"), 5), "{rest}");
        }
    }

    #[test]
    fn a_fine_tuned_model_is_that_of_its_base_whoever_owns_it() {
        for (name, listed, expected) in [
            ("ft:gpt-4o-mini-2024-07-18:acme::AbC1", "ft:gpt-4o-mini-2024-07-18", true),
            ("ft:gpt-4o-mini-2024-07-18:acme:suffix:AbC1:ckpt-step-90", "ft:gpt-4o-mini", true),
            ("ft:gpt-4o-mini-2024-07-18:acme::AbC1", "ft:gpt-4o", false),
            ("ft:gpt-4o", "ft", false),
            ("gpt-4o:ft-acme", "gpt-4o", false),
        ] {
            assert_eq!(continues_as_release(name, listed.len()), expected, "{name} {listed}");
        }
    }
}
