//! XML as SAML messages need it and no more: one document in UTF-8, with namespaces, without a document type, without
//! entities of its own and without processing instructions. Comments are left out and the text around them is one text,
//! as in what is signed. Everything is bounded; refused is what a message never contains.

mod reader;

pub use reader::{parse, parse_within};

use super::work;
use std::collections::HashMap;
use std::sync::Arc;

/// What prefixes stand for at one place; the empty one is the default.
pub type Scope<'d> = HashMap<&'d str, &'d Arc<str>>;

/// A place in a document's list of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementId(usize);

#[derive(Debug)]
pub struct Document {
    /// The first is the root.
    elements: Vec<Element>,
    /// Of the text that it was read from.
    bytes: usize,
}

#[derive(Debug)]
pub struct Element {
    pub parent: Option<ElementId>,
    pub prefix: String,
    pub local: String,
    /// Shared by all that have it: one declaration may name ten thousand elements.
    pub namespace: Arc<str>,
    /// Prefix (empty for the default) and namespace, as declared on this very element.
    pub declared: Vec<(String, Arc<str>)>,
    pub attributes: Vec<Attribute>,
    pub children: Vec<Child>,
}

#[derive(Debug)]
pub struct Attribute {
    pub prefix: String,
    pub local: String,
    pub namespace: Arc<str>,
    pub value: String,
}

#[derive(Debug)]
pub enum Child {
    Element(ElementId),
    Text(String),
}

/// Why something is no XML that is taken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl Document {
    pub fn root(&self) -> ElementId {
        ElementId(0)
    }

    pub fn element(&self, id: ElementId) -> &Element {
        &self.elements[id.0]
    }

    pub fn is(&self, id: ElementId, namespace: &str, local: &str) -> bool {
        let element = self.element(id);
        element.local == local && &*element.namespace == namespace
    }

    /// The direct children with this name.
    pub fn children(&self, of: ElementId, namespace: &str, local: &str) -> Vec<ElementId> {
        self.elements_in(of).filter(|id| self.is(*id, namespace, local)).collect()
    }

    /// The only child with this name; none when there is none, or more than one.
    pub fn only(&self, of: ElementId, namespace: &str, local: &str) -> Option<ElementId> {
        match self.children(of, namespace, local).as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    pub fn elements_in(&self, of: ElementId) -> impl Iterator<Item = ElementId> {
        self.element(of).children.iter().filter_map(|child| match child {
            Child::Element(id) => Some(*id),
            Child::Text(_) => None,
        })
    }

    /// The value of an attribute without a namespace.
    pub fn attribute(&self, of: ElementId, local: &str) -> Option<&str> {
        let mut attributes = self.element(of).attributes.iter();
        let found = attributes.find(|one| one.local == local && one.namespace.is_empty());
        found.map(|one| one.value.as_str())
    }

    /// The text of an element that has nothing but text, without the white space around it.
    pub fn text(&self, of: ElementId) -> Option<&str> {
        match self.element(of).children.as_slice() {
            [] => Some(""),
            [Child::Text(text)] => Some(text.trim()),
            _ => None,
        }
    }

    /// All that prefixes stand for at an element: looked up once by who then goes down from there, and by who reads a
    /// document as if it stood there.
    pub fn scope(&self, at: ElementId) -> Scope<'_> {
        let mut scope = Scope::new();
        let mut here = Some(at);
        while let Some(id) = here {
            let element = self.element(id);
            work::note(1 + element.declared.len());
            for (prefix, namespace) in &element.declared {
                scope.entry(prefix).or_insert(namespace);
            }
            here = element.parent;
        }
        scope
    }

    /// Whether an element has no more elements inside of it than this.
    pub fn has_at_most(&self, of: ElementId, most: usize) -> bool {
        let mut open = vec![of];
        let mut seen = 0;
        while let Some(id) = open.pop() {
            seen += 1;
            if seen > most + 1 {
                return false;
            }
            open.extend(self.elements_in(id).take(most + 1));
        }
        true
    }

    /// How long the text was.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Everything in the document.
    pub fn all(&self) -> impl Iterator<Item = ElementId> {
        (0..self.elements.len()).map(ElementId)
    }
}

/// A text as it is written between tags or quotes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", c as u32)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
