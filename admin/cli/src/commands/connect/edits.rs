//! Edits of configuration files that belong to somebody else: what is ours goes in and comes out again, and the rest stays.
//!
//! Text files get a block between two marks. JSON has no comments, and agents refuse fields that they do not know, so there a list
//! of the fields that we set is kept elsewhere, with hashes of their values.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    /// Lines of `name=value` or `name: value`.
    Lines,
    /// Top-level keys, then `---`, then tables: TOML wants the first above all tables.
    Toml,
}

const BEGIN: &str = "# portcullis: begin";
const END: &str = "# portcullis: end";

/// A field of JSON that we set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    path: Vec<String>,
    hash: String,
}

pub type Ownership = Vec<Owned>;

/// The file with our content in it; an earlier one of ours is replaced.
pub fn put(form: Form, before: &str, content: &str, owned: &mut Ownership) -> Result<String, String> {
    let rest = take_out(form, before, owned)?.unwrap_or_default();
    owned.clear();
    match form {
        Form::Json => {
            let mut document = parsed(&rest)?;
            merge(&mut document, &parsed(content)?, &mut Vec::new(), owned)?;
            Ok(pretty(&document))
        }
        Form::Lines => {
            refuse_taken(&rest, content)?;
            Ok(joined(&[&rest, &block(content)]))
        }
        Form::Toml => {
            let (top, tables) = content.split_once("---\n").unwrap_or((content, ""));
            let above = rest.split("\n[").next().unwrap_or_default();
            let above = if rest.starts_with('[') { "" } else { above };
            refuse_taken(above, top)?;
            if let Some(table) = tables.lines().next().filter(|table| rest.lines().any(|line| line.trim() == *table)) {
                return Err(format!("{table} is there already and not ours"));
            }
            let text = joined(&[&block(top), &rest, &block(tables)]);
            match text.parse::<toml::Table>() {
                Ok(_) => Ok(text),
                Err(error) => Err(format!("it would be no TOML any more: {}", error.message())),
            }
        }
    }
}

/// The file without our content; none when nothing is left.
pub fn take_out(form: Form, before: &str, owned: &Ownership) -> Result<Option<String>, String> {
    // What holds nothing of ours stays as it is, to the byte.
    let is_ours_somewhere = match form {
        Form::Json => !owned.is_empty(),
        Form::Lines | Form::Toml => before.lines().any(|line| line == BEGIN),
    };
    if !is_ours_somewhere {
        return Ok(Some(before.to_owned()));
    }
    if form == Form::Json {
        let mut document = parsed(before)?;
        owned.iter().for_each(|field| remove(&mut document, &field.path, &field.hash));
        return Ok((!document.is_empty()).then(|| pretty(&document)));
    }
    let mut is_ours = false;
    let mut rest = String::new();
    for line in before.split_inclusive('\n') {
        match line.trim_end_matches(['\r', '\n']) {
            BEGIN => is_ours = true,
            END => is_ours = false,
            _ if !is_ours => rest += line,
            _ => {}
        }
    }
    if is_ours {
        return Err(format!("`{END}` is missing"));
    }
    Ok((!rest.trim().is_empty()).then_some(rest))
}

fn block(content: &str) -> String {
    format!("{BEGIN}\n{content}{END}\n")
}

fn joined(parts: &[&str]) -> String {
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.map(|part| if part.ends_with('\n') { (*part).to_owned() } else { format!("{part}\n") }).collect()
}

fn refuse_taken(rest: &str, content: &str) -> Result<(), String> {
    let name =
        |line: &str| line.split(['=', ':']).next().unwrap_or_default().trim().trim_start_matches("export ").to_owned();
    let taken: Vec<String> = rest.lines().map(name).collect();
    match content.lines().map(name).find(|name| taken.contains(name)) {
        Some(name) => Err(format!("`{name}` is set already, and not by portcullis")),
        None => Ok(()),
    }
}

fn parsed(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(document)) => Ok(document),
        _ => Err("this is no plain JSON object, and is left alone".to_owned()),
    }
}

