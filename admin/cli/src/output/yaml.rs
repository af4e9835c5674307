//! JSON as YAML. What a reader of YAML could take for something else than a text is quoted, as JSON quotes it.

use serde_json::Value;

pub fn text(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => put_fields(&mut text, fields, 0, false),
        Value::Array(items) if !items.is_empty() => put_items(&mut text, items, 0),
        scalar => text += &format!("{}\n", inline(scalar)),
    }
    text
}

fn put_fields(text: &mut String, fields: &serde_json::Map<String, Value>, depth: usize, is_first_line_begun: bool) {
    for (at, (name, value)) in fields.iter().enumerate() {
        if at > 0 || !is_first_line_begun {
            *text += &"  ".repeat(depth);
        }
        *text += &format!("{}:", scalar(name));
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                text.push('\n');
                put_fields(text, fields, depth + 1, false);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push('\n');
                put_items(text, items, depth + 1);
            }
            Value::String(long) if is_block(long) => {
                *text += " |\n";
                for line in long.trim_end_matches('\n').split('\n') {
                    let indent = if line.is_empty() { String::new() } else { "  ".repeat(depth + 1) };
                    *text += &format!("{indent}{line}\n");
                }
            }
            value => *text += &format!(" {}\n", inline(value)),
        }
    }
}

fn put_items(text: &mut String, items: &[Value], depth: usize) {
    for item in items {
        *text += &format!("{}- ", "  ".repeat(depth));
        match item {
            Value::Object(fields) if !fields.is_empty() => put_fields(text, fields, depth + 1, true),
            Value::Array(items) if !items.is_empty() => *text += &format!("{}\n", Value::from(items.clone())),
            value => *text += &format!("{}\n", inline(value)),
        }
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Several lines that end with exactly one line break and have no character that a block cannot hold.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or_default();
    let is_plain = |letter: char| {
        letter == '\n' || (!letter.is_control() && !matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}'))
    };
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.chars().all(is_plain)
        && body.split('\n').all(|line| line.trim() == line)
}

fn scalar(text: &str) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "_-./@+ ".contains(letter);
    let begins_well = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == '/');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = begins_well
        && !text.ends_with(' ')
        && !text.contains(" #")
        && text.chars().all(is_safe)
        && !words.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// JSON's way, and escapes for what YAML takes for a line break or refuses.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted += &format!("\\u{:04x}", u32::from(letter))
            }
            letter => quoted.push(letter),
        }
    }
    quoted
}
