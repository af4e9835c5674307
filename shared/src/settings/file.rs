//! The settings file: TOML whose keys are the settings' names in lower case. Tables are for the reader's eye alone.

use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Eq)]
pub enum FileValue {
    /// As it would be typed on the command line; the items of a list are joined by commas.
    Text(String),
    EmptyList,
}

/// Keys and values. A problem is told by key or line, never with the text of the line: it may hold a password.
pub fn parse(text: &str) -> Result<BTreeMap<String, FileValue>, String> {
    let tables: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        format!("line {line} is not TOML: {}", error.message())
    })?;
    let mut values = BTreeMap::new();
    for (key, value) in tables {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    insert(&mut values, key, &value)?;
                }
            }
            value => insert(&mut values, key, &value)?,
        }
    }
    Ok(values)
}

fn insert(values: &mut BTreeMap<String, FileValue>, key: String, value: &toml::Value) -> Result<(), String> {
    let value = match value {
        toml::Value::Array(items) if items.is_empty() => FileValue::EmptyList,
        toml::Value::Array(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(|item| plain(&key, item)).collect();
            FileValue::Text(items?.join(","))
        }
        value => FileValue::Text(plain(&key, value)?),
    };
    if values.contains_key(&key) {
        return Err(format!("`{key}` is set twice"));
    }
    values.insert(key, value);
    Ok(())
}

fn plain(key: &str, value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(flag) => Ok(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
            Err(format!("`{key}` must be a string, a number, true, false, or a list of these"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_and_out_of_tables_and_lists_are_joined() {
        let text = "a = 1\nb = ['x', 'y']\nc = []\n[t]\nd = true\ne = 'v'\n";
        let values: Vec<_> = parse(text).unwrap().into_iter().collect();
        let expected = [("a", "1"), ("b", "x,y"), ("c", ""), ("d", "true"), ("e", "v")].map(|(key, text)| {
            (key.to_owned(), if key == "c" { FileValue::EmptyList } else { FileValue::Text(text.to_owned()) })
        });
        assert_eq!(values, expected);
    }

    #[test]
    fn what_cannot_be_a_setting_is_named_without_its_value() {
        for (text, expected) in [
            ("x = 1\n[t]\nx = 2", "`x` is set twice"),
            ("x = 1979-05-27", "`x` must be"),
            ("[t.u]\nx = 1", "`u` must be"),
            ("x = [['a']]", "`x` must be"),
            ("ok = 1\ndatabase_url = 'postgres://u:hunter2@h", "line 2 is not TOML"),
            ("ok = 1\n\nhunter2", "line 3 is not TOML"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.starts_with(expected) && !problem.contains("hunter2"), "{text}: {problem}");
        }
    }
}
