//! Names as the control plane takes them for slugs.

const MAX_SLUG: usize = 40;

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
    // The shortest that is field has three characters.
    if slug.len() < 3 { format!("imported-{slug}").trim_end_matches('-').to_owned() } else { slug.to_owned() }
}

/// The name of an environment variable.
pub fn variable(name: &str) -> String {
    slug(name).replace('-', "_").to_ascii_uppercase()
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
        assert_eq!(variable("openai-2 key"), "OPENAI_2_KEY");
    }
}
