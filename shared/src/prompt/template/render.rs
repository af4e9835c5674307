//! A template filled in. Every step, every byte of output and every partial inside a partial is counted.

use super::error::shown;
use super::lookup::{is_nothing, lookup, printed};
use super::{Name, Node, Template, TemplateError};
use serde_json::Value;
use std::borrow::Cow;

/// A filled-in template is no longer than a request may be.
const MAX_OUTPUT: usize = 4 << 20;
const MAX_STEPS: usize = 500_000;
const MAX_PARTIALS: usize = 10;

/// Where the result will stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Text as it is.
    Nothing,
    /// The template is JSON and the values stand inside its texts: they cannot end them.
    JsonText,
}

/// Where the partials of a template are found.
pub trait Partials {
    fn partial(&self, name: &str) -> Option<&Template>;
}

/// For templates that may have none.
impl Partials for () {
    fn partial(&self, _: &str) -> Option<&Template> {
        None
    }
}

/// What may still be spent on filling in. Templates that belong together share one.
#[derive(Debug)]
pub struct RenderBudget {
    steps: usize,
    bytes: usize,
}

impl RenderBudget {
    /// For what is filled in where others wait: a millisecond at the most.
    pub const fn small() -> Self {
        Self { steps: 20_000, bytes: 256 << 10 }
    }
}

impl Default for RenderBudget {
    fn default() -> Self {
        Self { steps: MAX_STEPS, bytes: MAX_OUTPUT }
    }
}

pub fn render(
    template: &Template,
    values: &Value,
    partials: &dyn Partials,
    escape: Escape,
) -> Result<String, TemplateError> {
    render_within(&mut RenderBudget::default(), template, values, partials, escape)
}

pub fn render_within(
    budget: &mut RenderBudget,
    template: &Template,
    values: &Value,
    partials: &dyn Partials,
    escape: Escape,
) -> Result<String, TemplateError> {
    let mut rendering =
        Rendering { partials, escape, around: vec![values], inside: Vec::new(), output: String::new(), budget };
    rendering.nodes(&template.nodes)?;
    Ok(rendering.output)
}

struct Rendering<'a> {
    partials: &'a dyn Partials,
    escape: Escape,
    /// The values of the sections we are in.
    around: Vec<&'a Value>,
    /// The partials we are in.
    inside: Vec<String>,
    output: String,
    budget: &'a mut RenderBudget,
}

impl<'a> Rendering<'a> {
    fn nodes(&mut self, nodes: &[Node]) -> Result<(), TemplateError> {
        for node in nodes {
            self.step(1)?;
            match node {
                Node::Text(text) => self.put(text)?,
                Node::Variable(name) => {
                    if let Some(value) = self.find(name)? {
                        self.ends_whole(name)?;
                        let text = printed(value);
                        self.put(&self.escaped(&text))?;
                    }
                }
                Node::Section { name, is_inverted, nodes } => self.section(name, *is_inverted, nodes)?,
                Node::Partial { name, indentation } => self.partial(name, indentation)?,
            }
        }
        Ok(())
    }

    fn section(&mut self, name: &Name, is_inverted: bool, nodes: &[Node]) -> Result<(), TemplateError> {
        let found = self.find(name)?;
        let values = match found {
            _ if is_nothing(found) != is_inverted => return Ok(()),
            Some(Value::Array(items)) if !is_inverted => items.as_slice(),
            Some(value @ (Value::Object(_) | Value::String(_) | Value::Number(_))) if !is_inverted => {
                std::slice::from_ref(value)
            }
            _ => return self.nodes(nodes),
        };
        for value in values {
            self.around.push(value);
            self.nodes(nodes)?;
            self.around.pop();
        }
        Ok(())
    }

    fn partial(&mut self, name: &str, indentation: &str) -> Result<(), TemplateError> {
        if self.inside.iter().any(|inside| inside == name) {
            return Err(TemplateError::Cycle(shown(name)));
        }
        if self.inside.len() == MAX_PARTIALS {
            return Err(TemplateError::PartialsTooDeep(MAX_PARTIALS));
        }
        let partials = self.partials;
        let found = partials.partial(name).ok_or_else(|| TemplateError::NoPartial(shown(name)))?;
        self.inside.push(name.to_owned());
        match indentation {
            "" => self.nodes(&found.nodes)?,
            indentation => {
                // Parsing costs as much as printing.
                self.step(indented_length(&found.text, indentation)?)?;
                self.nodes(&indented(&found.text, indentation)?.nodes)?;
            }
        }
        self.inside.pop();
        Ok(())
    }

    fn find(&mut self, name: &Name) -> Result<Option<&'a Value>, TemplateError> {
        let (found, looked) = lookup(name, &self.around);
        self.step(looked)?;
        Ok(found)
    }

    /// Inside a JSON text, a backslash of the template would take the first character of a value with it; if that is our
    /// own backslash before a quote, the quote ends the text.
    fn ends_whole(&mut self, name: &Name) -> Result<(), TemplateError> {
        if self.escape == Escape::Nothing {
            return Ok(());
        }
        let backslashes = self.output.bytes().rev().take_while(|byte| *byte == b'\\').count();
        self.step(backslashes)?;
        if backslashes % 2 == 0 { Ok(()) } else { Err(TemplateError::AfterBackslash(shown(&name.written()))) }
    }

    fn escaped<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.escape {
            Escape::Nothing => text.into(),
            Escape::JsonText => {
                let quoted = Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned().into()
            }
        }
    }

    fn put(&mut self, text: &str) -> Result<(), TemplateError> {
        let left = self.budget.bytes.checked_sub(text.len());
        self.budget.bytes = left.ok_or(TemplateError::OutputTooLong(MAX_OUTPUT))?;
        self.output.push_str(text);
        Ok(())
    }

    fn step(&mut self, steps: usize) -> Result<(), TemplateError> {
        self.budget.steps = self.budget.steps.checked_sub(steps).ok_or(TemplateError::TooManySteps)?;
        Ok(())
    }
}

/// A partial that stands alone in its line is indented with it, line by line; empty lines stay empty.
fn indented(text: &str, indentation: &str) -> Result<Template, TemplateError> {
    let lines = text.split_inclusive('\n').flat_map(|line| [if line == "\n" { "" } else { indentation }, line]);
    Template::parse(&lines.collect::<String>())
}

/// At most so many bytes of a partial with its indentation, before it is put together.
fn indented_length(text: &str, indentation: &str) -> Result<usize, TemplateError> {
    let longer = text.len() + indentation.len() * text.split_inclusive('\n').count();
    if longer > super::MAX_SIZE { Err(TemplateError::TooLong) } else { Ok(longer) }
}
