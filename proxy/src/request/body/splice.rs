//! JSON text with some members of one object or list dropped, replaced or added; every other byte, the space between
//! members included, is copied as it stands.

use super::Fields;
use serde_json::value::RawValue;
use shared::config::ParamStep;
use std::borrow::Cow;

/// Where a member stands in its text: from its key, or its value in a list, to the end of its value.
#[derive(Debug, Clone, Copy)]
pub struct MemberSpan {
    start: usize,
    value: usize,
    end: usize,
}

impl MemberSpan {
    /// Of a member whose parts are pieces of the text.
    pub fn locate(text: &[u8], key: &[u8], value: &[u8]) -> Self {
        let offset = |piece: &[u8]| (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        Self { start: offset(key), value: offset(value), end: offset(value) + value.len() }
    }
}

/// What becomes of a member.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate<'t> {
    Keep,
    Drop,
    Replace(Cow<'t, [u8]>),
}

/// A text being written anew, member by member.
pub struct Splicer<'t> {
    text: &'t [u8],
    out: Vec<u8>,
    /// Where the text goes on after the last member seen.
    at: usize,
    has_seen: bool,
    is_empty: bool,
}

impl<'t> Splicer<'t> {
    /// `growth` is how much longer the text may become.
    pub fn new(text: &'t [u8], growth: usize) -> Self {
        let inside = text.iter().position(|byte| matches!(byte, b'{' | b'[')).map_or(0, |at| at + 1);
        let out = Vec::with_capacity(text.len() + growth);
        Self { text, out, at: inside, has_seen: false, is_empty: true }
    }

    /// The next member of the text.
    pub fn member(&mut self, place: MemberSpan, fate: Fate<'_>) {
        let before = self.piece(self.at, place.start);
        if !self.has_seen {
            let opening = self.piece(0, place.start);
            self.out.extend_from_slice(opening);
        }
        self.has_seen = true;
        self.at = place.end;
        if fate == Fate::Drop {
            return;
        }
        if !self.is_empty {
            self.out.extend_from_slice(before);
        }
        self.is_empty = false;
        match fate {
            Fate::Replace(value) => {
                let key = self.piece(place.start, place.value);
                self.out.extend_from_slice(key);
                self.out.extend_from_slice(&value);
            }
            Fate::Keep | Fate::Drop => {
                let member = self.piece(place.start, place.end);
                self.out.extend_from_slice(member);
            }
        }
    }

    /// A member more, after those of the text.
    pub fn add(&mut self, key: &str, value: &[u8]) {
        if !self.has_seen {
            let opening = self.piece(0, self.at);
            self.out.extend_from_slice(opening);
        }
        self.has_seen = true;
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        push_key(&mut self.out, key);
        self.out.extend_from_slice(value);
    }

    pub fn finish(mut self) -> Vec<u8> {
        let from = if self.has_seen { self.at } else { 0 };
        let rest = self.piece(from, self.text.len());
        self.out.extend_from_slice(rest);
        self.out
    }

    fn piece(&self, from: usize, to: usize) -> &'t [u8] {
        self.text.get(from..to).unwrap_or_default()
    }
}

/// The text without what the path leads to; None when it leads nowhere.
pub fn without(text: &[u8], steps: &[ParamStep]) -> Option<Vec<u8>> {
    let (step, rest) = steps.split_first()?;
    match step {
        ParamStep::Key(name) => {
            let fields = Fields::parse(text)?;
            fields.get(name)?;
            let members = fields.places().map(|(key, value, place)| (key == name, value, place));
            Some(spliced(text, members, rest))
        }
        ParamStep::Index(index) => items(text, |position| position == *index, rest),
        ParamStep::Each => items(text, |_| true, rest),
    }
}

fn items(text: &[u8], is_meant: impl Fn(usize) -> bool, rest: &[ParamStep]) -> Option<Vec<u8>> {
    let items: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
    let members = items.iter().enumerate().map(|(position, item)| {
        let item = item.get().as_bytes();
        (is_meant(position), item, MemberSpan::locate(text, item, item))
    });
    Some(spliced(text, members, rest))
}

