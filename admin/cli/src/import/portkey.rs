//! Configs of the product whose config language ours speaks: what its API answers, one config or a list of them. They stay as
//! they are; credentials in them become variables, and what they name is told, because it has to be there.

use super::address::has_credential;
use super::json_text;
use super::report::code;
use super::result::Import;
use super::slug;
use super::source::{Location, Source};
use crate::secrets;
use crate::tree::template::{escaped, map_texts};
use crate::tree::yaml;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::convert::Infallible;

/// Fields of a config or a target that name other objects, and what those are.
const REFERENCES: &[(&str, &str)] = &[
    ("virtual_key", "virtual key"),
    ("virtualKey", "virtual key"),
    ("provider", "provider"),
    ("prompt_id", "prompt"),
    ("input_guardrails", "guardrail"),
    ("output_guardrails", "guardrail"),
    ("before_request_hooks", "guardrail"),
    ("after_request_hooks", "guardrail"),
];

pub fn read(mut root: Source, import: &mut Import) {
    if root.is_list() {
        root.into_items().into_iter().for_each(|item| read(item, import));
    } else if let Some(data) = root.take("data") {
        read(data, import);
        import.unmapped_rest(root, |_| "what the server says of its answer".to_owned());
    } else if let Some(config) = root.take("config") {
        read_saved(root, config, import);
    } else {
        let config = root.literal();
        // A config that is the whole file has no name: each of its fields has a line.
        let places = root.into_parts().into_iter().map(|(_, part)| part.location).collect();
        write(import, Saved { given: "imported", title: None, is_default: false }, places, config);
    }
}

/// What the server knows of a config.
struct Saved<'a> {
    /// Its slug, or its name.
    given: &'a str,
    title: Option<&'a str>,
    is_default: bool,
}

fn read_saved(mut saved: Source, config: Source, import: &mut Import) {
    let name = saved.take_text("name");
    let slug = saved.take_text("slug");
    let is_default = saved.take_count("is_default");
    import.unmapped_rest(saved, |_| "the server's own, or none of a config".to_owned());
    let location = config.location.clone();
    let read = match config.value().as_str() {
        Some(text) => parsed(text),
        None => Ok(config.literal()),
    };
    let fields = [("name", &name), ("slug", &slug)];
    let texts = fields.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?.location.clone())));
    let is_written = match read {
        Err(line) => {
            import.unmapped(location, format!("the config is no JSON: see its line {line}"));
            false
        }
        Ok(value) => {
            let given = slug.as_ref().or(name.as_ref()).map_or("imported", |text| text.value.as_str());
            let title = name.as_ref().map(|name| name.value.as_str());
            let is_default = is_default.as_ref().is_some_and(|flag| flag.value == 1);
            write(import, Saved { given, title, is_default }, vec![location], value)
        }
    };
    let flag = is_default.map(|flag| ("isDefault", flag.location));
    for (field, location) in texts.chain(flag) {
        match is_written {
            true => import.mapped(location, format!("{field} of the config")),
            false => import.unmapped(location, "of a config that is not written"),
        }
    }
}

/// A config that is JSON as text, as a literal. A fault is its line.
fn parsed(text: &str) -> Result<Value, usize> {
    let mut found = yaml::documents(&json_text::readable(text)).map_err(|(line, _)| line)?;
    match (found.pop(), found.is_empty()) {
        (Some(config), true) => Ok(Source::new(config).literal()),
        _ => Err(1),
    }
}

/// Returns whether it could be written.
fn write(import: &mut Import, saved: Saved<'_>, places: Vec<Location>, config: Value) -> bool {
    let Some(location) = places.first().cloned() else { return false };
    let is_old = config.get("mode").is_some() || config.get("options").is_some();
    if is_old || !config.is_object() {
        let why = match is_old {
            true => "a config of the oldest form: rewrite `mode` and `options` as strategy and targets",
            false => "no config",
        };
        places.into_iter().for_each(|place| import.unmapped(place, why));
        return false;
    }
    let slug = import.given_slug("config", saved.given);
    if slug != saved.given {
        let why = format!("its slug is {} here: keys and calls that name the config need this one", code(&slug));
        import.unmapped(location.clone(), why);
    }
    let config = secrets::replaced("config", &config, &mut |path| {
        let place = format!("{slug} {}", path.join(" "));
        import.credential(&location, &place, &slug::variable(&place)).into()
    });
    let config = without_credentials(&config, &slug, &location, import);
    let mut named = BTreeSet::new();
    references(&config, &mut named);
    for (kind, object) in named {
        let why = format!("it names the {kind} {}, which must be there, by this slug or id", code(&object));
        import.unmapped(location.clone(), why);
    }
    let mut spec = Map::new();
    spec.insert("name".to_owned(), escaped(&slug::title(saved.title.unwrap_or(&slug))).into());
    spec.insert("config".to_owned(), config);
    if saved.is_default {
        spec.insert("isDefault".to_owned(), 1.into());
    }
    import.add("config", &slug, spec);
    for place in places {
        import.mapped(place, format!("config/{}/{slug}", import.workspace));
    }
    true
}

/// The config with variables for addresses that hold a credential, wherever they stand: of hosts, of webhooks.
fn without_credentials(config: &Value, slug: &str, location: &Location, import: &mut Import) -> Value {
    let own_name = slug::variable(&format!("{slug} address"));
    let is_address = |text: &str| {
        let has_scheme = text.starts_with("http://") || text.starts_with("https://");
        has_scheme && !text.contains(char::is_whitespace) && has_credential(text)
    };
    let mut replace = |text: &str| {
        Ok::<_, Infallible>(match is_address(text) {
            true => import.credential(location, text, &own_name),
            false => text.to_owned(),
        })
    };
    map_texts(config, &mut replace).unwrap_or_else(|never| match never {})
}

fn references(config: &Value, named: &mut BTreeSet<(&'static str, String)>) {
    match config {
        Value::Object(fields) => {
            for (field, kind) in REFERENCES {
                let texts = match fields.get(*field) {
                    Some(Value::String(text)) => vec![text.as_str()],
                    Some(Value::Array(items)) => items.iter().filter_map(reference).collect(),
                    _ => Vec::new(),
                };
                // A provider's plain name is no object.
                let is_object = |text: &&str| *kind != "provider" || text.starts_with('@');
                named.extend(texts.into_iter().filter(is_object).map(|text| (*kind, text.to_owned())));
            }
            fields.values().for_each(|value| references(value, named));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, named)),
        _ => {}
    }
}

/// A guardrail by its slug, or by an object that has it. One with checks of its own is written out, and names nothing.
fn reference(item: &Value) -> Option<&str> {
    let is_written_out = |fields: &Map<String, Value>| fields.values().any(|part| part.is_object() || part.is_array());
    match item.as_object().is_some_and(is_written_out) {
        true => None,
        false => item.as_str().or_else(|| item["id"].as_str()),
    }
}
