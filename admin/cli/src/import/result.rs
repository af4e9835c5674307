//! What an import has found so far: objects, and a line for everything that was read.

use super::slug::slug;
use super::source::{Location, Source};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Where it went.
    Mapped(String),
    /// Why it has no place here, or what is to be done about it.
    Unmapped(String),
}

#[derive(Debug)]
pub struct Line {
    pub location: Location,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub struct Import {
    pub workspace: String,
    /// Documents as files hold them, in the order in which they were found.
    pub documents: Vec<Value>,
    pub lines: Vec<Line>,
    slugs: BTreeSet<(&'static str, String)>,
}

impl Import {
    pub fn new(workspace: &str) -> Self {
        Self { workspace: workspace.to_owned(), documents: Vec::new(), lines: Vec::new(), slugs: BTreeSet::new() }
    }

    pub fn mapped(&mut self, location: Location, place: impl Into<String>) {
        self.lines.push(Line { location, outcome: Outcome::Mapped(place.into()) });
    }

    pub fn unmapped(&mut self, location: Location, why: impl Into<String>) {
        self.lines.push(Line { location, outcome: Outcome::Unmapped(why.into()) });
    }

    /// Tells everything that was not field out of a source, by a sentence for each name.
    pub fn unmapped_rest(&mut self, source: Source, why: impl Fn(&str) -> String) {
        if source.is_fields() {
            for (name, field) in source.into_fields() {
                self.unmapped(field.location, why(&name));
            }
        } else if !source.value().is_null() {
            self.unmapped(source.location, why(""));
        }
    }

    /// A slug that no other object of this kind has.
    pub fn free_slug(&mut self, kind: &'static str, name: &str) -> String {
        let first = slug(name);
        let numbered = (2..).map(|number| format!("{first}-{number}"));
        let free =
            std::iter::once(first.clone()).chain(numbered).find(|slug| !self.slugs.contains(&(kind, slug.clone())));
        let free = free.unwrap_or(first);
        self.slugs.insert((kind, free.clone()));
        free
    }

    pub fn add(&mut self, kind: &'static str, name: &str, spec: Map<String, Value>) {
        self.documents.push(json!({ "kind": kind, "workspace": self.workspace, "name": name, "spec": spec }));
    }

    /// A credential as a variable of whoever applies the files. One that stands in the foreign file is not written again.
    pub fn credential(&mut self, location: &Location, text: &str, environment: &str, own_name: &str) -> String {
        if let Some(name) = text.strip_prefix(environment) {
            return format!("${{env:{name}}}");
        }
        self.unmapped(
            location.clone(),
            format!("the credential is not copied: set {own_name} where `portcullis apply` runs"),
        );
        format!("${{env:{own_name}}}")
    }
}
