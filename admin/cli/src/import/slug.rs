//! Names as the control plane takes them: slugs, names of objects and names of variables.

const MAX_SLUG: usize = 40;
const MAX_GIVEN_SLUG: usize = 255;
/// Keys have names of at most 100 characters, and a number may follow.
const MAX_NAME: usize = 90;

/// Letters, digits and hyphens of a name.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().flat_map(char::to_lowercase) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() == MAX_SLUG {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    // The shortest that is made here has three characters.
    if slug.len() < 3 { format!("imported-{slug}").trim_end_matches('-').to_owned() } else { slug.to_owned() }
}

/// Whether a text is a slug as it stands. One in the form of an id would be taken for an id.
pub fn is_slug(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_id = text.len() == 36 && text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
    (1..=MAX_GIVEN_SLUG).contains(&text.len()) && text.chars().all(is_letter) && !is_id
}

/// What an object is called: not blank, of a bounded length, and without what would end a place in a template.
pub fn title(name: &str) -> String {
    let name: String = name.chars().map(|letter| if letter == '}' { ')' } else { letter }).take(MAX_NAME).collect();
    if name.trim().is_empty() { "imported".to_owned() } else { name }
}

/// The name of an environment variable: whole, because two long names may differ at their ends.
pub fn variable(name: &str) -> String {
    let mut variable = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            variable.push(letter.to_ascii_uppercase());
        } else if !variable.is_empty() && !variable.ends_with('_') {
            variable.push('_');
        }
    }
    let variable = variable.trim_end_matches('_');
    match variable.chars().next() {
        None => "CREDENTIAL".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{variable}"),
        Some(_) => variable.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_hold_letters_digits_and_hyphens() {
        for (name, expected) in [
            ("GPT-4o mini", "gpt-4o-mini"),
            ("a/b", "a-b"),
            ("é", "imported"),
            ("x", "imported-x"),
            ("--Az  1-", "az-1"),
        ] {
            assert_eq!(slug(name), expected);
        }
        assert_eq!(slug(&"x".repeat(99)).len(), MAX_SLUG);
        for (text, expected) in
            [("pc-Main_1", true), ("", false), ("a b", false), ("0a1b2c3d-0000-4000-8000-000000000000", false)]
        {
            assert_eq!(is_slug(text), expected, "{text}");
        }
    }

    #[test]
    fn variables_are_whole_and_begin_with_no_digit() {
        assert_eq!(variable("openai-2 key"), "OPENAI_2_KEY");
        assert_eq!(variable("2nd key"), "_2ND_KEY");
        assert_eq!(variable("é"), "CREDENTIAL");
        assert_eq!(variable(&"x".repeat(99)).len(), 99);
    }

    #[test]
    fn titles_are_bounded_and_end_no_place() {
        assert_eq!(title("a}b"), "a)b");
        assert_eq!(title(" "), "imported");
        assert_eq!(title(&"é".repeat(300)).chars().count(), MAX_NAME);
    }
}
