//! Prompt templates: Mustache without HTML. A template is parsed once, when its version is stored or arrives, and filled
//! with a call's values as often as it is run. There is no code in it to execute: names are looked up, sections repeat or
//! vanish, partials are put in, and all of it is bounded, because templates and values come from tenants.
//!
//! Lines that hold nothing but tags vanish whole, as the specification and `mustache.js` have it. What differs from both:
//! nothing is escaped for HTML; a value is printed as text or as JSON, and may be escaped to stand inside a JSON text; a
//! partial that does not exist, or contains itself, is an error.

mod components;
mod error;
#[cfg(test)]
mod hostile_tests;
mod lookup;
mod parse;
mod render;
mod scan;
#[cfg(test)]
mod specification_tests;
#[cfg(test)]
mod tests;

pub use components::Components;
pub use error::TemplateError;
pub(crate) use lookup::printed;
pub use render::{Escape, Partials, RenderBudget, render, render_within};

/// A longer template is refused.
pub const MAX_SIZE: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct Template {
    /// As it was written: a partial that is indented is parsed again with its indentation.
    text: Box<str>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Text(String),
    Variable(Name),
    Section { name: Name, is_inverted: bool, nodes: Vec<Node> },
    Partial { name: Box<str>, indentation: Box<str> },
}

/// A dotted name in its parts; none is the value at hand, `{{.}}`.
#[derive(Debug, Clone, PartialEq)]
struct Name(Box<[Box<str>]>);

impl Name {
    fn new(written: &str) -> Self {
        match written {
            "." => Self(Box::default()),
            dotted => Self(dotted.split('.').map(Box::from).collect()),
        }
    }

    fn written(&self) -> String {
        if self.0.is_empty() { ".".to_owned() } else { self.0.join(".") }
    }
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_SIZE {
            return Err(TemplateError::TooLong);
        }
        Ok(Self { text: text.into(), nodes: parse::parse(scan::scan(text)?)? })
    }

    /// What it asks for, for those who fill it in.
    pub fn components(&self) -> Components {
        Components::of(&self.nodes)
    }

    /// Its texts and variables in their order; none if there is anything else in it, or a dotted name.
    pub(crate) fn plain_parts<'t>(&'t self) -> Option<Vec<PlainPart<'t>>> {
        let part = |node: &'t Node| match node {
            Node::Text(text) => Some(PlainPart::Text(text)),
            Node::Variable(Name(parts)) => match &**parts {
                [name] => Some(PlainPart::Variable(name)),
                _ => None,
            },
            Node::Section { .. } | Node::Partial { .. } => None,
        };
        self.nodes.iter().map(part).collect()
    }
}

/// A part of a template that needs no more than a value by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainPart<'t> {
    Text(&'t str),
    Variable(&'t str),
}
