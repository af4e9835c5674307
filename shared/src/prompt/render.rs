//! From a version and a call's values to the body of a request. What stands in it later wins: parameters of the version,
//! its model and tools, what the template became, and last what the call itself says.

use super::PromptBody;
use super::template::{Components, Partials, RenderBudget, Template, TemplateError};
use super::variables::{self, DeclaredVariable, VariableFault};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Partials of one prompt, those inside others included.
const MAX_PARTIALS: usize = 100;
/// Bytes of all their templates.
const MAX_PARTIALS_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RenderError {
    #[error("the template cannot be filled in: {0}")]
    Template(#[from] TemplateError),
    #[error("the template, filled in, is not the JSON that it must be")]
    NotJson,
    #[error("a prompt may use at most {} partials, of {} bytes together", MAX_PARTIALS, MAX_PARTIALS_BYTES)]
    TooManyPartials,
    #[error("variables: must be an object")]
    Variables,
    /// One that the version declares.
    #[error(transparent)]
    Variable(#[from] VariableFault),
    #[error("hyperparameters: must not be nested; send each at the root of the body")]
    Nested,
}

impl RenderError {
    /// Whether more steps or more room might have been enough.
    pub fn is_spent(&self) -> bool {
        matches!(self, Self::Template(TemplateError::TooManySteps | TemplateError::OutputTooLong(_)))
    }
}

/// The parts of a version that a request is made of.
#[derive(Debug)]
pub struct PromptParts<'a> {
    pub body: &'a PromptBody,
    /// Parameters of the model, and default values of variables.
    pub parameters: &'a Map<String, Value>,
    pub model: Option<&'a str>,
    pub functions: Option<&'a Value>,
    pub tools: Option<&'a Value>,
    pub tool_choice: Option<&'a Value>,
    /// Variables that are checked before they are filled in; empty for none.
    pub declared: &'a [DeclaredVariable],
}

/// What a call brings.
#[derive(Debug, Default, PartialEq)]
pub struct RenderRequest {
    pub variables: Map<String, Value>,
    /// Fields of the request that win over the version's.
    pub overrides: Map<String, Value>,
}

impl RenderRequest {
    pub fn parse(mut body: Map<String, Value>) -> Result<Self, RenderError> {
        let variables = match body.remove("variables") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(variables)) => variables,
            Some(_) => return Err(RenderError::Variables),
        };
        if body.contains_key("hyperparameters") {
            return Err(RenderError::Nested);
        }
        // One client repeats the path in the body.
        body.remove("promptID");
        body.retain(|_, value| !value.is_null());
        Ok(Self { variables, overrides: body })
    }
}

/// A partial, read once for all that use it.
#[derive(Debug)]
pub struct ParsedPartial {
    template: Template,
    components: Components,
    bytes: usize,
}

impl ParsedPartial {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let template = Template::parse(text)?;
        Ok(Self { components: template.components(), template, bytes: text.len() })
    }
}

/// The partials that a prompt names, and those that they name, each under its name as written.
#[derive(Debug, Default)]
pub struct PartialSet {
    partials: HashMap<String, Arc<ParsedPartial>>,
    /// What these name themselves.
    asked: BTreeSet<String>,
    bytes: usize,
}

impl PartialSet {
    pub fn insert(&mut self, name: String, text: &str) -> Result<(), RenderError> {
        self.check_room(text.len())?;
        self.add(name, Arc::new(ParsedPartial::parse(text)?))
    }

    pub fn add(&mut self, name: String, partial: Arc<ParsedPartial>) -> Result<(), RenderError> {
        self.check_room(partial.bytes)?;
        self.bytes = self.bytes.saturating_add(partial.bytes);
        self.asked.extend(partial.components.partials.iter().cloned());
        if self.asked.len() > MAX_PARTIALS {
            return Err(RenderError::TooManyPartials);
        }
        self.partials.insert(name, partial);
        Ok(())
    }

    fn check_room(&self, bytes: usize) -> Result<(), RenderError> {
        match self.partials.len() < MAX_PARTIALS && self.has_room(bytes) {
            true => Ok(()),
            false => Err(RenderError::TooManyPartials),
        }
    }

    /// Whether templates of so many bytes can be put in as well.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes.saturating_add(bytes) <= MAX_PARTIALS_BYTES
    }

    /// Names that are asked for by the prompt or by one of these, and are not here.
    pub fn missing(&self, prompt: &Components) -> BTreeSet<String> {
        let all = prompt.partials.iter().chain(&self.asked);
        all.filter(|name| !self.partials.contains_key(*name)).cloned().collect()
    }
}

impl Partials for PartialSet {
    fn partial(&self, name: &str) -> Option<&Template> {
        self.partials.get(name).map(|partial| &partial.template)
    }
}

pub fn render(
    parts: &PromptParts<'_>,
    request: RenderRequest,
    partials: &PartialSet,
) -> Result<Map<String, Value>, RenderError> {
    render_within(&mut RenderBudget::default(), parts, request, partials)
}

pub fn render_within(
    budget: &mut RenderBudget,
    parts: &PromptParts<'_>,
    request: RenderRequest,
    partials: &PartialSet,
) -> Result<Map<String, Value>, RenderError> {
    let names = variable_names(parts, partials);
    let (mut values, mut data) = (Map::new(), Map::new());
    for (name, value) in parts.parameters {
        let target = if names.contains(name.as_str()) { &mut values } else { &mut data };
        target.insert(name.clone(), value.clone());
    }
    values.extend(request.variables);
    variables::check(parts.declared, &values)?;
    if let Some(model) = parts.model {
        data.insert("model".into(), model.into());
    }
    for (name, value) in [("functions", parts.functions), ("tools", parts.tools), ("tool_choice", parts.tool_choice)] {
        if let Some(value) = value {
            data.insert(name.into(), value.clone());
        }
    }
    data.extend(parts.body.fill(&Value::Object(values), partials, budget)?);
    data.extend(request.overrides);
    Ok(data)
}

/// Parameters of these names are default values and nothing for the model: the variables and sections of the template and
/// of its partials, and what is declared, by the first part of a dotted name.
fn variable_names<'a>(parts: &PromptParts<'a>, partials: &'a PartialSet) -> BTreeSet<&'a str> {
    let inner = partials.partials.values().map(|partial| &partial.components);
    let all = std::iter::once(parts.body.asks()).chain(inner);
    let names = all.flat_map(|one| one.variables.iter().chain(&one.sections));
    let names = names.chain(parts.declared.iter().map(|one| &one.name));
    names.filter_map(|name| name.split('.').next()).collect()
}
