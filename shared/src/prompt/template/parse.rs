//! From tags to a tree of sections.

use super::error::shown;
use super::scan::Token;
use super::{Name, Node, TemplateError};

/// Sections inside sections; it bounds every recursion over a template.
const MAX_DEPTH: usize = 32;

struct Section<'t> {
    name: &'t str,
    is_inverted: bool,
    nodes: Vec<Node>,
}

pub fn parse(tokens: Vec<Token<'_>>) -> Result<Vec<Node>, TemplateError> {
    let mut nodes = Vec::new();
    let mut around: Vec<Section<'_>> = Vec::new();
    for token in tokens {
        match token {
            Token::Text("") => {}
            Token::Text(text) => push_text(&mut nodes, text),
            Token::Variable(name) => nodes.push(Node::Variable(Name::new(name))),
            Token::Partial { name, indentation } => {
                nodes.push(Node::Partial { name: name.into(), indentation: indentation.into() });
            }
            Token::Open { name, is_inverted } => {
                if around.len() == MAX_DEPTH {
                    return Err(TemplateError::TooDeep(MAX_DEPTH));
                }
                // What stands around it waits in the section until it is closed.
                around.push(Section { name, is_inverted, nodes: std::mem::take(&mut nodes) });
            }
            Token::Close(name) => {
                let opened = around.pop().filter(|opened| opened.name == name);
                let Section { is_inverted, nodes: outer, .. } =
                    opened.ok_or_else(|| TemplateError::Unopened(shown(name)))?;
                let inner = std::mem::replace(&mut nodes, outer);
                nodes.push(Node::Section { name: Name::new(name), is_inverted, nodes: inner });
            }
        }
    }
    match around.pop() {
        None => Ok(nodes),
        Some(open) => Err(TemplateError::OpenSection(shown(open.name))),
    }
}

/// Lines that stand together are one node.
fn push_text(nodes: &mut Vec<Node>, text: &str) {
    match nodes.last_mut() {
        Some(Node::Text(before)) => before.push_str(text),
        _ => nodes.push(Node::Text(text.into())),
    }
}
