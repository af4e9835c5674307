//! Configs of the product whose config language ours speaks: what its API answers, one config or a list of them. They stay as
//! they are; credentials in them become variables, and what they name is told, because it has to be there.

use super::result::Import;
use super::slug;
use super::source::{Location, Source};
use crate::secrets;
use crate::tree::yaml;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

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
        let location = root.location.clone();
        write(import, "imported", None, location, root.literal());
    }
}

/// A config with what the server knows of it.
fn read_saved(mut saved: Source, config: Source, import: &mut Import) {
    let name = saved.take_text("name");
    let slug = saved.take_text("slug");
    for text in [&name, &slug].into_iter().flatten() {
        import.mapped(text.location.clone(), "name or slug of the config");
    }
    let is_default = saved.take_count("is_default").is_some_and(|flag| {
        import.mapped(flag.location, "isDefault of the config");
        flag.value == 1
    });
    import.unmapped_rest(saved, |_| "the server's own, or none of a config".to_owned());
    let (location, mut value) = (config.location.clone(), config.literal());
    if let Some(text) = config.value().as_str() {
        match yaml::one(text) {
            Ok(read) => value = read,
            Err(fault) => return import.unmapped(location, format!("the config is no JSON: {fault}")),
        }
    }
    let named = slug.as_ref().or(name.as_ref()).map_or("imported", |text| text.value.as_str()).to_owned();
    let title = name.as_ref().map(|name| name.value.clone());
    write(import, &named, title, location, value);
    if is_default && let Some(document) = import.documents.last_mut() {
        document["spec"]["isDefault"] = 1.into();
    }
}

fn write(import: &mut Import, name: &str, title: Option<String>, location: Location, config: Value) {
    if config.get("mode").is_some() || config.get("options").is_some() {
        return import
            .unmapped(location, "a config of the oldest form: rewrite `mode` and `options` as strategy and targets");
    }
    let slug = import.free_slug("config", name);
    let mut hidden = Vec::new();
    let config = secrets::replaced("config", &config, &mut |path| {
        let variable = slug::variable(&format!("{slug} {}", path.join(" ")));
        hidden.push(variable.clone());
        format!("${{env:{variable}}}").into()
    });
    for variable in hidden {
        import.unmapped(
            location.clone(),
            format!("a credential is not copied: set {variable} where `portcullis apply` runs"),
        );
    }
    let mut named = BTreeSet::new();
    references(&config, &mut named);
    for (kind, object) in named {
        import.unmapped(location.clone(), format!("it names the {kind} `{object}`, which must be there, by this name"));
    }
    let mut spec = Map::new();
    spec.insert("name".to_owned(), title.unwrap_or_else(|| slug.clone()).into());
    spec.insert("config".to_owned(), config);
    import.add("config", &slug, spec);
    import.mapped(location, format!("config/{}/{slug}", import.workspace));
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

/// A guardrail by its name, or by an object that has it.
fn reference(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| item["id"].as_str())
}
