//! Reading: from text to a tree, without recursion, so that no depth of nesting exhausts the stack.

use super::{Attribute, Child, Document, Element, ElementId, Malformed, Scope};
use crate::saml::work;
use std::collections::HashMap;
use std::sync::Arc;

pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
const MAX_DEPTH: usize = 32;
const MAX_ELEMENTS: usize = 10_000;
/// They are compared with each other.
const MAX_ATTRIBUTES: usize = 32;

/// They are compared, and written again where they are used.
const MAX_NAMESPACE_LENGTH: usize = 1024;

type Read<T> = Result<T, Malformed>;

/// Reads a whole document. How long it may be is for the caller to say.
pub fn parse(bytes: &[u8]) -> Read<Document> {
    parse_within(bytes, &Scope::new())
}

/// Reads a document as if it stood where these prefixes are declared.
pub fn parse_within(bytes: &[u8], scope: &Scope<'_>) -> Read<Document> {
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed("is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    if !text.chars().all(is_char) {
        return Err(Malformed("has characters that XML does not have"));
    }
    work::note(bytes.len());
    let mut reader = Reader {
        text: &text,
        at: 0,
        document: Document { elements: Vec::new(), bytes: bytes.len() },
        open: Vec::new(),
        scope: HashMap::new(),
        nothing: "".into(),
    };
    reader.declaration()?;
    reader.run(scope)?;
    Ok(reader.document)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    document: Document,
    open: Vec<ElementId>,
    /// What prefixes stand for at the place that is read, the innermost last.
    scope: HashMap<String, Vec<Arc<str>>>,
    /// No namespace.
    nothing: Arc<str>,
}