/// Without the members that are meant, or without what the rest of the path leads to inside them.
fn spliced<'t>(
    text: &[u8],
    members: impl Iterator<Item = (bool, &'t [u8], MemberSpan)>,
    rest: &[ParamStep],
) -> Vec<u8> {
    let mut out = Splicer::new(text, 0);
    for (is_meant, value, place) in members {
        let fate = match (is_meant, rest.is_empty()) {
            (false, _) => Fate::Keep,
            (true, true) => Fate::Drop,
            (true, false) => without(value, rest).map_or(Fate::Keep, |less| Fate::Replace(Cow::Owned(less))),
        };
        out.member(place, fate);
    }
    out.finish()
}

/// `"key":`, escaped where it must be.
fn push_key(out: &mut Vec<u8>, key: &str) {
    let is_plain = key.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    match is_plain {
        true => {
            out.push(b'"');
            out.extend_from_slice(key.as_bytes());
            out.push(b'"');
        }
        false => out.extend_from_slice(serde_json::Value::from(key).to_string().as_bytes()),
    }
    out.push(b':');
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::config::ParamPath;

    #[test]
    fn only_what_the_path_leads_to_is_gone() {
        let text = r#"{ "a":{"b":1.50,"c":[{"x":1,"y":2e0}, {"y":3}]} , "d\n":"é"}"#;
        for (path, left) in [
            ("a", r#"{ "d\n":"é"}"#),
            ("a.b", r#"{ "a":{"c":[{"x":1,"y":2e0}, {"y":3}]} , "d\n":"é"}"#),
            ("a.c[0]", r#"{ "a":{"b":1.50,"c":[{"y":3}]} , "d\n":"é"}"#),
            ("a.c[0].y", r#"{ "a":{"b":1.50,"c":[{"x":1}, {"y":3}]} , "d\n":"é"}"#),
            ("a.c[*].y", r#"{ "a":{"b":1.50,"c":[{"x":1}, {}]} , "d\n":"é"}"#),
            ("a.c[*]", r#"{ "a":{"b":1.50,"c":[]} , "d\n":"é"}"#),
            ("nowhere.at.all", text),
            ("a.b.c", text),
            ("a.c.d", text),
            ("a.c[7]", text),
        ] {
            let path = ParamPath::parse(path).unwrap();
            let found = without(text.as_bytes(), path.steps());
            let found = found.map_or(text.to_owned(), |less| String::from_utf8(less).unwrap());
            assert_eq!(found, left, "{path}");
        }
    }

    #[test]
    fn members_go_and_come_at_either_end_and_the_space_between_others_stays() {
        let text = b" { \"a\" : 1 ,\n \"b\": 2,\"c\":3 } ";
        let fields = Fields::parse(text).unwrap();
        for (dropped, added, expected) in [
            ("", "", " { \"a\" : 1 ,\n \"b\": 2,\"c\":3 } "),
            ("a", "", " { \"b\": 2,\"c\":3 } "),
            ("b", "", " { \"a\" : 1,\"c\":3 } "),
            ("c", "", " { \"a\" : 1 ,\n \"b\": 2 } "),
            ("ab", "", " { \"c\":3 } "),
            ("abc", "", " {  } "),
            ("abc", "x", " { \"x\":0 } "),
            ("c", "xy", " { \"a\" : 1 ,\n \"b\": 2,\"x\":0,\"y\":0 } "),
        ] {
            let mut out = Splicer::new(text, 0);
            for (name, _, place) in fields.places() {
                out.member(place, if dropped.contains(name) { Fate::Drop } else { Fate::Keep });
            }
            added.chars().for_each(|name| out.add(&name.to_string(), b"0"));
            assert_eq!(String::from_utf8(out.finish()).unwrap(), expected, "-{dropped} +{added}");
        }
        let mut out = Splicer::new(b" { } ", 0);
        out.add("a\"", b"1");
        assert_eq!(out.finish(), br#" {"a\"":1 } "#);
        assert_eq!(Splicer::new(b" {} ", 0).finish(), b" {} ");
    }
}
