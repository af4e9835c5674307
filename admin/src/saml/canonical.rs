//! Exclusive XML canonicalisation (without comments): the bytes that a signature speaks of. Namespaces are written where
//! they are first used, attributes in the order of their names, and one child can be left out, which is how a signature
//! stands inside of what it signs.

use super::work;
use super::xml::{Attribute, Child, Document, Element, ElementId};
use std::collections::{HashMap, HashSet};

pub const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

/// A document makes no more canonical bytes than so many times its own. Honest ones make hardly more than their own: what
/// grows is a namespace that is declared once and written again at each of many elements.
const MAX_GROWTH: usize = 8;
const MIN_BOUND: usize = 4 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// `inclusive` are prefixes that are written where they are declared, whether used or not; `#default` is the empty one.
pub fn exclusive(
    document: &Document,
    of: ElementId,
    without: Option<ElementId>,
    inclusive: &[String],
) -> Result<Vec<u8>, TooLong> {
    let around = document.element(of).parent.map(|parent| document.scope(parent)).unwrap_or_default();
    let mut writer = Writer {
        document,
        without,
        inclusive: inclusive.iter().map(|one| if one == "#default" { "" } else { one.as_str() }).collect(),
        scope: around.into_iter().map(|(prefix, namespace)| (prefix, vec![&**namespace])).collect(),
        written: HashMap::new(),
        most: MIN_BOUND + document.bytes() * MAX_GROWTH,
        out: String::new(),
    };
    writer.element(of, true)?;
    Ok(writer.out.into_bytes())
}

/// What prefixes stand for, the innermost last.
type Nested<'d> = HashMap<&'d str, Vec<&'d str>>;

struct Writer<'d> {
    document: &'d Document,
    without: Option<ElementId>,
    inclusive: HashSet<&'d str>,
    /// In the document, at the present element.
    scope: Nested<'d>,
    /// In what was written around the present element.
    written: Nested<'d>,
    most: usize,
    out: String,
}

impl<'d> Writer<'d> {
    /// Calls itself for each level, of which the reader allows few.
    fn element(&mut self, id: ElementId, is_first: bool) -> Result<(), TooLong> {
        let document = self.document;
        let element = document.element(id);
        let name = qualified(&element.prefix, &element.local);
        for (prefix, namespace) in &element.declared {
            self.scope.entry(prefix).or_default().push(namespace);
        }
        self.out.push('<');
        self.out.push_str(&name);
        let needed = self.namespaces(element, is_first);
        for &(prefix, namespace) in &needed {
            let name = if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") };
            self.attribute(&name, namespace)?;
            self.written.entry(prefix).or_default().push(namespace);
        }
        let mut attributes: Vec<&Attribute> = element.attributes.iter().collect();
        attributes.sort_by(|a, b| (&a.namespace, &a.local).cmp(&(&b.namespace, &b.local)));
        for one in attributes {
            self.attribute(&qualified(&one.prefix, &one.local), &one.value)?;
        }
        self.out.push('>');
        for child in &element.children {
            match child {
                Child::Element(id) if Some(*id) == self.without => {}
                Child::Element(id) => self.element(*id, false)?,
                Child::Text(text) => self.text(text)?,
            }
        }
        self.out.push_str("</");
        self.out.push_str(&name);
        self.out.push('>');
        for (prefix, _) in &needed {
            self.written.get_mut(prefix).and_then(Vec::pop);
        }
        for (prefix, _) in &element.declared {
            self.scope.get_mut(prefix.as_str()).and_then(Vec::pop);
        }
        Ok(())
    }

    /// The declarations that this element needs and that nothing around it has written, by prefix. A prefix of the list
    /// can be needed only where the scope changes: at the first element, and where it is declared.
    fn namespaces(&self, element: &'d Element, is_first: bool) -> Vec<(&'d str, &'d str)> {
        let of_attributes = element.attributes.iter().map(|one| one.prefix.as_str()).filter(|one| !one.is_empty());
        let mut prefixes: Vec<&'d str> = of_attributes.chain([element.prefix.as_str()]).collect();
        let declared = element.declared.iter().map(|(prefix, _)| prefix.as_str());
        match is_first {
            true => prefixes.extend(&self.inclusive),
            false => prefixes.extend(declared.filter(|prefix| self.inclusive.contains(prefix))),
        }
        prefixes.retain(|one| *one != "xml");
        prefixes.sort_unstable();
        prefixes.dedup();
        work::note(prefixes.len() + element.declared.len());
        let needed = prefixes.into_iter().filter_map(|prefix| {
            let here = self.scope.get(prefix).and_then(|all| all.last().copied());
            let namespace = here.or_else(|| prefix.is_empty().then_some(""))?;
            let written = self.written.get(prefix).and_then(|all| all.last().copied());
            (written.unwrap_or_default() != namespace).then_some((prefix, namespace))
        });
        needed.collect()
    }