struct Tag<'t> {
    name: &'t str,
    /// Names and values as they were written, without references.
    attributes: Vec<(&'t str, String)>,
    is_empty: bool,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, start: &str) -> bool {
        let is_next = self.rest().starts_with(start);
        self.at += if is_next { start.len() } else { 0 };
        is_next
    }

    /// What stands before `end`, which is passed too.
    fn until(&mut self, end: &str) -> Read<&'t str> {
        let rest = self.rest();
        let found = rest.find(end).ok_or(Malformed("ends too early"))?;
        self.at += found + end.len();
        Ok(&rest[..found])
    }

    fn spaces(&mut self) -> bool {
        let rest = self.rest();
        let trimmed = rest.trim_start_matches([' ', '\t', '\n']);
        self.at += rest.len() - trimmed.len();
        trimmed.len() < rest.len()
    }

    fn declaration(&mut self) -> Read<()> {
        if !self.rest().starts_with("<?xml ") && !self.rest().starts_with("<?xml\n") {
            return Ok(());
        }
        let declared = self.until("?>")?.to_ascii_lowercase();
        match declared.split_once("encoding") {
            Some((_, encoding)) if !encoding.contains("utf-8") && !encoding.contains("us-ascii") => {
                Err(Malformed("is not UTF-8"))
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self, scope: &Scope<'_>) -> Read<()> {
        loop {
            work::note(1);
            if self.at == self.text.len() {
                let is_whole = self.open.is_empty() && !self.document.elements.is_empty();
                return if is_whole { Ok(()) } else { Err(Malformed("ends too early")) };
            }
            if self.take("<!--") {
                if self.until("-->")?.contains("--") {
                    return Err(Malformed("has a comment that is none"));
                }
            } else if self.take("<![CDATA[") {
                let text = self.until("]]>")?.to_owned();
                self.add_text(&text)?;
            } else if self.take("</") {
                self.close()?;
            } else if self.rest().starts_with("<!") {
                return Err(Malformed("has a document type or entities"));
            } else if self.rest().starts_with("<?") {
                return Err(Malformed("has processing instructions"));
            } else if self.take("<") {
                self.start(scope)?;
            } else {
                self.characters()?;
            }
        }
    }

    fn characters(&mut self) -> Read<()> {
        let rest = self.rest();
        let end = rest.find('<').unwrap_or(rest.len());
        self.at += end;
        if rest[..end].contains("]]>") {
            return Err(Malformed("has ]]> outside of CDATA"));
        }
        let text = resolved(&rest[..end], false)?;
        self.add_text(&text)
    }

    /// Texts that only a comment or CDATA parts are one text.
    fn add_text(&mut self, text: &str) -> Read<()> {
        let Some(parent) = self.open.last() else {
            let is_blank = text.chars().all(|c| matches!(c, ' ' | '\t' | '\n'));
            return if is_blank { Ok(()) } else { Err(Malformed("has text outside of its root")) };
        };
        if text.is_empty() {
            return Ok(());
        }
        let children = &mut self.document.elements[parent.0].children;
        match children.last_mut() {
            Some(Child::Text(before)) => before.push_str(text),
            _ => children.push(Child::Text(text.to_owned())),
        }
        Ok(())
    }

    fn close(&mut self) -> Read<()> {
        let name = self.until(">")?.trim_end_matches([' ', '\t', '\n']);
        let open = self.open.pop().ok_or(Malformed("closes what is not open"))?;
        let element = self.document.element(open);
        let is_same = match element.prefix.as_str() {
            "" => element.local == name,
            prefix => name.split_once(':') == Some((prefix, element.local.as_str())),
        };
        if !is_same {
            return Err(Malformed("closes what is not open"));
        }
        self.leave(open);
        Ok(())
    }

    fn start(&mut self, scope: &Scope<'_>) -> Read<()> {
        let tag = self.tag()?;
        if self.open.is_empty() && !self.document.elements.is_empty() {
            return Err(Malformed("has more than one root"));
        }
        if self.document.elements.len() >= MAX_ELEMENTS || self.open.len() >= MAX_DEPTH {
            return Err(Malformed("has too many elements, or is nested too deeply"));
        }
        let is_root = self.document.elements.is_empty();
        let (declared, plain) = declarations(tag.attributes, is_root.then_some(scope))?;
        self.enter(&declared);
        let id = ElementId(self.document.elements.len());
        let parent = self.open.last().copied();
        let (prefix, local) = split(tag.name)?;
        self.document.elements.push(Element {
            parent,
            prefix: prefix.to_owned(),
            local: local.to_owned(),
            namespace: self.namespace(prefix)?,
            declared,
            attributes: self.named(plain)?,
            children: Vec::new(),
        });
        if let Some(parent) = parent {
            self.document.elements[parent.0].children.push(Child::Element(id));
        }
        match tag.is_empty {
            true => self.leave(id),
            false => self.open.push(id),
        }
        Ok(())
    }

    fn enter(&mut self, declared: &[(String, Arc<str>)]) {
        work::note(declared.len());
        for (prefix, namespace) in declared {
            self.scope.entry(prefix.clone()).or_default().push(namespace.clone());
        }
    }

    /// What an element declared ends with it.
    fn leave(&mut self, id: ElementId) {
        for (prefix, _) in &self.document.elements[id.0].declared {
            self.scope.get_mut(prefix).and_then(Vec::pop);
        }
    }

    fn tag(&mut self) -> Read<Tag<'t>> {
        let name = self.name()?;
        let mut attributes = Vec::new();
        loop {
            let is_apart = self.spaces();
            if self.take("/>") {
                return Ok(Tag { name, attributes, is_empty: true });
            }
            if self.take(">") {
                return Ok(Tag { name, attributes, is_empty: false });
            }
            if !is_apart || attributes.len() >= MAX_ATTRIBUTES {
                return Err(Malformed("has a tag that is none, or with too many attributes"));
            }
            let attribute = self.name()?;
            self.spaces();
            if !self.take("=") {
                return Err(Malformed("has an attribute without a value"));
            }
            self.spaces();
            let quote = if self.take("\"") { "\"" } else { "'" };
            if quote == "'" && !self.take("'") {
                return Err(Malformed("has an attribute without quotes"));
            }
            let value = self.until(quote)?;
            if value.contains('<') {
                return Err(Malformed("has < in an attribute"));
            }
            attributes.push((attribute, resolved(value, true)?));
        }
    }

    fn name(&mut self) -> Read<&'t str> {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        let is_name = rest[..end].starts_with(|c: char| c.is_alphabetic() || c == '_');
        if is_name { Ok(&rest[..end]) } else { Err(Malformed("has a name that is none")) }
    }

    fn namespace(&self, prefix: &str) -> Read<Arc<str>> {
        work::note(1);
        match (self.scope.get(prefix).and_then(|all| all.last()), prefix) {
            (_, "xml") => Ok(XML.into()),
            (Some(namespace), _) => Ok(namespace.clone()),
            (None, "") => Ok(self.nothing.clone()),
            (None, _) => Err(Malformed("has an undeclared prefix")),
        }
    }

    fn named(&self, plain: Vec<(&str, String)>) -> Read<Vec<Attribute>> {
        let mut named: Vec<Attribute> = Vec::new();
        for (name, value) in plain {
            work::note(named.len());
            let (prefix, local) = split(name)?;
            let namespace = if prefix.is_empty() { self.nothing.clone() } else { self.namespace(prefix)? };
            if named.iter().any(|one| one.local == local && one.namespace == namespace) {
                return Err(Malformed("has an attribute twice"));
            }
            named.push(Attribute { prefix: prefix.to_owned(), local: local.to_owned(), namespace, value });
        }
        Ok(named)
    }
}

