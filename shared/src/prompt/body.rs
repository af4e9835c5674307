//! The template of a prompt, by what it becomes: messages, a text, or a whole body.
//!
//! Where the stored text is JSON as it stands, each text in it is a template of its own, so that values and partials can
//! never leave the place they are put in. Where it becomes JSON only when it is filled in (sections around messages,
//! numbers without quotes), it is one template: values are escaped, partials are taken as JSON.

pub mod pieces;

use super::RenderError;
use super::template::{Components, Escape, Partials, RenderBudget, Template, TemplateError, render_within};
use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub struct PromptBody {
    kind: Kind,
    template: BodyTemplate,
    components: Components,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Messages,
    Text,
    /// An object with the fields of a request.
    Whole,
}

#[derive(Debug, Clone)]
enum BodyTemplate {
    Json(Node),
    Text(Template),
}

#[derive(Debug, Clone)]
enum Node {
    Fixed(Value),
    Text(Template),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl PromptBody {
    /// `is_raw` says that the text is a whole body and not messages or a text.
    pub fn parse(text: &str, is_raw: bool) -> Result<Self, TemplateError> {
        // Whatever it is, its tags must be closed: also the ones that span several texts.
        let whole = Template::parse(text)?;
        let json = serde_json::from_str::<Value>(text).ok();
        let is_messages = match &json {
            Some(Value::Array(items)) => items.iter().all(Value::is_object),
            Some(_) => false,
            None => opens_messages(text),
        };
        let kind = match (is_raw, is_messages) {
            (true, _) => Kind::Whole,
            (false, true) => Kind::Messages,
            (false, false) => Kind::Text,
        };
        let template = match json.filter(|_| kind != Kind::Text).map(node) {
            Some(Ok(node)) => BodyTemplate::Json(node),
            // A section may span several texts: it becomes JSON only when it is filled in.
            None | Some(Err(TemplateError::OpenSection(_) | TemplateError::Unopened(_))) => BodyTemplate::Text(whole),
            Some(Err(error)) => return Err(error),
        };
        Ok(Self { kind, components: template.components(), template })
    }

    /// What it asks for.
    pub fn components(&self) -> Components {
        self.components.clone()
    }

    /// The same, lent.
    pub fn asks(&self) -> &Components {
        &self.components
    }

    /// The fields of the request that it makes.
    pub fn fill(
        &self,
        values: &Value,
        partials: &dyn Partials,
        budget: &mut RenderBudget,
    ) -> Result<Map<String, Value>, RenderError> {
        let mut filling = Filling { values, partials, budget };
        let filled = match (&self.template, self.kind) {
            (BodyTemplate::Json(node), _) => filling.node(node)?,
            (BodyTemplate::Text(template), Kind::Text) => filling.text(template, Escape::Nothing)?.into(),
            (BodyTemplate::Text(template), Kind::Messages | Kind::Whole) => {
                let text = filling.text(template, Escape::JsonText)?;
                serde_json::from_str(&text).map_err(|_| RenderError::NotJson)?
            }
        };
        match (filled, self.kind) {
            (Value::Object(fields), Kind::Whole) => Ok(fields),
            (messages @ Value::Array(_), Kind::Messages | Kind::Whole) => Ok(field("messages", messages)),
            (text, Kind::Text) => Ok(field("prompt", text)),
            (_, Kind::Messages | Kind::Whole) => Err(RenderError::NotJson),
        }
    }
}

impl BodyTemplate {
    fn components(&self) -> Components {
        match self {
            Self::Text(template) => template.components(),
            Self::Json(node) => {
                let mut all = Components::default();
                collect(node, &mut all);
                all
            }
        }
    }
}

fn field(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

/// Whether a text that is not JSON yet is meant to become a list of messages.
fn opens_messages(text: &str) -> bool {
    let Some(inside) = text.trim_start().strip_prefix('[') else { return false };
    let inside = inside.trim_start();
    match inside.strip_prefix("{{") {
        Some(tag) => tag.trim_start().starts_with(['#', '^', '>', '!']),
        None => inside.strip_prefix('{').is_some_and(|fields| fields.trim_start().starts_with('"')),
    }
}

/// The depth is bounded by the reader of JSON.
fn node(value: Value) -> Result<Node, TemplateError> {
    Ok(match value {
        Value::String(text) if text.contains("{{") => Node::Text(Template::parse(&text)?),
        Value::Array(items) => Node::List(items.into_iter().map(node).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| Ok((name, node(value)?)));
            Node::Object(fields.collect::<Result<_, TemplateError>>()?)
        }
        fixed => Node::Fixed(fixed),
    })
}

fn collect(node: &Node, all: &mut Components) {
    match node {
        Node::Fixed(_) => {}
        Node::Text(template) => all.join(template.components()),
        Node::List(nodes) => nodes.iter().for_each(|node| collect(node, all)),
        Node::Object(fields) => fields.iter().for_each(|(_, node)| collect(node, all)),
    }
}

struct Filling<'a> {
    values: &'a Value,
    partials: &'a dyn Partials,
    budget: &'a mut RenderBudget,
}

impl Filling<'_> {
    fn text(&mut self, template: &Template, escape: Escape) -> Result<String, TemplateError> {
        render_within(self.budget, template, self.values, self.partials, escape)
    }

    fn node(&mut self, node: &Node) -> Result<Value, TemplateError> {
        Ok(match node {
            Node::Fixed(value) => value.clone(),
            Node::Text(template) => self.text(template, Escape::Nothing)?.into(),
            Node::List(nodes) => nodes.iter().map(|node| self.node(node)).collect::<Result<Vec<_>, _>>()?.into(),
            Node::Object(fields) => {
                let fields = fields.iter().map(|(name, node)| Ok((name.clone(), self.node(node)?)));
                Value::Object(fields.collect::<Result<_, TemplateError>>()?)
            }
        })
    }
}
