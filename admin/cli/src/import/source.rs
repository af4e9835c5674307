//! A foreign configuration while it is read. What is understood is taken out of it; what is still there at the end was
//! not understood, and can be told.

use crate::tree::template::{escaped, map_texts};
use crate::tree::yaml::{Content, Node};
use serde_json::Value;
use std::convert::Infallible;

/// A place in the foreign file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub line: usize,
    /// As `model_list[0].litellm_params.model`; empty for the whole file.
    pub path: String,
}

#[derive(Debug)]
pub struct Source {
    pub location: Location,
    content: Content,
}

/// A value that was taken, and where it stood.
#[derive(Debug, Clone)]
pub struct Located<T> {
    pub location: Location,
    pub value: T,
}

impl Source {
    pub fn new(node: Node) -> Self {
        Self { location: Location { line: node.line, path: String::new() }, content: node.content }
    }

    /// What is left of a source that was given away as a whole.
    pub fn nothing() -> Self {
        Self { location: Location { line: 0, path: String::new() }, content: Content::Scalar(Value::Null) }
    }

    pub fn take(&mut self, name: &str) -> Option<Self> {
        let Content::Fields(fields) = &mut self.content else { return None };
        let at = fields.iter().position(|field| field.name == name)?;
        let field = fields.remove(at);
        Some(Self { location: self.location.field(&field.name, field.line), content: field.value.content })
    }

    /// A field that holds fields.
    pub fn take_section(&mut self, name: &str) -> Option<Self> {
        let is_section = matches!(self.look(name)?, Content::Fields(_));
        is_section.then(|| self.take(name))?
    }

    /// The items of a field that is a list.
    pub fn take_items(&mut self, name: &str) -> Vec<Self> {
        let is_list = matches!(self.look(name), Some(Content::List(_)));
        let list = is_list.then(|| self.take(name)).flatten();
        list.map(Self::into_items).unwrap_or_default()
    }

    /// A text that stays.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.look(name)? {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    fn look(&self, name: &str) -> Option<&Content> {
        let Content::Fields(fields) = &self.content else { return None };
        fields.iter().find(|field| field.name == name).map(|field| &field.value.content)
    }

    pub fn take_text(&mut self, name: &str) -> Option<Located<String>> {
        self.take_if(name, |value| value.as_str().map(str::to_owned))
    }

    /// A text of at most so many characters; a longer one stays.
    pub fn take_short_text(&mut self, name: &str, max: usize) -> Option<Located<String>> {
        self.take_if(name, |value| value.as_str().filter(|text| text.chars().count() <= max).map(str::to_owned))
    }

    pub fn take_flag(&mut self, name: &str) -> Option<Located<bool>> {
        self.take_if(name, Value::as_bool)
    }

    /// A number above zero.
    pub fn take_number(&mut self, name: &str) -> Option<Located<f64>> {
        self.take_if(name, |value| value.as_f64().filter(|number| *number > 0.0))
    }

    pub fn take_count(&mut self, name: &str) -> Option<Located<u64>> {
        self.take_if(name, Value::as_u64)
    }

    pub fn take_positive_count(&mut self, name: &str) -> Option<Located<u64>> {
        self.take_if(name, |value| value.as_u64().filter(|count| *count > 0))
    }

    /// A field that reads well; one that does not stays, and is told with the rest.
    fn take_if<T>(&mut self, name: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Located<T>> {
        let Content::Fields(fields) = &self.content else { return None };
        let field = fields.iter().find(|field| field.name == name)?;
        let value = read(&field.value.value())?;
        let location = self.take(name)?.location;
        Some(Located { location, value })
    }

    /// A share among others: zero is one, too.
    pub fn take_weight(&mut self, name: &str) -> Option<Located<f64>> {
        self.take_if(name, |value| value.as_f64().filter(|number| *number >= 0.0))
    }

    pub fn is_fields(&self) -> bool {
        matches!(self.content, Content::Fields(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.content, Content::List(_))
    }

    /// The items of a list; nothing else has any.
    pub fn into_items(self) -> Vec<Self> {
        let Content::List(items) = self.content else { return Vec::new() };
        let item = |(at, node): (usize, Node)| Self {
            location: Location { line: node.line, path: format!("{}[{at}]", self.location.path) },
            content: node.content,
        };
        items.into_iter().enumerate().map(item).collect()
    }

    /// What is left, by name. Fields that say nothing (null) are left out.
    pub fn into_fields(self) -> Vec<(String, Self)> {
        let Content::Fields(fields) = self.content else { return Vec::new() };
        let named = fields.into_iter().filter(|field| !matches!(field.value.content, Content::Scalar(Value::Null)));
        named
            .map(|field| {
                let location = self.location.field(&field.name, field.line);
                (field.name, Self { location, content: field.value.content })
            })
            .collect()
    }

    /// Everything that is left: fields by name, the items of a whole file that is a list, or the value itself.
    pub fn into_parts(self) -> Vec<(String, Self)> {
        let is_file = self.location.path.is_empty();
        match self.content {
            Content::Fields(_) => self.into_fields(),
            Content::List(_) if is_file => self.into_items().into_iter().map(|item| (String::new(), item)).collect(),
            Content::Scalar(Value::Null) => Vec::new(),
            _ => vec![(String::new(), self)],
        }
    }

    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            content => Node { line: self.location.line, content: content.clone() }.value(),
        }
    }

    /// The value for one of our files, where `${` would begin a variable.
    pub fn literal(&self) -> Value {
        let escape = |text: &str| Ok::<_, Infallible>(escaped(text));
        map_texts(&self.value(), &mut { escape }).unwrap_or_else(|never| match never {})
    }
}

impl Location {
    fn field(&self, name: &str, line: usize) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { line, path }
    }
}
