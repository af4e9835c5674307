//! A body as JSON text with gaps where its variables stand, for templates that only name variables. Whatever is filled
//! into a gap is written as the inside of a JSON text, so that nothing has to be read or escaped again.

use super::{BodyTemplate, Kind, Node, PromptBody};
use crate::prompt::template::{PlainPart, Template, printed};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// As it is sent.
    Json(Box<str>),
    /// A variable, inside of a JSON text; what stands there if a call does not bring it.
    Gap { name: Box<str>, default: Box<str> },
}

impl PromptBody {
    /// The fields of the request that it makes, in pieces; none for templates that do more than name variables.
    pub(in crate::prompt) fn pieces(&self, defaults: &Map<String, Value>) -> Option<Vec<(&str, Vec<Piece>)>> {
        let pieces = |node: &Node| {
            let mut writing = Writing { defaults, pieces: Vec::new(), text: String::new() };
            writing.node(node)?;
            Some(writing.finish())
        };
        match (&self.template, self.kind) {
            (BodyTemplate::Text(template), Kind::Text) => {
                let mut writing = Writing { defaults, pieces: Vec::new(), text: String::new() };
                writing.template(template)?;
                Some(vec![("prompt", writing.finish())])
            }
            (BodyTemplate::Json(Node::Object(fields)), Kind::Whole) => {
                fields.iter().map(|(name, node)| Some((name.as_str(), pieces(node)?))).collect()
            }
            (BodyTemplate::Json(messages @ Node::List(_)), Kind::Messages | Kind::Whole) => {
                Some(vec![("messages", pieces(messages)?)])
            }
            _ => None,
        }
    }
}

/// A value as it is sent.
pub(in crate::prompt) fn fixed(value: &Value) -> Vec<Piece> {
    vec![Piece::Json(value.to_string().into())]
}

struct Writing<'d> {
    defaults: &'d Map<String, Value>,
    pieces: Vec<Piece>,
    /// What comes after the last gap.
    text: String,
}

impl Writing<'_> {
    fn node(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Fixed(value) => self.text += &value.to_string(),
            Node::Text(template) => self.template(template)?,
            Node::List(nodes) => {
                self.text.push('[');
                for (place, node) in nodes.iter().enumerate() {
                    self.comma(place);
                    self.node(node)?;
                }
                self.text.push(']');
            }
            Node::Object(fields) => {
                self.text.push('{');
                for (place, (name, node)) in fields.iter().enumerate() {
                    self.comma(place);
                    self.text += &Value::from(name.as_str()).to_string();
                    self.text.push(':');
                    self.node(node)?;
                }
                self.text.push('}');
            }
        }
        Some(())
    }

    fn comma(&mut self, place: usize) {
        if place > 0 {
            self.text.push(',');
        }
    }

    fn template(&mut self, template: &Template) -> Option<()> {
        self.text.push('"');
        for part in template.plain_parts()? {
            match part {
                PlainPart::Text(text) => self.text += &inside_of_text(text),
                PlainPart::Variable(name) => {
                    self.end_text();
                    let default = self.defaults.get(name).map(|value| inside_of_text(&printed(value)));
                    self.pieces.push(Piece::Gap { name: name.into(), default: default.unwrap_or_default().into() });
                }
            }
        }
        self.text.push('"');
        Some(())
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Json(std::mem::take(&mut self.text).into()));
        }
    }

    fn finish(mut self) -> Vec<Piece> {
        self.end_text();
        self.pieces
    }
}

/// A JSON text without its quotes.
fn inside_of_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
