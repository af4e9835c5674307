//! What a template asks for: computed from its parse, shown to those who fill it in, and the list by which default values
//! are told from parameters of the model.

use super::Node;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Components {
    pub partials: BTreeSet<String>,
    pub sections: BTreeSet<String>,
    /// Those outside of sections.
    pub variables: BTreeSet<String>,
    pub section_variables: BTreeMap<String, BTreeSet<String>>,
    /// Partials whose name is a variable; there are none.
    pub variable_partials: BTreeSet<String>,
}

impl Components {
    pub(super) fn of(nodes: &[Node]) -> Self {
        let mut all = Self::default();
        all.walk(nodes, None);
        all
    }

    /// What both ask for.
    pub fn join(&mut self, other: Self) {
        self.partials.extend(other.partials);
        self.sections.extend(other.sections);
        self.variables.extend(other.variables);
        for (section, names) in other.section_variables {
            self.section_variables.entry(section).or_default().extend(names);
        }
        self.variable_partials.extend(other.variable_partials);
    }

    fn walk(&mut self, nodes: &[Node], section: Option<&str>) {
        for node in nodes {
            match node {
                Node::Text(_) => {}
                Node::Partial { name, .. } => {
                    self.partials.insert(name.to_string());
                }
                Node::Variable(name) => {
                    let names = match section {
                        None => &mut self.variables,
                        Some(section) => self.section_variables.entry(section.to_owned()).or_default(),
                    };
                    names.insert(name.written());
                }
                Node::Section { name, nodes, .. } => {
                    let name = name.written();
                    self.sections.insert(name.clone());
                    self.section_variables.entry(name.clone()).or_default();
                    self.walk(nodes, Some(&name));
                }
            }
        }
    }
}
