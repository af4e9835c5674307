//! What an import has found so far: objects, and a line for everything that was read.

use super::address;
use super::free_names::FreeNames;
use super::slug;
use super::source::{Located, Location, Source};
use super::variables::{ReadVariable, Variables};
use crate::tree::template::{each_text, escaped};
use serde_json::{Map, Value, json};

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

pub struct Import {
    pub workspace: String,
    /// Documents as files hold them, in the order in which they were found.
    pub documents: Vec<Value>,
    pub lines: Vec<Line>,
    read_variable: ReadVariable,
    names: FreeNames,
    variables: Variables,
}

/// The place in a template that a variable fills.
fn place(variable: &str) -> String {
    format!("${{env:{variable}}}")
}

impl Import {
    pub fn new(workspace: &str, read_variable: ReadVariable) -> Self {
        Self {
            workspace: workspace.to_owned(),
            documents: Vec::new(),
            lines: Vec::new(),
            read_variable,
            names: FreeNames::default(),
            variables: Variables::default(),
        }
    }

    pub fn mapped(&mut self, location: Location, place: impl Into<String>) {
        self.lines.push(Line { location, outcome: Outcome::Mapped(place.into()) });
    }

    pub fn unmapped(&mut self, location: Location, why: impl Into<String>) {
        self.lines.push(Line { location, outcome: Outcome::Unmapped(why.into()) });
    }

    /// Tells everything that was not taken out of a source, by a sentence for each name.
    pub fn unmapped_rest(&mut self, source: Source, why: impl Fn(&str) -> String) {
        for (name, part) in source.into_parts() {
            self.unmapped(part.location, why(&name));
        }
    }

    /// A slug that no other object of this kind has.
    pub fn free_slug(&mut self, kind: &'static str, name: &str) -> String {
        self.names.take(kind, &slug::slug(name), "-")
    }

    /// A slug that stays as it is, unless it cannot or another object of this kind has it.
    pub fn given_slug(&mut self, kind: &'static str, given: &str) -> String {
        if slug::is_slug(given) { self.names.take(kind, given, "-") } else { self.free_slug(kind, given) }
    }

    /// A name for a kind whose objects are known by their names.
    pub fn free_name(&mut self, kind: &'static str, name: &str) -> String {
        self.names.take(kind, &slug::title(name), " ")
    }

    /// The name is no template; everything in the specification is one.
    pub fn add(&mut self, kind: &'static str, name: &str, spec: Map<String, Value>) {
        self.documents.push(json!({ "kind": kind, "workspace": self.workspace, "name": name, "spec": spec }));
    }

    /// Keeps the variables that the foreign file names for what they name there.
    pub fn reserve_variables(&mut self, value: &Value) {
        let read = self.read_variable;
        each_text(value, &mut |text| {
            if let Some(name) = read(text) {
                self.variables.reserve(&name);
            }
        });
    }

    /// The same for a variable that the other gateway reads without being told.
    pub fn reserve_variable(&mut self, name: &str) {
        self.variables.reserve(name);
    }

    /// The variable that a text of the foreign file names.
    pub fn variable_in(&self, text: &str) -> Option<String> {
        (self.read_variable)(text)
    }

    /// A text that is no secret: a variable where it names one, otherwise itself.
    pub fn text(&self, text: &str) -> String {
        self.variable_in(text).map_or_else(|| escaped(text), |name| place(&name))
    }

    /// A credential as a variable of whoever applies the files. One that stands in the foreign file is not written again.
    pub fn credential(&mut self, location: &Location, text: &str, own_name: &str) -> String {
        if let Some(name) = self.variable_in(text) {
            return place(&name);
        }
        let name = self.variables.name_for(own_name, text);
        let why = format!("the credential is not copied: set {name} where `portcullis apply` runs");
        self.unmapped(location.clone(), why);
        place(&name)
    }

    /// A variable for what has to be there and stands nowhere in the foreign file. The text tells such values apart.
    pub fn wanted(&mut self, location: &Location, text: &str, own_name: &str, what: &str) -> String {
        let name = self.variables.name_for(own_name, text);
        self.unmapped(location.clone(), format!("set {name} to {what} where `portcullis apply` runs"));
        place(&name)
    }

    /// An address, with a path at its end that the other gateway adds by itself. One that holds a credential becomes a variable
    /// as a whole.
    pub fn address(&mut self, found: &Located<String>, path: &str, own_name: &str) -> String {
        if let Some(name) = self.variable_in(&found.value) {
            if !path.is_empty() {
                let why = format!("`{path}` is added to the address in {name}: it must not end in it there");
                self.unmapped(found.location.clone(), why);
            }
            return format!("{}{path}", place(&name));
        }
        let address = address::with_path(&found.value, path);
        if !address::has_credential(&address) {
            if address.starts_with("http://") {
                let why = "without TLS: whoever runs the gateway has to list its host in TRUSTED_CUSTOM_HOSTS";
                self.unmapped(found.location.clone(), why);
            }
            return escaped(&address);
        }
        let name = self.variables.name_for(own_name, &found.value);
        let why = format!(
            "an address with a user, a query or a fragment may hold a credential and is not copied: set {name} where \
             `portcullis apply` runs (a `custom_host` has none of them: credentials are headers)"
        );
        self.unmapped(found.location.clone(), why);
        place(&name)
    }
}