    /// Before more is written.
    fn bound(&self, more: usize) -> Result<(), TooLong> {
        work::note(more);
        if self.out.len() + more > self.most { Err(TooLong) } else { Ok(()) }
    }

    fn attribute(&mut self, name: &str, value: &str) -> Result<(), TooLong> {
        self.bound(name.len() + value.len())?;
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        for c in value.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '"' => self.out.push_str("&quot;"),
                '\t' => self.out.push_str("&#x9;"),
                '\n' => self.out.push_str("&#xA;"),
                '\r' => self.out.push_str("&#xD;"),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), TooLong> {
        self.bound(text.len())?;
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '\r' => self.out.push_str("&#xD;"),
                c => self.out.push(c),
            }
        }
        Ok(())
    }
}

fn qualified(prefix: &str, local: &str) -> String {
    if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") }
}

#[cfg(test)]
mod tests {
    use super::super::xml::parse;
    use super::*;

    fn canonical(text: &str, path: &[&str], inclusive: &[&str]) -> String {
        let document = parse(text.as_bytes()).unwrap();
        let mut here = document.root();
        for name in path {
            here = document.elements_in(here).find(|id| document.element(*id).local == *name).unwrap();
        }
        let inclusive: Vec<String> = inclusive.iter().map(|one| (*one).to_owned()).collect();
        String::from_utf8(exclusive(&document, here, None, &inclusive).unwrap()).unwrap()
    }

    /// The example of the recommendation, 2.2: the same bytes wherever the element stands.
    #[test]
    fn an_element_is_the_same_bytes_wherever_it_stands() {
        let elem = "<n1:elem2 xmlns:n1=\"http://example.net\" xml:lang=\"en\"><n3:stuff \
                    xmlns:n3=\"ftp://example.org\"></n3:stuff></n1:elem2>";
        for around in [
            "<n0:pdu xmlns:n0=\"http://a.example\">@</n0:pdu>",
            "<n2:pdu xmlns:n1=\"http://example.com\" xmlns:n2=\"http://foo.example\" xml:lang=\"fr\" \
             xml:space=\"retain\">@</n2:pdu>",
        ] {
            let text = around.replace(
                '@',
                &elem.replace("</n3:stuff>", "").replace("ftp://example.org\">", "ftp://example.org\"/>"),
            );
            assert_eq!(canonical(&text, &["elem2"], &[]), elem);
        }
    }

    #[test]
    fn order_quotes_empty_elements_and_characters_are_made_alike() {
        for (text, expected) in [
            ("<a  b = '1'   a=\"2\" />", "<a a=\"2\" b=\"1\"></a>"),
            (
                "<a xmlns:z='urn:a' xmlns:y='urn:b' y:k='1' z:k='2' k='3'/>",
                "<a xmlns:y=\"urn:b\" xmlns:z=\"urn:a\" k=\"3\" z:k=\"2\" y:k=\"1\"></a>",
            ),
            (
                "<a x='&#9;&#10;&#13;\t\"&lt;>'>&#13;&gt;\"'&amp;<!-- c --></a>",
                "<a x=\"&#x9;&#xA;&#xD; &quot;&lt;>\">&#xD;&gt;\"'&amp;</a>",
            ),
            (
                "<a xmlns='urn:1'><b xmlns=''><c/></b><d/></a>",
                "<a xmlns=\"urn:1\"><b xmlns=\"\"><c></c></b><d></d></a>",
            ),
            ("<a>x\r\ny</a>", "<a>x\ny</a>"),
        ] {
            assert_eq!(canonical(text, &[], &[]), expected, "{text}");
        }
    }

    #[test]
    fn a_prefix_of_the_list_is_written_though_nothing_uses_it() {
        let text = "<r xmlns:xs='urn:xs' xmlns='urn:d'><a t='xs:string'><b/></a></r>";
        assert_eq!(canonical(text, &["a"], &[]), "<a xmlns=\"urn:d\" t=\"xs:string\"><b></b></a>");
        assert_eq!(
            canonical(text, &["a"], &["xs", "none"]),
            "<a xmlns=\"urn:d\" xmlns:xs=\"urn:xs\" t=\"xs:string\"><b></b></a>"
        );
    }
}