type Declared = Vec<(String, Arc<str>)>;

/// Parts declarations of namespaces from attributes. What the element does not declare, `scope` does.
fn declarations<'t>(
    attributes: Vec<(&'t str, String)>,
    scope: Option<&Scope<'_>>,
) -> Read<(Declared, Vec<(&'t str, String)>)> {
    let (mut declared, mut plain): (Declared, Vec<_>) = (Vec::new(), Vec::new());
    for (name, value) in attributes {
        let prefix = match name.split_once(':') {
            Some(("xmlns", prefix)) if value.is_empty() || matches!(prefix, "xml" | "xmlns" | "") => {
                return Err(Malformed("declares a prefix that cannot be declared"));
            }
            Some(("xmlns", prefix)) => prefix,
            None if name == "xmlns" => "",
            _ => {
                plain.push((name, value));
                continue;
            }
        };
        if value.len() > MAX_NAMESPACE_LENGTH {
            return Err(Malformed("declares a namespace that is too long"));
        }
        if declared.iter().any(|(one, _)| one == prefix) {
            return Err(Malformed("declares a prefix twice"));
        }
        work::note(declared.len());
        declared.push((prefix.to_owned(), value.into()));
    }
    let own = declared.len();
    for (prefix, namespace) in scope.into_iter().flatten() {
        work::note(own);
        if !declared[..own].iter().any(|(one, _)| one == prefix) {
            declared.push(((*prefix).to_owned(), Arc::clone(namespace)));
        }
    }
    Ok((declared, plain))
}

fn split(name: &str) -> Read<(&str, &str)> {
    match name.split_once(':') {
        None => Ok(("", name)),
        Some((prefix, local)) if !prefix.is_empty() && !local.is_empty() && !local.contains(':') => Ok((prefix, local)),
        Some(_) => Err(Malformed("has a name that is none")),
    }
}

/// The text with references resolved. In attributes white space is a space, unless it was written as a reference.
fn resolved(text: &str, is_attribute: bool) -> Read<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        push(&mut out, &rest[..start], is_attribute);
        let (reference, after) = rest[start + 1..].split_once(';').ok_or(Malformed("has & that begins nothing"))?;
        out.push(referred(reference)?);
        rest = after;
    }
    push(&mut out, rest, is_attribute);
    Ok(out)
}

fn push(out: &mut String, text: &str, is_attribute: bool) {
    match is_attribute {
        true => out.extend(text.chars().map(|c| if matches!(c, '\t' | '\n') { ' ' } else { c })),
        false => out.push_str(text),
    }
}

fn referred(reference: &str) -> Read<char> {
    let number = match reference {
        "amp" => return Ok('&'),
        "lt" => return Ok('<'),
        "gt" => return Ok('>'),
        "quot" => return Ok('"'),
        "apos" => return Ok('\''),
        other => other.strip_prefix('#').ok_or(Malformed("has a document type or entities"))?,
    };
    let is_plain = |digits: &str| !digits.is_empty() && digits.len() <= 8 && !digits.starts_with('+');
    let code = match number.strip_prefix('x') {
        Some(hex) if is_plain(hex) => u32::from_str_radix(hex, 16).ok(),
        None if is_plain(number) => number.parse().ok(),
        _ => None,
    };
    code.and_then(char::from_u32).filter(|c| is_char(*c)).ok_or(Malformed("has a reference to no character"))
}

fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