fn merge(
    document: &mut Map<String, Value>,
    ours: &Map<String, Value>,
    path: &mut Vec<String>,
    owned: &mut Ownership,
) -> Result<(), String> {
    for (name, value) in ours {
        path.push(name.clone());
        match (document.get_mut(name), value) {
            (Some(Value::Object(there)), Value::Object(ours)) => merge(there, ours, path, owned)?,
            (Some(there), value) if there == value => {}
            (Some(_), _) => return Err(format!("`{}` is set already, and not by portcullis", path.join("."))),
            (None, Value::Object(ours)) => {
                let mut made = Map::new();
                merge(&mut made, ours, path, owned)?;
                document.insert(name.clone(), Value::Object(made));
            }
            (None, value) => {
                document.insert(name.clone(), value.clone());
                owned.push(Owned { path: path.clone(), hash: hash(value) });
            }
        }
        path.pop();
    }
    Ok(())
}

/// Takes out a field that is as we set it, and the objects that are empty then.
fn remove(document: &mut Map<String, Value>, path: &[String], expected: &str) {
    match path {
        [] => {}
        [name] => {
            if document.get(name).is_some_and(|value| hash(value) == expected) {
                document.shift_remove(name);
            }
        }
        [name, rest @ ..] => {
            let Some(Value::Object(inner)) = document.get_mut(name) else { return };
            remove(inner, rest, expected);
            if inner.is_empty() {
                document.shift_remove(name);
            }
        }
    }
}

/// The value may be a key, so it is not written down itself.
fn hash(value: &Value) -> String {
    Sha256::digest(value.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pretty(document: &Map<String, Value>) -> String {
    crate::output::pretty(&Value::Object(document.clone())) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_the_rest_stays() {
        let toml = "a = 1\n---\n[ours]\nb = 2\n";
        for (form, before, content) in [
            (
                Form::Json,
                "{\n  \"theme\": \"dark\",\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n",
                r#"{"env": {"B": "2"}}"#,
            ),
            (Form::Lines, "# mine\nX=1\n", "Y=2\n"),
            (Form::Toml, "x = 1\n[theirs]\na = 5\n", toml),
            (Form::Toml, "[theirs]\na = 5\n", toml),
        ] {
            let mut owned = Ownership::new();
            let with = put(form, before, content, &mut owned).unwrap();
            assert_ne!(with, before);
            assert_eq!(put(form, &with, content, &mut owned).unwrap(), with, "twice is once");
            assert_eq!(take_out(form, &with, &owned).unwrap().as_deref(), Some(before));
            let mut owned = Ownership::new();
            let alone = put(form, "", content, &mut owned).unwrap();
            assert_eq!(take_out(form, &alone, &owned).unwrap(), None);
        }
    }

    #[test]
    fn a_file_without_our_content_stays_as_it_is() {
        for form in [Form::Json, Form::Lines, Form::Toml] {
            for before in ["", "{}", "a = 1\r\nb = 2", "{\"a\":1}", "// not plain\n{}"] {
                assert_eq!(take_out(form, before, &Ownership::new()).unwrap().as_deref(), Some(before));
            }
        }
    }

    #[test]
    fn what_others_set_is_not_overwritten() {
        for (form, before, content) in [
            (Form::Json, r#"{"env": {"B": "theirs"}}"#, r#"{"env": {"B": "2"}}"#),
            (Form::Json, "// comments\n{}", "{}"),
            (Form::Lines, "export Y=1\n", "Y=2\n"),
            (Form::Toml, "a = 9\n", "a = 1\n---\n[ours]\n"),
            (Form::Toml, "[ours]\n", "a = 1\n---\n[ours]\n"),
            (Form::Toml, "[other]\n[ours] # theirs\n", "a = 1\n---\n[ours]\n"),
            (Form::Toml, "\"a\" = 9\n", "a = 1\n---\n[ours]\n"),
            (Form::Toml, "b = \n", "a = 1\n---\n[ours]\n"),
        ] {
            assert!(put(form, before, content, &mut Ownership::new()).is_err(), "{before}");
        }
    }
}
