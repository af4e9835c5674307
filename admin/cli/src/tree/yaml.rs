//! YAML as JSON values with their lines. Plain scalars are those of YAML 1.2's core schema, so `no` is a text.
//!
//! Aliases are refused: a few lines of them can stand for gigabytes.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};
use std::collections::HashSet;

const MAX_DEPTH: usize = 100;

#[derive(Debug, Clone)]
pub struct Node {
    pub line: usize,
    pub content: Content,
}

#[derive(Debug, Clone)]
pub enum Content {
    Scalar(Value),
    List(Vec<Node>),
    Fields(Vec<Field>),
    /// `!include PATH`.
    Include(String),
}

#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub line: usize,
    pub value: Node,
}

/// A line and what is wrong there.
pub type LineFault = (usize, String);

impl Node {
    /// The value without lines; includes are for whoever knows the folder.
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Fields(fields) => Value::Object(
                fields.iter().map(|field| (field.name.clone(), field.value.value())).collect::<Map<_, _>>(),
            ),
            Content::Include(path) => Value::from(path.as_str()),
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// The only document of a text, without lines. A fault is written as `LINE: what`.
pub fn one(text: &str) -> Result<Value, String> {
    match documents(text) {
        Ok(found) if found.len() == 1 => Ok(found[0].value()),
        Ok(found) => Err(format!("1: there are {} documents, not one", found.len())),
        Err((line, message)) => Err(format!("{line}: {message}")),
    }
}

/// All documents of a text; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Node>, LineFault> {
    let mut reader = Reader { events: Parser::new_from_str(text), depth: 0 };
    let mut documents = Vec::new();
    while let Some((event, span)) = reader.next()? {
        if matches!(event, Event::DocumentStart(_)) {
            let (event, span) = reader.next()?.ok_or((span.start.line(), "the document is not complete".to_owned()))?;
            let node = reader.node(event, span)?;
            if !matches!(node.content, Content::Scalar(Value::Null)) {
                documents.push(node);
            }
        }
    }
    Ok(documents)
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, LineFault> {
        match self.events.next_event() {
            None => Ok(None),
            Some(Ok(found)) => Ok(Some(found)),
            Some(Err(error)) => Err((error.marker().line(), error.info().to_owned())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Result<Node, LineFault> {
        let line = span.start.line();
        let content = match event {
            Event::Scalar(text, style, _, tag) => match tag.map(|tag| tag.to_string()).as_deref() {
                Some("!include") => Content::Include(text.into_owned()),
                None if style == ScalarStyle::Plain => Content::Scalar(plain(&text)),
                None | Some("!" | "tag:yaml.org,2002:str" | "!!str") => Content::Scalar(Value::from(text.into_owned())),
                Some(tag) => return Err((line, format!("the tag {tag} has no meaning here"))),
            },
            Event::SequenceStart(..) => Content::List(self.items(line)?),
            Event::MappingStart(..) => Content::Fields(self.fields(line)?),
            Event::Alias(_) => return Err((line, "aliases are not read: write it out".to_owned())),
            _ => return Err((line, "a value is missing".to_owned())),
        };
        Ok(Node { line, content })
    }

    fn deeper(&mut self, line: usize) -> Result<(), LineFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err((line, "this is nested too deeply".to_owned())) } else { Ok(()) }
    }

    fn items(&mut self, line: usize) -> Result<Vec<Node>, LineFault> {
        self.deeper(line)?;
        let mut items = Vec::new();
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            items.push(self.node(event, span)?);
        }
        self.depth -= 1;
        Ok(items)
    }

    fn fields(&mut self, line: usize) -> Result<Vec<Field>, LineFault> {
        self.deeper(line)?;
        let mut fields: Vec<Field> = Vec::new();
        let mut names = HashSet::new();
        while let Some((event, span)) = self.next()? {
            let line = span.start.line();
            let name = match event {
                Event::MappingEnd => break,
                Event::Scalar(name, ..) => name.into_owned(),
                _ => return Err((line, "a name must be a text".to_owned())),
            };
            if !names.insert(name.clone()) {
                return Err((line, format!("`{name}` stands here twice")));
            }
            let (event, span) = self.next()?.ok_or((line, "a value is missing".to_owned()))?;
            fields.push(Field { name, line, value: self.node(event, span)? });
        }
        self.depth -= 1;
        Ok(fields)
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => serde_json::from_str::<Number>(text).map_or_else(|_| Value::from(text), Value::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::yaml;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn faults_have_their_line() {
        for (text, line, part) in
            [("a: 1\nb: *x\n", 2, ""), ("a: 1\na: 2\n", 2, "twice"), ("a: !env X\n", 1, "tag"), ("a: [1,\nb", 2, "")]
        {
            let (found, message) = documents(text).unwrap_err();
            assert!(found >= line - 1 && message.contains(part), "{text:?}: {found}: {message}");
        }
        let deep = "[".repeat(5000);
        assert!(documents(&deep).is_err());
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        let found =
            one("{a: no, b: 1.5, c: '1', d: , e: 0x1f, f: true, g: \"x\\ty\", h: 18446744073709551615}").unwrap();
        let meant =
            json!({ "a": "no", "b": 1.5, "c": "1", "d": null, "e": "0x1f", "f": true, "g": "x\ty", "h": u64::MAX });
        assert_eq!(found, meant);
    }

    fn values() -> impl Strategy<Value = Value> {
        let text =
            prop_oneof![any::<String>(), "[ -~\n]{0,12}", "(yes|no|null|~|1e3|- a|a: b|#x|a #b|'|\\||> x)( |\n)?"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // JSON's reader rounds the last digit of others, here as in the answers of the API.
            any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_written_is_read_again(value in values()) {
            let text = yaml::text(&json!({ "value": value }));
            let read = one(&text);
            prop_assert_eq!(read.map(|mut read| read["value"].take()), Ok(value), "{}", text);
        }
    }
}
